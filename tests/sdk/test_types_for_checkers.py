"""What mypy, and with it an editor, knows of a user's pipeline."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.installing import files_of_page

_ROOT = Path(__file__).parents[2]

_SNIPPETS = Path(__file__).with_name("editor_snippets")
"""Programs of users. Behind a line is the type that ``reveal_type`` shows, or that the line is an error."""

_LENIENT = [
    "--allow-redefinition",  # A page uses a name for several things.
] + [
    f"--disable-error-code={code}"
    # Libraries without types; empty lists; a doctest that knows which of several classes an object has.
    for code in ("import-untyped", "var-annotated", "union-attr")
]

_SETTINGS = """
[mypy]
[mypy-IPython.*,pyspark.pandas.*,sqlglot.*]
follow_imports = skip
"""
"""No program of a user's sees these, which penstock and PySpark import: a third of the time."""


def _checked(
    *files: Path, folder: Path, strict: bool = True, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    options = ["--strict"] if strict else ["--check-untyped-defs", *_LENIENT]
    settings = folder / "settings.ini"
    settings.write_text(_SETTINGS)
    command = [
        sys.executable,
        "-m",
        "mypy",
        *options,
        *("--config-file", str(settings)),
        *("--cache-dir", str(folder / "cache")),
        *map(str, files),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd or folder, check=False)


def _as_written(shown: str) -> str:
    """A type in the words of a checker as one would write it."""
    without_modules = re.sub(r"\b(?:[A-Za-z_]+\.)+(?=[A-Za-z])", "", shown)
    named = re.sub(r"tuple\[[^\[\]]*fallback=(\w+)\]", r"\1", without_modules)
    # The sum of no numbers is 0, which the type of `sum` says.
    plain = re.sub(r"Literal\[\d+\]\??", "int", named.replace("int | Literal[0]", "int"))
    return plain.replace("Unknown", "Any")


@dataclass(frozen=True)
class _Case:
    """A line of a snippet, and what each checker should say about it: a type, "error", or nothing."""

    snippet: str
    number: int
    text: str
    expected: Mapping[str, str]


def _cases() -> Iterator[_Case]:
    for path in sorted(_SNIPPETS.glob("*.txt")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text, marked, expected = line.partition("  # ")
            if not marked or expected.startswith("type: "):
                yield _Case(path.stem, number, text, {"mypy": "", "pyright": ""})
                continue
            in_both, _, in_mypy = expected.removesuffix(")").partition(" (mypy: ")
            yield _Case(path.stem, number, text, {"mypy": in_mypy or in_both, "pyright": in_both})


_Said = Mapping[tuple[str, int], str]
"""The words of a checker, by snippet and line."""


def _said_by_mypy(folder: Path) -> _Said:
    checked = _checked(*sorted(folder.glob("*.py")), folder=folder)
    found = re.findall(r"^(\w+)\.py:(\d+): (error|note: Revealed type is)(.*)$", checked.stdout, re.MULTILINE)
    said = {
        (name, int(line)): _as_written(text.strip(' "'))
        for name, line, kind, text in found
        if kind != "error"
    }
    return said | {(name, int(line)): "error" for name, line, kind, _ in found if kind == "error"}


def _said_by_pyright(folder: Path) -> _Said:
    # The usual strictness of pyright; its warnings say that the expression `lines | WriteToText("out")` is not used.
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "include": ["*.py"]}')
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    said = {}
    for each in json.loads(checked.stdout)["generalDiagnostics"]:
        place = Path(each["file"]).stem, each["range"]["start"]["line"] + 1
        if each["severity"] == "information":
            said.setdefault(place, _as_written(each["message"].rpartition('" is "')[2].removesuffix('"')))
        elif each["severity"] == "error":
            said[place] = "error"
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("checked")


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_checker_knows_each_type_and_finds_each_mistake(checker, folder, tmp_path) -> None:
    if checker == "pyright":
        pytest.importorskip("basedpyright", reason="pyright is in the extra `test`")
    for path in _SNIPPETS.glob("*.txt"):
        (tmp_path / f"{path.stem}.py").write_text(path.read_text())
    said = _said_by_mypy(tmp_path) if checker == "mypy" else _said_by_pyright(tmp_path)
    cases = list(_cases())
    wrong = {
        f"{case.snippet}, line {case.number}: {case.text}": f"{found or 'nothing'}, not {expected or 'nothing'}"
        for case in cases
        if (found := said.get((case.snippet, case.number), "")) != (expected := case.expected[checker])
    }
    assert wrong == {}
    assert sum(case.expected[checker] == "error" for case in cases) > 50
    assert sum(bool(case.expected[checker]) for case in cases) > 200


def test_the_examples_are_well_typed(folder) -> None:
    examples = list((_ROOT / "examples").glob("**/*.py"))
    checked = _checked(*examples, folder=folder, strict=False, cwd=_ROOT / "examples")
    assert checked.returncode == 0, checked.stdout


def test_the_programs_of_the_documents_are_well_typed(folder) -> None:
    programs = {"readme": re.search(r"```python\n(.*?)```", (_ROOT / "README.md").read_text(), re.DOTALL)[1]}
    for page in sorted((_ROOT / "docs").glob("*.md")):
        for name, content in files_of_page(page.read_text()).items():
            (folder / name).write_text(content)
        examples = doctest.DocTestParser().get_examples(page.read_text())
        programs[page.stem] = "".join(each.source for each in examples if each.exc_msg is None)
    for name, program in programs.items():
        # A name for what nobody needs may stand for things of several types.
        (folder / f"{name}.py").write_text(re.sub(r"^(\s*)_ = ", r"\1", program, flags=re.MULTILINE))
    files = [folder / f"{name}.py" for name in programs]
    checked = _checked(*files, folder=folder, strict=False)
    assert len(files) > 10
    assert checked.returncode == 0, checked.stdout


def test_the_wheel_says_that_its_packages_are_typed() -> None:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert len(packages) == 5
    for package in packages:
        assert (_ROOT / package / "py.typed").read_text() == ""
