"""Groupings behind groupings that take results back: after each micro-batch, all is of what is left."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import penstock as beam
from penstock.io import WriteToMemory
from penstock.machines import firing, folds
from penstock.relations.joins import JoinRows
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import Count, MeanCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import GlobalWindows, Sessions, TimestampedValue
from penstock.utils.windowed_value import ValueKind
from tests.shards.row_streams import Balance, net_of
from tests.shards.toy_query import ToyQuery

GAP = 10
FOREVER = 10**6

AT_ONCE = beam.WindowInto(
    GlobalWindows(),
    trigger=Repeatedly(AfterCount(1)),
    accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
)


class Script(beam.PTransform):
    """Elements ``(key, number, seconds)`` one by one; a bare number is a watermark, of seconds."""

    def __init__(self, events: Iterable[Any]) -> None:
        super().__init__()
        self._events = list(events)

    def expand(self, pbegin):
        stream = TestStream()
        for event in self._events:
            if isinstance(event, tuple):
                stream = stream.add_elements([TimestampedValue(event, event[2])])
            else:
                stream = stream.advance_watermark_to(event)
        return pbegin | stream.advance_watermark_to_infinity()


def standing(
    events: Iterable[Any], make: Callable[[Any], Any], mode: str, shards: int, events_per_batch: int | None
) -> Iterator[tuple[list[Any], Counter[Any]]]:
    """After every micro-batch: the elements that have come so far, and the results that have not been retracted."""
    pipeline = beam.Pipeline()
    elements = pipeline | Script(events)
    _ = elements | "Seen" >> WriteToMemory([])
    _ = make(elements) | beam.Changelog() | "Changes" >> WriteToMemory([])
    query = ToyQuery(pipeline, mode, shards, events_per_batch)
    seen: list[Any] = []
    changed: list[Any] = []
    for _ in range(query.timeline.batches):
        for label, values in query.batch().items():
            (seen if label.startswith("Seen") else changed).extend(values)
        yield seen, net_of(changed)


# Sessions, how many there are of each length, and the total of that.

EARLY_AND_LATE = AfterWatermark(early=AfterCount(1), late=AfterCount(1))


def to_length(pair, window=beam.DoFn.WindowParam):
    return int(window.end - window.start), pair[0]


def session_counts(elements: Any) -> Any:
    """The numbers of sessions of each length, and of all lengths."""
    sessions = (
        elements
        | beam.Map(lambda visit: (visit[0], visit[1]))
        | beam.WindowInto(
            Sessions(GAP),
            trigger=EARLY_AND_LATE,
            accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING,
            allowed_lateness=FOREVER,
        )
        | "Sessions" >> beam.GroupByKey()
    )
    by_length = sessions | beam.Map(to_length) | "At once" >> AT_ONCE | "Per length" >> Count.PerKey()
    totals = by_length | beam.MapTuple(lambda _, count: ("all", count)) | beam.CombinePerKey(sum)
    return (by_length, totals) | beam.Flatten()


def expected_session_counts(visits: Iterable[Any]) -> Counter[Any]:
    """The results of a batch over the visits."""
    times = defaultdict(list)
    for user, _, seconds in visits:
        times[user].append(seconds)
    lengths: Counter[Any] = Counter()
    for each in times.values():
        start = end = None
        for seconds in sorted(each):
            if end is None or seconds >= end:
                lengths.update([end - start] if end is not None else [])
                start = seconds
            end = seconds + GAP
        lengths[end - start] += 1
    return Counter(lengths.items()) + Counter([("all", lengths.total())] if lengths else [])


@st.composite
def scripts(draw: Any) -> list[Any]:
    """Elements of two keys in any order of their times, and watermarks that leave some of them late."""
    events: list[Any] = []
    watermark = 0
    for _ in range(draw(st.integers(1, 8))):
        events.append((draw(st.sampled_from("ab")), draw(st.integers(1, 3)), draw(st.integers(0, 50))))
        if draw(st.integers(0, 3)) == 0:
            watermark += draw(st.integers(1, 20))
            events.append(watermark)
    return events


CUTS = (
    st.sampled_from(["streaming", "micro_batch"]),
    st.integers(1, 3),
    st.sampled_from([None, 1, 2, 5]),
)


def sessions_law(events: list[Any], mode: str, shards: int, events_per_batch: int | None) -> None:
    for visits, net in standing(events, session_counts, mode, shards, events_per_batch):
        assert net == expected_session_counts(visits)


@settings(max_examples=60)
@given(scripts(), *CUTS)
def test_counts_of_sessions_are_those_of_the_sessions_so_far(events, mode, shards, events_per_batch):
    sessions_law(events, mode, shards, events_per_batch)


# Everything else that may stand behind a grouping that retracts.


def by_parity(pair: tuple[str, int]) -> tuple[int, int]:
    return pair[1] % 2, pair[1]


def per_parity(sums: dict[str, int], combine: Callable[[list[int]], Any]) -> Counter[Any]:
    groups = defaultdict(list)
    for total in sums.values():
        groups[total % 2].append(total)
    return Counter((parity, combine(values)) for parity, values in groups.items())


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def some(counts: Any) -> Any:
    return counts | "Some" >> beam.Filter(lambda pair: pair[1] > 1)


def joined(sums: Any, counts: Any) -> Any:
    return (sums, some(counts)) | JoinRows("full")


def expected_join(sums: dict[str, int], counts: dict[str, int]) -> Counter[Any]:
    return Counter((key, (total, counts[key] if counts[key] > 1 else None)) for key, total in sums.items())


def cogrouped(sums: Any, counts: Any) -> Any:
    # One side of a group may be empty for a while: a new value comes after the old one has been retracted.
    return (
        {"sums": sums, "counts": some(counts)}
        | beam.CoGroupByKey()
        | beam.MapTuple(lambda key, group: (key, (*group["sums"],), (*group["counts"],)))
    )


def expected_groups(sums: dict[str, int], counts: dict[str, int]) -> Counter[Any]:
    return Counter((key, (total,), (counts[key],) if counts[key] > 1 else ()) for key, total in sums.items())


def combined(combine: Any) -> Callable[[Any, Any], Any]:
    return lambda sums, counts: sums | beam.Map(by_parity) | beam.CombinePerKey(combine)


WAYS: dict[
    str, tuple[Callable[[Any, Any], Any], Callable[[dict[str, int], dict[str, int]], Counter[Any]]]
] = {
    "ParDo": (
        lambda sums, counts: sums | beam.FlatMap(range_of),
        lambda sums, counts: Counter(each for pair in sums.items() for each in range_of(pair)),
    ),
    "Flatten": (
        lambda sums, counts: (sums, counts) | beam.Flatten(),
        lambda sums, counts: Counter([*sums.items(), *counts.items()]),
    ),
    "GroupByKey": (
        lambda sums, counts: (
            sums
            | beam.Map(by_parity)
            | beam.GroupByKey()
            | beam.MapTuple(lambda key, all: (key, (*sorted(all),)))
        ),
        lambda sums, counts: per_parity(sums, lambda values: (*sorted(values),)),
    ),
    "a sum": (combined(sum), lambda sums, counts: per_parity(sums, sum)),
    "a largest": (combined(max), lambda sums, counts: per_parity(sums, max)),
    "a mean": (combined(MeanCombineFn()), lambda sums, counts: per_parity(sums, mean)),
    "CoGroupByKey": (cogrouped, expected_groups),
    "JoinRows": (joined, expected_join),
    "a DoFn with state": (
        lambda sums, counts: sums | beam.Map(by_parity) | beam.ParDo(Balance()),
        lambda sums, counts: per_parity(sums, sum),
    ),
}


def range_of(pair: tuple[str, int]) -> list[tuple[str, int]]:
    return [(pair[0], number) for number in range(pair[1])]


def way_law(way: str, events: list[Any], mode: str, shards: int, events_per_batch: int | None) -> None:
    make, expected = WAYS[way]

    def behind(elements: Any) -> Any:
        pairs = elements | beam.Map(lambda element: element[:2]) | AT_ONCE
        return make(pairs | "Sums" >> beam.CombinePerKey(sum), pairs | "Counts" >> Count.PerKey())

    for seen, net in standing(events, behind, mode, shards, events_per_batch):
        sums: Counter[str] = Counter()
        for key, number, _ in seen:
            sums[key] += number
        assert net == expected(sums, Counter(key for key, *_ in seen))


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=20)
@given(scripts(), *CUTS)
def test_whatever_follows_is_made_of_what_stands(way, events, mode, shards, events_per_batch):
    way_law(way, events, mode, shards, events_per_batch)


def groups_law(events: list[Any], mode: str, shards: int, events_per_batch: int | None) -> None:
    way_law("GroupByKey", events, mode, shards, events_per_batch)


def without(kind: ValueKind) -> Callable[[Any], Any]:
    return lambda real: lambda *args: [pane for pane in real(*args) if pane.kind is not kind]


def deaf(real: Any) -> Any:
    return lambda held, value: held


def deaf_folds(real: Any) -> Any:
    return lambda fn: replace(real(fn), inverse=deaf(None))


MUTANTS: dict[str, tuple[Any, str, Callable[[Any], Any], Callable[..., None]]] = {
    "a pane stays when the next one comes": (
        firing,
        "_refined",
        without(ValueKind.UPDATE_BEFORE),
        sessions_law,
    ),
    "sessions stay that have merged": (firing, "_refined", without(ValueKind.DELETE), sessions_law),
    "a counter does not count down": (folds, "fold_of", deaf_folds, sessions_law),
    "a group keeps what is retracted": (folds, "retract_from_bag", deaf, groups_law),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_laws_find_what_is_wrong(name, monkeypatch):
    owner, attribute, make, law = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, make(getattr(owner, attribute)))
    find = settings(max_examples=60, database=None, phases=[Phase.generate], report_multiple_bugs=False)(
        given(scripts(), *CUTS)(law)
    )
    with pytest.raises(AssertionError):
        find()
