"""Every primitive has a place in every interpreter, and large pipelines are planned quickly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from pyspark import TaskContext

import penstock as beam
from penstock import graph
from penstock.io.sink_transforms import SinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.pvalue import AsIter
from penstock.transforms.userstate import CombiningValueStateSpec
from penstock.transforms.window import FixedWindows, IntervalWindow
from penstock_spark.formats.format import Format
from penstock_spark.formats.registry import FORMATS
from penstock_spark.sources.scan import Scan
from tests.runner.plain_runner import Settings, collect, collect_timed, run_plain

SECONDS_MAX = 2.0
"""Generous: each takes less than half a second on a small machine."""


@dataclass(frozen=True)
class Squares(graph.Source):
    """A source with a frame: it reads the squares of the frame's rows."""

    count: int


def open_squares(source: Squares, spark: Any, where: str) -> Scan:
    frame = spark.range(0, source.count, 1, source.count)
    return Scan(frame, lambda: lambda batch: [row**2 for row in batch.column(0).to_pylist()])


FORMATS[Squares] = Format(open_squares)


def reads_a_source(p):
    return collect(p | SourceTransform(Squares(3))), [0, 1, 4]


def runs_a_dofn(p):
    return collect(p | beam.Create([1, 2]) | beam.ParDo(lambda x: [x, x])), [1, 1, 2, 2]


class Counts(beam.DoFn):
    """Numbers the values of each key."""

    COUNT = CombiningValueStateSpec("count", sum)

    def process(self, element, count=beam.DoFn.StateParam(COUNT)):
        count.add(1)
        yield element[0], count.read()


def keeps_state(p):
    pairs = p | beam.Create([("a", 1), ("a", 2), ("b", 3)])
    return collect(pairs | beam.ParDo(Counts())), [("a", 1), ("a", 2), ("b", 1)]


def groups(p):
    return collect(
        p | beam.Create([(1, 2), (1, 3)]) | beam.GroupByKey() | beam.MapTuple(lambda k, v: sorted(v))
    ), [[2, 3]]


def combines(p):
    return collect(p | beam.Create([(1, 2), (1, 3), (2, 0)]) | beam.CombinePerKey(max)), [(1, 3), (2, 0)]


def assigns_windows(p):
    timed = (
        p
        | beam.Create([1])
        | beam.Map(lambda x: beam.window.TimestampedValue(x, 61))
        | beam.WindowInto(FixedWindows(60))
    )
    return collect_timed(timed), [(1, 61_000_000, IntervalWindow(60, 120))]


def flattens(p):
    numbers = p | beam.Create([1, 2])
    return collect((numbers, numbers, p | "More" >> beam.Create([3])) | beam.Flatten()), [1, 1, 2, 2, 3]


def spreads(p):
    return collect(p | beam.Create(range(5)) | beam.Reshuffle()), [0, 1, 2, 3, 4]


def writes(p):
    written = p | beam.Create([1, 2]) | SinkTransform(graph.DriverList([]))
    return collect(written | beam.combiners.Count.Globally()), [0]


HANDLED = {
    graph.Read: reads_a_source,
    graph.ParDo: runs_a_dofn,
    graph.StatefulParDo: keeps_state,
    graph.GroupByKey: groups,
    graph.CombinePerKey: combines,
    graph.AssignWindows: assigns_windows,
    graph.Flatten: flattens,
    graph.Reshuffle: spreads,
    graph.Write: writes,
}


@pytest.mark.parametrize("primitive", get_args(graph.Primitive))
def test_every_primitive_is_described_and_planned_and_lowered_and_runs(primitive):
    pipeline = beam.Pipeline()
    found, expected = HANDLED[primitive](pipeline)
    steps = [step for step in pipeline.to_graph().steps if isinstance(step.primitive, primitive)]
    assert all(graph.describe(step.primitive).startswith(primitive.__name__) for step in steps)
    # The description of each step stands in the graph, in the optimised graph and in the plan.
    text = pipeline.explain()
    assert (
        [text.count(f"{graph.describe(step.primitive)}") >= 3 for step in steps] == [True] * len(steps) != []
    )
    run_plain(pipeline, Settings(partitions=2))
    assert sorted(found) == expected


def a_thousand_steps_in_a_row(p):
    x = p | beam.Create([1])
    for number in range(1000):
        x = x | f"Map{number}" >> beam.Map(lambda value: value)


def a_thousand_readers_of_one_collection(p):
    x = p | beam.Create([1])
    for number in range(1000):
        x | f"Map{number}" >> beam.Map(lambda value: value)


def three_hundred_groups_in_a_row(p):
    x = p | beam.Create([(1, 1)])
    for number in range(300):
        x = (
            x
            | f"Group{number}" >> beam.GroupByKey()
            | f"Map{number}" >> beam.Map(lambda pair: (pair[0], len(pair[1])))
        )


def a_flatten_of_three_hundred_shuffles(p):
    parts = [p | f"Read{n}" >> beam.Create([1]) | f"Spread{n}" >> beam.Reshuffle() for n in range(300)]
    parts | beam.Flatten() | "Map" >> beam.Map(lambda value: value)


def three_hundred_side_inputs_in_a_row(p):
    x = p | beam.Create([1])
    for number in range(300):
        x = x | f"Map{number}" >> beam.Map(lambda value, side: value, AsIter(x))


@pytest.mark.parametrize(
    "build",
    [
        a_thousand_steps_in_a_row,
        a_thousand_readers_of_one_collection,
        three_hundred_groups_in_a_row,
        a_flatten_of_three_hundred_shuffles,
        three_hundred_side_inputs_in_a_row,
    ],
)
def test_a_large_pipeline_is_built_and_explained_quickly(build):
    began = time.process_time()
    pipeline = beam.Pipeline()
    build(pipeline)
    text = pipeline.explain()
    seconds = time.process_time() - began
    print(f"{build.__name__}: {seconds:.3f} s")
    assert seconds < SECONDS_MAX
    assert text.count("\n") > 300


def where_it_is(element: Any) -> tuple[int, Any]:
    """An element, and the task that has it."""
    task = TaskContext.get()
    assert task is not None
    return task.partitionId(), element


def spread_twice(p):
    numbers = p | beam.Create(range(100)) | beam.Map(lambda number: number)
    odd = numbers | beam.Reshuffle(num_buckets=3) | beam.Filter(lambda number: number % 2)
    return odd | "Spread again" >> beam.Reshuffle(num_buckets=3)


def grouped_and_spread(p):
    """Two stages with several readers each write into one exchange."""
    parts = [p | f"Read{part}" >> beam.Create(range(part, 100, 2)) for part in range(2)]
    spread = [part | f"Spread{number}" >> beam.Reshuffle() for number, part in enumerate(parts)]
    counts = [
        part | f"Count{number}" >> beam.combiners.Count.Globally() for number, part in enumerate(spread)
    ]
    _ = counts | "Counts" >> beam.Flatten()
    pairs = spread | beam.Flatten() | beam.Map(lambda number: (number % 2 == 5, number))
    return pairs | beam.GroupByKey() | beam.FlatMapTuple(lambda key, numbers: numbers) | beam.Reshuffle()


def added_up_and_spread(p):
    """Spark adds up, and returns the sums in the order in which their numbers arrive."""
    pairs = p | beam.Create([(number // 2, number) for number in range(100)])
    sums = pairs | beam.Reshuffle() | beam.CombinePerKey(sum)
    return sums | beam.Values() | "Spread again" >> beam.Reshuffle()


@pytest.mark.parametrize("program", [spread_twice, grouped_and_spread, added_up_and_spread])
def test_the_task_that_gets_an_element_does_not_depend_on_whose_rows_arrive_first(program):
    # Spark may have lost some results, and compute these alone again: what moved meanwhile would be lost or doubled.
    def places(quickest: int) -> list[tuple[int, Any]]:
        pipeline = beam.Pipeline()
        found = collect(program(pipeline) | "Where" >> beam.Map(where_it_is))
        run_plain(pipeline, Settings(partitions=3, inline_values=10, quickest=quickest))
        return sorted(found)

    assert len({place for place, _ in places(0)}) == 3
    assert places(0) == places(1) == places(2)


def test_the_task_that_gets_an_element_does_not_depend_on_how_long_the_steps_take():
    def places(seconds: float) -> list[tuple[int, Any]]:
        def late(number: int) -> int:
            time.sleep(seconds)
            return number

        pipeline = beam.Pipeline()
        numbers = pipeline | beam.Create(range(200)) | beam.Map(late)
        both = (numbers | beam.Filter(lambda number: number % 5), numbers | beam.Map(lambda number: -number))
        found = collect(both | beam.Flatten() | beam.Reshuffle() | "Where" >> beam.Map(where_it_is))
        run_plain(pipeline, Settings(partitions=3, inline_values=200))
        return sorted(found)

    assert places(0) == places(0.002)
