"""First programs: each project that ``penstock new`` writes runs as its README says, and its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock_conformance import command
from penstock_conformance.new_projects import KINDS

RUN = """
import os, runpy, shlex, shutil, sys

import pytest
from penstock_conformance import command

os.chdir(sys.argv[1])
sys.path.insert(0, "")
for line in sys.stdin.read().splitlines():
    print(f"$ {line}", flush=True)
    match shlex.split(line):
        case ["python", "-m", "pytest"]:
            assert pytest.main(["-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--doctest-modules"]) == 0
        case ["python", *arguments]:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
        case ["penstock", *arguments]:
            assert command.main(arguments) == 0
        case ["cp", source, target]:
            shutil.copy(source, target)
"""
"""Runs the commands of a README in one process, so that Spark starts once."""


def blocks_of(readme: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["stream", "sql", pytest.param("batch", marks=pytest.mark.soak)])
def test_a_new_project_prints_what_its_readme_says_and_its_tests_pass(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "my-project"
    assert command.main(["new", kind, str(folder)]) == 0
    readme = (folder / "README.md").read_text(encoding="utf-8")
    commands = "".join(blocks_of(readme, "sh"))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)], input=commands, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = [part.partition("\n") for part in done.stdout.split("$ ")[1:]]
    outputs = [sorted(text.splitlines()) for name, _, text in printed if "pytest" not in name and text]
    assert outputs == [sorted(block.splitlines()) for block in blocks_of(readme, "text")]
    assert re.search(r"\d passed", printed[-1][2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_project_has_the_name_of_its_folder_and_nothing_of_ours(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # A keyword, a hyphen and a dot are fine: no module has the name.
    for name in ("class", "my-sales.v2", "deep/below"):
        assert command.main(["new", kind, name]) == 0
        written = sorted(
            path.relative_to(name).as_posix() for path in Path(name).rglob("*") if path.is_file()
        )
        assert ", ".join(written) in capsys.readouterr().out
        last = name.rpartition("/")[2]
        assert f'name = "{last}"' in Path(name, "pyproject.toml").read_text(encoding="utf-8")
        assert Path(name, "README.md").read_text(encoding="utf-8").startswith(f"# {last}\n")
        assert not any("first-program" in Path(name, each).read_text(encoding="utf-8") for each in written)
        assert {"README.md", "pyproject.toml"} < set(written)
        assert not any("cache" in each for each in written)
    # The folder of a new repository has only what git needs.
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    monkeypatch.chdir(repository)
    assert command.main(["new", kind, "."]) == 0
    assert 'name = "repository"' in Path("pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my sales", "'my sales' cannot be the name of a project"),
        ("-", "'-' cannot be the name"),
        ("naïve", "hint: use a name such as na-ve"),
        ("Penstock", "a project named 'Penstock' would be taken for the package of that name"),
        ("full", "the folder full is not empty: it has a.txt, b.txt, c.txt and 1 more"),
        ("full/a.txt", "full/a.txt is a file"),
        ("full/a.txt/below", "full/a.txt/below cannot be written: Not a directory"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(
    name: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    for each in "abcd":
        (tmp_path / "full" / f"{each}.txt").write_text(each, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    # A name that begins with a hyphen comes after `--`.
    assert command.main(["new", "batch", "--", name]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "hint: " in error
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("grpah x", "'grpah' is not a command\n  hint: did you mean 'graph'?"),
        ("frobnicate", "hint: see `penstock --help`"),
        ("graph x --drak", "`penstock graph` has no flag --drak\n  hint: did you mean '--dark'?"),
        ("graph --to sgv x", "--to cannot be 'sgv'\n  hint: did you mean 'svg'?"),
        ("new bath x", "KIND cannot be 'bath'\n  hint: did you mean 'batch'?"),
        ("new batch a b", "`penstock new` takes no argument 'b' here"),
        ("", "required: COMMAND\n  hint: see `penstock --help`"),
    ],
)
def test_a_misspelled_command_line_is_refused_with_what_was_meant(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(arguments.split())
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_help_shows_every_command_in_a_group_and_every_command_has_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    shown = capsys.readouterr().out
    names = re.findall(r"^  ([a-z]+)  ", shown.partition("options:\n")[0], re.MULTILINE)
    assert {"new", "graph", "sql", "status", "drain", "doctor"} < set(names)
    assert "more:" not in shown, "a command is in no group"
    assert len(shown.splitlines()) <= 45
    for name in names:
        with pytest.raises(SystemExit):
            command.main([name, "--help"])
        assert f"penstock {name}" in capsys.readouterr().out.partition("Example")[2].replace("\n", " ")
