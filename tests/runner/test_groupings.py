"""Groupings and combines over the real exchange rows equal plain Python, whatever Spark and the limits decide."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    TimestampedValue,
    WindowFn,
)
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp
from penstock_spark.folding import group_read, group_write, tables
from penstock_spark.stages import stage
from penstock_spark.worker import flush_limit, inline, outputs
from tests.runner.plain_runner import Settings, collect_timed, run_plain

TINY = {
    flush_limit: {"FLUSH_BYTES": 200, "FIRST_ELEMENTS": 4},
    group_write: {"MOST_NAMES": 3},
    tables: {"_WAITING_VALUES": 3},
    group_read: {"BUFFER_BYTES": 1, "_MOST_GROUPS": 2, "_MERGED_AT_ONCE": 2},
    stage: {"BUNDLE_ELEMENTS": 5},
    **{module: {"CHUNK_ELEMENTS": 3} for module in (inline, outputs)},
}
Keys = None | bool | int | float | str | bytes | tuple[str, int | float]
KEYS = (1, 1.0, True, "1", "a", b"a", None, ("a", 1), ("a", 1.0), -5, 2**70)


@pytest.fixture(params=["usual limits", "tiny limits"])
def _limits(request, monkeypatch):
    for module, names in TINY.items() if request.param == "tiny limits" else ():
        for name, value in names.items():
            monkeypatch.setattr(module, name, value)


class Days(WindowFn):
    """Fixed windows that merge where they touch: runs of days on which something happened."""

    def assign(self, context):
        start = context.timestamp.micros // 10_000_000 * 10
        return [IntervalWindow(start, start + 10)]

    def merge(self, context):
        run = []
        for window in sorted(context.windows):
            if run and window.start != run[-1].end:
                context.merge(run, IntervalWindow(run[0].start, run[-1].end))
                run = []
            run.append(window)
        if len(run) > 1:
            context.merge(run, IntervalWindow(run[0].start, run[-1].end))


class Delayed(FixedWindows):
    """Fixed windows whose elements count from half a second later on."""

    def get_transformed_output_time(self, window, input_timestamp):
        return min(input_timestamp + Duration(0.5), window.max_timestamp())


WINDOWS = {
    "global": GlobalWindows(),
    "fixed": FixedWindows(10, offset=3),
    "delayed": Delayed(10),
    "sliding": SlidingWindows(10, 4),
    "gaps": SlidingWindows(2, 5),
    "sessions": Sessions(5),
    "touching": Sessions(5, merge_touching=True),
    "days": Days(),
}
COMBINERS = {
    "end": TimestampCombiner.OUTPUT_AT_EOW,
    "earliest": TimestampCombiner.OUTPUT_AT_EARLIEST,
    "latest": TimestampCombiner.OUTPUT_AT_LATEST,
    "transformed": TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED,
}
Element = tuple[Any, Any, int]
"""Key, value and microseconds."""


def random_elements(seed: int, count: int = 90) -> list[Element]:
    at = random.Random(seed)
    times = [
        MIN_TIMESTAMP.micros,
        *(at.randrange(-60, 60) * 1_000_000 for _ in range(25)),
        499_999,
        10_000_000,
    ]
    return [
        (at.choice(KEYS), at.randrange(-9, 9) * at.choice([1, 2**70]), at.choice(times)) for _ in range(count)
    ]


def exact(key: Any) -> Any:
    """A key that is equal to another exactly if a grouping takes the two for one."""
    return tuple(map(exact, key)) if isinstance(key, tuple) else (type(key).__name__, repr(key))


class _Merged(WindowFn.MergeContext):
    def __init__(self, windows):
        super().__init__(windows)
        self.into = {window: window for window in windows}

    def merge(self, to_be_merged, merge_result):
        old = set(to_be_merged)
        self.into = {source: merge_result if into in old else into for source, into in self.into.items()}


def brute_sessions(windows: set[IntervalWindow], touching: bool) -> dict[IntervalWindow, IntervalWindow]:
    """Unites any two windows that share a moment until no two do."""
    into = {window: window for window in windows}
    while True:
        found = sorted(set(into.values()))
        pairs = [
            (v, w)
            for v in found
            for w in found
            if v != w and (v.intersects(w) or (touching and v.end == w.start))
        ]
        if not pairs:
            return into
        v, w = pairs[0]
        into = {source: v.union(w) if old in (v, w) else old for source, old in into.items()}


def output_micros(combiner: Any, windowfn: WindowFn, final: Any, rows: list[tuple[Any, int, Any]]) -> int:
    """The event time of a group's output, by the meaning of the four constants."""
    match combiner:
        case TimestampCombiner.OUTPUT_AT_EOW:
            return final.max_timestamp().micros
        case TimestampCombiner.OUTPUT_AT_LATEST:
            return max(micros for _, micros, _ in rows)
        case TimestampCombiner.OUTPUT_AT_EARLIEST:
            return min(micros for _, micros, _ in rows)
    at = [(window, Timestamp.from_micros(micros)) for _, micros, window in rows]
    return min(windowfn.get_transformed_output_time(*each).micros for each in at)


def grouped(
    elements: list[Element], windowfn: WindowFn, combiner: Any
) -> list[tuple[Any, list[Any], int, Any]]:
    """The meaning of a grouping: exact key, sorted values, microseconds and window."""
    timed: dict[Any, list[tuple[Any, int, Any]]] = {}
    for key, value, micros in elements:
        for window in windowfn.assign(WindowFn.AssignContext(Timestamp.from_micros(micros), (key, value))):
            timed.setdefault(exact(key), []).append((value, micros, window))
    result = []
    for key, rows in timed.items():
        windows = {window for _, _, window in rows}
        into = {window: window for window in windows}
        if isinstance(windowfn, Sessions):
            into = brute_sessions(windows, windowfn.merge_touching)
        elif windowfn.is_merging():
            context = _Merged(windows)
            windowfn.merge(context)
            into = context.into
        for final in set(into.values()):
            mine = [(value, micros, window) for value, micros, window in rows if into[window] == final]
            at_micros = output_micros(combiner, windowfn, final, mine)
            result.append((key, sorted(value for value, _, _ in mine), at_micros, final))
    return sorted(result, key=repr)


def windowed(pipeline: beam.Pipeline, elements: list[Element], windowfn: WindowFn, combiner: Any) -> Any:
    values = [
        TimestampedValue((key, value), Timestamp.from_micros(micros)) for key, value, micros in elements
    ]
    # A step of user code between makes batches of the sizes that the limits give.
    return (
        pipeline
        | beam.Create(values)
        | "Same" >> beam.FlatMap(lambda pair: [pair])
        | beam.WindowInto(windowfn, timestamp_combiner=combiner)
    )


def run_grouping(elements: list[Element], windowfn: WindowFn, combiner: Any, settings: Settings) -> list[Any]:
    pipeline = beam.Pipeline()
    into = collect_timed(windowed(pipeline, elements, windowfn, combiner) | beam.GroupByKey())
    run_plain(pipeline, settings)
    return sorted(((exact(key), sorted(values), at, w) for (key, values), at, w in into), key=repr)


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("windows", WINDOWS)
def test_a_group_by_key_equals_plain_python(windows, combiner):
    windowfn = WINDOWS[windows]
    elements = random_elements(seed=len(windows) + len(combiner))
    expected = grouped(elements, windowfn, COMBINERS[combiner])
    found = run_grouping(elements, windowfn, COMBINERS[combiner], Settings(partitions=2, rows=3))
    assert found == expected
    assert len({exact(key) for key, *_ in elements}) == len(KEYS)


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("windows", WINDOWS)
def test_a_grouping_does_not_depend_on_partitions_rows_or_order(windows):
    windowfn, combiner = WINDOWS[windows], TimestampCombiner.OUTPUT_AT_EARLIEST
    elements = random_elements(seed=7, count=40)
    expected = grouped(elements, windowfn, combiner)
    for seed, settings in enumerate((Settings(1), Settings(5, 1, b"salt"), Settings(3, 7))):
        shuffled = random.Random(seed).sample(elements, len(elements))
        assert run_grouping(shuffled, windowfn, combiner, settings) == expected


class Lists(beam.CombineFn):
    """Keeps all values in the order of their size, changes its accumulators, and counts on its life cycle."""

    def setup(self):
        self.is_ready = True

    def teardown(self):
        self.is_ready = False

    def create_accumulator(self):
        assert self.is_ready
        return []

    def add_input(self, accumulator, value):
        assert self.is_ready
        accumulator.append(value)
        return accumulator

    def merge_accumulators(self, accumulators):
        first, *others = accumulators
        for other in others:
            first.extend(other)
        return first

    def compact(self, accumulator):
        accumulator.sort()
        return accumulator

    def extract_output(self, accumulator):
        assert self.is_ready
        return sorted(accumulator)


COMBINE_FNS: dict[str, tuple[Any, Callable[[list[int]], Any]]] = {
    "lists": (Lists(), sorted),
    "sum": (sum, sum),
    "max": (max, max),
    "mean": (beam.combiners.MeanCombineFn(), lambda values: sum(values) / len(values)),
    "count": (beam.combiners.CountCombineFn(), len),
}


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("without", [[], ["all"]])
@pytest.mark.parametrize("shuffled_first", [False, True])
@pytest.mark.parametrize("windows", ["global", "sliding", "sessions", "days"])
@pytest.mark.parametrize("name", COMBINE_FNS)
def test_a_combine_per_key_equals_the_function_of_the_grouped_values(name, windows, shuffled_first, without):
    windowfn, elements = WINDOWS[windows], random_elements(seed=3)
    fn, function = COMBINE_FNS[name]
    pipeline = beam.Pipeline(options=PipelineOptions([], without=without))
    pairs = windowed(pipeline, elements, windowfn, TimestampCombiner.OUTPUT_AT_EOW)
    if shuffled_first:
        # Sums of declared integers, of input that is not a few values, are added up by Spark.
        typed = beam.Map(lambda pair: pair).with_output_types(tuple[Keys, int])
        pairs = pairs | beam.Reshuffle() | typed
    into = collect_timed(pairs | beam.CombinePerKey(fn))
    run_plain(pipeline, Settings(partitions=3, rows=4))
    is_native = shuffled_first and name in ("sum", "count") and not windowfn.is_merging() and not without
    assert ("aggregate by key" in pipeline.explain()) == is_native
    found = sorted(((exact(key), value, at, window) for (key, value), at, window in into), key=repr)
    expected = grouped(elements, windowfn, TimestampCombiner.OUTPUT_AT_EOW)
    assert found == sorted(
        ((key, function(values), at, window) for key, values, at, window in expected), key=repr
    )


@pytest.mark.parametrize("windowfn", [FixedWindows(3600), SlidingWindows(3600, 1800), Sessions(60), Days()])
def test_the_first_and_the_last_moment_of_all_time_can_be_grouped(windowfn):
    elements = [(key, 1, moment.micros) for moment in (MIN_TIMESTAMP, MAX_TIMESTAMP) for key in ("a", "b")]
    if isinstance(windowfn, Days):
        elements = elements[:2]
    combiner = TimestampCombiner.OUTPUT_AT_EOW
    assert run_grouping(elements, windowfn, combiner, Settings()) == grouped(elements, windowfn, combiner)
