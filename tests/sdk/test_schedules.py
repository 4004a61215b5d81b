"""Sources that follow the clock: what they say of themselves, and when each element comes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as beam
from penstock import graph
from penstock.io.external.generate_sequence import GenerateSequence, SequenceSource
from penstock.io.streaming.schedules import Schedule, find_next_due_micros, is_over, list_due_elements
from penstock.transforms.periodicsequence import PeriodicImpulse, PeriodicSource, RebaseMode
from penstock.utils.timestamp import MAX_TIMESTAMP, Duration, Timestamp

SECOND = 1_000_000


def values(*arguments: Any) -> list[Any]:
    return [each.value for each in list_due_elements(*arguments)]


# Small numbers, so that moments meet the ends of stretches.
PERIODIC = st.builds(
    lambda start, length, interval, data, rebase: PeriodicSource(
        start, start + length, interval, tuple(data), rebase
    ),
    st.integers(-30, 30),
    st.integers(0, 40),
    st.integers(1, 7),
    st.lists(st.sampled_from("abc"), max_size=3),
    st.sampled_from([RebaseMode.REBASE_NONE, RebaseMode.REBASE_ALL]),
)
SEQUENCES = st.builds(
    lambda start, count, per_period, period, limit: SequenceSource(
        start, None if count is None else start + count, per_period, period, limit
    ),
    st.integers(0, 5),
    st.none() | st.integers(0, 12),
    st.integers(1, 7),
    st.integers(1, 9),
    st.none() | st.integers(1, 20),
)
STRETCHES = st.lists(st.integers(1, 9), max_size=8)


def definition(source: Any, started: int, until: int) -> list[tuple[int, Any]]:
    """Elements that come before a moment, with when they come, as the definitions say."""
    if isinstance(source, PeriodicSource):
        schedule = source.starting_at(started).schedule()
        elements = [(max(at, started), each) for at, each in islice(schedule, 100)]
    else:
        stop = source.start + 500 if source.stop is None else source.stop
        # The least whole microsecond that is not before the exact moment, without dividing.
        moments = []
        for number in range(stop - source.start):
            at = moments[-1] if moments else 0
            while at * source.elements_per_period < number * source.period_micros:
                at += 1
            moments.append(at)
        elements = [
            (started + at, source.element(number, started + at))
            for number, at in enumerate(moments)
            if source.max_read_micros is None or at < source.max_read_micros
        ]
    return [(at, each) for at, each in elements if at < until]


@given(PERIODIC | SEQUENCES, st.integers(-20, 20), st.integers(0, 5), STRETCHES)
def test_stretches_that_follow_one_another_give_each_element_once_when_it_is_due(
    source: Any, started: int, before: int, lengths: list[int]
) -> None:
    ends = [started - before]
    for length in (before + 1, *lengths):
        ends.append(ends[-1] + length)
    expected = definition(source, started, ends[-1])
    come = [each for pair in pairwise(ends) for each in list_due_elements(source, started, *pair)]
    assert come == [each for _, each in expected]
    for begin, end in pairwise(ends):
        assert list_due_elements(source, started, begin, end) == [
            each for at, each in expected if begin <= at < end
        ]


@given(PERIODIC | SEQUENCES, st.integers(-20, 20), st.integers(-20, 50))
def test_the_next_element_is_the_first_that_comes_from_then_on(source: Any, started: int, begin: int) -> None:
    later = definition(source, started, 10**9)
    expected = next((at for at, _ in later if at >= begin), None)
    assert find_next_due_micros(source, started, begin) == expected
    assert is_over(source, started, begin) == (expected is None)


def test_what_is_due_before_the_pipeline_starts_comes_at_once_with_its_own_time() -> None:
    ticks = PeriodicSource(0, MAX_TIMESTAMP.micros, 10 * SECOND)
    first = list_due_elements(ticks, 25 * SECOND + 1, 25 * SECOND, 26 * SECOND)
    assert [(each.value, each.timestamp) for each in first] == [(t, Timestamp(t)) for t in (0, 10, 20)]
    assert list_due_elements(ticks, 25 * SECOND + 1, 24 * SECOND, 25 * SECOND) == []
    assert values(ticks, 25 * SECOND + 1, 26 * SECOND, 31 * SECOND) == [30]
    assert find_next_due_micros(ticks, 25 * SECOND + 1, 0) == 25 * SECOND + 1
    assert not is_over(ticks, 25 * SECOND, 10**9 * SECOND)


def test_an_impulse_with_data_repeats_it_and_keeps_its_times() -> None:
    plain = PeriodicSource(0, 50, 10, ("a", "b"))
    assert [(each.value, each.timestamp.micros) for each in list_due_elements(plain, 0, 10, 45)] == [
        ("b", 10),
        ("a", 20),
        ("b", 30),
        ("a", 40),
    ]
    timed = PeriodicSource(0, 20, 10, ((Timestamp(7), "x"), (Timestamp(5), "y")))
    assert list_due_elements(timed, 0, 0, 20) == [
        beam.window.TimestampedValue("x", Timestamp(7)),
        beam.window.TimestampedValue("y", Timestamp(5)),
    ]


def test_an_impulse_that_is_rebased_starts_with_the_pipeline() -> None:
    moved = PeriodicSource(0, 25, 10, rebase=RebaseMode.REBASE_ALL)
    assert values(moved, 1000, 1000, 2000) == [at / 1e6 for at in (1000, 1010, 1020)]
    assert is_over(moved, 1000, 1021)
    longer = PeriodicSource(0, 1025, 10, rebase=RebaseMode.REBASE_START)
    assert values(longer, 1000, 1000, 2000) == [at / 1e6 for at in (1000, 1010, 1020)]


def test_the_moments_of_a_schedule_are_counted_without_rounding_errors() -> None:
    third = Schedule(0, SECOND, per_period=3)
    number = 10**15 + 1
    assert third.due_micros(number) == -(-number * SECOND // 3)
    assert third.count_before(third.due_micros(number)) == number
    assert third.count_before(third.due_micros(number) + 1) == number + 1
    assert Schedule(0, 10, count=2).count_before(10**9) == 2


# ------------------------------------------------------------------------------------------ GenerateSequence


def built(transform: GenerateSequence) -> tuple[Any, str]:
    pipeline = beam.Pipeline()
    numbers = pipeline | transform
    return numbers, graph.show(pipeline.to_graph())


def test_a_sequence_without_speed_and_with_an_end_is_there_from_the_beginning() -> None:
    numbers, shown = built(GenerateSequence(5, 25_005))
    assert (numbers.is_bounded, numbers.element_type) == (True, int)
    assert "SequenceSource" not in shown
    assert "Read(InlineValues(3 values))" in shown
    # However long it is, the pipeline stays small.
    assert "Read(InlineValues(1000 values))" in built(GenerateSequence(0, 10**9))[1]
    assert "Read(InlineValues(0 values))" in built(GenerateSequence(3, 3))[1]


@pytest.mark.parametrize(
    ("arguments", "is_bounded", "source"),
    [
        ({}, False, SequenceSource(3, None, 10_000, SECOND)),
        ({"elements_per_period": 5}, False, SequenceSource(3, None, 5, SECOND)),
        ({"elements_per_period": 5, "period": 0.5}, False, SequenceSource(3, None, 5, SECOND // 2)),
        ({"elements_per_period": 5, "stop": 9}, True, SequenceSource(3, 9, 5, SECOND)),
        ({"max_read_time": 4}, True, SequenceSource(3, None, 10_000, SECOND, 4 * SECOND)),
        ({"max_read_time": Duration(4), "stop": 9}, True, SequenceSource(3, 9, 10_000, SECOND, 4 * SECOND)),
    ],
)
def test_any_other_sequence_follows_the_clock(arguments: Any, is_bounded: bool, source: Any) -> None:
    transform = GenerateSequence(3, **arguments)
    numbers, shown = built(transform)
    assert transform.source == source
    assert (numbers.is_bounded, source.is_bounded, numbers.element_type) == (is_bounded, is_bounded, int)
    assert "GenerateSequence/GenSequence = Read(SequenceSource(" in shown


def test_numbers_are_stamped_with_the_moments_at_which_they_are_due() -> None:
    source = GenerateSequence(7, elements_per_period=2, period=3).source
    assert [
        (each.value, each.timestamp)
        for each in list_due_elements(source, 100 * SECOND, 99 * SECOND, 104 * SECOND)
    ] == [
        (7, Timestamp(100)),
        (8, Timestamp(101.5)),
        (9, Timestamp(103)),
    ]
    full = GenerateSequence(0).source
    assert values(full, 0, SECOND, 2 * SECOND) == list(range(10_000, 20_000))


def test_a_sequence_ends_with_its_last_number_or_its_time_whichever_comes_first() -> None:
    for stop, seconds, numbers in ((3, 10, [0, 1, 2]), (30, 2.5, [0, 1, 2]), (30, 2, [0, 1])):
        source = GenerateSequence(0, stop, elements_per_period=1, max_read_time=seconds).source
        assert values(source, 0, 0, 10**12) == numbers
        assert not is_over(source, 0, (len(numbers) - 1) * SECOND)
        assert is_over(source, 0, (len(numbers) - 1) * SECOND + 1)


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: GenerateSequence(-1), ValueError, "start must be 0 or more, but is -1"),
        (lambda: GenerateSequence(1.0), TypeError, "start must be an integer, but is 1.0"),
        (lambda: GenerateSequence(True), TypeError, "start must be an integer"),
        (lambda: GenerateSequence(5, 4), ValueError, "stop must be 5 or more, but is 4"),
        (lambda: GenerateSequence(5, "9"), TypeError, "stop must be an integer"),
        (
            lambda: GenerateSequence(5, elements_per_period=0),
            ValueError,
            "elements_per_period must be 1 or more",
        ),
        (
            lambda: GenerateSequence(5, elements_per_period=1.5),
            TypeError,
            "elements_per_period must be an integer",
        ),
        (lambda: GenerateSequence(5, max_read_time=0), ValueError, "max_read_time"),
        (lambda: GenerateSequence(5, max_read_time="1 s"), TypeError, "max_read_time"),
        (lambda: GenerateSequence(5, elements_per_period=1, period=0), ValueError, "period"),
        (lambda: GenerateSequence(5, period=2), ValueError, "period=2 has no meaning"),
    ],
)
def test_a_sequence_that_cannot_be_is_refused(
    build: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        build()
    assert "  at test_schedules.py:" in str(caught.value)
    assert "  hint: " in str(caught.value)


def test_the_parameters_are_those_of_beam_and_further_ones_have_to_be_named() -> None:
    module = pytest.importorskip("apache_beam.io.external.generate_sequence")
    theirs = inspect.signature(module.GenerateSequence).parameters
    own = inspect.signature(GenerateSequence).parameters
    for name, parameter in theirs.items():
        assert own[name].default == parameter.default
    assert list(own)[: len(theirs)] == list(theirs)
    assert all(own[name].kind is inspect.Parameter.KEYWORD_ONLY for name in own.keys() - theirs.keys())


def test_the_impulse_and_the_sequence_are_played_by_the_same_functions() -> None:
    impulse = PeriodicImpulse(100, fire_interval=0.5).source
    sequence = GenerateSequence(0, elements_per_period=2).source
    for stretch in ((99 * SECOND, 101 * SECOND), (101 * SECOND, 102 * SECOND)):
        first, second = (list_due_elements(source, 100 * SECOND, *stretch) for source in (impulse, sequence))
        assert [each.timestamp for each in first] == [each.timestamp for each in second] != []


@pytest.mark.parametrize(
    ("start", "interval", "expected"),
    [(1, 1, [1, 2, 3]), (1, 0.5, [1.0, 1.5, 2.0]), (Timestamp(1), 1, [1.0, 2.0, 3.0])],
)
def test_an_impulse_gives_seconds_as_numbers_whole_if_its_start_and_interval_are(
    start: Any, interval: float, expected: list[Any]
) -> None:
    source = PeriodicImpulse(start, MAX_TIMESTAMP, interval).source
    given = [value.value for _, (_, value) in zip(range(3), source.schedule(), strict=False)]
    assert given == expected
    assert [type(each) for each in given] == [type(each) for each in expected]
