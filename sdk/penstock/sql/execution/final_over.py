"""Rows with the results of window functions that never change, since rows come when none before them can come any more.

Either the rows of a partition come in the order of time, some at each logical time: then a partition keeps what later
rows may still see. Or they come all at once: then nothing is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.coders import PickleCoder
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    BagStateSpec,
    BaseTimer,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.sql.execution.over_results import OverResults, Stretch
from penstock.sql.execution.row_order import Key, RowOrder, SqlRow
from penstock.windows.time_domain import TimeDomain

Kept = tuple[int, list[SqlRow], Sequence[object], list[object]]
"""The number of rows that are forgotten; the rows that are kept; the results of the last one; what functions hold."""


class LastRows:
    """The last rows of a partition, with the places that they have among all of its rows.

    Args:
        order: The order of the rows.
        first: The place of the first of them.
        rows: The rows.
    """

    def __init__(self, order: RowOrder, first: int, rows: list[SqlRow]) -> None:
        self.order = order
        self.first = first
        self.rows = rows

    def __len__(self) -> int:
        return self.first + len(self.rows)

    def row(self, place: int) -> SqlRow:
        """Returns the row at a place."""
        return self.rows[place - self.first]

    def place_of(self, key: Key) -> int:
        """Returns the place of the first row whose key is not less than a key, if it is not forgotten."""
        return self.first + bisect_left(self.rows, key, key=self.order.key)


def add_rows(results: OverResults, kept: Kept | None, come: list[SqlRow]) -> tuple[list[SqlRow], Kept]:
    """Returns rows that come behind all others of a partition with their results, and what to keep.

    Args:
        results: The functions.
        kept: What was kept before; None at first.
        come: The rows, in any order.
    """
    first, rows, before, held = kept or (0, [], None, None)
    come = sorted(come, key=results.order.key)
    there = LastRows(results.order, first, [*rows, *come])
    span = first + len(rows), len(there)
    found, held = results.add(Stretch(there.rows, first, len(there), results.order), span, before, held)
    wanted = results.first_kept(there)
    left = there.rows[max(0, wanted - first) :]
    shown = [(*row, *each) for row, each in zip(come, found, strict=True)]
    return shown, (len(there) - len(left), left, found[-1], held)


class FinalOverFn(DoFn):
    """Emits each row once, with results that never change.

    Args:
        results: The functions.
        comes_at_once: Whether all rows of a partition come at one logical time.
    """

    COME = BagStateSpec("come", PickleCoder())
    KEPT = ReadModifyWriteStateSpec("kept", PickleCoder())
    TIME_END = TimerSpec("end of the logical time", TimeDomain.REAL_TIME)

    def __init__(self, results: OverResults, comes_at_once: bool) -> None:
        self._results = results
        self._comes_at_once = comes_at_once

    def process(
        self,
        element: tuple[Any, Any],
        come: BagRuntimeState = DoFn.StateParam(COME),
        time_end: BaseTimer = DoFn.TimerParam(TIME_END),
    ) -> None:
        """Notes a row."""
        _, row = element
        come.add(row)
        time_end.set_relative(0)

    @on_window_expiration
    @on_timer(TIME_END)
    def emit(
        self,
        key: object = DoFn.KeyParam,
        come: BagRuntimeState = DoFn.StateParam(COME),
        kept: ReadModifyWriteRuntimeState = DoFn.StateParam(KEPT),
    ) -> Iterator[Any]:
        """Emits the rows of one logical time."""
        rows = list(come.read())
        come.clear()
        if not rows:
            return
        if self._comes_at_once:
            yield from self._results.compute_all(rows)
            return
        shown, left = add_rows(self._results, kept.read(), rows)
        kept.write(left)
        yield from shown
