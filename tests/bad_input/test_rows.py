"""Every row of the table of bad input is what a user sees, word for word."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest

from tests.bad_input.on_servers import shown_for_rows
from tests.bad_input.page_of_bad_input import PAGE, SUBJECTS, page
from tests.bad_input.rows import FOLDER, PROGRAM, Row, played

ROWS = [row for subject in SUBJECTS for row in subject.rows]
FORBIDDEN = (
    "java",
    "py4j",
    "org.apache",
    "scala",
    "Traceback",
    '.py", line',
    "penstock_spark/",
    "penstock_connectors/",
)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if not row.on_spark and not row.server], ids=lambda row: row.name
)
def test_a_user_sees_what_the_row_says(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [PROGRAM])
    assert played(row, tmp_path) == row.seen


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("row", [row for row in ROWS if row.on_spark], ids=lambda row: row.name)
def test_a_user_sees_what_the_row_says_when_the_pipeline_runs(row: Row, tmp_path: Path) -> None:
    assert played(row, tmp_path) == row.seen


def test_a_user_sees_what_the_rows_of_servers_say() -> None:
    assert shown_for_rows() == {row.name: row.seen for row in ROWS if row.server}


def flaws_of(row: Row) -> list[str]:
    """What is missing in an error, or must not be in it; a result has no flaws."""
    first = row.seen.partition("\n")[0]
    kind = first.partition(":")[0]
    is_error = kind.startswith("penstock") or hasattr(builtins, kind) or kind == PROGRAM
    # What the user's own function raises is left as it is, with the step; what to do follows as a note.
    is_users = "[while running " in first
    parts = {
        "a place": re.search(rf"{PROGRAM}:\d|{FOLDER}/|^{PROGRAM}: ", row.seen)
        # A server, or what names it.
        or (row.server and "\n  in the " in row.seen),
        "a hint": "\n  hint: " in row.seen,
    }
    missing = [name for name, part in parts.items() if is_error and not is_users and not part]
    return missing + [word for word in FORBIDDEN if word in row.seen]


def test_errors_have_three_parts_and_no_word_of_javas_or_of_this_projects_files() -> None:
    flaws = {row.name: flaws_of(row) for row in ROWS}
    assert {name: found for name, found in flaws.items() if found} == {}


@pytest.mark.parametrize(
    "see",
    ["ValueError: no", "ValueError: no\n  at game.py:1", "TypeError: py4j\n  at game.py:1\n  hint: yes"],
)
def test_a_flaw_of_an_error_is_found(see: str) -> None:
    assert flaws_of(Row("a row", "p", f"\n{see}"))


def test_the_names_of_rows_are_distinct() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_the_page_shows_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.bad_input.page_of_bad_input"
