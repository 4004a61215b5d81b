"""The results of window functions, for a stretch of the sorted rows of a partition.

Each function says three things: the results of which rows may change when a row comes or goes (`reach`), which rows it
reads for the results of a stretch (`needed`), and the results. Where a frame begins with the partition, a function goes
on from the result of the row before the stretch, and does not read the rows before it.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import Scalar
from penstock.sql.aggregates.cells import ordered
from penstock.sql.execution.aggregating import SqlAggregates
from penstock.sql.execution.row_order import Key, RowOrder, SqlRow
from penstock.sql.plan.frames import Frame, Offset, count_rows
from penstock.sql.plan.relations import AggregateCall, Over, OverCall

Span = tuple[int, int]
"""Places of rows: the first, and the first behind the last."""


class Rows(Protocol):
    """The sorted rows of a partition."""

    order: RowOrder

    def __len__(self) -> int: ...

    def row(self, place: int) -> SqlRow:
        """Returns the row at a place."""

    def place_of(self, key: Key) -> int:
        """Returns the place of the first row whose key is not less than a key."""


class Stretch:
    """Rows of a partition that lie one behind the other, as functions read them.

    Args:
        rows: The rows.
        first: The place of the first of them.
        total: How many rows the partition has.
        order: The order of the rows.
    """

    def __init__(self, rows: Sequence[SqlRow], first: int, total: int, order: RowOrder) -> None:
        self.rows = rows
        self.first = first
        self.total = total
        self.order = order
        self._parts: list[Key] | None = None
        self._groups: list[Span] | None = None
        self._frames: dict[tuple[Frame, Span], list[Span]] = {}

    def parts(self) -> list[Key]:
        """Returns what each row is compared by in ORDER BY."""
        if self._parts is None:
            self._parts = list(map(self.order.parts, self.rows))
        return self._parts

    def groups(self) -> list[Span]:
        """Returns for each row the places of the rows that are equal to it in ORDER BY, of those that are here."""
        if self._groups is None:
            parts, found = self.parts(), list[Span]()
            borders = [0, *(at for at, (one, two) in enumerate(pairwise(parts), 1) if one != two), len(parts)]
            for start, end in pairwise(borders):
                found += [(self.first + start, self.first + end)] * (end - start)
            self._groups = found
        return self._groups

    def group(self, place: int) -> Span:
        """Returns the places of the rows that are equal to the one at a place in ORDER BY."""
        return self.groups()[place - self.first]

    def frames(self, frame: Frame, span: Span) -> list[Span]:
        """Returns the places that a frame has for each row of a span."""
        known = self._frames.get((frame, span))
        if known is None:
            found = self._by_rows(frame, span) if frame.unit == "ROWS" else self._by_range(frame, span)
            known = self._frames[frame, span] = [(start, max(start, end)) for start, end in found]
        return known

    def _by_rows(self, frame: Frame, span: Span) -> Iterator[Span]:
        total, before, behind = self.total, frame.start, frame.end
        for place in range(*span):
            start = 0 if before is None else min(max(0, place + count_rows(before)), total)
            end = total if behind is None else max(0, min(place + count_rows(behind) + 1, total))
            yield start, end

    def _by_range(self, frame: Frame, span: Span) -> Iterator[Span]:
        starts = self._bounds(frame.start, span, 0)
        ends = self._bounds(frame.end, span, 1)
        return zip(starts, ends, strict=True)

    def _bounds(self, offset: Offset | None, span: Span, side: int) -> list[int]:
        if offset is None:
            return [(0, self.total)[side]] * (span[1] - span[0])
        if not offset:
            return [self.group(place)[side] for place in range(*span)]
        bound = (self.order.before, self.order.behind)[side]
        keys, first, at, found = self.parts(), self.first, 0, list[int]()
        # Bounds never go back from one row to the next one.
        for place in range(*span):
            wanted = bound(self.rows[place - first], offset)
            while at < len(keys) and (*keys[at], (1,)) < wanted:
                at += 1
            found.append(first + at)
        return found

    def values(self, scalar: Projection) -> list[Any]:
        """Returns a value of each row."""
        function = scalar.function
        return [function(row)[0] for row in self.rows]


class Sums:
    """Holds what functions know of the rows before a place, from which they continue.

    Args:
        start: The place.
        held: For each function what it holds, None if it holds nothing; None at the start of the partition.
        wanted: Later places, of which each begins a block.

    Attributes:
        found: What the functions hold of the rows before each of these places.
    """

    def __init__(self, start: int, held: Sequence[Any] | None, wanted: Sequence[int]) -> None:
        self.start = start
        self.held = held
        self.wanted = frozenset(wanted)
        self.found: dict[int, list[Any]] = {}

    def keep(self, at: int, count: int, found: Mapping[int, Any]) -> None:
        """Keeps what one of several functions holds at each place."""
        for place, held in found.items():
            self.found.setdefault(place, [None] * count)[at] = held


class _Function:
    """Computes the results of one call.

    Attributes:
        holds: Whether it continues from what it holds of the rows before a block.
    """

    holds = False

    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        """Returns the rows whose results may be others when a row comes to a place, or goes from before it."""
        raise NotImplementedError

    def needed(self, rows: Rows, span: Span) -> Span:
        """Returns the rows that are read for the results of a span."""
        raise NotImplementedError

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        """Returns the results of a span; `before` is the result of the row before it, if there is one."""
        raise NotImplementedError

    def read_from(self, sums: Sums, at: int) -> int:
        """Returns the first row that a function reads to continue from what it holds; `at` is its place in the sums."""
        raise NotImplementedError

    def results_from(
        self, stretch: Stretch, span: Span, sums: Sums, at: int
    ) -> tuple[list[Any], dict[int, Any]]:
        """Returns the results of a span, and what the function holds of the rows before each wanted place."""
        raise NotImplementedError

    def first_kept(self, rows: Rows) -> int:
        """Returns the first row that the results of later rows need, if each comes behind all that are there."""
        return len(rows) - 1

    def add(self, stretch: Stretch, span: Span, before: object, held: object) -> tuple[list[Any], Any]:
        """Returns the results of rows that come behind all others, and what it holds for the next ones."""
        return self.results(stretch, span, before), None


class _RowNumber(_Function):
    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        return place, len(rows)

    def needed(self, rows: Rows, span: Span) -> Span:
        return span

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        return list(range(span[0] + 1, span[1] + 1))


class _Rank(_Function):
    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        return rows.place_of(rows.order.before(row)), len(rows)

    def needed(self, rows: Rows, span: Span) -> Span:
        return rows.place_of(rows.order.before(rows.row(span[0]))), span[1]

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        return [stretch.group(place)[0] + 1 for place in range(*span)]


class _DenseRank(_Rank):
    def needed(self, rows: Rows, span: Span) -> Span:
        return max(0, span[0] - 1), span[1]

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        rank, found, parts = _number(before), list[int](), stretch.parts()
        for place in range(*span):
            at = place - stretch.first
            rank += place == 0 or parts[at] != parts[at - 1]
            found.append(rank)
        return found


class _OfAll(_Function):
    """A function of the place of a row, and of the number of rows."""

    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        return 0, len(rows)

    def needed(self, rows: Rows, span: Span) -> Span:
        return 0, len(rows)


class _PercentRank(_OfAll):
    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        others = stretch.total - 1
        return [stretch.group(place)[0] / others if others else 0.0 for place in range(*span)]


class _CumeDist(_OfAll):
    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        return [stretch.group(place)[1] / stretch.total for place in range(*span)]


class _Ntile(_OfAll):
    def __init__(self, tiles: int) -> None:
        self._tiles = tiles

    def needed(self, rows: Rows, span: Span) -> Span:
        return span

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        size, larger = divmod(stretch.total, self._tiles)
        # The first tiles have a row more.
        limit = larger * (size + 1)
        return [
            place // (size + 1) + 1 if place < limit else larger + (place - limit) // size + 1
            for place in range(*span)
        ]


class _Neighbour(_Function):
    """LAG, or with a negative distance LEAD."""

    def __init__(self, call: OverCall) -> None:
        self._distance = call.count if call.name == "lag" else -call.count
        self._value = Projection(call.arguments[:1])
        self._default = Projection(call.arguments[1:]) if len(call.arguments) > 1 else None
        self._ignores_nulls = call.ignores_nulls and bool(call.count)

    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        if self._ignores_nulls:
            return (place, len(rows)) if self._distance > 0 else (0, place + 1)
        return place - max(0, -self._distance), place + max(0, self._distance) + 1

    def needed(self, rows: Rows, span: Span) -> Span:
        if self._ignores_nulls:
            return (0, span[1]) if self._distance > 0 else (span[0], len(rows))
        return span[0] - max(0, self._distance), span[1] + max(0, -self._distance)

    def first_kept(self, rows: Rows) -> int:
        if not self._ignores_nulls:
            return len(rows) - self._distance
        place, known = len(rows), 0
        while place and known < self._distance:
            place -= 1
            known += self._value.function(rows.row(place))[0] is not None
        return place

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        first, values = stretch.first, stretch.values(self._value)
        places = [place - first for place in range(*span)]
        if self._ignores_nulls:
            found = self._among_known(values, places)
        else:
            found = [place if 0 <= (place := at - self._distance) < len(values) else None for at in places]
        default = self._default
        return [
            values[at]
            if at is not None
            else None
            if default is None
            else default.function(stretch.rows[place])[0]
            for at, place in zip(found, places, strict=True)
        ]

    def _among_known(self, values: list[Any], places: list[int]) -> list[int | None]:
        """Returns the places of the values that are not NULL at the distance from some places."""
        known = [at for at, value in enumerate(values) if value is not None]
        found: list[int | None] = []
        for place in places:
            if self._distance > 0:
                at = bisect_left(known, place) - self._distance
            else:
                at = bisect_left(known, place + 1) - self._distance - 1
            found.append(known[at] if 0 <= at < len(known) else None)
        return found


class _Framed(_Function):
    """A function of the rows of a frame.

    Attributes:
        goes_on: Whether it needs no rows before the frame of the row before, if frames begin with the partition.
    """

    goes_on = False

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        frame, order = self._frame, rows.order
        start, end = frame.start, frame.end
        if frame.unit == "ROWS":
            first = 0 if end is None else place - max(0, count_rows(end))
            return first, len(rows) if start is None else place + max(0, -count_rows(start)) + 1
        first = 0 if end is None else rows.place_of(order.before(row, -end))
        last = len(rows) if start is None else rows.place_of(order.behind(row, -start))
        return min(first, place), max(last, place + 1)

    def needed(self, rows: Rows, span: Span) -> Span:
        first, last = span
        start = self._frame.start
        if start is None:
            begin = 0
            if first and self.goes_on:
                begin = max(0, min(first - 1, self._end_of(rows, first - 1) - 1))
        elif self._frame.unit == "ROWS":
            begin = first + count_rows(start)
        else:
            begin = rows.place_of(rows.order.before(rows.row(first), start))
        return min(begin, first), max(self._end_of(rows, last - 1), last)

    def first_kept(self, rows: Rows) -> int:
        start, last = self._frame.start, len(rows) - 1
        if start is None:
            return min(last, self._end_of(rows, last) - 1) if self.goes_on else 0
        if self._frame.unit == "ROWS":
            return last + 1 + count_rows(start)
        return rows.place_of(rows.order.before(rows.row(last), start))

    def _end_of(self, rows: Rows, place: int) -> int:
        """Returns the end of the frame of a row."""
        end = self._frame.end
        if end is None:
            return len(rows)
        if self._frame.unit == "ROWS":
            return max(0, min(place + count_rows(end) + 1, len(rows)))
        return rows.place_of(rows.order.behind(rows.row(place), end))

    def _goes_on(self, stretch: Stretch, span: Span) -> int:
        """Returns where the frame of the row before a span ends; 0 if a function begins with the partition."""
        if not (self.goes_on and self._frame.start is None and span[0]):
            return 0
        [(_, end)] = stretch.frames(self._frame, (span[0] - 1, span[0]))
        return end


class _ValueAt(_Framed):
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE: the value of a place of the frame, perhaps among those that are known."""

    goes_on = True

    def __init__(self, call: OverCall, frame: Frame) -> None:
        super().__init__(frame)
        self._value = Projection(call.arguments)
        # It counts from the start, and below zero from the end.
        self._at = {"first_value": 0, "last_value": -1}.get(call.name, call.count - 1)
        self._ignores_nulls = call.ignores_nulls
        # A result does not say how many values of a frame are not NULL.
        self.goes_on = self._at <= 0 or not call.ignores_nulls

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        values, first, at = stretch.values(self._value), stretch.first, self._at
        done = self._goes_on(stretch, span)
        frames = stretch.frames(self._frame, span)
        if self._ignores_nulls:
            return [*self._among_known(values, first, frames, before if done else None)]
        if at < 0:
            return [values[end - 1 - first] if start < end else None for start, end in frames]
        return [
            None if start + at >= end else before if start + at < done else values[start + at - first]
            for start, end in frames
        ]

    def _among_known(
        self, values: list[Any], first: int, frames: list[Span], before: object
    ) -> Iterator[Any]:
        known = [first + at for at, value in enumerate(values) if value is not None]
        at = self._at
        for start, end in frames:
            low, high = bisect_left(known, start), bisect_left(known, end)
            place = high - 1 if at < 0 else low + at
            is_there = low <= place < high
            if before is not None and (at == 0 or not is_there):
                yield before
            else:
                yield values[known[place] - first] if is_there else None


_EXACT = frozenset(["count", "sum", "avg"])
_ADDED = frozenset([*_EXACT, "min", "max"])
"""The aggregates that do not depend on the order of values."""
_SMALL = frozenset(["sum", "avg", "stddev_samp", "stddev_pop", "var_samp", "var_pop"])
"""The aggregates that hold a few numbers, however many values they have."""


def _number(before: object) -> int:
    assert before is None or isinstance(before, int)
    return before or 0


def _held(held: object) -> tuple[int, list[Any]]:
    assert isinstance(held, tuple)
    done, added = held
    return done, added


class _Aggregate(_Framed):
    """An aggregate of the rows of a frame."""

    def __init__(self, call: OverCall, frame: Frame, argument: Scalar) -> None:
        super().__init__(frame)
        assert call.aggregate is not None
        aggregate = call.aggregate
        self._argument = Projection((argument,))
        self._name = "" if aggregate.fn is not None or aggregate.distinct else aggregate.name
        kind = argument.type
        # Sums of floats depend on the order in which they are added, and some decimals are rounded.
        is_exact = kind.name != "DOUBLE" and (kind.name != "DECIMAL" or kind.precision is not None)
        self.goes_on = self._name in ("count", "min", "max") or (self._name == "sum" and is_exact)
        self._may_subtract = self._name == "count" or (self._name in _EXACT and is_exact)
        self.holds = not self.goes_on and self._name in _SMALL and frame.start is None and not frame.is_whole
        self._adding = SqlAggregates((replace(aggregate, condition=None),), retracts=False)
        self._changing = SqlAggregates((replace(aggregate, condition=None),), retracts=True)

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        frames, values = stretch.frames(self._frame, span), stretch.values(self._argument)
        first = stretch.first
        if self._frame.is_whole:
            return [self._of(values)] * len(frames)
        if self._frame.start is None:
            return self._growing(values, first, frames, self._goes_on(stretch, span), before)
        if self._frame.end is None and self._name in _ADDED:
            return self._shrinking(values, first, frames)
        if self._may_subtract:
            return self._sliding(values, first, frames)
        if self._name in ("min", "max"):
            return self._extremes(values, first, frames)
        found, known, result = list[Any](), (-1, -1), None
        for frame in frames:
            if frame != known:
                start, end = known = frame
                result = self._of(values[start - first : end - first])
            found.append(result)
        return found

    def read_from(self, sums: Sums, at: int) -> int:
        return min(sums.start, self._held_in(sums, at)[0])

    def _held_in(self, sums: Sums, at: int) -> tuple[int, list[Any]]:
        held = None if sums.held is None else sums.held[at]
        return (0, self._adding.create_accumulator()) if held is None else _held(held)

    def results_from(
        self, stretch: Stretch, span: Span, sums: Sums, at: int
    ) -> tuple[list[Any], dict[int, Any]]:
        adding, values, first = self._adding, stretch.values(self._argument), stretch.first
        done, added = copy.deepcopy(self._held_in(sums, at))
        found, kept, result = list[Any](), dict[int, Any](), adding.extract_output(added)[1]
        frames = stretch.frames(self._frame, (sums.start, span[1]))
        for place, (_, end) in enumerate(frames, sums.start):
            if place in sums.wanted:
                kept[place] = done, copy.deepcopy(added)
            if done < end:
                for value in values[done - first : end - first]:
                    adding.add_input(added, (value,))
                done = end
                if place >= span[0]:
                    result = adding.extract_output(added)[1]
            elif place == span[0]:
                result = adding.extract_output(added)[1]
            if place >= span[0]:
                found.append(result)
        if span[1] in sums.wanted:
            kept[span[1]] = done, added
        return found, kept

    def first_kept(self, rows: Rows) -> int:
        if self._frame.start is None:
            last = len(rows) - 1
            return min(last, self._end_of(rows, last) - 1)
        return super().first_kept(rows)

    def add(self, stretch: Stretch, span: Span, before: object, held: object) -> tuple[list[Any], Any]:
        if self._frame.start is not None or self.goes_on:
            return self.results(stretch, span, before), None
        done, added = (0, self._adding.create_accumulator()) if held is None else _held(held)
        frames, values = stretch.frames(self._frame, span), stretch.values(self._argument)
        found = list[Any]()
        for _, end in frames:
            for value in values[done - stretch.first : end - stretch.first]:
                self._adding.add_input(added, (value,))
            done = max(done, end)
            found.append(self._adding.extract_output(added)[1])
        return found, (done, added)

    def _of(self, values: Sequence[Any]) -> object:
        held = self._adding.create_accumulator()
        for value in values:
            self._adding.add_input(held, (value,))
        return self._adding.extract_output(held)[1]

    def _growing(
        self, values: list[Any], first: int, frames: list[Span], done: int, before: object
    ) -> list[Any]:
        """Adds values only, from the start of the partition or on from a result."""
        adding, held = self._adding, self._adding.create_accumulator()
        more = 0
        if done and self._name == "count":
            more = _number(before)
        elif done:
            adding.add_input(held, (before,))
        found, at, result = list[Any](), done, before if done else adding.extract_output(held)[1]
        for _, end in frames:
            if at < end:
                for place in range(at, end):
                    adding.add_input(held, (values[place - first],))
                at = end
                result = adding.extract_output(held)[1]
                if more:
                    result += more
            found.append(result)
        return found

    def _shrinking(self, values: list[Any], first: int, frames: list[Span]) -> list[Any]:
        """Adds values from the end of the partition on."""
        adding, held = self._adding, self._adding.create_accumulator()
        at, found = first + len(values), list[Any]()
        result = adding.extract_output(held)[1]
        for start, _ in reversed(frames):
            if start < at:
                for place in range(at - 1, start - 1, -1):
                    adding.add_input(held, (values[place - first],))
                at = start
                result = adding.extract_output(held)[1]
            found.append(result)
        return found[::-1]

    def _sliding(self, values: list[Any], first: int, frames: list[Span]) -> list[Any]:
        """Adds what enters the frame, and subtracts what leaves it."""
        changing, held = self._changing, self._changing.create_accumulator()
        low = high = frames[0][0]
        found = list[Any]()
        for start, end in frames:
            for place in range(high, end):
                changing.add_input(held, (values[place - first],))
            high = max(high, end)
            for place in range(low, min(start, high)):
                changing.subtract_input(held, (values[place - first],))
            low = start
            high = max(high, start)
            found.append(changing.extract_output(held)[1])
        return found

    def _extremes(self, values: list[Any], first: int, frames: list[Span]) -> list[Any]:
        """Keeps what may still become the smallest or the largest value, the best one first."""
        waiting: deque[tuple[int, Any, Any]] = deque()
        is_min, high, found = self._name == "min", frames[0][0], list[Any]()
        for start, end in frames:
            for place in range(high, end):
                value = values[place - first]
                if value is None:
                    continue
                by = ordered(value)
                while waiting and (by < waiting[-1][1] if is_min else waiting[-1][1] < by):
                    waiting.pop()
                waiting.append((place, by, value))
            high = max(high, end)
            while waiting and waiting[0][0] < start:
                waiting.popleft()
            found.append(waiting[0][2] if waiting else None)
        return found


class _List(_Framed):
    """The values of a frame that are not NULL, in the order of its rows."""

    def __init__(self, frame: Frame, argument: Scalar) -> None:
        super().__init__(frame)
        self._argument = Projection((argument,))

    def results(self, stretch: Stretch, span: Span, before: object) -> list[Any]:
        values, first = stretch.values(self._argument), stretch.first
        return [
            [value for value in values[start - first : end - first] if value is not None]
            for start, end in stretch.frames(self._frame, span)
        ]


def _function_of(call: OverCall, argument_of: Callable[[AggregateCall], Scalar]) -> _Function:
    match call.name:
        case "row_number":
            return _RowNumber()
        case "rank":
            return _Rank()
        case "dense_rank":
            return _DenseRank()
        case "percent_rank":
            return _PercentRank()
        case "cume_dist":
            return _CumeDist()
        case "ntile":
            return _Ntile(call.count)
        case "lag" | "lead":
            return _Neighbour(call)
    assert call.frame is not None
    if call.aggregate is None:
        return _ValueAt(call, call.frame)
    if call.name == "list":
        return _List(call.frame, argument_of(call.aggregate))
    return _Aggregate(call, call.frame, argument_of(call.aggregate))


class OverResults:
    """Computes the results of all calls of one OVER.

    Args:
        relation: The OVER.
        argument_of: Returns what an aggregate reads of a row.
    """

    def __init__(self, relation: Over, argument_of: Callable[[AggregateCall], Scalar]) -> None:
        self._relation = relation
        self._argument_of = argument_of
        self._functions = tuple(_function_of(call, argument_of) for call in relation.calls)
        self._limit = relation.limit
        self.order = RowOrder(relation.orders, tuple(each.type for each in relation.input.columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return OverResults, (self._relation, self._argument_of)

    def reach(self, rows: Rows, place: int, row: SqlRow) -> Span:
        """Returns the rows whose results may be others when a row comes to a place, or goes from before it."""
        if not self._functions:
            # The row may let others in, or drive them out.
            return place, len(rows)
        spans = [function.reach(rows, place, row) for function in self._functions]
        return max(0, min(first for first, _ in spans)), min(len(rows), max(last for _, last in spans))

    @property
    def holds(self) -> bool:
        """True if functions continue from what they hold of the rows before a block."""
        return any(function.holds for function in self._functions)

    def needed(self, rows: Rows, span: Span, sums: Sums | None = None) -> Span:
        """Returns the rows that are read for the results of a span, continuing from sums if there are some."""
        if not self._functions:
            return span
        spans = [function.needed(rows, span) for function in self._functions]
        if sums is not None:
            spans = [
                (function.read_from(sums, at), last) if function.holds else (first, last)
                for at, (function, (first, last)) in enumerate(zip(self._functions, spans, strict=True))
            ]
        return max(0, min(first for first, _ in spans)), min(len(rows), max(last for _, last in spans))

    def compute(
        self, stretch: Stretch, span: Span, before: Sequence[Any] | None, sums: Sums | None = None
    ) -> list[tuple[Any, ...]]:
        """Returns the results of each row of a span, in the order of calls.

        Args:
            stretch: At least the needed rows.
            span: The places of the rows.
            before: The results of the row before the span; None if it begins with the partition.
            sums: What the functions continue from, and where they keep sums; None to read all rows that they need.
        """
        results: list[list[Any]] = []
        for at, function in enumerate(self._functions):
            if sums is None or not function.holds:
                results.append(function.results(stretch, span, None if before is None else before[at]))
            else:
                found, kept = function.results_from(stretch, span, sums, at)
                sums.keep(at, len(self._functions), kept)
                results.append(found)
        return list(zip(*results, strict=True)) if results else [()] * (span[1] - span[0])

    @property
    def is_limited(self) -> bool:
        """True if only the first rows have results."""
        return self._limit is not None

    def count(self, rows: Rows) -> int:
        """Returns how many rows of a partition have results: the first ones, until a rank is too high."""
        limit, total = self._limit, len(rows)
        if limit is None:
            return total
        if limit.name == "rank":
            if limit.count >= total:
                return total
            return rows.place_of(rows.order.behind(rows.row(limit.count - 1))) if limit.count else 0
        place = 0
        for _ in range(limit.count):
            if place < total:
                place = rows.place_of(rows.order.behind(rows.row(place)))
        return place

    def first_kept(self, rows: Rows) -> int:
        """Returns the first row that the results of later rows need, if each comes behind all that are there."""
        return max(0, min(len(rows) - 1, *(function.first_kept(rows) for function in self._functions)))

    def add(
        self, stretch: Stretch, span: Span, before: Sequence[Any] | None, held: Sequence[Any] | None
    ) -> tuple[list[tuple[Any, ...]], list[Any]]:
        """Returns the results of rows that come behind all others, and what the functions hold for the next ones.

        Args:
            stretch: At least the rows from the first kept one on.
            span: The places of the new rows.
            before: The results of the row before them; None if there is none.
            held: What the functions have held; None at first.
        """
        found = [
            function.add(
                stretch, span, None if before is None else before[at], None if held is None else held[at]
            )
            for at, function in enumerate(self._functions)
        ]
        return list(zip(*(results for results, _ in found), strict=True)), [each for _, each in found]

    def compute_all(self, rows: Sequence[SqlRow]) -> list[tuple[Any, ...]]:
        """Returns rows of a whole partition in order, each with its results at its end."""
        ordered_rows = sorted(rows, key=self.order.key)
        stretch = Stretch(ordered_rows, 0, len(ordered_rows), self.order)
        count = self.count(_Sorted(ordered_rows, self.order))
        results = self.compute(stretch, (0, count), None) if count else []
        return [(*row, *found) for row, found in zip(ordered_rows[:count], results, strict=True)]


class _Sorted:
    """The sorted rows of a whole partition."""

    def __init__(self, rows: Sequence[SqlRow], order: RowOrder) -> None:
        self._rows = rows
        self.order = order

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, place: int) -> SqlRow:
        """Returns the row at a place."""
        return self._rows[place]

    def place_of(self, key: Key) -> int:
        """Returns the place of the first row whose key is not less than a key."""
        return bisect_left(self._rows, key, key=self.order.key)
