"""The rows of a partition with the results of window functions, as they change.

`OverFn` gathers what comes for a partition at one logical time, and then changes its sorted rows and computes the
results that may be others. It emits the rows whose results differ. What it does with the rows needs no engine:
`change_partition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.coders import PickleCoder, VarIntCoder
from penstock.error import three_parts
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    BagStateSpec,
    BaseTimer,
    MapStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.machines.cells import MapCell
from penstock.relations.changes import Change, compute_net, kinds_of
from penstock.sql.execution.equality import CanonicalRow
from penstock.sql.execution.over_results import OverResults, Span, Stretch, Sums
from penstock.sql.execution.row_order import SqlRow
from penstock.sql.execution.sorted_rows import SortedRows
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo, WindowedValue, create, unknown_pane
from penstock.windows.time_domain import TimeDomain


def change_partition(
    results: OverResults, rows: SortedRows, change: Change, form: CanonicalRow | None, retracts: bool = True
) -> Change:
    """Changes the rows of a partition, and returns how the rows with results change.

    Args:
        results: The functions.
        rows: The rows so far, with their results; they are changed.
        change: The rows that go and the rows that come.
        form: What brings a row into its canonical form, or None.
        retracts: Whether rows may be retracted, so that those behind a limit may get results later.
    """
    gone, come = change
    retracted, inserted = [], []
    shown = results.count(rows)
    for row in gone:
        entry = rows.remove(row, form)
        if entry is None:
            what = "a row is retracted that is not in its partition"
            hint = "have earlier steps emit the same row when it is added and when it is retracted"
            raise ValueError(three_parts(what, hint=hint))
        if entry[1] is not None:
            retracted.append((*entry[0], *entry[1]))
            shown -= 1
    last = rows.row(shown - 1) if shown and results.is_limited else None
    rows.insert(list(come))
    border = results.count(rows)
    if last is not None:
        # Rows that came may stand between rows that had results.
        left = rows.clear_results((border, rows.copies_of(last)[1]))
        retracted += [(*row, *before) for row, before in left]
    if results.is_limited and not retracts:
        rows.cut(border)
    for span in _touched(results, rows, change, border):
        for row, before, after in rows.replace_results(span, _computed(results, rows, span)):
            if before is not None:
                retracted.append((*row, *before))
            inserted.append((*row, *after))
    return retracted, inserted


def _touched(results: OverResults, rows: SortedRows, change: Change, total: int) -> list[Span]:
    """Returns the spans of the first rows whose results may be others, in order; they do not touch each other."""
    changed = [row for side in change for row in side]
    if not total:
        return []
    if len(changed) * 4 > total:
        return [(0, total)]
    spans = sorted(_reached(results, rows, row) for row in changed)
    found: list[Span] = []
    for first, last in spans:
        last = min(last, total)
        if first >= last:
            continue
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def _reached(results: OverResults, rows: SortedRows, row: SqlRow) -> Span:
    first, last = rows.copies_of(row)
    start, end = results.reach(rows, first, row)
    # Any of the copies may be the one that came.
    return (start, end) if last - first < 2 else (start, max(end, results.reach(rows, last - 1, row)[1]))


def _computed(results: OverResults, rows: SortedRows, span: Span) -> list[tuple[Any, ...]]:
    sums = None
    if results.holds:
        start, held = rows.sums_before(span[0])
        sums = Sums(start, held, rows.starts_within(start, span[1]))
    first, last = results.needed(rows, span, sums)
    before = rows.entry(span[0] - 1)[1] if span[0] else None
    read = [row for row, _ in rows.entries((first, last))]
    found = results.compute(Stretch(read, first, len(rows), rows.order), span, before, sums)
    if sums is not None:
        rows.keep_sums(sums.found)
    return found


class RowsOver:
    """Makes of a key and all rows of its partition the rows with results."""

    def __init__(self, results: OverResults) -> None:
        self._results = results

    def __call__(self, element: tuple[Any, Iterable[Any]]) -> list[SqlRow]:
        """Returns the rows."""
        _, rows = element
        return self._results.compute_all(list(rows))


class OverFn(DoFn):
    """Keeps the rows of a partition, and emits those whose results change.

    Args:
        results: The functions.
        form: What brings a row into its canonical form, or None.
        retracts: Whether rows may be retracted.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
        emits_retractions: A row that comes changes the results of others.
    """

    accepts_retractions = True
    emits_retractions = True

    CHANGES = BagStateSpec("changes", PickleCoder())
    INDEX = ReadModifyWriteStateSpec("index", PickleCoder())
    BLOCKS = MapStateSpec("blocks", VarIntCoder(), PickleCoder())
    TIME_END = TimerSpec("end of the logical time", TimeDomain.REAL_TIME)

    def __init__(self, results: OverResults, form: CanonicalRow | None, retracts: bool) -> None:
        self._results = results
        self._form = form
        self._retracts = retracts

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        changes: BagRuntimeState = DoFn.StateParam(CHANGES),
        time_end: BaseTimer = DoFn.TimerParam(TIME_END),
    ) -> None:
        """Notes a change."""
        _, row = element
        changes.add((pane.kind.sign, row))
        time_end.set_relative(0)

    @on_window_expiration
    @on_timer(TIME_END)
    def emit(
        self,
        key: object = DoFn.KeyParam,
        window: BoundedWindow = DoFn.WindowParam,
        changes: BagRuntimeState = DoFn.StateParam(CHANGES),
        index: ReadModifyWriteRuntimeState = DoFn.StateParam(INDEX),
        blocks: MapCell = DoFn.StateParam(BLOCKS),
    ) -> Iterator[WindowedValue]:
        """Emits what the changes of one logical time change."""
        signed = list(changes.read())
        changes.clear()
        if not signed:
            return
        if all(sign > 0 for sign, _ in signed):
            change: Change = [], [row for _, row in signed]
        else:
            change = compute_net(signed, self._form)
        rows = SortedRows(self._results.order, index.read() or [], blocks)
        made = change_partition(self._results, rows, change, self._form, self._retracts)
        if kept := rows.save():
            index.write(kept)
        else:
            index.clear()
        micros = window.max_timestamp().micros
        for each, kind in zip(made, kinds_of(made), strict=True):
            shown = unknown_pane(kind)
            for row in each:
                yield create(row, micros, (window,), shown)
