"""Every row of the table of what may change: each program is started again on the checkpoint of the one before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock_spark.checkpoints.custody.folder import Checkpoint, open_at
from tests.runner.disk_place import DiskPlace, note_micro_batch
from tests.runner.upgrades import ROWS, Change, Row, table

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"


def restarted(change: Change, path: Path) -> tuple[Checkpoint, bool]:
    """Opens the checkpoint of the old program for the new one; also returns whether it was rewritten."""
    place, (old, new) = DiskPlace(path), change.signatures()
    open_at(place, old)
    note_micro_batch(place, 0)
    written: list[Any] = []
    opened = open_at(place, new, change.dropped, rewrite=lambda checkpoint, plan: written.append(plan))
    return opened, bool(written)


@pytest.mark.parametrize(
    ("row", "change"),
    [
        pytest.param(row, change, id=f"{row.change}-{number}")
        for row in ROWS
        for number, change in enumerate(row.goes_on)
    ],
)
def test_a_checkpoint_is_continued(row: Row, change: Change, tmp_path: Path) -> None:
    opened, is_written = restarted(change, tmp_path)
    assert not opened.is_new
    assert is_written is row.is_rewritten
    # A rewritten checkpoint says why.
    assert any(row.note in note for note in opened.notes) if row.note else not is_written


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(change, says, id=f"{row.change}-{number}")
        for row in ROWS
        for number, (change, says) in enumerate(row.refused)
    ],
)
def test_a_change_is_refused_by_name_and_nothing_is_written(
    change: Change, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="hint: ") as refused:
        restarted(change, tmp_path)
    assert says in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["control", "inputs-0", "plan-1.json", "spark"]


def test_every_row_has_a_program_for_all_that_it_says() -> None:
    for row in ROWS:
        assert bool(row.refused) is ("refused" in row.answer or "the same" in row.answer), row.change
        assert bool(row.goes_on) is (
            row.answer.startswith("continues") or "unless" in row.answer or ";" in row.answer
        ), row.change


def test_the_page_has_this_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
