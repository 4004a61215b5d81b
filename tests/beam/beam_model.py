"""A model of grouping, small enough to read: Beam's where all quirks are on, penstock's where none is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.machines.records import MAX_MICROS, MIN_MICROS, AddElement, AdvanceClock, AdvanceWatermark
from penstock.transforms import window as described
from penstock.utils.timestamp import Timestamp
from tests.beam.beam_model_triggers import Moment, Span, Trigger, trigger_of
from tests.beam.beam_panes import Shown
from tests.beam.beam_programs import END_OF_TIME, SECOND, Program
from tests.beam.beam_quirks import Quirk

BEAM = frozenset(Quirk)
PENSTOCK: frozenset[Quirk] = frozenset()
TOGETHER = {"OUTPUT_AT_EOW": max, "OUTPUT_AT_EARLIEST": min, "OUTPUT_AT_LATEST": max}


@dataclass
class Window:
    """One window of one key.

    Attributes:
        span: Where it begins and ends.
        trigger: Its state.
        numbers: Its names in `Key.timers`, where it is known by those of the windows that it merged from.
        values: What it holds.
        fresh: How many of them are new.
        holds: Possible timestamps of the next pane.
        panes: How many there have been.
        not_early: How many of them were not early.
        is_past_end: Whether the watermark has passed its end.
        is_over: Whether its lateness has ended.
        is_closed: Whether its trigger has finished.
        alarm: When to look at it again by the clock.
    """

    span: Span
    trigger: Trigger
    numbers: list[int]
    values: list[int] = field(default_factory=list)
    fresh: int = 0
    holds: list[int] = field(default_factory=list)
    panes: int = 0
    not_early: int = 0
    is_past_end: bool = False
    is_over: bool = False
    is_closed: bool = False
    alarm: int | None = None


@dataclass
class Key:
    """The windows of a key, and the timers that Beam's triggers set: by window number, then by (name, of the clock)."""

    name: Any
    windows: dict[Span, Window] = field(default_factory=dict)
    timers: dict[int, dict[tuple[str, bool], int]] = field(default_factory=dict)
    opened: int = 0

    def numbered(self, number: int) -> Window | None:
        return next((window for window in self.windows.values() if number in window.numbers), None)

    def clear_timer(self, numbers: list[int], name: tuple[str, bool]) -> None:
        for number in numbers:
            if self.timers.get(number, {}).pop(name, None) is not None and not self.timers[number]:
                del self.timers[number]


def play(program: Program, quirks: frozenset[Quirk]) -> list[Shown]:
    """What a program gives."""
    return list(_Model(program, quirks).play())


class _Model:
    def __init__(self, program: Program, quirks: frozenset[Quirk]) -> None:
        self.program, self.quirks = program, quirks
        self.windowfn = program.windows.build(described)
        self.keys: dict[Any, Key] = {}
        self.watermark, self.clock, self.step = MIN_MICROS, 0, 0
        self.at_end_of_window = program.timestamps == "OUTPUT_AT_EOW"
        self.together = TOGETHER[program.timestamps]

    def has(self, quirk: Quirk) -> bool:
        return quirk in self.quirks

    def play(self) -> Iterator[Shown]:
        for number, step in enumerate([*self.program.script, END_OF_TIME]):
            self.step = number
            match step:
                case AddElement():
                    yield from self._arrive(step)
                case AdvanceWatermark():
                    self.watermark = step.watermark_micros
                    yield from self._watermark_alarms()
                case AdvanceClock():
                    self.clock = step.clock_micros
            yield from self._timers()
            yield from self._clock_alarms()

    def _output_watermark(self) -> int:
        """Held back one microsecond before the earliest hold of any window."""
        windows = [window for key in self.keys.values() for window in key.windows.values()]
        return min([self.watermark, *(hold - 1 for window in windows for hold in window.holds)])

    # Elements.

    def _arrive(self, step: AddElement) -> Iterator[Shown]:
        key = self.keys.setdefault(step.key, Key(step.key))
        output_watermark = self._output_watermark()
        context = described.WindowFn.AssignContext(Timestamp(micros=step.timestamp_micros))
        for assigned in self.windowfn.assign(context):
            window = self._window(key, (assigned.start.micros, assigned.end.micros))
            if window is None or window.is_closed:
                continue
            window.values.append(step.value)
            window.fresh += 1
            self._hold(window, step.timestamp_micros, output_watermark)
            at = self._moment(key, window, self.clock - 1)
            window.trigger.element(at)
            judged = output_watermark if self.has(Quirk.HELD_TIMING) else self.watermark
            yield from self._visit(key, window, at, judged, moved=False)

    def _window(self, key: Key, span: Span) -> Window | None:
        """The window that an element is for, after merging; None if its time is over, or it is finished."""
        sources = self._sources(key, span)
        spans = [span, *(window.span for window in sources)]
        result = min(start for start, _ in spans), max(end for _, end in spans)
        if self._is_over(span if self.has(Quirk.DROPS_BEFORE_MERGING) else result):
            return None
        if sources:
            return self._merged(key, sources, spans, result)
        if span in key.windows:
            return None
        key.opened += 1
        window = Window(span, trigger_of(self.program.trigger), [key.opened])
        window.is_past_end = self.watermark >= span[1]
        key.windows[span] = window
        return window

    def _sources(self, key: Key, span: Span) -> list[Window]:
        """The windows that a new one merges with."""
        merges = self.windowfn.is_merging()
        return sorted(
            (
                window
                for window in key.windows.values()
                if self.has(Quirk.FINISHED_SPREADS) or not window.is_closed
                if window.span == span or (merges and window.span[0] < span[1] and span[0] < window.span[1])
            ),
            key=lambda window: window.span,
        )

    def _merged(self, key: Key, sources: list[Window], spans: list[Span], result: Span) -> Window:
        """One window of several; `spans` are theirs and a new element's."""
        if [window.span for window in sources] == [result]:
            return sources[0]
        for window in sources:
            del key.windows[window.span]
        same = [window for window in sources if window.span == result]
        others = [window for window in sources if window.span != result]
        merged = sources[0]
        key.windows[result] = merged
        merged.numbers = [number for window in same + others for number in window.numbers]
        merged.panes, merged.not_early = (same[0].panes, same[0].not_early) if same else (0, 0)
        merged.values = [value for window in sources for value in window.values]
        merged.holds = [hold for window in sources for hold in window.holds]
        merged.fresh = sum(window.fresh for window in sources)
        merged.is_closed = any(window.is_closed for window in sources)
        merged.span = result
        merged.is_past_end, merged.is_over = self.watermark >= result[1], self._is_over(result)
        at = self._moment(key, merged, self.clock - 1)
        merged.trigger.unite([window.trigger for window in sources], at)
        merged.trigger.merged(at, spans)
        self._set_alarm(merged, at)
        return merged

    def _hold(self, window: Window, timestamp: int, output_watermark: int) -> None:
        """Notes a timestamp, unless it is behind the watermark and behind what the window holds back by itself."""
        limit = min([self.watermark, *([self.together(window.holds)] if window.holds else [])])
        if self.has(Quirk.HOLDS_LATE):
            limit = output_watermark
        if self.at_end_of_window:
            window.holds.append(window.span[1] - 1)
        elif timestamp >= limit:
            window.holds.append(timestamp)

    # Time.

    def _is_over(self, span: Span) -> bool:
        over = min(span[1] + self.program.lateness * SECOND, MAX_MICROS)
        return self.watermark > over if self.has(Quirk.EXPIRES_ONE_LATER) else self.watermark >= over

    def _watermark_alarms(self) -> Iterator[Shown]:
        """The end of each window, and the end of its lateness, unless Beam's timers stand for the former."""
        judged = self.watermark
        for key in self.keys.values():
            for window in sorted(key.windows.values(), key=lambda window: window.span[1]):
                rings = not window.is_past_end and judged >= window.span[1]
                if (rings and not self.has(Quirk.RINGS_ON_REQUEST)) or self._closes(window):
                    at = self._moment(key, window, self.clock - 1)
                    yield from self._visit(key, window, at, judged, moved=True)

    def _clock_alarms(self) -> Iterator[Shown]:
        """What triggers wait for by the clock, unless Beam's timers stand for it."""
        if self.has(Quirk.CLOCK_UNREAD):
            return
        for key in self.keys.values():
            while waiting := [
                w for w in key.windows.values() if w.alarm is not None and w.alarm <= self.clock
            ]:
                window = min(waiting, key=lambda window: window.alarm or 0)
                at = self._moment(key, window, window.alarm or 0)
                if self.has(Quirk.CLOCK_FOR_WATERMARK):
                    at.watermark = at.due
                window.alarm = None
                yield from self._visit(key, window, at, at.watermark, moved=False)

    def _timers(self) -> Iterator[Shown]:
        """The timers that Beam's triggers have set: all that are due, in order, and then those that are due by then."""
        of_watermark, of_clock = self.has(Quirk.RINGS_ON_REQUEST), self.has(Quirk.CLOCK_UNREAD)
        while True:
            due = [
                (time, key, number, name)
                for key in self.keys.values()
                for number, timers in key.timers.items()
                for name, time in timers.items()
                if time <= (self.clock if name[1] else self.watermark)
            ]
            if not due:
                return
            for time, key, number, name in sorted(due, key=lambda timer: timer[0]):
                key.clear_timer([number], name)
                window = key.numbered(number)
                if window is None or window.is_closed or not (of_clock if name[1] else of_watermark):
                    continue
                at = replace(self._moment(key, window, self.clock), watermark=time, by_clock=name[1])
                if name[1] and not self.has(Quirk.CLOCK_FOR_WATERMARK):
                    at.watermark = self.watermark
                yield from self._visit(key, window, at, at.watermark, moved=not name[1])

    def _moment(self, key: Key, window: Window, due: int) -> Moment:
        def set_timer(name: str, of_clock: bool, time: int) -> None:
            key.timers.setdefault(window.numbers[0], {})[name, of_clock] = time

        def clear_timer(name: str) -> None:
            key.clear_timer(window.numbers, (name, False))

        return Moment(
            window.span, self.watermark, self.clock, due, False, self.quirks, set_timer, clear_timer
        )

    # Panes.

    def _closes(self, window: Window) -> bool:
        """True if its lateness has just ended, and the end has an effect."""
        means_nothing = self.has(Quirk.NEVER_CLOSES) and self.has(Quirk.NEVER_LETS_GO)
        return not window.is_over and not means_nothing and self._is_over(window.span)

    def _visit(self, key: Key, window: Window, at: Moment, judged: int, moved: bool) -> Iterator[Shown]:
        """Fires a window if its trigger says so or its time is over; `judged` is the watermark of early and late."""
        closes = self._closes(window)
        window.is_over = window.is_over or closes
        if closes and not self.has(Quirk.NEVER_LETS_GO):
            del key.windows[window.span]
        if window.is_closed:
            return
        passes = self.has(Quirk.RINGS_ON_REQUEST) or not window.is_past_end
        on_time = moved and passes and judged >= window.span[1] and not window.not_early
        window.is_past_end = self.watermark >= window.span[1]
        asks = not (closes and self.has(Quirk.RINGS_ON_REQUEST))
        fires = asks and window.trigger.should_fire(at)
        finished = fires and window.trigger.fire(at)
        has_pane = fires if self.has(Quirk.EMPTY_PANES) else fires and on_time and window.trigger.on_time
        gives_rest = closes and not self.has(Quirk.NEVER_CLOSES)
        if has_pane or (window.fresh and (fires or gives_rest)):
            is_over = self._is_over(window.span) and not self.has(Quirk.LAST_UNSAID)
            is_last = finished or is_over or not fires
            yield self._pane(key, window, judged, on_time, is_last)
        if finished:
            window.is_closed, window.values = True, []
        if finished and not self.has(Quirk.KEEPS_HOLD):
            window.holds = []
        self._set_alarm(window, at)

    def _set_alarm(self, window: Window, at: Moment) -> None:
        dues = (due for due in window.trigger.dues(self.quirks) if due > at.due)
        alarms = [window.alarm, min(dues, default=None)]
        window.alarm = min((alarm for alarm in alarms if alarm is not None), default=None)

    def _pane(self, key: Key, window: Window, judged: int, on_time: bool, is_last: bool) -> Shown:
        is_early = judged < window.span[1]
        timing = "EARLY" if is_early else "ON_TIME" if on_time else "LATE"
        not_early = -1 if is_early and not window.not_early else window.not_early
        value = sum(window.values) if self.program.summed else tuple(sorted(window.values))
        timestamp = self.together(window.holds) if window.holds else window.span[1] - 1
        pane = Shown(
            *(self.step, key.name, window.span, value, timestamp, timing),
            *(window.panes, not_early, window.panes == 0, is_last),
        )
        window.panes += 1
        window.not_early += not_early != -1
        window.fresh = 0
        if self.program.mode == "DISCARDING":
            window.values = []
        if not (self.has(Quirk.KEEPS_HOLD) and is_early and window.trigger.on_time):
            window.holds = []
        return pane
