"""Short ways to write what goes into a machine and what comes out, for tests of single rules. Times are in seconds."""

from __future__ import annotations

from typing import Any

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark, Event, EventOutput, Pane
from penstock.machines.reference_engine import play
from penstock.transforms.trigger import AccumulationMode, OnTimeBehavior, TriggerFn
from penstock.transforms.window import FixedWindows, GlobalWindows, WindowFn
from penstock.utils.windowed_value import PaneInfoTiming, ValueKind
from penstock.windows.windowing import Windowing

SECOND = 1_000_000
FOREVER = 10**9
DISCARDING = AccumulationMode.DISCARDING
ACCUMULATING = AccumulationMode.ACCUMULATING
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING
TIMINGS = {PaneInfoTiming.EARLY: "early", PaneInfoTiming.ON_TIME: "on time", PaneInfoTiming.LATE: "late"}


def micros(seconds: float) -> int:
    return round(seconds * SECOND)


def element(value: Any, seconds: float = 0, clock: float | None = None, **more: Any) -> AddElement:
    """An element arrives; also `key` and `kind`."""
    return AddElement(value, micros(seconds), None if clock is None else micros(clock), **more)


def taken_back(value: Any, seconds: float = 0) -> AddElement:
    """A retraction arrives."""
    return element(value, seconds, kind=ValueKind.DELETE)


def watermark(seconds: float, clock: float | None = None, **percentiles: float) -> AdvanceWatermark:
    """The watermark advances; `p50=3` says that of 50 percent."""
    of_percentiles = {int(name[1:]) / 100: micros(moment) for name, moment in percentiles.items()}
    return AdvanceWatermark(micros(seconds), None if clock is None else micros(clock), of_percentiles)


def clock(seconds: float) -> AdvanceClock:
    """Processing time advances, and what is due just then has fired as well."""
    return AdvanceClock(micros(seconds))


def in_tens(
    trigger: TriggerFn | None,
    mode: AccumulationMode | None = ACCUMULATING,
    lateness: float = FOREVER,
    **more: Any,
) -> Windowing:
    """Fixed windows of ten seconds, as the figures of the paper have them: no pane at the end without anything new."""
    return windowed(FixedWindows(10), trigger, mode, lateness, **more)


def in_one(trigger: TriggerFn, mode: AccumulationMode = ACCUMULATING, **more: Any) -> Windowing:
    """The global window."""
    return windowed(GlobalWindows(), trigger, mode, 0, **more)


def windowed(
    windowfn: WindowFn,
    trigger: TriggerFn | None = None,
    mode: AccumulationMode | None = ACCUMULATING,
    lateness: float = FOREVER,
    **more: Any,
) -> Windowing:
    """Any windows, without panes at the end in which nothing is new."""
    arguments = {"on_time_behavior": OnTimeBehavior.FIRE_IF_NON_EMPTY, **more}
    return Windowing(windowfn, trigger, mode, allowed_lateness=lateness, **arguments)


def outcome(
    windowing: Windowing, *events: Event, combine: Any = None, engine: str = "streaming", finish: bool = False
) -> list[EventOutput]:
    """All that comes out."""
    return play(GroupingMachine(windowing, combine, _retracts(events)), events, engine, finish)


def told(windowing: Windowing, *events: Event, **how: Any) -> list[str]:
    """What comes out, as in ``2: -[1] [0.0, 10.0) late``: the number of the event, then what it causes.

    A value with a minus is taken back. What is dropped reads ``3: EXPIRED 'a'``.
    """
    return [_told(one) for one in outcome(windowing, *events, **how)]


def shown(windowing: Windowing, *events: Event, **how: Any) -> list[tuple[int, Any]]:
    """What comes out, as pairs of the number of the event and the value of the pane that it causes."""
    played = outcome(windowing, *events, **how)
    return [(one.step, one.emitted.value) for one in played if isinstance(one.emitted, Pane)]


def _told(one: EventOutput) -> str:
    match one.emitted:
        case Pane(value, window) as pane:
            sign = "-" if pane.kind.is_retraction else ""
            return f"{one.step}: {sign}{value} {window} {TIMINGS[pane.info.timing]}"
        case dropped:
            return f"{one.step}: {dropped.reason.name} {dropped.element.value!r}"


def _retracts(events: tuple[Event, ...]) -> bool:
    return any(isinstance(event, AddElement) and event.kind.is_retraction for event in events)
