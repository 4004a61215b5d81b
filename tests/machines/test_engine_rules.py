"""What the three engines have to themselves, and what a stored state is; each rule with its source."""

from __future__ import annotations

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Element, EndMicroBatch, Pane, Times
from penstock.machines.reference_engine import ReferenceEngine
from penstock.transforms.trigger import (
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
)
from penstock.windows.windowing import Windowing
from tests.machines.shorthand import (
    ACCUMULATING,
    DISCARDING,
    element,
    in_tens,
    shown,
    told,
    watermark,
    windowed,
)

EACH = Repeatedly(AfterCount(1))


# Rounds of micro-batches.


def test_each_round_gives_the_windows_that_changed_in_it() -> None:
    """Paper, section 2.4 and figure 11: in a round no element is late; unchanged windows give nothing."""
    events = (
        *(element("a", 3), element("b", 13), EndMicroBatch()),
        *(element("c", 13), watermark(9), EndMicroBatch()),
        *(element("d", 3), EndMicroBatch(), EndMicroBatch()),
    )
    assert told(in_tens(None), *events, engine="micro_batch") == [
        "2: ['a'] [0.0, 10.0) on time",
        "2: ['b'] [10.0, 20.0) on time",
        "5: ['b', 'c'] [10.0, 20.0) on time",
        "7: ['a', 'd'] [0.0, 10.0) on time",
    ]


def test_a_round_begins_before_the_end_of_all_windows_again() -> None:
    """Paper, section 2.4: each round has a watermark of its own."""
    windowing = in_tens(AfterWatermark(early=AfterCount(2)), DISCARDING)
    events = [element(1), EndMicroBatch(), element(2), element(3), element(4), EndMicroBatch()]
    assert told(windowing, *events, engine="micro_batch") == [
        "1: [1] [0.0, 10.0) on time",
        "3: [2, 3] [0.0, 10.0) early",
        "5: [4] [0.0, 10.0) on time",
    ]


def test_a_trigger_by_elements_fires_within_a_round_as_it_does_in_a_batch() -> None:
    """A round is like a batch: only its end makes the watermark pass, and elements fire a trigger before it."""
    windowing = in_tens(EACH, DISCARDING)
    events = [element(1), element(2), EndMicroBatch(), element(3), EndMicroBatch()]
    assert told(windowing, *events, engine="micro_batch") == [
        "0: [1] [0.0, 10.0) early",
        "1: [2] [0.0, 10.0) early",
        "3: [3] [0.0, 10.0) early",
    ]
    assert [values for _, values in shown(windowing, *events, engine="batch", finish=True)] == [[1], [2], [3]]


def test_the_watermark_of_the_source_lets_windows_go_between_rounds() -> None:
    """Design, section 3: in micro-batch, garbage collection follows the source's watermark and the lateness."""
    windowing = in_tens(None, lateness=5)
    events = (element("a", 3), watermark(20), EndMicroBatch(), element("b", 3), EndMicroBatch())
    assert told(windowing, *events, engine="micro_batch") == [
        "2: ['a'] [0.0, 10.0) on time",
        "3: EXPIRED 'b'",
    ]


def test_a_batch_sees_elements_in_order_of_event_time_and_its_clock_stands_still() -> None:
    """Paper, section 2.4 and figure 10."""
    events = [element(number, seconds, seconds) for number, seconds in enumerate((9, 1, 5, 3))]
    by_count = windowed(GlobalWindows(), Repeatedly(AfterCount(2)), DISCARDING, 0)
    assert shown(by_count, *events, engine="batch", finish=True) == [(3, [1, 3]), (0, [2, 0])]
    by_clock = windowed(GlobalWindows(), Repeatedly(AfterProcessingTime(1)), DISCARDING, 0)
    assert shown(by_clock, *events, engine="batch", finish=True) == [(4, [1, 3, 2, 0])]


# The state.


def test_a_state_of_another_version_is_refused() -> None:
    machine = GroupingMachine(Windowing(FixedWindows(10)))
    data = machine.snapshot(machine.new_key())
    assert data[0] == 2
    with pytest.raises(ValueError, match="format"):
        machine.restore(b"\x00" + data[1:])


def test_a_stored_state_does_not_change_with_the_one_it_was_taken_from() -> None:
    machine = GroupingMachine(Windowing(FixedWindows(10), EACH, ACCUMULATING))
    key = machine.new_key()
    one = Element("a", 0, machine.assign(0))
    machine.element(key, one, Times())
    stored = machine.snapshot(key)
    machine.element(key, one, Times())
    [pane] = machine.element(machine.restore(stored), one, Times())
    assert isinstance(pane, Pane)
    assert pane.value == ["a", "a"]


def test_there_are_three_engines() -> None:
    with pytest.raises(ValueError, match="the mode 'hurried' is unknown"):
        ReferenceEngine(GroupingMachine(Windowing(FixedWindows(10))), "hurried")
