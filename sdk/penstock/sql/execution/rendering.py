"""Shows a relation: its changes, the rows that are left, or all rows at each instant."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from penstock.coders import FastPrimitivesCoder
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    BaseTimer,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.relations.bags import ROW_CODER, Copies
from penstock.relations.changes import make_elements
from penstock.scalars.column_forms import HasColumnForm, NamedColumns
from penstock.scalars.row_functions import Pairing
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BIGINT, STRING
from penstock.sql.execution import steps
from penstock.sql.execution.lowering import form_of, key_hint
from penstock.sql.plan.lineage import emission_keys
from penstock.sql.plan.relations import (
    Aggregate,
    Emitted,
    Filter,
    Project,
    Query,
    Windowed,
    columns_as_scalars,
)
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.typehints import KV
from penstock.typehints import Any as AnyHint
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, ValueKind, WindowedValue
from penstock.windows.time_domain import TimeDomain


def render_result(
    query: Query,
    rows: PCollection[Any],
    make: Callable[[Any], Any],
    rendering: str,
    hint: object,
    changed: tuple[Scalar, ...] = (),
) -> Any:
    """Returns the result of a query, rendered.

    Args:
        query: The query.
        rows: The rows of its relation.
        make: Makes a row of the result of a tuple.
        rendering: ``STREAM``, ``TABLE``, ``TVR``, or ``CHANGES`` for the unchanged changes.
        hint: The type of the rows of the result.
        changed: The keys that all rows of one change share; rows with equal keys are shown in their order.
    """
    places = tuple(place for _, place in query.shown)
    if rendering == "TVR":
        pairs = rows | "One key" >> Map(Pairing((), None)).with_output_types(KV[int, AnyHint])
        copies = Copies(form_of(query.relation.columns))
        snapshots = ParDo(SnapshotFn(_Made(places, make), copies)).with_output_types(Snapshot)
        return pairs | "Snapshots" >> snapshots
    if rendering == "STREAM":
        return _stream(query, rows, make, places, hint, changed)
    if rendering == "TABLE" and may_retract(rows):
        form = form_of(query.relation.columns)
        as_key = Map(steps.WholeRowAsKey(form)).with_output_types(KV[rows.element_type, AnyHint])
        left = ParDo(LeftAtEnd(Copies(form))).with_output_types(rows.element_type)
        rows = rows | "Row as key" >> as_key | "At the end" >> left
    return rows | "Row" >> Map(_Made(places, make)).with_output_types(hint)


def shows_time(query: Query) -> bool:
    """True if a stream shows what a step with state adds: when rows are emitted, or the number of each for its key."""
    return _counts_merged(query) or any(place in ("EmitTime", "Ver") for _, place in query.shown)


def list_kept_numbers(query: Query, rendering: str) -> Iterator[str]:
    """Yields a sentence if a stream shows numbers that it must remember for each key or row."""
    if rendering == "STREAM" and any(place == "Ver" for _, place in query.shown):
        yield "the number of a change (Sys.Ver, or ver of EMIT STREAM) keeps a count of each key; leave it out"
    elif rendering == "STREAM" and _counts_merged(query):
        yield "Sys.EmitIndex of sessions keeps a number of each row; leave it out"


def _counts_merged(query: Query) -> bool:
    """True if a stream shows how often sessions were emitted, which merge."""
    relation = query.relation
    while isinstance(relation, (Project, Filter, Emitted, Aggregate)):
        relation = relation.input
    sessions = isinstance(relation, Windowed) and relation.kind == "session"
    return sessions and any(place == "EmitIndex" for _, place in query.shown)


def _stream(
    query: Query,
    rows: PCollection[Any],
    make: Callable[[Any], Any],
    places: tuple[Any, ...],
    hint: object,
    changed: tuple[Scalar, ...],
) -> object:
    emitted = query.relation if isinstance(query.relation, Emitted) else None
    timed = emitted is not None and emitted.emit.watermark
    if not (shows_time(query) or may_retract(rows) or "EmitIndex" in places or timed):
        # All is an insertion, and so nothing is to be asked of its pane.
        return rows | "Show" >> Map(_Made(places, make)).with_output_types(hint)
    if not shows_time(query):
        return rows | "Show" >> ParDo(ShowChanges(places, timed, make)).with_output_types(hint)
    if "Ver" in places:
        columns = columns_as_scalars(query.relation.columns)
        keys = (emitted.keys if emitted is not None else ()) or emission_keys(query.relation)
        changed = tuple(columns[at] for at in keys) or columns
    keyed = KeyWithPane(steps.RowAsKey(changed) if changed else steps.no_key)
    pairs = rows | "Shown key" >> ParDo(keyed).with_output_types(KV[key_hint(changed), AnyHint])
    show = ShowChangesWithTime(places, timed, make, _counts_merged(query))
    return pairs | "Show" >> ParDo(show).with_output_types(hint)


_OF_INSERTIONS: Mapping[str, str] = {"Undo": "", "EmitTiming": "n/a"}
"""The values of system columns for rows that are never undone, and whose emissions do not go by the watermark."""


def _in_columns(
    places: tuple[int | str, ...], make: Callable[[Any], object], values: Mapping[str, object]
) -> NamedColumns | None:
    """Says how rows that are never undone become the Rows of a result, if system columns have these values."""
    if not isinstance(make, steps.MakeRow):
        return None
    types = {str: STRING, int: BIGINT}
    columns = tuple(
        each if isinstance(each, int) else Literal(values[each], types[type(values[each])].or_null(False))
        for each in places
    )
    return NamedColumns(columns, make.names)


class _Made(HasColumnForm):
    """Makes a row of the result of a tuple of a relation.

    Args:
        places: For each column of the result, the number of a column of the relation, or the name of a column of the
            system.
        make: From a tuple to the row of the result.
    """

    def __init__(self, places: tuple[int | str, ...], make: Callable[[Any], object]) -> None:
        self._make = make
        self.column_form = _in_columns(places, make, _OF_INSERTIONS)
        self._constants = tuple(_OF_INSERTIONS[each] for each in places if isinstance(each, str))
        constants = iter(range(len(self._constants)))
        # Constants come before the row's own columns.
        picked = [
            next(constants) if isinstance(each, str) else len(self._constants) + each for each in places
        ]
        self._first = picked[0]
        self._pick = operator.itemgetter(*picked) if len(picked) > 1 else None

    def __call__(self, row: tuple[Any, ...]) -> Any:
        if self._constants:
            row = self._constants + row
        return self._make(self._pick(row) if self._pick else (row[self._first],))


class KeyWithPane(DoFn):
    """Makes of a row a pair of a key, and of the row with the timing and the index of its pane.

    A shuffle carries only the kind of a pane.

    Args:
        key: Returns the key of a row.
    """

    def __init__(self, key: Callable[[Any], Any]) -> None:
        self._key = key

    def process(self, row: object, pane: PaneInfo = DoFn.PaneInfoParam) -> Iterator[tuple[Any, Any]]:
        yield self._key(row), (row, pane.timing, pane.index)


class LeftAtEnd(DoFn):
    """The rows of a table: what is left of all changes when the input has ended.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
        emits_insertions_only: Nothing changes after the end.
    """

    accepts_retractions = True
    emits_insertions_only = True

    ROWS = ReadModifyWriteStateSpec("rows", FastPrimitivesCoder())

    def __init__(self, copies: Copies) -> None:
        self._copies = copies

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ROWS),
    ) -> None:
        """Counts a copy of the row."""
        _, row = element
        held = Counter(rows.read() or {})
        self._copies.change(held, row, pane.kind.sign)
        if held:
            rows.write(dict(held))
        else:
            rows.clear()

    @on_window_expiration
    def at_end(
        self, key: object = DoFn.KeyParam, rows: BagRuntimeState = DoFn.StateParam(ROWS)
    ) -> Iterator[Any]:
        """Yields the copies that are left."""
        for row in self._copies.elements(Counter(rows.read() or {})):
            yield key if row is None else row


class Snapshot(NamedTuple):
    """All rows of a relation after an instant.

    Attributes:
        start: The processing time from which on these are the rows.
        rows: The rows, in a fixed order.
    """

    start: Timestamp
    rows: tuple[Any, ...]


class SnapshotFn(DoFn):
    """All rows of a relation from each instant on at which some have changed.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
        emits_insertions_only: A snapshot is never retracted.
    """

    accepts_retractions = True
    emits_insertions_only = True

    ROWS = ReadModifyWriteStateSpec("rows", FastPrimitivesCoder())
    SINCE = ReadModifyWriteStateSpec("since", FastPrimitivesCoder())
    PASSED = TimerSpec("passed", TimeDomain.REAL_TIME)

    def __init__(self, shown: Callable[[Any], Any], copies: Copies) -> None:
        self._shown = shown
        self._copies = copies

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ROWS),
        since: ReadModifyWriteRuntimeState = DoFn.StateParam(SINCE),
        passed: BaseTimer = DoFn.TimerParam(PASSED),
    ) -> None:
        """Takes a row in, or out."""
        _, row = element
        counts = Counter(rows.read() or {})
        self._copies.change(counts, row, pane.kind.sign)
        rows.write(dict(counts))
        if since.read() is None:
            now_micros = passed.get_current_relative_time().micros
            since.write(now_micros)
            passed.set(Timestamp.from_micros(now_micros + 1))

    @on_timer(PASSED)
    def show(
        self,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ROWS),
        since: ReadModifyWriteRuntimeState = DoFn.StateParam(SINCE),
    ) -> Iterator[Snapshot]:
        """Yields the rows after the last change of an instant, once the clock has left it."""
        yield from self._snapshot(rows, since)

    @on_window_expiration
    def at_end(
        self,
        key: object = DoFn.KeyParam,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ROWS),
        since: ReadModifyWriteRuntimeState = DoFn.StateParam(SINCE),
    ) -> Iterator[Snapshot]:
        """Yields the rows after the last change of all."""
        yield from self._snapshot(rows, since)

    def _snapshot(
        self, rows: ReadModifyWriteRuntimeState, since: ReadModifyWriteRuntimeState
    ) -> Iterator[Snapshot]:
        start_micros = since.read()
        if start_micros is None:
            return
        since.clear()
        found = [
            self._shown(row)
            for row in sorted(self._copies.elements(Counter(rows.read() or {})), key=ROW_CODER.encode)
        ]
        yield Snapshot(Timestamp.from_micros(start_micros), tuple(found))


class ShowChanges(DoFn, HasColumnForm):
    """Makes of changes rows that show them: whether a row undoes, at which watermark, and the number of its pane.

    Args:
        shown: For each column of the result, the number of a column, or the name of a column of the system.
        timed: Whether emissions go by the watermark, so that they have a timing.
        make: From a tuple to the row of the result.

    Attributes:
        emits_insertions_only: A column says that a row is undone, or nothing does.
        column_form: The same in columns, of groups that are emitted once.
    """

    emits_insertions_only = True

    def __init__(self, shown: tuple[int | str, ...], timed: bool, make: Callable[[Any], Any]) -> None:
        self._shown = shown
        self._timed = timed
        self._make = make
        self._shows_undo = "Undo" in shown
        if type(self) is ShowChanges:
            timing = _TIMINGS[PaneInfoTiming.ON_TIME] if timed else "n/a"
            self.column_form = _in_columns(shown, make, {"Undo": "", "EmitTiming": timing, "EmitIndex": 0})

    def process(self, row: Any, windowed: WindowedValue = DoFn.WindowedValueParam) -> Iterable[WindowedValue]:
        pane = windowed.pane_info
        if pane.kind.is_retraction and not self._shows_undo:
            return ()
        return make_elements(windowed, [self._make(self._values(row, pane, None, None))], ValueKind.INSERT)

    def _values(
        self, row: Sequence[Any], pane: PaneInfo, now: object, version: int | None
    ) -> tuple[Any, ...]:
        system = {
            "Undo": "undo" if pane.kind.is_retraction else "",
            "EmitTiming": _TIMINGS[pane.timing] if self._timed else "n/a",
            "EmitIndex": max(0, pane.index),
            "EmitTime": now,
            "Ver": version,
        }
        return tuple(row[each] if isinstance(each, int) else system[each] for each in self._shown)


_TIMINGS = {
    PaneInfoTiming.EARLY: "early",
    PaneInfoTiming.ON_TIME: "on-time",
    PaneInfoTiming.LATE: "late",
    PaneInfoTiming.UNKNOWN: "n/a",
}


class ShowChangesWithTime(ShowChanges):
    """`ShowChanges`, with the processing time of the emission, and the number of the change of its key.

    Args:
        shown: As in `ShowChanges`.
        timed: As in `ShowChanges`.
        make: As in `ShowChanges`.
        merges: Whether the index of a row is one more than the highest of the rows that it replaces. A session that
            comes of several counts its panes from 0.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
    """

    accepts_retractions = True
    VERSION = ReadModifyWriteStateSpec("version", FastPrimitivesCoder())
    INDEXES = ReadModifyWriteStateSpec("indexes", FastPrimitivesCoder())
    NOW = TimerSpec("now", TimeDomain.REAL_TIME)

    def __init__(
        self, shown: tuple[int | str, ...], timed: bool, make: Callable[[Any], Any], merges: bool = False
    ) -> None:
        super().__init__(shown, timed, make)
        self._merges = merges

    def process(
        self,
        element: tuple[Any, Any],
        windowed: WindowedValue = DoFn.WindowedValueParam,
        versions: ReadModifyWriteRuntimeState = DoFn.StateParam(VERSION),
        indexes: ReadModifyWriteRuntimeState = DoFn.StateParam(INDEXES),
        now: BaseTimer = DoFn.TimerParam(NOW),
    ) -> Iterable[WindowedValue]:
        _, (row, timing, index) = element
        if self._merges:
            index = _merged_index(indexes, ROW_CODER.encode(row), windowed.pane_info.kind)
        pane = replace(windowed.pane_info, timing=timing, index=index)
        if pane.kind.is_retraction and not self._shows_undo:
            return ()
        version = None
        if "Ver" in self._shown:
            version = versions.read() or 0
            versions.write(version + 1)
        time = steps.time_of(now.get_current_relative_time().micros, has_zone=True)
        shown = self._make(self._values(row, pane, time, version))
        return make_elements(windowed, [shown], ValueKind.INSERT)

    @on_timer(NOW)
    def never(self) -> None:
        """The timer is only asked for the time."""


def _merged_index(indexes: ReadModifyWriteRuntimeState, encoded: bytes, kind: ValueKind) -> int:
    """The index of a row; what it replaces has been undone before it."""
    highest, of_rows = indexes.read() or (-1, dict[bytes, int]())
    if kind.is_retraction:
        index: int = of_rows.pop(encoded, 0)
        indexes.write((max(highest, index), of_rows))
        return index
    indexes.write((-1, {**of_rows, encoded: highest + 1}))
    return int(highest) + 1
