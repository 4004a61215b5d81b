"""Programs that transcripts name, and what is visible of their results: joins of two sides, conversion attribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.coders import PickleCoder, StrUtf8Coder
from penstock.construction.ptransform import PTransform
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    MapStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    SetStateSpec,
    TimerSpec,
    on_timer,
)
from penstock.relations.validity import Valid
from penstock.transforms.elements.pardo import Filter, MapTuple
from penstock.typehints import KV
from penstock.typehints import Any as AnyHint
from penstock.windows.time_domain import TimeDomain
from penstock_conformance.malformed import Malformed
from penstock_conformance.moments import format_time

SIDES = ("left", "right")


class Sides(PTransform[Any, Any]):
    """A join, such as ``JoinRows("full")``, of elements of both sides: each value is a pair of its side and its row."""

    def __init__(self, join: PTransform[Any, Any]) -> None:
        super().__init__()
        self._join = join

    def expand(self, pcoll: Any) -> object:
        pairs = KV[str, AnyHint]
        lefts, rights = (
            pcoll
            | f"Only {side}" >> Filter(_is_of, side)
            | f"Rows of {side}" >> MapTuple(lambda key, value: (key, value[1])).with_output_types(pairs)
            for side in SIDES
        )
        return (lefts, rights) | self._join


def _is_of(element: tuple[Any, Any], side: str) -> bool:
    _, (own, _) = element
    if own not in SIDES:
        raise Malformed(f"a row has the side {own!r}", hint=f"write one of {', '.join(SIDES)}")
    return bool(own == side)


def left_row(row: Sequence[Any]) -> object:
    """The left part of a joined row.

    >>> left_row(("L1", "R1"))
    'L1'
    """
    return row[0]


def with_product(row: Any) -> object:
    """An order and a rate with their product; the time of a rate, if it has one, follows as text.

    >>> with_product((2, 114)), with_product((2, None))
    ((2, 114, 228), (2, None, None))
    """
    order, rate = row
    value, *times = with_time(rate) if isinstance(rate, Valid) else (rate,)
    return (order, value, None if None in (order, value) else order * value, *times)


def with_time(valid: Valid) -> tuple[Any, str]:
    """A value and its time of validity as text.

    >>> from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp
    >>> with_time(Valid(114, Timestamp(5), MAX_TIMESTAMP))
    (114, '[5, inf)')
    """
    return valid.value, f"[{format_time(valid.start.micros)}, {format_time(valid.end.micros)})"


class Shown(PTransform[Any, Any]):
    """A program, and a function that shows a part of each result."""

    def __init__(self, program: PTransform[Any, Any], shown: Callable[[Any], Any]) -> None:
        super().__init__()
        self._program = program
        self._shown = shown

    def expand(self, pcoll: Any) -> object:
        return pcoll | self._program | MapTuple(lambda key, value, shown=self._shown: (key, shown(value)))


class Attribution(DoFn):
    """Which impression of an advertisement led to a goal (Streaming Systems, example 7-9).

    Elements of a user are ``("visit", url, referer)``, ``("goal", url, referer)`` or ``("impression", number, source,
    target)``. When the watermark reaches a goal, its trail is followed back to an impression.
    """

    VISITS = MapStateSpec("visits", StrUtf8Coder(), StrUtf8Coder())
    IMPRESSIONS = MapStateSpec("impressions", StrUtf8Coder(), PickleCoder())
    GOALS = SetStateSpec("goals", PickleCoder())
    FIRST_GOAL = ReadModifyWriteStateSpec("first goal", PickleCoder())
    REACHED = TimerSpec("reached", TimeDomain.WATERMARK)

    def process(
        self,
        element: Sequence[Any],
        at: object = DoFn.TimestampParam,
        visits: Any = DoFn.StateParam(VISITS),
        impressions: Any = DoFn.StateParam(IMPRESSIONS),
        goals: BagRuntimeState = DoFn.StateParam(GOALS),
        first_goal: ReadModifyWriteRuntimeState = DoFn.StateParam(FIRST_GOAL),
        reached: Any = DoFn.TimerParam(REACHED),
    ) -> None:
        match element[1]:
            case ("visit", url, referer):
                visits.put(url, referer)
            case ("goal", url, referer):
                goals.add((at, url, referer))
                if first_goal.read() is None or at < first_goal.read():
                    first_goal.write(at)
                    reached.set(at)
            case ("impression", number, source, target):
                impressions.put_if_absent(f"{source}:{target}", number)

    @on_timer(REACHED)
    def attribute(
        self,
        user: object = DoFn.KeyParam,
        at: object = DoFn.TimestampParam,
        visits: object = DoFn.StateParam(VISITS),
        impressions: object = DoFn.StateParam(IMPRESSIONS),
        goals: Any = DoFn.StateParam(GOALS),
        first_goal: ReadModifyWriteRuntimeState = DoFn.StateParam(FIRST_GOAL),
        reached: Any = DoFn.TimerParam(REACHED),
    ) -> Iterator[tuple[Any, str]]:
        """The trail of each goal at this time, if it began with an impression; then waits for the next goal."""
        waiting = sorted(goals.read())
        for goal in [goal for goal in waiting if goal[0] <= at]:
            goals.remove(goal)
            waiting.remove(goal)
            _, url, referer = goal
            trail = _trail(url, referer, visits, impressions)
            if trail is not None:
                yield user, trail
        first_goal.clear()
        if waiting:
            first_goal.write(waiting[0][0])
            reached.set(waiting[0][0])


def _trail(url: str, referer: str, visits: Any, impressions: Any) -> str | None:
    """Returns how a visitor came to a page; None without an impression on the way."""
    trail = [url]
    while True:
        number = impressions.get(f"{referer}:{trail[0]}")
        if number is not None:
            return f"imp={number} {' → '.join([referer, *trail])}"
        before = visits.get(referer)
        if before is None or referer in trail:
            return None
        trail.insert(0, referer)
        referer = before
