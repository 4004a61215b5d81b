"""The documentation site is built without a warning, and its pictures show what the machines do."""

from __future__ import annotations

import codeop
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def scripts_of_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the scripts beside the pages importable."""
    monkeypatch.syspath_prepend(ROOT / "docs")


SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
"""Sphinx without a search for garbage among its millions of objects: a quarter of the time."""


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    pytest.importorskip("apache_beam")
    command = [sys.executable, "-c", SPHINX, "-q", "-W", "--keep-going", "-c", "docs"]
    # Without every object in the table of contents, which the theme copies for each page: a third of the time.
    command += ["-D", "toc_object_entries=0", ".", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert [page for page in sorted(pages) if not (tmp_path / page).exists()] == []
    reference = (tmp_path / "docs/reference/pipelines.html").read_text(encoding="utf-8")
    assert 'id="penstock.CombinePerKey"' in reference
    assert 'id="penstock.Pipeline.run"' in reference
    assert reference.count("Example</p>") > 40
    page = (tmp_path / "docs/bad_input.html").read_text(encoding="utf-8")
    assert "site.css" in page
    assert "site.js" in page
    assert "longLists" in (tmp_path / "_static/language_data.js").read_text(encoding="utf-8")
    assert "url=docs/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    search = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(search[search.index("{") : search.rindex("}") + 1])
    of_developers = ("ARCHITECTURE", "CONTRIBUTING", "STYLE", "docs/decisions/", "docs/design/", "tests/")
    apart = {number for number, name in enumerate(index["docnames"]) if name.startswith(of_developers)}
    found = [
        each for each in index["terms"].values() for each in (each if isinstance(each, list) else [each])
    ]
    assert len(apart) > 60
    assert len(found) > 10_000
    assert apart.isdisjoint(found)
    tables = (tmp_path / "docs/reference/index.html").read_text(encoding="utf-8")
    assert [name for name in names_of_tables() if f'.html#{name}"' not in tables] == []


def test_the_pictures_of_the_model_are_what_the_machines_do() -> None:
    from pictures import FOLDER, pictures

    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == pictures()


def test_the_program_of_the_tutorial_is_that_of_its_page() -> None:
    from tutorial_program import PROGRAM, program

    # Ruff formats the program, which changes only space.
    assert PROGRAM.read_text(encoding="utf-8").split() == program().split()


@pytest.mark.soak
def test_the_program_of_the_tutorial_prints_what_it_says() -> None:
    program = ROOT / "docs/tutorial.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, timeout=600)
    shown = re.findall(r"^# (?!\d\. )(.*)$", program.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for line in done.stdout.splitlines() if "tutorial-" not in line] == shown


RARE = {
    *(
        "DeadLetter",
        "PartitionFn",
        "ProcessContinuation",
        "Read",
        "RemoveDuplicates",
        "RowCoder",
    ),
    *("TimeDomain", "Valid", "Windowing", "WithTypeHints", "Write", "annotate_yaml", "label_from_callable"),
    "transform_annotations",
}
"""Names of the package that programs rarely use; the pages of the reference have them, and the tables do not."""


def names_of_tables() -> list[str]:
    """The names in the tables of the reference."""
    text = (ROOT / "docs/reference/index.md").read_text(encoding="utf-8")
    return re.findall(r"^   ~(penstock[\w.]*)$", text, re.MULTILINE)


def test_the_tables_of_the_reference_have_the_names_of_the_package() -> None:
    names = names_of_tables()
    assert len(names) > 150
    assert len(names) == len(set(names))
    for name in names:
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last)
        assert found.__doc__, name
        # Of another name for a class, the table would say nothing.
        assert getattr(found, "__name__", last) == last, name
    public = {name for name in penstock.__all__ if callable(getattr(penstock, name))}
    assert len(public) > 60
    assert sorted(public - {name.rpartition(".")[2] for name in names}) == sorted(RARE)


def test_a_value_of_the_moving_picture_appears_when_its_pane_fires() -> None:
    from motion import RISE_PERCENT, percents_of_values
    from pictures import FOLDER, MOVING

    still = (FOLDER / "early_and_late.svg").read_text(encoding="utf-8")
    fired = [
        minutes(pane) for pane in re.findall(r"<title>\d+ in [^<]*pane \d+, at ([\d:.]+)</title>", still)
    ]
    parts = sorted(percent / RISE_PERCENT for percent in percents_of_values(still))
    first, last = min(fired), max(fired)
    expected = [parts[0] + (parts[-1] - parts[0]) * (at - first) / (last - first) for at in sorted(fired)]
    assert len(parts) == 8
    assert parts == pytest.approx(expected, abs=0.002)
    moving = (FOLDER / MOVING).read_text(encoding="utf-8")
    assert [f'class="v{number} value' in moving for number in range(9)] == [True] * 8 + [False]
    assert "http" not in moving.replace("http://www.w3.org/2000/svg", "")


def minutes(time_of_day: str) -> float:
    """A time of day in minutes."""
    hours, minute, second = time_of_day.split(":")
    return int(hours) * 60 + int(minute) + float(second) / 60


@pytest.mark.parametrize("page", ["tutorial", "how_to", "reference/examples/grouping"])
def test_the_blocks_of_a_page_can_be_pasted_into_a_prompt(page: str) -> None:
    from prompts import end_statements_in_page

    conf = (ROOT / "docs/conf.py").read_text(encoding="utf-8")
    [copied] = re.findall(r'^copybutton_prompt_text = r"(.*)"$', conf, re.MULTILINE)
    prompt = re.compile(f"^(?:{copied})(.*)")
    text = end_statements_in_page((ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))
    blocks = re.findall(r"^```pycon[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    for block in blocks:
        assert lines_waiting([found[1] for line in block.splitlines() if (found := prompt.match(line))]) == []


def lines_waiting(lines: list[str]) -> list[str]:
    """The lines that a prompt has not yet executed after it has read all of them; wrong ones raise a SyntaxError."""
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if codeop.compile_command("\n".join(waiting)) is not None:
            waiting = []
    return waiting


def test_a_definition_without_an_empty_line_after_it_is_found() -> None:
    assert lines_waiting(["def f():", "    return 1", ""]) == []
    assert lines_waiting(["def f():", "    return 1"]) == ["def f():", "    return 1"]
    with pytest.raises(SyntaxError):
        lines_waiting(["def f():", "    return 1", "f()", ""])
