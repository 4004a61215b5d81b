"""Defines what the steps of a lowered query do with one row, and what the steps with state keep."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from penstock.coders import FastPrimitivesCoder
from penstock.coders.deterministic import encode_key
from penstock.elements.bounded_window import IntervalWindow
from penstock.elements.row import Row
from penstock.functions.clocked import ClockedDoFn
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
from penstock.relations.bags import Form
from penstock.relations.changes import Change, compute_difference, compute_net, kinds_of, make_elements
from penstock.scalars.casting import whole_micros
from penstock.scalars.column_forms import ColumnForm, HasColumnForm
from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import Scalar
from penstock.sql.aggregates.extremes import SubqueryPlace, refuse_more_rows
from penstock.sql.execution.equality import CanonicalRow, canonicalize_keys
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, ValueKind, WindowedValue, create
from penstock.windows.time_domain import TimeDomain
from penstock.windows.window_fn import IntervalWindowFn, NonMergingWindowFn, WindowFn

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST_MICROS, _LAST_MICROS = whole_micros(datetime.datetime.min), whole_micros(datetime.datetime.max)


def time_of(micros: int, has_zone: bool) -> datetime.datetime:
    """Returns the time of microseconds since 1970; the first or the last time that there is for those beyond.

    In a batch, the clock is before all of them and does not move.

    >>> time_of(1_000_000, has_zone=False), time_of(-(1 << 60), has_zone=False)
    (datetime.datetime(1970, 1, 1, 0, 0, 1), datetime.datetime(1, 1, 1, 0, 0))
    """
    time = _EPOCH + max(_FIRST_MICROS, min(micros, _LAST_MICROS)) * _MICROSECOND
    return time if has_zone else time.replace(tzinfo=None)


class RowFunction:
    """A function of a row, as a value that travels to workers."""

    def __call__(self, row: Any) -> Any:
        """Returns the value for a row."""
        raise NotImplementedError


class MakeRow(RowFunction):
    """Makes of a tuple a Row with names.

    Args:
        names: The names.

    Attributes:
        names: The same.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __call__(self, row: tuple[Any, ...]) -> Row:
        made = Row()
        made.__dict__.update(zip(self.names, row, strict=True))
        return made


class RowsFunction:
    """A function of what a grouping emits and of the bounds of its window, as a value that travels to workers."""

    def __call__(self, element: object, start_micros: int, end_micros: int) -> list[Any]:
        """The rows."""
        raise NotImplementedError


class RowAsKey(RowFunction):
    """Makes the key of a row: the value of one expression, or a tuple of several."""

    def __init__(self, scalars: tuple[Scalar, ...]) -> None:
        self._projection = Projection(canonicalize_keys(scalars))
        self._single = len(scalars) == 1

    def __call__(self, row: Any) -> object:
        found = self._projection.function(row)
        return found[0] if self._single else found


NO_KEY = 0
"""The only key of rows without keys."""


def no_key(row: object) -> int:
    """Returns the only key of rows without keys."""
    return NO_KEY


class WholeRowAsKey(RowFunction):
    """Makes of a row a pair of the row as a key, and of the row itself, or None if that is the key.

    Args:
        form: What brings a row into its canonical form, or None.
    """

    def __init__(self, form: CanonicalRow | None) -> None:
        self._form = form

    def __call__(self, row: object) -> tuple[Any, Any]:
        return (row, None) if self._form is None else (self._form(row), row)


def same(row: object) -> object:
    """Returns the row itself."""
    return row


class InWindows(RowFunction):
    """Emits a row in each of its windows, with their starts and ends at the end.

    Args:
        kind: ``tumble``, ``hop`` or ``cumulate``.
        time: The time of a row.
        size_micros: The length of the windows, or of the largest.
        step_micros: The distance of their starts, or of their ends.
        offset_micros: The start of one of them.
    """

    def __init__(
        self, kind: str, time: Scalar, size_micros: int, step_micros: int, offset_micros: int
    ) -> None:
        self._kind = kind
        self._time = Projection((time,))
        self._size = size_micros
        self._step = step_micros
        self._offset = offset_micros

    def __call__(self, row: Any) -> Iterator[Any]:
        [time] = self._time.function(row)
        if time is None:
            return
        has_zone = time.tzinfo is not None
        for start, end in windows_of(self._kind, whole_micros(time), self._size, self._step, self._offset):
            yield (*row, time_of(start, has_zone), time_of(end, has_zone))


def windows_of(kind: str, at: int, size: int, step: int, offset: int) -> Iterator[tuple[int, int]]:
    """Yields the windows that an instant is in, in microseconds.

    >>> list(windows_of("hop", 7, 10, 5, 0)), list(windows_of("cumulate", 7, 10, 5, 0))
    ([(0, 10), (5, 15)], [(0, 10)])
    """
    if kind == "cumulate":
        start = at - (at - offset) % size
        first = start + ((at - start) // step + 1) * step
        for end in range(first, start + size + 1, step):
            yield start, end
        return
    last = at - (at - offset) % step
    for start in range(last - (size - 1) // step * step, last + 1, step):
        if start + size > at:
            yield start, start + size


class CumulatingWindows(IntervalWindowFn, NonMergingWindowFn):
    """Windows with one start and ends at each step, up to a size.

    Args:
        size_micros: The length of the largest.
        step_micros: The distance of their ends.
        offset_micros: The start of one of them.
    """

    def __init__(self, size_micros: int, step_micros: int, offset_micros: int) -> None:
        self.size_micros = size_micros
        self.step_micros = step_micros
        self.offset_micros = offset_micros

    def assign(self, context: WindowFn.AssignContext) -> list[IntervalWindow]:
        found = windows_of(
            "cumulate", context.timestamp.micros, self.size_micros, self.step_micros, self.offset_micros
        )
        return [
            IntervalWindow(Timestamp.from_micros(start), Timestamp.from_micros(end)) for start, end in found
        ]


class EndsAtTime(IntervalWindowFn, NonMergingWindowFn):
    """The window of an element ends at the time that the element names, after its key."""

    def assign(self, context: WindowFn.AssignContext) -> list[IntervalWindow]:
        _, (_, end_micros) = context.element
        end = Timestamp.from_micros(end_micros)
        return [IntervalWindow(Timestamp.from_micros(end_micros - 1), end)]


class ResultChanges(DoFn, HasColumnForm):
    """Makes rows of what a grouping emits; a row that stays the same is not touched.

    The grouping replaces a result by two elements, the old one and then the new one. Where both have the same rows,
    neither is seen further on.

    Args:
        rows_of: From an element, and the window's bounds in microseconds, to rows.

    Attributes:
        is_stateless: It keeps nothing from one change to the next.
        column_form: What it does to columns; None if only Python can do it.
    """

    def __init__(self, rows_of: Callable[[Any, int, int], list[Any]]) -> None:
        self._rows_of = rows_of
        self.column_form = getattr(rows_of, "column_form", None)
        self._before: tuple[Any, list[Any]] | None = None

    def start_bundle(self) -> None:
        self._before = None

    def process(
        self, element: object, windowed: WindowedValue = DoFn.WindowedValueParam
    ) -> Iterable[WindowedValue]:
        [window] = windowed.windows
        rows = self._rows_of(element, window.start.micros, window.end.micros)
        kind = windowed.pane_info.kind
        held, self._before = self._before, None
        found: list[WindowedValue] = []
        if kind is ValueKind.UPDATE_AFTER and held is not None:
            windowed_before, before = held
            change = compute_difference(before, rows)
            (retracted, inserted), (retracts, inserts) = change, kinds_of(change)
            before = make_elements(windowed_before, retracted, retracts)
            return before + make_elements(windowed, inserted, inserts)
        found = [] if held is None else make_elements(*held, ValueKind.DELETE)
        if kind is ValueKind.UPDATE_BEFORE:
            self._before = windowed, rows
            return found
        kind = ValueKind.DELETE if kind.is_retraction else ValueKind.INSERT
        return found + make_elements(windowed, rows, kind)

    def finish_bundle(self) -> Iterable[WindowedValue]:
        held, self._before = self._before, None
        return [] if held is None else make_elements(*held, ValueKind.DELETE)


class NetChanges(DoFn):
    """Emits what is left of all changes of a bundle: a row that comes and goes in it is not seen.

    A join answers one change after the other, and a left join even one change of its right side by two.

    Args:
        form: Maps rows to their form; None if rows are copies only of themselves.

    Attributes:
        is_stateless: It keeps nothing from one change to the next.
    """

    def __init__(self, form: Form | None) -> None:
        self._form = form
        self._held: list[WindowedValue] = []

    def start_bundle(self) -> None:
        self._held = []

    def process(self, row: object, windowed: WindowedValue = DoFn.WindowedValueParam) -> None:
        self._held.append(windowed)

    def finish_bundle(self) -> Iterable[WindowedValue]:
        held, self._held = self._held, []
        if not any(each.pane_info.kind.is_retraction for each in held):
            return held
        left: tuple[dict[bytes, list[WindowedValue]], ...] = ({}, {})
        for each in held:
            name = encode_key(each.value if self._form is None else self._form(each.value))
            own, opposite = left if each.pane_info.kind.is_retraction else left[::-1]
            if copies := opposite.get(name):
                copies.pop()
            else:
                own.setdefault(name, []).append(each)
        retracted, inserted = ([one for each in side.values() for one in each] for side in left)
        kinds = kinds_of((retracted, inserted))
        return [
            made
            for side, kind in zip((retracted, inserted), kinds, strict=True)
            for each in side
            for made in make_elements(each, [each.value], kind)
        ]


class GroupRows(RowsFunction, HasColumnForm):
    """Makes of a key and the results of its aggregates the row, or none if the group is empty.

    Args:
        keys: How many keys there are besides the window.
        start: The place of the window's start among all keys; None if there is none.
        end: The place of its end.
        has_zone: Whether times have a zone.
        results: How results come: as a ``tuple``, as one that is ``counted`` and begins with the number of rows, or as
            the only ``one``.
        keeps_empty: Whether there is a row for no rows.
        forms: The places, among the keys besides the window, of those that are shown as one of their values, which
            the last results are.
        column_form: The same in columns.
    """

    def __init__(
        self,
        keys: int,
        start: int | None,
        end: int | None,
        has_zone: bool,
        results: str,
        keeps_empty: bool,
        forms: tuple[int, ...] = (),
        column_form: ColumnForm | None = None,
    ) -> None:
        self._keys = keys
        self.column_form = column_form
        self._forms = forms
        self._places = sorted((place, at) for at, place in enumerate((start, end)) if place is not None)
        self._has_zone = has_zone
        self._results = results
        self._keeps_empty = keeps_empty

    def __call__(self, element: Any, start_micros: int, end_micros: int) -> list[Any]:
        key, results = element
        if self._results == "counted":
            count, *results = results
            if not count and not self._keeps_empty:
                return []
        elif self._results == "one":
            results = [results]
        row = [key] if self._keys == 1 else list(key) if self._keys else []
        if self._forms:
            first = len(results) - len(self._forms)
            for place, shown in zip(self._forms, results[first:], strict=True):
                row[place] = shown
            results = results[:first]
        for place, at in self._places:
            row.insert(place, time_of((start_micros, end_micros)[at], self._has_zone))
        return [(*row, *results)]


class SetOperationRows(RowsFunction):
    """Makes of a row and its count on each side its copies in the result of a set operation."""

    def __init__(self, kind: str, is_all: bool) -> None:
        self._kind = kind
        self._all = is_all

    def __call__(self, element: Any, start_micros: int, end_micros: int) -> list[Any]:
        key, (left, right, form) = element
        if self._all:
            count = left - right if self._kind == "except" else min(left, right)
        elif self._kind == "except":
            count = left > 0 and right <= 0
        else:
            count = left > 0 and right > 0
        return [key if form is None else form] * max(0, int(count))


class FirstRows(RowsFunction):
    """Makes of a partition and its first rows these rows, perhaps with their numbers."""

    def __init__(self, offset: int, numbered: bool) -> None:
        self._offset = offset
        self._numbered = numbered

    def __call__(self, element: Any, start_micros: int, end_micros: int) -> list[Any]:
        _, rows = element
        if not self._numbered:
            return list(rows)
        return [(*row, self._offset + number) for number, row in enumerate(rows, 1)]


class FirstRowsOfWindow(FirstRows):
    """Makes of a partition and its first rows these rows with the bounds of their window, perhaps with their numbers.

    Args:
        offset: How many rows are left out before.
        numbered: Whether a row ends with its number.
        bounds: The place of each bound in a row, and whether it is the window's start (0) or its end (1).
        has_zone: Whether times have a zone.
    """

    def __init__(self, offset: int, numbered: bool, bounds: Mapping[int, int], has_zone: bool) -> None:
        super().__init__(offset, numbered)
        self._bounds = sorted(bounds.items())
        self._has_zone = has_zone

    def __call__(self, element: Any, start_micros: int, end_micros: int) -> list[Any]:
        micros = start_micros, end_micros
        bounds = [(place, time_of(micros[bound], self._has_zone)) for place, bound in self._bounds]
        rows = []
        for row in super().__call__(element, start_micros, end_micros):
            values = list(row)
            for place, time in bounds:
                values.insert(place, time)
            rows.append(tuple(values))
        return rows


class EmitFn(DoFn):
    """Holds the changes of rows until they are to be seen, and then emits what is left of them.

    Elements are pairs of a key and a pair of a row and the time that the watermark must pass.

    Args:
        watermark: Whether rows are emitted when the watermark has passed the end of their window.
        before_micros: The delay of emissions before that; None if there are none.
        aligned: Whether these come at multiples of the delay.
        after_micros: The delay of emissions after the watermark.
        form: What brings a row into its canonical form, or None.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
        emits_retractions: What was emitted may be retracted.
        emits_insertions_only: Rows are emitted once, at the watermark; what comes later is dropped.
    """

    accepts_retractions = True
    emits_retractions = True

    CHANGES = BagStateSpec("changes", FastPrimitivesCoder())
    GIVEN = ReadModifyWriteStateSpec("given", FastPrimitivesCoder())
    DELAY = TimerSpec("delay", TimeDomain.REAL_TIME)
    PASSED = TimerSpec("passed", TimeDomain.WATERMARK)

    def __init__(
        self,
        watermark: bool,
        before_micros: int | None,
        aligned: bool,
        after_micros: int | None,
        form: CanonicalRow | None = None,
    ) -> None:
        self._form = form
        self._watermark = watermark
        self._before_micros = before_micros
        self._aligned = aligned
        self._after_micros = after_micros
        self.emits_retractions = before_micros is not None or after_micros is not None
        self.emits_insertions_only = not self.emits_retractions

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        window: IntervalWindow = DoFn.WindowParam,
        changes: BagRuntimeState = DoFn.StateParam(CHANGES),
        given: ReadModifyWriteRuntimeState = DoFn.StateParam(GIVEN),
        delay: BaseTimer = DoFn.TimerParam(DELAY),
        passed: BaseTimer = DoFn.TimerParam(PASSED),
    ) -> None:
        """Notes a change."""
        _, (row, _) = element
        changes.add((pane.kind.sign, row))
        index, waits, is_late = given.read() or (0, False, False)
        wait_micros = self._after_micros if is_late else self._before_micros
        if self._watermark and not is_late:
            passed.set(window.max_timestamp())
        if wait_micros is not None and not waits:
            delay.set(self._due(delay, wait_micros))
            waits = True
        given.write((index, waits, is_late))

    def _due(self, delay: BaseTimer, wait_micros: int) -> Timestamp:
        now_micros = delay.get_current_relative_time().micros
        if self._aligned and wait_micros:
            return Timestamp.from_micros(now_micros + -now_micros % wait_micros)
        return Timestamp.from_micros(now_micros + wait_micros)

    @on_timer(DELAY)
    def after_delay(
        self,
        key: object = DoFn.KeyParam,
        window: IntervalWindow = DoFn.WindowParam,
        changes: object = DoFn.StateParam(CHANGES),
        given: ReadModifyWriteRuntimeState = DoFn.StateParam(GIVEN),
    ) -> Iterable[WindowedValue]:
        """Emits what has changed meanwhile."""
        index, _, is_late = given.read() or (0, False, False)
        timing = PaneInfoTiming.LATE if is_late else PaneInfoTiming.EARLY
        given.write((index, False, is_late))
        return self._emission(changes, given, window, timing)

    @on_timer(PASSED)
    def at_watermark(
        self,
        key: object = DoFn.KeyParam,
        window: IntervalWindow = DoFn.WindowParam,
        changes: object = DoFn.StateParam(CHANGES),
        given: ReadModifyWriteRuntimeState = DoFn.StateParam(GIVEN),
    ) -> Iterable[WindowedValue]:
        """Emits what has changed until the watermark passed."""
        index, _, _ = given.read() or (0, False, False)
        given.write((index, False, True))
        return self._emission(changes, given, window, PaneInfoTiming.ON_TIME)

    @on_window_expiration
    def at_end(
        self,
        key: object = DoFn.KeyParam,
        window: IntervalWindow = DoFn.WindowParam,
        changes: object = DoFn.StateParam(CHANGES),
        given: ReadModifyWriteRuntimeState = DoFn.StateParam(GIVEN),
    ) -> Iterable[WindowedValue]:
        """Emits what is left when nothing can change any more."""
        return self._emission(changes, given, window, PaneInfoTiming.ON_TIME)

    def _emission(
        self, changes: Any, given: ReadModifyWriteRuntimeState, window: IntervalWindow, timing: int
    ) -> Iterable[WindowedValue]:
        change = compute_net(changes.read(), self._form)
        changes.clear()
        index, waits, is_late = given.read() or (0, False, False)
        if not any(change):
            return []
        given.write((index + 1, waits, is_late))
        return emit_in_pane(change, window, timing, index)


def emit_in_pane(change: Change, window: IntervalWindow, timing: int, index: int) -> Iterator[WindowedValue]:
    """Yields the rows of a change at the end of their window, in the pane with this timing and index."""
    for rows, kind in zip(change, kinds_of(change), strict=True):
        pane = PaneInfo(
            index == 0, False, timing, index, -1 if timing == PaneInfoTiming.EARLY else index, kind
        )
        for row in rows:
            yield create(row, window.max_timestamp().micros, (window,), pane)


class OneRow(DoFn):
    """Fails when a subquery in an expression still has more than one row at the end of an instant.

    Args:
        place: Where the subquery stands.

    Attributes:
        accepts_retractions: They also pass.
    """

    accepts_retractions = True
    COUNT = ReadModifyWriteStateSpec("count", FastPrimitivesCoder())
    CHANGED = TimerSpec("changed", TimeDomain.REAL_TIME)

    def __init__(self, place: SubqueryPlace | None) -> None:
        self._place = place

    def process(
        self,
        element: object,
        pane: PaneInfo = DoFn.PaneInfoParam,
        count: ReadModifyWriteRuntimeState = DoFn.StateParam(COUNT),
        changed: BaseTimer = DoFn.TimerParam(CHANGED),
    ) -> Iterator[Any]:
        """Counts a row, and passes it on."""
        total = (count.read() or 0) + pane.kind.sign
        if total:
            count.write(total)
        else:
            count.clear()
        if total > 1:
            changed.set_relative(0)
        yield element

    @on_timer(CHANGED)
    def check(self, count: ReadModifyWriteRuntimeState = DoFn.StateParam(COUNT)) -> None:
        """Looks at what has stayed."""
        total = count.read() or 0
        if total > 1:
            refuse_more_rows(total, self._place)


class AddArrivalTimeOfInsertions(ClockedDoFn):
    """Puts the processing time of its arrival at the end of each row, where no row is retracted."""

    def __init__(self) -> None:
        self._now: tuple[int, datetime.datetime] = 0, _EPOCH

    def process(self, row: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        """Adds the time."""
        micros = self.now_micros()
        if micros != self._now[0]:
            self._now = micros, time_of(micros, has_zone=True)
        return [(*row, self._now[1])]


class AddArrivalTime(DoFn):
    """Puts the processing time of its arrival at the end of each row; a row that is retracted has the same.

    Attributes:
        accepts_retractions: The row that came is found again.
    """

    accepts_retractions = True
    TIMES = ReadModifyWriteStateSpec("times", FastPrimitivesCoder())
    NOW = TimerSpec("now", TimeDomain.REAL_TIME)

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        times: ReadModifyWriteRuntimeState = DoFn.StateParam(TIMES),
        now: BaseTimer = DoFn.TimerParam(NOW),
    ) -> Iterator[Any]:
        key, row = element
        row = key if row is None else row
        micros = now.get_current_relative_time().micros
        known = times.read() or []
        if pane.kind.is_retraction:
            micros = known.pop() if known else micros
        else:
            known.append(micros)
        if known:
            times.write(known)
        else:
            times.clear()
        yield (*row, time_of(micros, has_zone=True))

    @on_timer(NOW)
    def never(self) -> None:
        """The timer is only asked for the time."""
