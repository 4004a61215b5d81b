"""Triggers of the user's own: complete when they are built, values like all others, and checked against the windows."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

import penstock as beam
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import (
    FINISHED,
    AccumulationMode,
    AfterCount,
    AfterWatermark,
    DataLossReason,
    Finished,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindow, Sessions
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import ValueKind
from penstock.windows.custom_trigger import CustomTrigger, TriggerContext, TriggerElement, TriggerTimer
from penstock.windows.windowing import default_windowing


class Forgetful(CustomTrigger):
    """A trigger that lacks the one method that it must have."""


class WhenOdd(CustomTrigger):
    """Fires when the result is odd."""

    def should_fire(self, state, context):
        return context.value % 2 == 1


class Above(CustomTrigger):
    """Fires each time that an element is above a limit; knows how to merge."""

    def __init__(self, limit):
        self.limit = limit

    def start(self):
        return False

    def on_element(self, state, element, context):
        return element.value > self.limit

    def on_merge(self, states, context):
        return any(states)

    def should_fire(self, state, context):
        return state

    def on_fire(self, state, context):
        return False


@dataclass(frozen=True)
class AboveToo(CustomTrigger):
    """A trigger whose arguments are fields."""

    limit: int

    def should_fire(self, state, context):
        return context.value > self.limit


class Context(TriggerContext):
    """A window that holds seven."""

    window = GlobalWindow()
    watermark = clock = Timestamp(0)
    count = 1
    value = 7
    last_value = None

    def set_timer(self, timestamp, time_domain=TimeDomain.REAL_TIME):
        raise NotImplementedError


def grouped(windowfn, trigger):
    windows = beam.WindowInto(windowfn, trigger, AccumulationMode.DISCARDING)
    return beam.Pipeline() | beam.Create([("a", 1)]) | windows | beam.CombinePerKey(sum)


@pytest.mark.parametrize("incomplete", [Forgetful, CustomTrigger])
def test_a_trigger_that_does_not_say_when_it_fires_cannot_be_built(incomplete) -> None:
    with pytest.raises(TypeError, match=f"{incomplete.__name__} does not define should_fire") as caught:
        incomplete()
    assert "test_custom_trigger.py" in str(caught.value)
    assert "\n  hint: define should_fire" in str(caught.value)


def test_all_but_when_it_fires_has_a_default() -> None:
    trigger, context = WhenOdd(), Context()
    element = TriggerElement(7, Timestamp(3))
    assert element.kind is ValueKind.INSERT
    timer = TriggerTimer(Timestamp(5), TimeDomain.WATERMARK)
    assert trigger.start() is None
    assert trigger.on_element("state", element, context) == "state"
    assert trigger.on_timer("state", timer, context) == "state"
    assert trigger.should_fire(None, context) is True
    assert trigger.on_fire("state", context) is FINISHED is Finished.FINISHED
    with pytest.raises(NotImplementedError, match="WhenOdd does not say what happens when windows merge"):
        trigger.on_merge(["state"], context)


def test_a_context_has_to_answer_everything() -> None:
    names = ["clock", "count", "last_value", "set_timer", "value", "watermark", "window"]
    with pytest.raises(TypeError, match="'?, '?".join(names)):
        TriggerContext()  # type: ignore[abstract]


def test_a_custom_trigger_is_equal_to_another_with_the_same_parts() -> None:
    assert {Above(3), Above(3), WhenOdd()} == {Above(3), WhenOdd()}
    assert Above(3) != Above(4)
    assert AboveToo(3) == AboveToo(3) != AboveToo(4)
    assert Above(3) != AboveToo(3)
    assert repr(Repeatedly(Above(3))) == "Repeatedly(Above(limit=3))"
    assert repr(AboveToo(3)) == "AboveToo(limit=3)"
    assert pickle.loads(pickle.dumps(FINISHED)) is FINISHED


def test_a_custom_trigger_may_finish_until_its_class_says_otherwise() -> None:
    assert WhenOdd().may_lose_data(default_windowing()) == DataLossReason.MAY_FINISH
    assert Above(3).may_lose_data(default_windowing()) == DataLossReason.MAY_FINISH
    with pytest.raises(ValueError, match="Unsafe trigger: `WhenOdd\\(\\)` may lose data"):
        grouped(FixedWindows(5), WhenOdd())

    class Endless(Above):
        def may_lose_data(self, windowing):
            return DataLossReason.NO_POTENTIAL_LOSS

    assert grouped(FixedWindows(5), Endless(3)).windowing.triggerfn == Repeatedly(AfterCount(1))


def test_what_follows_a_custom_trigger_lets_each_pane_through() -> None:
    assert WhenOdd().get_continuation_trigger() == AfterCount(1)
    # It says itself how it goes on after a pane, so there may be more than one.
    assert Above(3).get_continuation_trigger() == Repeatedly(AfterCount(1))


@pytest.mark.parametrize("trigger", [Repeatedly(WhenOdd()), AfterWatermark(early=WhenOdd())], ids=repr)
def test_windows_that_merge_need_a_trigger_that_says_what_happens_then(trigger) -> None:
    with pytest.raises(ValueError, match=r"WhenOdd.* does not say what happens when windows merge") as caught:
        grouped(Sessions(5), trigger)
    assert "hint: define on_merge(self, states, context) in WhenOdd" in str(caught.value)
    assert grouped(FixedWindows(5), trigger).windowing.windowfn == FixedWindows(5)
    assert grouped(Sessions(5), Repeatedly(Above(3))).windowing.windowfn == Sessions(5)
