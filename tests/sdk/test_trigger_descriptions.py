"""Triggers as values: what they may lose, what follows a grouping, and what cannot be built."""

import pickle
from types import SimpleNamespace

import pytest

import penstock.transforms.trigger as penstock
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterAlignedProcessingTime,
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
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    DataLossReason,
    DefaultTrigger,
    Never,
    OrFinally,
    Repeatedly,
)
from penstock.utils.timestamp import Duration, Timestamp
from penstock.windows.triggers import can_fire_early, walk_parts

# Each trigger is built once with each library's names.
TRIGGERS = [
    "DefaultTrigger()",
    "Always()",
    "_Never()",
    "AfterCount(3)",
    "AfterProcessingTime(5)",
    "AfterWatermark()",
    "AfterWatermark(early=AfterCount(5))",
    "AfterWatermark(late=AfterCount(5))",
    "AfterWatermark(AfterProcessingTime(5), Repeatedly(AfterCount(5)))",
    "AfterWatermark(late=AfterWatermark())",
    "Repeatedly(AfterCount(3))",
    "Repeatedly(AfterWatermark())",
    "Repeatedly(AfterProcessingTime(0))",
    "AfterAny(AfterCount(3), Always())",
    "AfterAny(AfterCount(3), AfterWatermark())",
    "AfterAny(Always(), AfterWatermark())",
    "AfterAll(AfterCount(3), Always())",
    "AfterAll(AfterCount(3), AfterProcessingTime(5))",
    "AfterAll(AfterCount(3), AfterWatermark(late=AfterCount(2)))",
    "AfterEach(AfterCount(3), AfterProcessingTime(5))",
    "AfterEach(AfterCount(3), Repeatedly(AfterProcessingTime(5)))",
    "AfterEach(AfterWatermark(), AfterCount(3))",
    "OrFinally(Repeatedly(AfterCount(3)), AfterProcessingTime(5))",
    "OrFinally(Always(), Repeatedly(AfterCount(2)))",
    "Repeatedly(AfterAny(AfterCount(3), AfterEach(AfterCount(1), AfterAll(AfterWatermark()))))",
]

# Each trigger that Beam does not have, the continuation, and whether it finishes.
BEYOND_BEAM = {
    "AfterAlignedProcessingTime(60)": ("AfterSynchronizedProcessingTime()", True),
    "AfterAlignedProcessingTime(60, 20)": ("AfterSynchronizedProcessingTime()", True),
    "AfterWatermarkPercentile(0.9)": ("AfterWatermarkPercentile(0.9)", True),
    "AfterBytes(10)": ("AfterCount(1)", True),
    "AfterBytes(10, len)": ("AfterCount(1)", True),
    "AfterPunctuation(any)": ("AfterCount(1)", True),
    "AfterPattern(any)": ("AfterCount(1)", True),
    "AfterPattern(any, all)": ("AfterCount(1)", True),
    "AfterPattern(any, all, contiguous=True)": ("AfterCount(1)", True),
    "AfterDelta(5)": ("Repeatedly(AfterCount(1))", False),
    "AfterDelta(5, distance=max)": ("Repeatedly(AfterCount(1))", False),
    "AfterDelta(5, 3)": ("Repeatedly(AfterCount(1))", False),
    "AfterSignal('flush')": ("AfterCount(1)", True),
    "Repeatedly(AfterBytes(10))": ("Repeatedly(AfterCount(1))", False),
    "AfterAny(AfterSignal('flush'), AfterDelta(5))": (
        "AfterAny(AfterCount(1), Repeatedly(AfterCount(1)))",
        True,
    ),
    "AfterAll(AfterSignal('flush'), AfterDelta(5))": (
        "AfterAll(AfterCount(1), Repeatedly(AfterCount(1)))",
        False,
    ),
    "AfterWatermark(early=AfterPunctuation(any))": ("AfterWatermark(early=AfterCount(1))", False),
    "AfterSynchronizedProcessingTime()": ("AfterSynchronizedProcessingTime()", False),
    "Repeatedly(Never())": ("Repeatedly(Never())", False),
    "Repeatedly(Repeatedly(Always()))": ("Repeatedly(Repeatedly(Always()))", False),
}
ALL = [*TRIGGERS, *BEYOND_BEAM]


def _build(text, module):
    return eval(text, vars(module))


def _shape(trigger):
    """A trigger of either library as nested tuples."""
    parts = {name: part for name, part in vars(trigger).items() if not name.startswith("_")}
    return (
        type(trigger).__name__.removeprefix("_"),
        *(
            [_shape(one) for one in part]
            if name == "triggers"
            else (_shape(part) if hasattr(part, "may_lose_data") else part)
            for name, part in sorted(parts.items())
        ),
    )


@pytest.mark.parametrize("text", TRIGGERS)
def test_loss_continuation_and_ontime_pane_are_those_of_beam(text) -> None:
    beam = pytest.importorskip("apache_beam.transforms.trigger")
    ours, theirs = _build(text, penstock), _build(text, beam)
    assert _shape(ours) == _shape(theirs)
    for lateness in (0, 60):
        windowing = SimpleNamespace(allowed_lateness=Duration(lateness))
        assert ours.may_lose_data(windowing).name == theirs.may_lose_data(windowing).name
    # Beam's _Never gives None where it means False.
    assert ours.has_ontime_pane() is bool(theirs.has_ontime_pane())
    once, once_theirs = ours.get_continuation_trigger(), theirs.get_continuation_trigger()
    assert _shape(once) == _shape(once_theirs)
    assert _shape(once.get_continuation_trigger()) == _shape(once_theirs.get_continuation_trigger())


@pytest.mark.parametrize("text", BEYOND_BEAM)
def test_beyond_beam_a_trigger_says_what_follows_and_whether_it_finishes(text) -> None:
    continuation, finishes = BEYOND_BEAM[text]
    trigger = _build(text, penstock)
    assert trigger.get_continuation_trigger() == _build(continuation, penstock)
    reason = trigger.may_lose_data(SimpleNamespace(allowed_lateness=Duration(0)))
    assert reason == (DataLossReason.MAY_FINISH if finishes else DataLossReason.NO_POTENTIAL_LOSS)
    assert trigger.has_ontime_pane() is text.startswith("AfterWatermark(")


@pytest.mark.parametrize("text", ALL)
def test_triggers_are_immutable_values_that_show_how_they_are_written(text) -> None:
    trigger = _build(text, penstock)
    again = pickle.loads(pickle.dumps(trigger))
    assert trigger == again == _build(repr(trigger), penstock)
    assert hash(trigger) == hash(again)
    assert sum(trigger == _build(other, penstock) for other in ALL) == 1
    with pytest.raises(AttributeError):
        trigger.count = 5


@pytest.mark.parametrize("text", BEYOND_BEAM)
def test_beyond_beam_a_trigger_is_shown_as_it_is_written(text) -> None:
    assert repr(_build(text, penstock)) == text


def test_what_beam_has_as_private_has_a_public_name() -> None:
    assert penstock.Never is penstock._Never
    assert repr(penstock._Never()) == "Never()"
    assert penstock.AfterSynchronizedProcessingTime is penstock._AfterSynchronizedProcessingTime
    assert set(penstock.__all__) <= vars(penstock).keys()


def test_the_accumulation_modes_have_the_numbers_of_beam() -> None:
    beam = pytest.importorskip("apache_beam.transforms.trigger")
    assert AccumulationMode.DISCARDING == beam.AccumulationMode.DISCARDING
    assert AccumulationMode.ACCUMULATING == beam.AccumulationMode.ACCUMULATING
    assert len(AccumulationMode) == 3


def test_a_delay_is_a_length_of_time_or_seconds() -> None:
    assert AfterProcessingTime(2).delay_micros == AfterProcessingTime(Duration(2)).delay_micros == 2_000_000
    assert AfterProcessingTime().delay_micros == 0
    assert len({AfterProcessingTime(2), AfterProcessingTime(Duration(2)), AfterProcessingTime(2.0)}) == 1


def test_a_period_begins_at_its_offset_from_the_epoch() -> None:
    minutes = AfterProcessingTime.aligned_to(60, offset=20)
    assert (minutes.period_micros, minutes.offset_micros) == (60_000_000, 20_000_000)
    same = {
        AfterAlignedProcessingTime(60, 20),
        AfterAlignedProcessingTime(Duration(60), Duration(-40)),
        AfterAlignedProcessingTime(60.0, Timestamp(3620)),
    }
    assert same == {minutes}
    assert AfterAlignedProcessingTime(0.5).period_micros == 500_000


def test_a_distance_is_the_absolute_difference_unless_another_is_given() -> None:
    assert AfterDelta(1).measure(2, 7) == AfterDelta(1).measure(7, 2) == 5
    assert AfterDelta(1, distance=max).measure(2, 7) == 7


def test_the_parts_of_a_trigger_are_found_at_any_depth() -> None:
    deep = OrFinally(Repeatedly(AfterEach(Always(), AfterWatermark(AfterCount(1), AfterCount(2)))), Never())
    names = [type(part).__name__ for part in walk_parts(deep)]
    assert names[:5] == ["OrFinally", "Repeatedly", "AfterEach", "Always", "AfterWatermark"]
    assert names[5:] == ["Repeatedly", "AfterCount", "Repeatedly", "AfterCount", "Never"]


@pytest.mark.parametrize(
    "trigger",
    [
        DefaultTrigger(),
        AfterWatermark(late=AfterCount(1)),
        AfterWatermark(early=Never()),
        AfterWatermarkPercentile(0.5),
        Never(),
        Repeatedly(Never()),
        AfterAll(Never(), Always()),
        AfterAny(Never(), AfterWatermark()),
        OrFinally(Repeatedly(AfterWatermark()), Never()),
        AfterEach(AfterWatermark(), AfterCount(1)),
    ],
    ids=repr,
)
def test_some_triggers_cannot_fire_before_the_end_of_the_window(trigger) -> None:
    assert not can_fire_early(trigger)


@pytest.mark.parametrize(
    "trigger",
    [
        Always(),
        AfterCount(3),
        AfterSignal("flush"),
        AfterDelta(3),
        AfterProcessingTime(3),
        penstock.AfterSynchronizedProcessingTime(),
        AfterWatermark(early=AfterCount(1)),
        Repeatedly(AfterBytes(3)),
        AfterAll(Always(), AfterCount(1)),
        AfterAny(Never(), AfterCount(1)),
        OrFinally(Never(), AfterCount(1)),
        AfterEach(AfterCount(1), AfterWatermark()),
    ],
    ids=repr,
)
def test_the_other_triggers_can_fire_before_the_end_of_the_window(trigger) -> None:
    assert can_fire_early(trigger)


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: AfterCount(0), ValueError, "positive integer"),
        (lambda: AfterCount(1.5), ValueError, "positive integer"),
        (lambda: AfterCount("3"), ValueError, "positive integer"),
        (lambda: AfterProcessingTime(-1), ValueError, "negative"),
        (lambda: AfterProcessingTime("1"), TypeError, "Duration"),
        (lambda: AfterAny(), ValueError, "AfterAny has no triggers"),
        (lambda: AfterAll(), ValueError, "AfterAll has no triggers"),
        (lambda: AfterEach(), ValueError, "AfterEach has no triggers"),
        (lambda: AfterEach(AfterCount(1), 2), TypeError, "AfterEach needs a trigger, but got 2"),
        (lambda: OrFinally(AfterCount(1)), ValueError, "1 triggers instead of 2"),
        (lambda: Repeatedly(Always), TypeError, "Repeatedly needs a trigger"),
        (lambda: AfterWatermark(early=5), TypeError, "early"),
        (lambda: AfterWatermark(DefaultTrigger(), late=5), TypeError, "late"),
        (lambda: AfterAlignedProcessingTime(0), ValueError, "period .* must be positive"),
        (lambda: AfterProcessingTime.aligned_to(-1), ValueError, "period .* must be positive"),
        (lambda: AfterAlignedProcessingTime("1"), TypeError, "Duration"),
        (lambda: AfterAlignedProcessingTime(60, "1"), TypeError, "Duration"),
        (lambda: AfterWatermarkPercentile(0), ValueError, "percentile"),
        (lambda: AfterWatermarkPercentile(1.01), ValueError, "percentile"),
        (lambda: AfterWatermarkPercentile(95), ValueError, "percentile"),
        (lambda: AfterWatermarkPercentile(float("nan")), ValueError, "percentile"),
        (lambda: AfterWatermarkPercentile(True), ValueError, "percentile"),
        (lambda: AfterWatermarkPercentile("0.9"), ValueError, "percentile"),
        (lambda: AfterBytes(0), ValueError, "positive integer"),
        (lambda: AfterBytes(1.5), ValueError, "positive integer"),
        (lambda: AfterBytes(True), ValueError, "positive integer"),
        (lambda: AfterBytes(10, 5), TypeError, "AfterBytes needs a function, but got 5"),
        (lambda: AfterPunctuation("end"), TypeError, "AfterPunctuation needs a function"),
        (lambda: AfterPattern(), ValueError, "AfterPattern has no predicates"),
        (lambda: AfterPattern(any, None), TypeError, "AfterPattern needs a function, but got None"),
        (lambda: AfterPattern(any, contiguous=all), TypeError, "contiguous"),
        (lambda: AfterDelta(-1), ValueError, "threshold"),
        (lambda: AfterDelta(float("nan")), ValueError, "threshold"),
        (lambda: AfterDelta("5"), ValueError, "threshold"),
        (lambda: AfterDelta(True), ValueError, "threshold"),
        (lambda: AfterDelta(5, distance=5), TypeError, "AfterDelta needs a function"),
        (lambda: AfterSignal(""), ValueError, "empty"),
        (lambda: AfterSignal(None), TypeError, "name of a signal"),
    ],
)
def test_what_is_refused_is_named_and_comes_with_a_hint(call, error, part) -> None:
    with pytest.raises(error, match=part) as caught:
        call()
    assert "\n  hint: " in str(caught.value)
