"""Which triggers tell one element from many, and what the machine does with elements that come combined."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import AdvanceClock, Arrival, Dropped, DropReason, Emitted, Signal, Times
from penstock.machines.triggers import machine_of
from penstock.transforms.trigger import (
    AfterAll,
    AfterAny,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterEach,
    AfterPattern,
    AfterProcessingTime,
    AfterPunctuation,
    AfterSignal,
    AfterSynchronizedProcessingTime,
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    DefaultTrigger,
    Never,
    OrFinally,
    Repeatedly,
    TriggerFn,
)
from penstock.transforms.window import BoundedSessions, FixedWindows, IntervalWindow, Sessions, WindowFn
from tests.machines.generated import Sum
from tests.machines.generated_triggers import AfterQuiet, is_third
from tests.machines.shorthand import (
    ACCUMULATING,
    DISCARDING,
    FOREVER,
    SECOND,
    element,
    shown,
    watermark,
    windowed,
)

MINUTES = AfterProcessingTime(60)

TELL_NO_ONE_FROM_MANY = (
    DefaultTrigger(),
    Never(),
    AfterWatermark(),
    AfterWatermark(early=MINUTES, late=AfterCount(1)),
    AfterWatermark(late=Repeatedly(AfterCount(1))),
    AfterWatermark(late=Always()),
    AfterWatermark(late=MINUTES),
    AfterWatermarkPercentile(0.9),
    AfterProcessingTime.aligned_to(60),
    AfterSynchronizedProcessingTime(),
    AfterSignal("flush"),
    Repeatedly(AfterAny(MINUTES, AfterWatermark())),
    OrFinally(Repeatedly(MINUTES), AfterSignal("flush")),
)
TELL_ONE_FROM_MANY = (
    AfterCount(1),
    AfterCount(100),
    AfterBytes(100),
    AfterPunctuation(is_third),
    AfterPattern(is_third),
    AfterDelta(3),
    AfterQuiet(),
    Always(),
    AfterWatermark(early=AfterCount(1)),
    AfterWatermark(late=AfterCount(2)),
    AfterWatermark(late=AfterBytes(1)),
    AfterAny(MINUTES, AfterCount(100)),
    AfterAll(MINUTES, AfterSignal("flush")),
    AfterEach(MINUTES, AfterSignal("flush")),
)


@pytest.mark.parametrize("trigger", TELL_NO_ONE_FROM_MANY, ids=str)
def test_a_trigger_that_waits_for_time_tells_no_one_element_from_many(trigger: TriggerFn) -> None:
    assert not machine_of(trigger).tells_one_from_many


@pytest.mark.parametrize("trigger", TELL_ONE_FROM_MANY, ids=str)
def test_a_trigger_that_heeds_each_element_tells_one_from_many(trigger: TriggerFn) -> None:
    assert machine_of(trigger).tells_one_from_many


@pytest.mark.parametrize(
    ("windowfn", "trigger", "lateness", "takes"),
    [
        (FixedWindows(10), DefaultTrigger(), FOREVER, True),
        (Sessions(10), DefaultTrigger(), FOREVER, True),
        (BoundedSessions(10, 60), DefaultTrigger(), FOREVER, False),
        (FixedWindows(10), AfterWatermark(), 0, True),
        # The first late element would be the last one that the window takes.
        (FixedWindows(10), AfterWatermark(), 5, False),
        (FixedWindows(10), AfterCount(3), 0, False),
    ],
)
def test_windows_and_lateness_have_a_say_too(
    windowfn: WindowFn, trigger: TriggerFn, lateness: float, takes: bool
) -> None:
    machine = GroupingMachine(windowed(windowfn, trigger, lateness=lateness))
    assert machine.program.takes_arrivals is takes


def test_where_elements_may_be_taken_back_they_come_one_by_one() -> None:
    assert not GroupingMachine(windowed(FixedWindows(10)), input_retracts=True).program.takes_arrivals


def arriving(machine: GroupingMachine, *arrivals: Arrival, seconds: float = 0) -> list[Emitted]:
    """What comes out of a new key where so much arrives at one watermark."""
    state, times = machine.new_key(), Times(round(seconds * SECOND), 0)
    return [one for arrival in arrivals for one in machine.arrival(state, arrival, times)]


def arrival(held: Any, count: int) -> Arrival:
    return Arrival(IntervalWindow(0, 10), held, count)


def test_late_elements_of_one_moment_give_one_pane() -> None:
    machine = GroupingMachine(windowed(FixedWindows(10), AfterWatermark(late=AfterCount(1))), Sum())
    given = arriving(machine, arrival(5, 3), arrival(7, 2), seconds=20)
    assert [pane.value for pane in given] == [5, 12]


def test_elements_that_come_too_late_are_dropped_together_and_counted() -> None:
    machine = GroupingMachine(windowed(FixedWindows(10), lateness=0), Sum())
    [dropped] = arriving(machine, arrival(5, 3), seconds=20)
    assert isinstance(dropped, Dropped)
    assert (dropped.element.value, dropped.reason, dropped.count) == (5, DropReason.EXPIRED, 3)


def test_a_grouping_that_needs_its_elements_one_by_one_takes_no_arrival() -> None:
    machine = GroupingMachine(windowed(FixedWindows(10), AfterWatermark(early=AfterCount(1))))
    with pytest.raises(ValueError, match="needs them one by one"):
        arriving(machine, arrival(["a", "b"], 2))


def test_an_element_that_makes_sessions_merge_may_make_after_all_fire() -> None:
    # The reason why AfterAll tells one element from many: had the two last elements come as one, they would have fired
    # together.
    trigger = Repeatedly(AfterAll(AfterSignal("flush"), AfterProcessingTime(2)))
    events = [
        *(element("a", 0, clock=0), Signal("flush"), AdvanceClock(2 * SECOND), Signal("flush")),
        *(element("b", 4, clock=4), AdvanceClock(7 * SECOND)),
        *(element("c", 2, clock=8), element("d", 2, clock=8), watermark(20)),
    ]
    assert shown(windowed(Sessions(3), trigger, DISCARDING), *events) == [(2, ["a"]), (6, ["b", "c"])]


def test_the_default_trigger_gives_late_elements_a_pane_each_where_they_come_one_by_one() -> None:
    events = [watermark(20), element("a", 1), element("b", 2)]
    assert shown(windowed(FixedWindows(10), None, ACCUMULATING), *events) == [(1, ["a"]), (2, ["a", "b"])]
