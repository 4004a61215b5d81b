"""Behind sessions that merge, an old session is retracted before its window is over there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import penstock as beam
from penstock.machines import merging, splitting
from penstock.testing.test_stream import TestStream
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows, Sessions, TimestampedValue
from tests.shards.row_streams import Balance, batches_of, net_of

GAP = 10
SIZE = 5
AGAIN = 12
RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING


def in_fixed_windows(sizes: Any) -> Any:
    return sizes | "Fixed windows" >> beam.WindowInto(FixedWindows(SIZE))


def with_length(pair: Any, window: Any = beam.DoFn.WindowParam) -> Any:
    return *pair, int(window.end - window.start)


BEHIND: dict[str, Callable[[Any], Any]] = {
    "GroupByKey": lambda sizes: (
        sizes | "Behind" >> beam.GroupByKey() | beam.MapTuple(lambda key, ones: (key, sum(ones)))
    ),
    "CombinePerKey": lambda sizes: sizes | "Behind" >> beam.CombinePerKey(sum),
    "two of them": lambda sizes: (
        sizes
        | "Behind" >> beam.CombinePerKey(sum)
        | beam.MapTuple(lambda key, count: (key[0], count))
        | "Behind it" >> beam.CombinePerKey(sum)
    ),
    "other windows": lambda sizes: in_fixed_windows(sizes) | beam.CombinePerKey(sum),
    "sessions again": lambda sizes: (
        sizes
        | beam.MapTuple(lambda key, count: (key[0], count))
        | "Sessions again" >> beam.WindowInto(Sessions(AGAIN), accumulation_mode=RETRACTING)
        | "Behind" >> beam.CombinePerKey(sum)
        | beam.Map(with_length)
    ),
    "a DoFn with state": lambda sizes: in_fixed_windows(sizes) | beam.ParDo(Balance()),
}


def expected_behind(way: str, visits: Iterable[tuple[str, int]]) -> Counter[Any]:
    """The results of a batch over the visits."""
    counts: Counter[Any] = Counter()
    if way == "sessions again":
        ends = [(user, times[-1] + GAP) for user, times in sessions_of(visits)]
        of_ends = sessions_of(ends, AGAIN)
        return Counter((user, len(times), times[-1] + AGAIN - times[0]) for user, times in of_ends)
    for user, times in sessions_of(visits):
        last_micros = (times[-1] + GAP) * 1_000_000 - 1
        match way:
            case "two of them":
                counts[user, times[0]] += 1
            case "other windows" | "a DoFn with state":
                counts[(user, len(times)), last_micros // (SIZE * 1_000_000)] += 1
            case _:
                counts[(user, len(times)), times[0]] += 1
    return Counter((key, count) for (key, _), count in counts.items())


def sessions_of(visits: Iterable[tuple[Any, int]], gap: int = GAP) -> Iterator[tuple[Any, list[int]]]:
    """The sessions of the visits, each as a user and the seconds of its visits."""
    times = defaultdict(list)
    for user, seconds in visits:
        times[user].append(seconds)
    for user, several in times.items():
        session: list[int] = []
        for seconds in sorted(several):
            if session and seconds >= session[-1] + gap:
                yield user, session
                session = []
            session.append(seconds)
        yield user, session


def left_behind(
    way: str, events: Iterable[Any], early: int, lateness: int, mode: str, events_per_batch: int | None
) -> Counter[Any]:
    """The results behind sessions that are not retracted in the end.

    Args:
        way: What is behind them.
        events: Visits as (user, seconds), and watermarks as bare numbers.
        early: The visits after which a session fires a pane; if more than one, not at once when it has grown.
        lateness: In seconds.
        mode: Of the query.
        events_per_batch: Likewise.
    """
    stream = TestStream()
    for event in events:
        if isinstance(event, tuple):
            stream = stream.add_elements([TimestampedValue((event[0], 1), event[1])])
        else:
            stream = stream.advance_watermark_to(event)
    sessions = (
        beam.Pipeline()
        | stream.advance_watermark_to_infinity()
        | beam.WindowInto(
            Sessions(GAP),
            trigger=AfterWatermark(early=AfterCount(early), late=AfterCount(2)),
            accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
            allowed_lateness=lateness,
        )
        | "Sessions" >> beam.GroupByKey()
    )
    sizes = sessions | beam.MapTuple(lambda user, ones: ((user, sum(ones)), 1))
    return net_of(
        change for batch in batches_of(BEHIND[way](sizes), events_per_batch, mode) for change in batch
    )


@pytest.mark.parametrize("way", BEHIND)
@pytest.mark.parametrize("events_per_batch", [None, 1, 2])
@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_a_session_that_has_grown_is_taken_back_in_time(way, events_per_batch, mode):
    """The session to 11 has given a pane, and the one to 18 has not when the watermark passes 11, and 15."""
    visits = [("ann", 0), ("ann", 1), ("ann", 8)]
    left = left_behind(way, [*visits, 12, 16, 60], 2, 0, mode, events_per_batch)
    assert left == expected_behind(way, visits)


@pytest.mark.parametrize("way", ["GroupByKey", "CombinePerKey", "two of them"])
@pytest.mark.parametrize("events_per_batch", [1, 2])
def test_a_session_that_grows_after_its_end_is_taken_back_in_time(way, events_per_batch):
    """The session to 10 has given its pane at 12, and the one to 19 has not when the lateness is over, at 15."""
    visits = [("ann", 0), ("ann", 9)]
    events = [visits[0], 12, visits[1], 16, 17, 60]
    assert left_behind(way, events, 3, 5, "streaming", events_per_batch) == expected_behind(way, visits)


@pytest.mark.parametrize("way", BEHIND)
def test_a_session_that_grows_after_its_end_in_one_round_is_taken_back_in_it(way):
    """A window that is over takes elements to the end of the round."""
    visits = [("ann", 0), ("ann", 1), ("ann", 8)]
    events = [*visits[:2], 12, visits[2], 16, 60]
    assert left_behind(way, events, 2, 0, "micro_batch", None) == expected_behind(way, visits)


@st.composite
def punctual(draw: Any) -> list[Any]:
    """Visits of two users in any order of their times, none of them late, and watermarks."""
    events: list[Any] = []
    watermark = 0
    for _ in range(draw(st.integers(2, 6))):
        for _ in range(draw(st.integers(1, 3))):
            events.append((draw(st.sampled_from(["ann", "bob"])), watermark + draw(st.integers(0, 15))))
        watermark += draw(st.integers(1, 8))
        events.append(watermark)
    return events


def in_time_law(
    way: str, events: list[Any], early: int, lateness: int, mode: str, events_per_batch: int | None
) -> None:
    visits = [event for event in events if isinstance(event, tuple)]
    assert left_behind(way, events, early, lateness, mode, events_per_batch) == expected_behind(way, visits)


CASES = (
    st.sampled_from([*BEHIND]),
    punctual(),
    st.integers(1, 3),
    st.sampled_from([0, 4]),
    st.sampled_from(["streaming", "micro_batch"]),
    st.sampled_from([None, 1, 3]),
)


@pytest.mark.parametrize("cases", [60, pytest.param(150, marks=pytest.mark.soak)])
def test_in_the_end_all_is_of_the_sessions_that_are_left(cases):
    settings(max_examples=cases)(given(*CASES)(in_time_law))()


@pytest.mark.parametrize(
    ("way", "early", "module", "broken", "by"),
    [
        ("CombinePerKey", 2, merging, "find_owed_micros", lambda *arguments: None),
        ("sessions again", 1, splitting, "split_window", lambda program, key, state, *rest: [state]),
    ],
    ids=["a watermark that passes what is owed", "sessions that stay merged"],
)
def test_the_law_finds(way, early, module, broken, by, monkeypatch):
    monkeypatch.setattr(module, broken, by)
    cases = st.just(way), punctual(), *map(st.just, (early, 0, "streaming", 1))
    find = settings(
        max_examples=300, derandomize=True, database=None, phases=[Phase.generate], report_multiple_bugs=False
    )(given(*cases)(in_time_law))
    with pytest.raises(AssertionError):
        find()
