"""The laws of cuts: storing the state, dividing the input and choosing an engine do not show in the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from penstock.machines.records import (
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    EndMicroBatch,
    Event,
    EventOutput,
)
from penstock.machines.reference_engine import ReferenceEngine, play
from penstock.windows.triggers import walk_parts
from tests.machines.generated import ALL_WINDOWS, FIXED, FOREVER, SESSIONS, Case
from tests.machines.generated_events import (
    SECOND,
    only_arrivals,
    random_case,
    with_events,
)
from tests.machines.generated_triggers import BeforeEnd
from tests.machines.law_book import law
from tests.machines.outcomes import (
    ACCUMULATING,
    ENGINES,
    RETRACTING,
    finals,
    latest,
    net,
    played,
    sorted_by_time,
    windows_of,
    without_steps,
)


@law(random_case, cases=300)
def storing_the_state_changes_nothing(case: Case) -> None:
    """A state that is stored and restored after every step goes on as one that is not: the same panes, the same holds.

    (Design, section 3: the result is a function of the recorded input; Streaming Systems, chapter 1.)
    """
    for engine in ENGINES:
        whole, cut = ReferenceEngine(case.machine(), engine), ReferenceEngine(case.machine(), engine)
        events = sorted_by_time(case.events) if engine == "batch" else case.events
        for event in events:
            assert cut.play(event) == whole.play(event)
            assert cut.hold_micros == whole.hold_micros
            cut.cut()
        assert cut.finish() == whole.finish()


def of_key(outcome: list[EventOutput], key: Any) -> list[tuple[Any, ...]]:
    return [one for one in without_steps(outcome) if one[1] == key]


@law(random_case, cases=300)
def keys_do_not_see_each_other(case: Case) -> None:
    """What comes out for a key does not depend on the elements of other keys, nor on how they come in between.

    (Paper, section 2.1: grouping is by key; design, section 3: the machine takes one key at a time.)
    """
    keys = {event.key for event in only_arrivals(case.events)}
    for engine in ENGINES:
        outcome = played(case, engine=engine)
        regrouped = played(with_events(case, keys_in_turn(case.events)), engine=engine)
        for key in keys:
            alone = with_events(case, [others_replaced(event, key) for event in case.events])
            assert of_key(outcome, key) == of_key(played(alone, engine=engine), key)
            assert of_key(outcome, key) == of_key(regrouped, key)


def others_replaced(event: Event, key: Any) -> Event:
    """The same event, or if it is another key's element, one of a key of its own with another value and time."""
    if not isinstance(event, AddElement) or event.key == key:
        return event
    return replace(event, key="someone else", value=1, timestamp_micros=event.timestamp_micros + SECOND)


def keys_in_turn(events: tuple[Event, ...]) -> Iterator[Event]:
    """The same input, where elements that come at one moment of the clock come key after key."""
    together: list[AddElement] = []
    for event in events:
        if isinstance(event, AddElement) and event.clock_micros is None:
            together.append(event)
            continue
        yield from sorted(together, key=lambda arrival: arrival.key, reverse=True)
        together = []
        yield event
    yield from sorted(together, key=lambda arrival: arrival.key, reverse=True)


@law(random_case, cases=300)
def small_steps_of_time_do_what_a_large_one_does(case: Case) -> None:
    """The clock may come to a moment in one step or in many, and so may the watermark, where nothing is due in between.

    (Design, section 3: the result is a function of the recorded input, not of where it is cut.)
    """
    whole = without_steps(played(case))
    random = Random(len(case.events))
    assert whole == without_steps(played(with_events(case, clock_in_steps(case.events, random))))
    if any(isinstance(part, BeforeEnd) for part in walk_parts(case.windowing.triggerfn)):
        return  # Its timer rings at once when the watermark moves at all, where the moment is past.
    moments = sorted(
        {moment for event in only_arrivals(case.events) for moment in logical_times_of(case, event)}
    )
    assert whole == without_steps(played(with_events(case, watermark_in_steps(case.events, moments))))


def clock_in_steps(events: tuple[Event, ...], random: Random) -> Iterator[Event]:
    """The same input, where the clock also stops between two events, anywhere."""
    clock_micros = MIN_MICROS
    for event in events:
        if event.clock_micros is not None and event.clock_micros > clock_micros > MIN_MICROS:
            steps = [random.randrange(clock_micros, event.clock_micros) for _ in range(2)]
            yield from map(AdvanceClock, sorted(steps))
        clock_micros = clock_micros if event.clock_micros is None else event.clock_micros
        yield event


def logical_times_of(case: Case, event: AddElement) -> Iterator[int]:
    """When something may be due because of an element: where its windows end, and where they take no more elements."""
    for window in windows_of(case, event):
        yield window.end_micros
        yield window.end_micros + case.windowing.allowed_lateness.micros


def watermark_in_steps(events: tuple[Event, ...], moments: list[int]) -> Iterator[Event]:
    """The same input, where the watermark also stops just before the next moment at which something may be due."""
    before = AdvanceWatermark(MIN_MICROS)
    for event in events:
        if isinstance(event, AdvanceWatermark):
            next_micros = next((moment for moment in moments if moment > before.watermark_micros), None)
            if next_micros is not None and before.watermark_micros < next_micros - 1 < event.watermark_micros:
                yield AdvanceWatermark(next_micros - 1, event.clock_micros, before.percentile_micros)
            before = event
        yield event


def without_watermark(events: tuple[Event, ...]) -> list[Event]:
    return [event for event in events if not isinstance(event, AdvanceWatermark)]


def round_case(random: Random) -> Case:
    """One in which nothing is dropped: the trigger goes on for ever, and the watermark stays where it is."""
    case = random_case(random, windows=(FIXED, SESSIONS), is_endless=True)
    return with_events(case, without_watermark(case.events))


@law(round_case, cases=300)
def rounds_may_be_cut_anywhere(case: Case) -> None:
    """However the input is cut into micro-batches, what is left in the end is the same.

    (Paper, section 2.4, figure 11; section 1.1: the choice of an engine does not show in the results.)
    """
    random = Random(len(case.events))
    elements = [event for event in case.events if not isinstance(event, EndMicroBatch)]
    one_round = finals(played(with_events(case, elements), RETRACTING, "micro_batch"))
    cuts = ([True] * len(elements), [random.random() < 0.3 for _ in elements])
    for cut in cuts:
        events = [
            one
            for event, ends in zip(elements, cut, strict=True)
            for one in (event, EndMicroBatch())[: 1 + ends]
        ]
        in_rounds = with_events(case, events)
        assert finals(played(in_rounds, RETRACTING, "micro_batch")) == one_round
        last = latest(played(in_rounds, ACCUMULATING, "micro_batch"))
        assert {place: last[place] for place in one_round} == one_round


@law(lambda random: random_case(random, windows=ALL_WINDOWS, lateness=(0, FOREVER)), cases=300)
def batch_is_streaming_in_order_with_a_still_watermark(case: Case) -> None:
    """Batch gives what streaming gives for the elements in order of event time, before the watermark moves at all.

    It stays at the beginning of time, and then goes to the end. A micro-batch of one round leaves the same values.
    (Paper, section 2.4: a streaming engine driven so has the semantics of classic batch.)
    """
    in_batch = played(case, engine="batch")
    in_order = sorted_by_time(case.events)
    in_streaming = play(case.machine(), in_order, "streaming", finish=True)
    assert [one[1:] for one in without_steps(in_batch)] == [one[1:] for one in without_steps(in_streaming)]
    in_one_round = play(case.machine(), in_order, "micro_batch", finish=True)
    if case.windowing.accumulation_mode == RETRACTING:
        assert net(in_batch) == net(in_one_round)
    elif case.windowing.accumulation_mode == ACCUMULATING:
        assert latest(in_batch) == latest(in_one_round)


@law(random_case, cases=300)
def what_a_trigger_says_of_itself_is_true(case: Case) -> None:
    """A trigger that says it does not fire on elements gives nothing in batch before the end.

    And where it says that elements are nothing to it, being asked after each of them makes no difference. (Design,
    section 5: elements whose trigger cannot tell one from many may be combined before the shuffle.)
    """
    if not case.machine().program.trigger.fires_on_elements:
        assert {one.step for one in played(case, engine="batch")} <= {len(case.events)}
    attentive = case.machine()
    object.__setattr__(attentive.program.trigger, "heeds_elements", True)
    assert play(attentive, case.events, finish=True) == play(case.machine(), case.events, finish=True)
