"""A running mean continues from the sums before a block, and reads no row before that block."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from penstock.scalars.types import BIGINT, DOUBLE
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution import sorted_rows
from penstock.sql.execution.lowering import argument_of
from penstock.sql.execution.over import change_partition
from penstock.sql.execution.over_results import OverResults
from penstock.sql.execution.sorted_rows import SortedRows
from penstock.sql.plan.relations import ColumnDef, Over, walk_plan
from tests.sql.test_rank_limits import Blocks

COLUMNS = {"a": (ColumnDef("k", BIGINT), ColumnDef("v", BIGINT), ColumnDef("d", DOUBLE))}
CALLS = ("AVG(v)", "SUM(d)", "STDDEV(v)")
FRAMES = ("", " ROWS UNBOUNDED PRECEDING", " ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING")


def _results(call: str, frame: str) -> OverResults:
    plan = bind(f"SELECT k, {call} OVER (ORDER BY k{frame}) AS x FROM a", Tables(COLUMNS, {}, {})).relation
    [found] = (each for each in walk_plan(plan) if isinstance(each, Over))
    return OverResults(found, argument_of)


def _row(place: int) -> tuple[Any, ...]:
    return place, place % 7, place / 3


def _check_places(results: OverResults) -> None:
    for gone in range(10):
        blocks, there = Blocks(), [_row(at) for at in range(10)]
        rows = SortedRows(results.order, [], blocks)
        _, inserted = change_partition(results, rows, ([], there), None)
        net = Counter(inserted)
        for change in (([_row(gone)], []), ([], [_row(gone)]), ([], [(gone, 50, 0.5)])):
            there = [*(Counter(there) - Counter(change[0])).elements(), *change[1]]
            rows = SortedRows(results.order, rows.save(), blocks)
            retracted, inserted = change_partition(results, rows, change, None)
            net.subtract(retracted)
            net.update(inserted)
            assert +net == Counter(results.compute_all(there)), gone


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("call", CALLS)
def test_a_row_that_goes_or_comes_anywhere_changes_what_it_must(
    call: str, frame: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 2)
    _check_places(_results(call, frame))


def test_it_finds_sums_that_have_a_row_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    was = SortedRows.sums_before
    monkeypatch.setattr(SortedRows, "sums_before", lambda self, place: was(self, place + 1))
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 2)
    with pytest.raises(AssertionError):
        _check_places(_results("AVG(v)", FRAMES[1]))


@pytest.mark.parametrize("call", CALLS)
def test_a_row_near_the_end_opens_the_last_blocks_only(call: str) -> None:
    results, blocks = _results(call, FRAMES[1]), Blocks()
    rows = SortedRows(results.order, [], blocks)
    change_partition(results, rows, ([], [_row(at) for at in range(10_000)]), None)
    index = rows.save()
    for place, count in ((10_000, 1), (9_990, 11), (9_900, 102)):
        blocks.read.clear()
        rows = SortedRows(results.order, index, blocks)
        _, inserted = change_partition(results, rows, ([], [_row(place)]), None)
        index = rows.save()
        assert 0 < len(inserted) <= count
        assert len(blocks.read) <= 3
