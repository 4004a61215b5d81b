"""What a windowing says besides windows and trigger, and the transform that changes all but the windows."""

from __future__ import annotations

import pickle

import pytest

import penstock as beam
from penstock import graph
from penstock.error import TransformError
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterWatermark,
    ClosingBehavior,
    DefaultTrigger,
    OnTimeBehavior,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampCombiner
from penstock.windows.windowing import Windowing, default_windowing

QUIET = {
    "on_time_behavior": OnTimeBehavior.FIRE_IF_NON_EMPTY,
    "closing_behavior": ClosingBehavior.FIRE_ALWAYS,
}


def create():
    return beam.Pipeline() | beam.Create([("a", 1)])


def test_by_default_windows_fire_at_their_end_and_do_not_when_they_close() -> None:
    windowing = Windowing(FixedWindows(5))
    assert windowing.on_time_behavior is OnTimeBehavior.FIRE_ALWAYS
    assert windowing.closing_behavior is ClosingBehavior.FIRE_IF_NON_EMPTY


@pytest.mark.parametrize("name", QUIET)
def test_each_behavior_is_a_part_of_the_windowing(name) -> None:
    changed = Windowing(GlobalWindows(), **{name: QUIET[name]})
    assert getattr(changed, name) is QUIET[name]
    assert changed != default_windowing()
    assert not changed.is_default()
    assert changed == pickle.loads(pickle.dumps(changed))
    assert beam.WindowInto(GlobalWindows(), **{name: QUIET[name]}).windowing == changed


def test_a_grouping_hands_all_but_the_trigger_on() -> None:
    windows = beam.WindowInto(
        Sessions(5),
        AfterWatermark(early=AfterCount(7), late=AfterCount(1)),
        AccumulationMode.ACCUMULATING,
        TimestampCombiner.OUTPUT_AT_LATEST,
        allowed_lateness=3,
        **QUIET,
    )
    before = windows.windowing
    after = (create() | windows | beam.GroupByKey()).windowing
    assert after == Windowing(
        Sessions(5),
        AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        before.accumulation_mode,
        before.timestamp_combiner,
        before.allowed_lateness,
        **QUIET,
    )


def test_windows_made_of_a_windowing_keep_what_is_not_replaced() -> None:
    first = Windowing(FixedWindows(5), AfterWatermark(), AccumulationMode.ACCUMULATING, None, 3, **QUIET)
    assert beam.WindowInto(first).windowing == first
    again = beam.WindowInto(first, allowed_lateness=4, on_time_behavior=OnTimeBehavior.FIRE_ALWAYS).windowing
    assert again.allowed_lateness == 4
    assert (again.on_time_behavior, again.closing_behavior) == (
        OnTimeBehavior.FIRE_ALWAYS,
        ClosingBehavior.FIRE_ALWAYS,
    )


@pytest.mark.parametrize(
    ("arguments", "error", "part"),
    [
        ({"trigger": AfterCount}, TypeError, "the trigger must be of type TriggerFn, not <class"),
        ({"trigger": 5}, TypeError, "the trigger must be of type TriggerFn, not 5"),
        ({"accumulation_mode": 4}, ValueError, "the accumulation mode 4 is unknown"),
        ({"allowed_lateness": -1}, ValueError, "the allowed lateness is -1 seconds"),
        (
            {"on_time_behavior": True},
            TypeError,
            "the on-time behavior must be of type OnTimeBehavior, not True",
        ),
        ({"on_time_behavior": ClosingBehavior.FIRE_ALWAYS}, TypeError, "the on-time behavior"),
        ({"closing_behavior": OnTimeBehavior.FIRE_ALWAYS}, TypeError, "the closing behavior"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "transform", [lambda **given: beam.WindowInto(FixedWindows(5), **given), beam.SetTrigger]
)
def test_what_makes_no_sense_is_refused_when_the_transform_is_built(
    transform, arguments, error, part
) -> None:
    with pytest.raises(error, match=part) as caught:
        transform(**{"accumulation_mode": 1, **arguments})
    assert "\n  hint: " in str(caught.value)


def test_beams_numbers_for_modes_are_taken() -> None:
    assert Windowing(FixedWindows(5), AfterWatermark(), 2).accumulation_mode is AccumulationMode.ACCUMULATING


CHANGES = {
    "trigger": ("triggerfn", Repeatedly(AfterCount(3))),
    "accumulation_mode": ("accumulation_mode", AccumulationMode.ACCUMULATING_AND_RETRACTING),
    "allowed_lateness": ("allowed_lateness", 7),
    "timestamp_combiner": ("timestamp_combiner", TimestampCombiner.OUTPUT_AT_LATEST),
    "on_time_behavior": ("on_time_behavior", OnTimeBehavior.FIRE_IF_NON_EMPTY),
    "closing_behavior": ("closing_behavior", ClosingBehavior.FIRE_ALWAYS),
}


@pytest.mark.parametrize("argument", CHANGES)
def test_setting_a_trigger_changes_what_it_is_given_and_nothing_else(argument) -> None:
    before = create() | beam.WindowInto(
        Sessions(5), AfterWatermark(), AccumulationMode.ACCUMULATING, allowed_lateness=3
    )
    after = (before | beam.SetTrigger(**{argument: CHANGES[argument][1]})).windowing
    for name, new in CHANGES.values():
        expected = new if name == CHANGES[argument][0] else getattr(before.windowing, name)
        assert getattr(after, name) == expected
    assert after.windowfn == Sessions(5)


def test_no_lateness_is_a_lateness_that_can_be_set() -> None:
    late = create() | beam.WindowInto(FixedWindows(5), allowed_lateness=3)
    assert (late | beam.SetTrigger(allowed_lateness=0)).windowing == Windowing(FixedWindows(5))


def test_setting_a_trigger_alone_keeps_the_global_window_and_the_mode() -> None:
    after = (create() | beam.SetTrigger(Repeatedly(AfterCount(3)))).windowing
    assert after == Windowing(GlobalWindows(), Repeatedly(AfterCount(3)), AccumulationMode.DISCARDING)


def test_setting_a_trigger_touches_no_element_and_no_type() -> None:
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1, 2])
    after = numbers | beam.SetTrigger(DefaultTrigger())
    assert after.element_type is numbers.element_type is int
    assert after.is_bounded
    # The windows have been assigned before, and may have merged: they are not assigned again.
    step = pipeline.to_graph().steps[-1]
    assert isinstance(step.primitive, graph.ParDo)
    assert step.primitive.dofn.process("element") == ["element"]


def test_setting_a_trigger_needs_something_to_set_and_a_collection() -> None:
    with pytest.raises(ValueError, match="SetTrigger has nothing to set"):
        beam.SetTrigger()
    with pytest.raises(TransformError, match="Expecting a PCollection argument"):
        beam.Pipeline() | beam.SetTrigger(DefaultTrigger())
