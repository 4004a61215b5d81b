"""Triggers as values: what they may lose, what follows a grouping, and what cannot be built."""

import pickle
from types import SimpleNamespace

import pytest

import penstock.transforms.trigger as penstock
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Always,
    DefaultTrigger,
    OrFinally,
    Repeatedly,
)
from penstock.utils.timestamp import Duration

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


def _build(text, module):
    return eval(text, vars(module))


def _shape(trigger):
    """A trigger of either library as nested tuples."""
    parts = {name: part for name, part in vars(trigger).items() if not name.startswith("_")}
    return (
        type(trigger).__name__,
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


@pytest.mark.parametrize("text", TRIGGERS)
def test_triggers_are_immutable_values_that_show_how_they_are_written(text) -> None:
    trigger = _build(text, penstock)
    again = pickle.loads(pickle.dumps(trigger))
    assert trigger == again == _build(repr(trigger), penstock)
    assert hash(trigger) == hash(again)
    assert sum(trigger == _build(other, penstock) for other in TRIGGERS) == 1
    with pytest.raises(AttributeError):
        trigger.count = 5


def test_the_accumulation_modes_have_the_numbers_of_beam() -> None:
    beam = pytest.importorskip("apache_beam.transforms.trigger")
    assert AccumulationMode.DISCARDING == beam.AccumulationMode.DISCARDING
    assert AccumulationMode.ACCUMULATING == beam.AccumulationMode.ACCUMULATING
    assert len(AccumulationMode) == 3


def test_a_delay_is_a_length_of_time_or_seconds() -> None:
    assert AfterProcessingTime(2).delay_micros == AfterProcessingTime(Duration(2)).delay_micros == 2_000_000
    assert AfterProcessingTime().delay_micros == 0


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
    ],
)
def test_what_is_refused_is_named_and_comes_with_a_hint(call, error, part) -> None:
    with pytest.raises(error, match=part) as caught:
        call()
    assert "\n  hint: " in str(caught.value)
