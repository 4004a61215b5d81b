"""What the documents say runs: their examples are executed, and the files that they name exist."""

from __future__ import annotations

import doctest
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from tests.installing import files_of_page, write_metadata

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"^```python program\n(.*?)^```$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")
_FILE = re.compile(r"`([\w./-]+\.(?:py|md|toml))`")


def examples(text: str) -> Iterator[tuple[int, str, str]]:
    """The line number, the words after the language, and the code of each block with ``>>>``; fences are not output."""
    for match in _FENCE.finditer(text):
        indent, _, words, code = match.groups()
        if ">>> " in code:
            yield (
                text.count("\n", 0, match.start(4)),
                words.strip(),
                re.sub(f"^{indent}", "", code, flags=re.MULTILINE),
            )


def _parameter(path: Path) -> object:
    words = [words for _, words, _ in examples(path.read_text(encoding="utf-8"))]
    marks = [pytest.mark.spark] if "spark" in words else []
    return pytest.param(path, marks=marks, id=path.relative_to(ROOT).as_posix())


def failures_of(name: str, text: str) -> list[str]:
    """What the examples of a document, which share their names, give instead of what it says."""
    names: dict[str, object] = {"__name__": "__main__"}
    report: list[str] = []
    with written_files(text):
        _run(name, text, names, report)
    return report


@contextmanager
def written_files(text: str) -> Iterator[None]:
    """Within the block, the files that a document lets its reader write are in the working folder, and installed."""
    files, folder = files_of_page(text), Path.cwd()
    for name, content in files.items():
        Path(name).write_text(content, encoding="utf-8")
    if "pyproject.toml" in files:
        write_metadata(folder, folder)
    before = [*sys.path]
    sys.path[:0] = [str(folder)] if files else []
    try:
        yield
    finally:
        sys.path[:] = before
        for name in files:
            sys.modules.pop(name.removesuffix(".py"), None)


def _run(name: str, text: str, names: dict[str, object], report: list[str]) -> None:
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for line, _, code in examples(text):
        # Python looks up the lines of a traceback by the name of the test, which is each block's own.
        test = doctest.DocTestParser().get_doctest(code, names, f"{name}:{line}", name, line)
        runner.run(test, out=report.append, clear_globs=False)
        names = test.globs


@pytest.mark.parametrize(
    "path", [_parameter(path) for path in DOCUMENTS if list(examples(path.read_text(encoding="utf-8")))]
)
def test_the_examples_give_what_the_document_says(
    path: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = path.read_text(encoding="utf-8")
    if any(words == "spark" for _, words, _ in examples(text)):
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    failures = failures_of(path.name, text)
    assert not failures, "\n" + "".join(failures)


def programs(text: str) -> list[tuple[str, str]]:
    """Each block with the mark ``program``, which runs as it stands, with the next block, which is what it prints."""
    found = _PROGRAM.findall(text)
    assert len(found) == text.count("```python program\n")
    return found


@pytest.mark.spark
@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if "```python program\n" in path.read_text(encoding="utf-8")],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_a_program_prints_what_the_document_says(
    path: Path, spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for program, output in programs(path.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(program, path.name, "exec"), {"__name__": "__main__"})
        assert printed.getvalue() == output


@cache
def existing_files() -> frozenset[str]:
    """All files of the project, from the root on, with each shorter end of their paths."""
    folders = ("docs", "tests", "sdk", "runner_spark", "connectors", "conformance", "examples", "benchmarks")
    paths = [
        (Path(folder) / file).relative_to(ROOT).parts
        for part in folders
        for folder, _, found in os.walk(ROOT / part)
        for file in found
    ]
    paths += [(file.name,) for file in ROOT.iterdir()]
    return frozenset("/".join(parts[start:]) for parts in paths for start in range(len(parts)))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_files_that_a_document_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prose = _FENCE.sub("", text)
    links = [link for link in _LINK.findall(prose) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []
    files = existing_files()
    named = [file for file in _FILE.findall(prose) if "your_" not in file]
    assert [file for file in named if file not in files] == []


def broken_tables(text: str) -> list[int]:
    """Returns the lines of tables that do not render: a header without its rule, a row with another number of cells.

    >>> broken_tables("| a | b |\\n| --- | --- |\\n| 1 | 2 |\\n\\n| a | b | | 1 | 2 |\\n| 3 | 4 |\\n")
    [5, 6]
    """
    found, before, cells = [], 0, 0
    for number, line in enumerate(_FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text).split("\n"), 1):
        before = before + 1 if line.startswith("|") else 0
        if before == 0:
            continue
        bars = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line)))
        cells = bars if before == 1 else cells
        next_is_rule = before > 1 or re.match(r"\|( *:?-+:? *\|)+$", text.split("\n")[number])
        if bars != cells or not next_is_rule:
            found.append(number)
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_tables_of_a_document_render(path: Path) -> None:
    assert broken_tables(path.read_text(encoding="utf-8")) == []


def test_a_table_without_a_rule_under_its_header_is_found() -> None:
    table = "| a | b |\n| --- | --- |\n| `x|y` | 2 |\n"
    merged = "| a | b | | 1 | 2 |\n| 3 | 4 |\n"
    assert (broken_tables(table), broken_tables(merged), broken_tables(f"{table}\n{merged}")) == (
        [],
        [1, 2],
        [5, 6],
    )


def sentences_in_headings(text: str) -> list[str]:
    """The headings that have a whole sentence, as when the empty line after a heading was lost."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", text), re.MULTILINE)
    return [each for each in headings if re.search(r"[a-z`)]\. [A-Z]", each) or len(each) > 100]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_headings_of_a_document_are_no_sentences(path: Path) -> None:
    assert sentences_in_headings(path.read_text(encoding="utf-8")) == []


def test_a_heading_that_swallowed_its_paragraph_is_found() -> None:
    lost = "## A policy of your own Subclass `CustomWatermark`. The tasks read.\n"
    assert len(sentences_in_headings(lost)) == 1
    assert (
        sentences_in_headings("## A policy of your own\n\nSubclass `CustomWatermark`. The tasks read.\n")
        == []
    )


def test_the_page_of_examples_has_every_example() -> None:
    page = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
    programs = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "examples").rglob("*"))
        if path.suffix in (".py", ".sql", ".ipynb")
        and not path.name.startswith("_")
        and not any(name in path.parts for name in ("data", "redis_connector", "__pycache__"))
    ]
    assert len(programs) > 20
    assert [program for program in programs if f"](../{program})" not in page] == []


def test_architecture_names_every_folder_of_code() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [
        folder.name
        for top in ("sdk/penstock", "runner_spark/penstock_spark", "connectors/penstock_connectors")
        for folder in (ROOT / top).iterdir()
        if (folder / "__init__.py").exists()
    ]
    assert len(packages) > 10
    assert [name for name in packages if f"{name}/" not in text] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("```pycon\n>>> 1 + 1\n2\n```\n", 0),
        ("  ```pycon\n  >>> x = 1\n  ```\n\n```pycon\n>>> x\n1\n```\n", 0),
        ("```pycon\n>>> 1 + 1\n3\n```\n", 1),
        ("```\n>>> y\n```\n", 1),
    ],
)
def test_an_example_that_does_not_hold_is_found(text: str, count: int) -> None:
    assert len(failures_of("text.md", text)) >= count
    assert bool(failures_of("text.md", text)) == bool(count)
