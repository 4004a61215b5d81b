"""Every row of the table of bad input is what a user sees, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_of_bad_input import PAGE, SUBJECTS, page
from rows import FOLDER, PROGRAM, Row, played

ROWS = [row for subject in SUBJECTS for row in subject.rows]
_ERROR = re.compile(r"[\w.]+(Error|Twice|Misfit|Option|ByRunner|Taken|Exception|Warning)\b.*", re.DOTALL)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.on_spark], ids=lambda row: row.name)
def test_a_user_sees_what_the_row_says(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [PROGRAM])
    assert played(row, tmp_path) == row.seen


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("row", [row for row in ROWS if row.on_spark], ids=lambda row: row.name)
def test_a_user_sees_what_the_row_says_when_the_pipeline_runs(row: Row, tmp_path: Path) -> None:
    assert played(row, tmp_path) == row.seen


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_error_has_three_parts_and_no_word_of_java(row: Row) -> None:
    if not _ERROR.fullmatch(row.seen) and "hint: " not in row.seen:
        return
    what, *others = row.seen.split("\n")
    assert what
    assert PROGRAM in row.seen or FOLDER in row.seen
    if not row.raised_by_user:
        assert any(line.startswith("  hint: ") for line in others)
    for word in ("java", "py4j", "org.apache", "scala", "Traceback", "penstock_spark/", "None)"):
        assert word not in row.seen


def test_the_names_of_rows_are_distinct() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_the_page_shows_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python tests/bad_input/page_of_bad_input.py"
