"""The parts of a program besides its grouping: states with timers, side inputs, joins, retractions, second groupings.

Each part writes to a sink of its own, and has an oracle of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import penstock as beam
from penstock.functions.userstate import on_timer
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    Dropped,
    DropReason,
    EventOutput,
    Pane,
)
from penstock.machines.reference_engine import ReferenceEngine
from penstock.relations.changelog import Changelog
from penstock.relations.joins import JoinRows
from penstock.relations.validity import ValidityJoin
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, DefaultTrigger
from penstock.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec
from penstock.transforms.window import FixedWindows
from penstock.windows.time_domain import TimeDomain
from tests.simulation.simulated_world import START_MICROS

SIZE = 10
WINDOWS = FixedWindows(SIZE)
EARLY = AfterWatermark(early=AfterCount(2))
_RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING


@dataclass(frozen=True)
class Moment:
    """The input of a micro-batch.

    Attributes:
        elements: The key, the value and the event time of each element, in order.
        panes: The panes of the program's grouping, with their keys.
        before_micros: The watermark before it.
        watermark_micros: The watermark after it.
        output_micros: The watermark of the grouping's output after it.
        clock_micros: Its processing time.
        has_beat: Whether it moves the clock on.
    """

    elements: tuple[tuple[str, int, int], ...]
    panes: tuple[tuple[str, Pane], ...]
    before_micros: int
    watermark_micros: int
    output_micros: int
    clock_micros: int
    has_beat: bool


class PlayerThatGoesBack(ReferenceEngine):
    """A player whose watermark may also be set to an earlier time: a source was added."""

    def set_watermark(self, micros: int) -> list[EventOutput]:
        """Sets it before a micro-batch, and returns the results that are due by it."""
        if micros > self._times.horizon_micros:
            return self.play(AdvanceWatermark(micros))
        self.set_back(micros)
        return []

    def set_back(self, micros: int) -> None:
        """Sets it to an earlier time, if it is later."""
        if micros < self._times.horizon_micros:
            name = "expiry_micros" if self.mode == "micro_batch" else "watermark_micros"
            self._times = self._times._replace(**{name: micros})


@dataclass
class Part:
    """The oracle of a part."""

    dropped: Counter[DropReason] = field(default_factory=Counter)

    def play(self, now: Moment) -> Counter[str]:
        """The lines that a micro-batch writes."""
        raise NotImplementedError

    def begin(self, now: Moment) -> None:
        """It comes with a micro-batch."""

    def set_watermark(self, micros: int) -> None:
        """The watermark of the sources is another one before the next micro-batch."""


def start_of(micros: int) -> int:
    """The window of an event time: its beginning, in seconds after the start."""
    return (micros - START_MICROS) // (SIZE * 1_000_000) * SIZE


def _second(micros: int) -> int:
    """An event time, in seconds after the start."""
    return (micros - START_MICROS) // 1_000_000


def _end_micros(start: int) -> int:
    return START_MICROS + (start + SIZE) * 1_000_000


def _seconds(window: Any) -> int:
    return int(window.start.seconds()) - START_MICROS // 1_000_000


# A state with a timer.


class Count(beam.DoFn):
    """Counts the elements of a key and window; a timer at the window's end tells how many there were."""

    COUNT = ReadModifyWriteStateSpec("count", beam.coders.VarIntCoder())
    END = TimerSpec("end", TimeDomain.WATERMARK)

    def process(
        self,
        element: tuple[str, int],
        window: Any = beam.DoFn.WindowParam,
        count: Any = beam.DoFn.StateParam(COUNT),
        end: Any = beam.DoFn.TimerParam(END),
    ) -> Any:
        """Takes an element."""
        before = count.read() or 0
        count.write(before + 1)
        end.set(window.end)
        yield f"{element[0]} {_seconds(window)} {before}"

    @on_timer(END)
    def over(
        self,
        key: Any = beam.DoFn.KeyParam,
        window: Any = beam.DoFn.WindowParam,
        count: Any = beam.DoFn.StateParam(COUNT),
    ) -> Any:
        """The window has ended."""
        yield f"{key} {_seconds(window)} in all {count.read()}"


@dataclass
class Counted(Part):
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)

    def play(self, now: Moment) -> Counter[str]:
        found: Counter[str] = Counter()
        for key, _, micros in now.elements:
            place = key, start_of(micros)
            if _end_micros(place[1]) <= now.before_micros:
                self.dropped[DropReason.EXPIRED] += 1
                continue
            found[f"{key} {place[1]} {self.counts[place]}"] += 1
            self.counts[place] += 1
        for key, start in [place for place in self.counts if _end_micros(place[1]) <= now.watermark_micros]:
            found[f"{key} {start} in all {self.counts.pop((key, start))}"] += 1
        return found


# A side input.


def with_total(line: str, totals: Iterable[tuple[str, int]]) -> str:
    """An element with the total of its window."""
    return f"{line} of {[total for _, total in totals]}"


@dataclass
class Sided(Part):
    """An element waits for the total of its window, which is there when the window has ended."""

    totals: Counter[int] = field(default_factory=Counter)
    waiting: dict[int, list[str]] = field(default_factory=dict)

    def play(self, now: Moment) -> Counter[str]:
        for key, value, micros in now.elements:
            start = start_of(micros)
            if _end_micros(start) <= now.before_micros:
                # By the sum, and by the step whose side input it is.
                self.dropped[DropReason.EXPIRED] += 2
                continue
            self.totals[start] += value
            self.waiting.setdefault(start, []).append(f"{key} {value}")
        found: Counter[str] = Counter()
        for start in [start for start in self.waiting if _end_micros(start) <= now.watermark_micros]:
            total = self.totals.pop(start)
            found.update(f"{line} of {[total]}" for line in self.waiting.pop(start))
        return found


# A join.


def joined_line(pair: tuple[str, dict[str, Iterable[int]]], window: Any = beam.DoFn.WindowParam) -> str:
    """The odd and the even values of a key."""
    key, values = pair
    return f"{key} {sorted(values['odd'])} {sorted(values['even'])} {_seconds(window)}"


@dataclass
class Joined(Part):
    values: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def play(self, now: Moment) -> Counter[str]:
        for key, value, micros in now.elements:
            start = start_of(micros)
            if _end_micros(start) <= now.before_micros:
                self.dropped[DropReason.EXPIRED] += 1
            else:
                self.values.setdefault((key, start), []).append(value)
        found: Counter[str] = Counter()
        for key, start in [place for place in self.values if _end_micros(place[1]) <= now.watermark_micros]:
            values = sorted(self.values.pop((key, start)))
            odd, even = ([value for value in values if value % 2 == rest] for rest in (1, 0))
            found[f"{key} {odd} {even} {start}"] += 1
        return found


# Joins of rows, which correct themselves.


def row_line(change: tuple[Any, tuple[str, Any]], window: Any = beam.DoFn.WindowParam) -> str:
    """A change of a join."""
    kind, (key, rows) = change
    return f"{kind.name} {key} {rows} {_seconds(window)}"


def timed_row_line(
    change: tuple[Any, tuple[str, Any]],
    at: Any = beam.DoFn.TimestampParam,
    window: Any = beam.DoFn.WindowParam,
) -> str:
    """A change of a join, with the event time of its row."""
    kind, (key, rows) = change
    return f"{kind.name} {key} {rows} at {_second(at.micros)} {_seconds(window)}"


def are_near(left: int, right: int) -> bool:
    """The condition of a join."""
    return abs(left - right) == 1


def with_time(pair: tuple[str, int], at: Any = beam.DoFn.TimestampParam) -> tuple[str, int]:
    """Its event time as the value of a key: values of one time are the same, in whatever order they come."""
    return pair[0], _second(at.micros)


def net_of(lines: Mapping[str, int]) -> Counter[str]:
    """The net of changes, in whatever order they come: rows that are there more often, or less often."""
    found: Counter[str] = Counter()
    for line, count in lines.items():
        kind, _, row = line.partition(" ")
        found[row] += count if kind in ("INSERT", "UPDATE_AFTER") else -count
    return Counter({row: count for row, count in found.items() if count})


@dataclass
class RowJoined(Part):
    """A relation of pairs, computed again from all rows of a key and window."""

    rows: dict[tuple[str, int], list[list[Any]]] = field(default_factory=dict)

    def play(self, now: Moment) -> Counter[str]:
        before = {place: self.result(*sides) for place, sides in self.rows.items()}
        for key, value, micros in now.elements:
            start = start_of(micros)
            if _end_micros(start) <= now.before_micros:
                self.dropped[DropReason.EXPIRED] += 1
                continue
            sides = self.rows.setdefault((key, start), [[], []])
            sides[1 - value % 2].append(self.row(value, _second(micros)))
        found: Counter[str] = Counter()
        for (key, start), sides in self.rows.items():
            after, earlier = self.result(*sides), before.get((key, start), Counter[Any]())
            for kind, rows in (("INSERT", after - earlier), ("DELETE", earlier - after)):
                found.update({f"{kind} {key} {row} {start}": count for row, count in rows.items()})
        for key, start in [place for place in self.rows if _end_micros(place[1]) <= now.watermark_micros]:
            last = self.at_end(*self.rows.pop((key, start)))
            found.update({f"INSERT {key} {row} {start}": count for row, count in last.items()})
        return found

    def row(self, value: int, second: int) -> Any:
        """The fields of a row that count."""
        return value

    def result(self, lefts: list[Any], rights: list[Any]) -> Counter[Any]:
        """The rows that are there while the window lasts."""
        pairs = Counter((left, right) for left in lefts for right in rights)
        alone: Counter[Any] = Counter()
        if not rights:
            alone.update((left, None) for left in lefts)
        if not lefts:
            alone.update((None, right) for right in rights)
        return pairs + alone

    def at_end(self, lefts: list[int], rights: list[int]) -> Counter[Any]:
        """The rows that come when the window ends."""
        return Counter()


class Matched(RowJoined):
    """Left rows with a match, once each."""

    def result(self, lefts: list[int], rights: list[int]) -> Counter[Any]:
        return Counter(lefts) if rights else Counter()


class Unmatched(RowJoined):
    """Left rows without a match."""

    def result(self, lefts: list[int], rights: list[int]) -> Counter[Any]:
        return Counter() if rights else Counter(lefts)


class JoinedAtEnd(RowJoined):
    """Pairs at once, and left rows without a match when the window ends."""

    def result(self, lefts: list[int], rights: list[int]) -> Counter[Any]:
        return Counter((left, right) for left in lefts for right in rights)

    def at_end(self, lefts: list[int], rights: list[int]) -> Counter[Any]:
        return Counter() if rights else Counter((left, None) for left in lefts)


class JoinedWithTimes(RowJoined):
    """A relation in which the event times of rows also count."""

    def row(self, value: int, second: int) -> Any:
        return value, second


class Near(JoinedWithTimes):
    """Pairs that fulfil the condition, and rows of both sides that are in none."""

    def result(self, lefts: list[Any], rights: list[Any]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for left, at in lefts:
            matches = [(right, other) for right, other in rights if are_near(left, right)]
            found.update(f"{(left, right)} at {max(at, other)}" for right, other in matches)
            if not matches:
                found[f"{(left, None)} at {at}"] += 1
        for right, at in rights:
            if not any(are_near(left, right) for left, _ in lefts):
                found[f"{(None, right)} at {at}"] += 1
        return found


class ValidThen(JoinedWithTimes):
    """Each left row with the time of the last right one at or before its event time."""

    def result(self, lefts: list[Any], rights: list[Any]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for left, at in lefts:
            times = [time for _, time in rights if time <= at]
            found[f"{(left, max(times, default=None))} at {at}"] += 1
        return found


_JOINS: dict[str, Any] = {
    "full": JoinRows("full"),
    "semi": JoinRows("semi"),
    "anti": JoinRows("left_anti"),
    "closing": JoinRows("left", unjoined="at_end"),
    "corrected": JoinRows("left"),
    "near": JoinRows("full", matching=are_near),
    "valid": ValidityJoin("left"),
}
"""Joins of odd rows with even ones; for ``corrected``, of sums that are told early with even rows.

For ``valid``, the values of even rows are their event times.
"""

_TIMED = ("near", "valid")
"""The joins whose rows are shown with their event times."""

NET = frozenset(_JOINS)
"""The parts whose lines are changes in any order: only what they come to is certain."""


# Groupings.


def change_line(change: tuple[Any, tuple[str, int]], window: Any = beam.DoFn.WindowParam) -> str:
    """A change of a sum."""
    kind, (key, total) = change
    return f"{kind.name} {key} {total} {_seconds(window)}"


def total_line(pair: tuple[str, int], window: Any = beam.DoFn.WindowParam) -> str:
    """A total of all keys."""
    return f"{pair[1]} {_seconds(window)}"


def to_total(pair: tuple[str, Any]) -> tuple[str, int]:
    """The value of a pane, under the key of the total."""
    value = pair[1]
    return "all", value if isinstance(value, int) else sum(value)


class _Grouped(Part):
    """A machine."""

    def __init__(self, windowing: beam.Windowing) -> None:
        super().__init__()
        self._player = PlayerThatGoesBack(GroupingMachine(windowing, beam.CombineFn.from_callable(sum)))
        self._fired: list[EventOutput] = []  # Before the next micro-batch.

    def set_watermark(self, micros: int) -> None:
        self._fired = self._player.set_watermark(micros)

    def grouped(
        self, elements: Iterable[tuple[str, int, int]], watermark_micros: int, now: Moment
    ) -> list[tuple[str, Pane]]:
        """The panes with their keys."""
        events: list[Any] = [
            AddElement(value, micros, now.clock_micros, key) for key, value, micros in elements
        ]
        events.append(AdvanceWatermark(watermark_micros, now.clock_micros))
        if now.has_beat:
            events.append(AdvanceClock(now.clock_micros))
        panes = []
        fired, self._fired = self._fired, []
        for played in (*fired, *(one for event in events for one in self._player.play(event))):
            if isinstance(played.emitted, Dropped):
                self.dropped[played.emitted.reason] += played.emitted.count
            else:
                panes.append((played.key, played.emitted))
        return panes


class Changed(_Grouped):
    """Sums that are told early, and then retracted."""

    def begin(self, now: Moment) -> None:
        """Its level knows the watermark."""
        self.set_watermark(now.before_micros)

    def __init__(self) -> None:
        super().__init__(beam.Windowing(WINDOWS, EARLY, _RETRACTING))

    def play(self, now: Moment) -> Counter[str]:
        return Counter(
            change_line((pane.kind, (key, pane.value)), pane.window)
            for key, pane in self.grouped(now.elements, now.watermark_micros, now)
        )


class Corrected(_Grouped):
    """Sums that are told early and retracted, each with the even rows of its key and window."""

    def __init__(self) -> None:
        super().__init__(beam.Windowing(WINDOWS, EARLY, _RETRACTING))
        self._sums: dict[tuple[str, int], Counter[int]] = {}
        self._rights: dict[tuple[str, int], Counter[int]] = {}
        self._before_micros = MIN_MICROS

    def set_watermark(self, micros: int) -> None:
        super().set_watermark(micros)
        self._before_micros = min(self._before_micros, micros)

    def play(self, now: Moment) -> Counter[str]:
        before = self._result()
        for key, value, micros in now.elements:
            start = start_of(micros)
            if value % 2 == 0 and _end_micros(start) <= self._before_micros:
                self.dropped[DropReason.EXPIRED] += 1
            elif value % 2 == 0:
                self._rights.setdefault((key, start), Counter())[value] += 1
        for key, pane in self.grouped(now.elements, now.watermark_micros, now):
            sums = self._sums.setdefault((key, _seconds(pane.window)), Counter())
            sums[pane.value] += -1 if pane.kind.is_retraction else 1
        after = self._result()
        found = Counter({f"INSERT {row}": count for row, count in (after - before).items()})
        found.update({f"DELETE {row}": count for row, count in (before - after).items()})
        # The join waits for the sums, whose watermark their open windows hold.
        hold_micros = self._player.hold_micros
        watermark_micros = now.watermark_micros
        self._before_micros = watermark_micros if hold_micros is None else min(watermark_micros, hold_micros)
        for rows in (self._sums, self._rights):
            for place in [place for place in rows if _end_micros(place[1]) <= self._before_micros]:
                del rows[place]
        return found

    def _result(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (key, start), sums in self._sums.items():
            rights = self._rights.get((key, start)) or {None: 1}
            for left, count in (+sums).items():
                for right, copies in rights.items():
                    found[f"{key} {(left, right)} {start}"] += count * copies
        return found


class Totalled(_Grouped):
    """A grouping after the program's own: the results of that one, by window."""

    def set_watermark(self, micros: int) -> None:
        """It is at most there before the next micro-batch, and where the program's grouping tells it after that."""
        self._player.set_back(micros)

    def __init__(self) -> None:
        super().__init__(beam.Windowing(WINDOWS, DefaultTrigger(), AccumulationMode.DISCARDING))

    def play(self, now: Moment) -> Counter[str]:
        pairs = [(pane, to_total((key, pane.value))) for key, pane in now.panes]
        elements = [(key, value, pane.timestamp_micros) for pane, (key, value) in pairs]
        panes = self.grouped(elements, now.output_micros, now)
        return Counter(total_line((key, pane.value), pane.window) for key, pane in panes)


ORACLES: Mapping[str, type[Part]] = {
    "states": Counted,
    "sided": Sided,
    "joined": Joined,
    "changes": Changed,
    "totals": Totalled,
    "full": RowJoined,
    "semi": Matched,
    "anti": Unmatched,
    "closing": JoinedAtEnd,
    "corrected": Corrected,
    "near": Near,
    "valid": ValidThen,
}
"""The oracle of each part."""

OTHERWISE = {"full": "near", "semi": "valid"}
"""The parts that half of the programs have in the place of a part."""

MOVABLE = tuple("totals" if part == "corrected" else part for part in (*ORACLES, "totals", "totals"))
"""The parts that come and go between two runs.

A join of sums comes with a level that does not know the watermark yet, and so drops less at first than its oracle says.
"""


def lines_of(part: str, pairs: Any, panes: Any) -> Any:
    """The lines of a part: `pairs` have no windows yet, and `panes` are the panes of the program's grouping."""
    match part:
        case "states":
            windows = pairs | "StateWindows" >> beam.WindowInto(WINDOWS)
            return windows | "Count" >> beam.ParDo(Count()).with_output_types(str)
        case "sided":
            own = pairs | "SideWindows" >> beam.WindowInto(WINDOWS)
            totals = own | "SideKey" >> beam.Map(to_total) | "SideTotal" >> beam.CombinePerKey(sum)
            lines = own | "SideLine" >> beam.Map(lambda pair: f"{pair[0]} {pair[1]}")
            return lines | "WithTotal" >> beam.Map(with_total, beam.pvalue.AsIter(totals))
        case "joined":
            own = pairs | "JoinWindows" >> beam.WindowInto(WINDOWS)
            sides = {
                "odd": own | "Odd" >> beam.Filter(lambda pair: pair[1] % 2 == 1),
                "even": own | "Even" >> beam.Filter(lambda pair: pair[1] % 2 == 0),
            }
            return sides | "Join" >> beam.CoGroupByKey() | "JoinLine" >> beam.Map(joined_line)
        case part if part in _JOINS:
            own = pairs | f"{part} windows" >> beam.WindowInto(WINDOWS)
            odd = own | f"{part} odd" >> beam.Filter(lambda pair: pair[1] % 2 == 1)
            even = own | f"{part} even" >> beam.Filter(lambda pair: pair[1] % 2 == 0)
            if part == "corrected":
                early = beam.WindowInto(WINDOWS, trigger=EARLY, accumulation_mode=_RETRACTING)
                odd = pairs | f"{part} early" >> early | f"{part} sum" >> beam.CombinePerKey(sum)
            if part == "valid":
                even = even | f"{part} time" >> beam.Map(with_time)
            rows = (odd, even) | f"{part} rows" >> _JOINS[part]
            return (
                rows
                | f"{part} changes" >> Changelog()
                | f"{part} line" >> beam.Map(timed_row_line if part in _TIMED else row_line)
            )
        case "changes":
            windows = beam.WindowInto(WINDOWS, trigger=EARLY, accumulation_mode=_RETRACTING)
            sums = pairs | "ChangeWindows" >> windows | "ChangedSum" >> beam.CombinePerKey(sum)
            return sums | Changelog() | "ChangeLine" >> beam.Map(change_line)
        case _:
            keyed = panes | "TotalKey" >> beam.Map(to_total)
            windows = beam.WindowInto(
                WINDOWS, trigger=DefaultTrigger(), accumulation_mode=AccumulationMode.DISCARDING
            )
            totals = keyed | "TotalWindows" >> windows | "Total" >> beam.CombinePerKey(sum)
            return totals | "TotalLine" >> beam.Map(total_line)
