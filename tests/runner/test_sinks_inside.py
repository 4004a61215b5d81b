"""Which sinks of a stream the part before them encodes for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io import WriteToMemory, WriteToSpark, WriteToText
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock_spark.lowering.stream_sink import stream_sinks
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.runner import SparkRunner


class Line(NamedTuple):
    """A line as a record."""

    text: str


def lines(pipeline: Any, name: str = "") -> Any:
    read = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream()
    return pipeline | f"Read{name}" >> read


def counted(lines: Any) -> Any:
    windows = beam.WindowInto(beam.window.FixedWindows(60))
    return lines | beam.Map(lambda line: (line, 1)) | windows | beam.CombinePerKey(sum) | beam.Keys()


def of_both(pipeline: Any) -> Any:
    read = lines(pipeline)
    windowed = read | "Windows" >> beam.WindowInto(beam.window.FixedWindows(60))
    return (windowed, counted(read)) | beam.Flatten()


def of_two_sources(pipeline: Any) -> Any:
    return (lines(pipeline), lines(pipeline, "Other")) | beam.Flatten()


def records(pipeline: Any) -> Any:
    return lines(pipeline) | beam.Map(Line).with_output_types(Line)


def inside(build: Callable[[Any], Any], *sinks: Any, without: tuple[str, ...] = ()) -> set[int]:
    pipeline = beam.Pipeline()
    elements = build(pipeline)
    for number, sink in enumerate(sinks):
        _ = elements | f"Write{number}" >> sink
    settings = PipelineOptions(["--mode=streaming"], without=[*without]).view_as(SparkOptions)
    plan = SparkRunner().compiled(pipeline.to_graph(), settings).plan
    assert isinstance(plan, StreamPlan)
    return {sink.level for sink in stream_sinks(plan, settings.switched_off()) if sink.is_inside}


@pytest.mark.parametrize("build", [lines, lambda pipeline: counted(lines(pipeline))], ids=["read", "grouped"])
@pytest.mark.parametrize("sink", [WriteToText("/out/o"), WriteToMemory([])], ids=["text", "memory"])
def test_the_only_sink_of_a_query_is_encoded_by_the_part_before_it(build: Any, sink: Any) -> None:
    assert inside(build, sink) == {-1}
    assert inside(build, sink, without=("inline_sinks",)) == set()


@pytest.mark.parametrize(
    ("build", "sinks"),
    [
        (lines, [WriteToMemory([]), WriteToMemory([])]),
        (lines, [WriteToText("/out/o", num_shards=1)]),
        (records, [WriteToSpark("parquet", path="/out")]),
        (of_both, [WriteToMemory([])]),
        (of_two_sources, [WriteToMemory([])]),
    ],
    ids=["several sinks", "asked-for shards", "rows of columns", "two levels", "two sources"],
)
def test_other_sinks_are_encoded_in_a_step_of_their_own(build: Any, sinks: list[Any]) -> None:
    assert inside(build, *sinks) == set()
