"""What is refused of streaming pipelines before anything starts, and whose clock and heartbeat they go by."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.graph import Read, Source
from penstock.io import WriteToMemory
from penstock.io.custom.ranges import NumberedSource
from penstock.io.kafka import ReadFromKafka
from penstock.io.source_transforms import SourceTransform
from penstock.io.watermarks import (
    BoundedDisorder,
    EstimationBand,
    IdleTimeout,
    IngressTime,
    OrderedPartitions,
    Percentiles,
)
from penstock.options.pipeline_options import PipelineOptions
from penstock.options.spark import SparkOptions
from penstock.testing.test_stream import TestStream
from penstock.transforms.deduplicate import DeduplicatePerKey
from penstock.transforms.periodicsequence import PeriodicImpulse
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    CustomTrigger,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_spark.lowering.query import heartbeat_of
from penstock_spark.plan.clock_waits import clock_waits
from penstock_spark.plan.stream_plan import Clock, StreamPlan, show_stream_plan
from penstock_spark.runner import SparkRunner


def plan_of(pipeline: beam.Pipeline, mode: str = "streaming") -> StreamPlan:
    settings = PipelineOptions([f"--mode={mode}"]).view_as(SparkOptions)
    plan = SparkRunner().compiled(pipeline.to_graph(), settings).plan
    assert isinstance(plan, StreamPlan)
    return plan


def lines(**arguments: Any) -> Any:
    return beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(**arguments)


LOG = {"event_time": len, "watermark": BoundedDisorder(1), "arrival_time": len}


@pytest.mark.parametrize(
    ("transforms", "clock", "heartbeats", "heartbeats_at_intervals"),
    [
        ([beam.Create([1])], Clock.RECORDED, "numbers", "numbers"),
        ([TestStream().add_elements([1]), beam.Create([1])], Clock.RECORDED, "numbers", "numbers"),
        ([lines()], Clock.LIVE, "none", "numbers"),
        ([lines(existing_only=True), beam.Create([1])], Clock.LIVE, "none", "numbers"),
        ([lines(existing_only=True), PeriodicImpulse()], Clock.LIVE, "none", "numbers"),
        ([lines(**LOG)], Clock.TICKS, "none", "numbers"),
        ([lines(**LOG, existing_only=True)], Clock.TICKS, "none", "numbers"),
    ],
)
def test_the_sources_say_whose_clock_it_is_and_whether_time_needs_a_heartbeat(
    transforms, clock, heartbeats, heartbeats_at_intervals
):
    pipeline = beam.Pipeline()
    for number, transform in enumerate(transforms):
        _ = pipeline | f"Source{number}" >> transform | f"Write{number}" >> WriteToMemory([])
    plan = plan_of(pipeline)
    assert plan.clock is clock
    assert (heartbeat_of(plan, False), heartbeat_of(plan, True)) == (heartbeats, heartbeats_at_intervals)


@pytest.mark.parametrize(
    ("time", "heartbeats"), [({"existing_only": True}, "numbers"), ({**LOG, "existing_only": True}, "none")]
)
def test_a_timer_by_the_clock_has_the_clock_go_on_after_all_has_been_read(time: Any, heartbeats: str) -> None:
    pipeline = beam.Pipeline()
    pairs = pipeline | lines(**time) | beam.Map(lambda line: (line, 1))
    _ = pairs | beam.GroupIntoBatches(3, max_buffering_duration_secs=1) | WriteToMemory([])
    assert heartbeat_of(plan_of(pipeline), False) == heartbeats


SUM = beam.CombinePerKey(sum)


class Odd(CustomTrigger):
    def should_fire(self, state: Any, context: Any) -> bool:
        return context.count % 2 == 1


@pytest.mark.parametrize(
    ("policy", "trigger", "step", "waits"),
    [
        (BoundedDisorder(1), None, SUM, []),
        (OrderedPartitions(), AfterWatermark(early=AfterCount(1)), SUM, []),
        (BoundedDisorder(1), None, beam.Distinct(), []),
        (IngressTime(), None, beam.Map(str), []),
        (IngressTime(), None, SUM, ["the watermark of 'Read', IngressTime"]),
        (EstimationBand(), None, SUM, ["the watermark of 'Read', EstimationBand"]),
        (IdleTimeout(BoundedDisorder(1)), None, SUM, ["the watermark of 'Read', IdleTimeout"]),
        (Percentiles(BoundedDisorder(1)), None, SUM, ["the watermark of 'Read', Percentiles"]),
        (BoundedDisorder(1), AfterWatermark(early=AfterProcessingTime(5)), SUM, ["the trigger of 'Step'"]),
        (BoundedDisorder(1), Repeatedly(AfterProcessingTime.aligned_to(5)), SUM, ["the trigger of 'Step'"]),
        (BoundedDisorder(1), Repeatedly(Odd()), SUM, ["the trigger of 'Step'"]),
        (BoundedDisorder(1), Repeatedly(AfterProcessingTime(5)), beam.Reshuffle(), []),
        (BoundedDisorder(1), None, DeduplicatePerKey(5), ["the timers of 'Step/First' by the clock"]),
        (BoundedDisorder(1), None, beam.GroupIntoBatches(5), ["the timers of 'Step/Gather' by the clock"]),
    ],
)
def test_the_plan_says_what_waits_for_the_clock(
    policy: Any, trigger: Any, step: Any, waits: list[str]
) -> None:
    pipeline = beam.Pipeline()
    event_time = None if isinstance(policy, IngressTime) else len
    read = "Read" >> lines(event_time=event_time, watermark=policy)
    pairs = pipeline | read | beam.Map(lambda line: (line, 1))
    windows = beam.WindowInto(FixedWindows(10), trigger, AccumulationMode.DISCARDING)
    _ = pairs | windows | "Step" >> step | WriteToMemory([])
    plan = plan_of(pipeline)
    assert [wait.what for wait in clock_waits(plan)] == waits
    assert heartbeat_of(plan, False) == ("seconds" if waits else "none")
    assert last_line_explained(pipeline) == f"waits for the clock: {', '.join(waits) or 'nothing'}"


def last_line_explained(pipeline: beam.Pipeline) -> str:
    settings = PipelineOptions(["--mode=streaming"]).view_as(SparkOptions)
    return SparkRunner().compiled(pipeline.to_graph(), settings).show().split("\n")[-1]


class Acknowledged(NumberedSource[int]):
    def bounds(self) -> Any:
        return {"": (0, None)}

    def read(self, piece: Any) -> Any:
        yield []

    def commit(self, position: Any) -> None:
        pass


class Silent(NumberedSource[int]):
    def bounds(self) -> Any:
        return {"": (0, None)}

    def read(self, piece: Any) -> Any:
        yield []


KAFKA = {"bootstrap.servers": "localhost:1", "group.id": "g"}


@pytest.mark.parametrize(
    ("source", "waits"),
    [
        (beam.io.ReadFromSource(Acknowledged()), True),
        (beam.io.ReadFromSource(Silent()), False),
        (ReadFromKafka(KAFKA, ["t"], commit_offset_in_finalize=True), True),
        (ReadFromKafka(KAFKA, ["t"]), False),
    ],
    ids=["a source of one's own", "one that tells nothing", "offsets of a group", "Kafka"],
)
def test_a_server_is_told_soon_what_a_stream_has_read(source: Any, waits: bool) -> None:
    pipeline = beam.Pipeline()
    _ = pipeline | "Read" >> source.as_stream() | WriteToMemory([])
    plan = plan_of(pipeline)
    told = ["the server of 'Read', for what the last micro-batch has read"] if waits else []
    assert [wait.what for wait in clock_waits(plan)] == told
    assert heartbeat_of(plan, False) == ("seconds" if waits else "none")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TestStream().add_elements([1]), lines()),
        (TestStream().add_elements([1]), lines(**LOG)),
        (lines(**LOG), lines()),
        (lines(**LOG), PeriodicImpulse()),
    ],
)
def test_two_clocks_are_refused(one, other):
    pipeline = beam.Pipeline()
    _ = pipeline | "One" >> one | "First" >> WriteToMemory([])
    _ = pipeline | "Other" >> other | "Second" >> WriteToMemory([])
    with pytest.raises(UnsupportedByRunner, match=r"(?s)the same clock as 'One'.*Other.*hint"):
        plan_of(pipeline)


EVERY_ELEMENT = beam.WindowInto(
    GlobalWindows(), trigger=Repeatedly(AfterCount(1)), accumulation_mode=AccumulationMode.DISCARDING
)
AT_THE_END = beam.WindowInto(
    GlobalWindows(), trigger=AfterWatermark(), accumulation_mode=AccumulationMode.DISCARDING
)


@pytest.mark.parametrize(
    ("source", "windows", "mode", "waits"),
    [
        (lines(), None, "streaming", "for ever"),
        (lines(), None, "micro_batch", ""),
        (lines(), AT_THE_END, "streaming", "for ever"),
        (lines(), EVERY_ELEMENT, "streaming", ""),
        (lines(), beam.WindowInto(FixedWindows(60)), "streaming", ""),
        (lines(existing_only=True), None, "streaming", "for the end"),
        (PeriodicImpulse(), None, "streaming", "for ever"),
        (PeriodicImpulse(stop_timestamp=10**10), None, "streaming", "for the end"),
        (PeriodicImpulse(), EVERY_ELEMENT, "streaming", ""),
        (beam.Create([1]), None, "streaming", ""),
    ],
)
def test_elements_that_would_wait_for_a_side_input_for_ever_are_refused(
    source: Any, windows: Any, mode: str, waits: str, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline = beam.Pipeline()
    side = pipeline | "Side" >> source
    side = side if windows is None else side | "Windows" >> windows
    main = pipeline | "Main" >> lines()
    _ = main | "See" >> beam.Map(lambda line, others: line, beam.pvalue.AsList(side)) | WriteToMemory([])
    if waits == "for ever":
        with pytest.raises(UnsupportedByRunner, match=r"(?s)no content before 'Side.*' ends.*See.*hint"):
            plan_of(pipeline, mode)
        # The option that lets a grouping wait lets a step wait.
        settings = PipelineOptions([f"--mode={mode}", "--allow_unsafe_triggers"]).view_as(SparkOptions)
        SparkRunner().compiled(pipeline.to_graph(), settings)
    else:
        plan_of(pipeline, mode)
    assert ["has no content before" in text for text in caplog.messages] == [True] * bool(waits)


def test_a_side_input_that_does_not_end_is_a_grouping_and_a_bounded_one_is_computed_before():
    pipeline = beam.Pipeline()
    main, side = pipeline | "Main" >> lines(), pipeline | "Side" >> lines(existing_only=True)
    _ = main | "See" >> beam.Map(lambda line, others: line, beam.pvalue.AsList(side)) | WriteToMemory([])
    plan = plan_of(pipeline)
    assert plan.views is None
    assert [[root.label for root in level.roots] for level in plan.levels] == [["Side/view"], ["See"]]
    pipeline = beam.Pipeline()
    main, side = pipeline | "Main" >> lines(), pipeline | "Side" >> beam.Create([1])
    _ = main | beam.Map(lambda line, others: line, beam.pvalue.AsList(side)) | WriteToMemory([])
    plan = plan_of(pipeline)
    assert plan.views is not None
    assert [part.roots[0].label for part in plan.readings] == ["Main"]
    assert not plan.levels


def test_a_bounded_collection_that_an_unbounded_one_goes_into_does_not_end():
    pipeline = beam.Pipeline()
    main, side = pipeline | "Main" >> lines(), pipeline | "Side" >> lines(existing_only=True)
    few = pipeline | beam.Create([1])
    seen = few | "See" >> beam.Map(lambda one, others: one, beam.pvalue.AsList(side))
    _ = main | "Use" >> beam.Map(lambda line, others: line, beam.pvalue.AsList(seen)) | WriteToMemory([])
    plan = plan_of(pipeline)
    assert [[root.label for root in level.roots] for level in plan.levels] == [
        *(["Side/view"], ["See"], ["See/view"], ["Use"])
    ]


@pytest.mark.parametrize(
    ("write", "refusal"),
    [
        (WriteToMemory([]), "what a stream has written.*end the pipeline"),
        (
            beam.io.WriteToText("/out/x"),
            "unbounded PCollection, triggering_frequency must be set.*WindowInto before",
        ),
        (
            beam.io.WriteToText("hdfs://h/x", triggering_frequency=5),
            "cannot be written to hdfs.*without a scheme",
        ),
        (
            beam.io.WriteToText("/out/x", triggering_frequency=5, max_records_per_shard=5),
            "max_records_per_shard is not supported.*num_shards",
        ),
        (
            beam.io.WriteToText("/x", shard_name_template="-W-S-U", triggering_frequency=5),
            "letter U.*leave it out",
        ),
    ],
)
def test_what_a_stream_has_written_can_be_read_if_it_is_names_of_files_of_windows(write: Any, refusal: str):
    pipeline = beam.Pipeline()
    _ = pipeline | lines() | write | "After" >> beam.Map(print)
    with pytest.raises(UnsupportedByRunner, match=f"(?s){refusal}"):
        plan_of(pipeline)


def test_a_sink_takes_no_retractions_unless_they_are_data():
    def build(*between: Any) -> beam.Pipeline:
        pipeline = beam.Pipeline()
        windows = beam.WindowInto(
            FixedWindows(10),
            AfterWatermark(early=AfterCount(1)),
            AccumulationMode.ACCUMULATING_AND_RETRACTING,
        )
        panes = pipeline | lines() | beam.Map(lambda line: (line, 1)) | windows | beam.CombinePerKey(sum)
        for transform in between:
            panes |= transform
        _ = panes | WriteToMemory([])
        return pipeline

    with pytest.raises(UnsupportedByRunner, match="a sink cannot write retractions"):
        plan_of(build())
    assert plan_of(build(beam.Changelog())).sinks


def test_a_source_that_nobody_can_stream_is_refused():
    class Odd(Source):
        is_bounded = False

    pipeline = beam.Pipeline()
    _ = pipeline | SourceTransform(Odd()) | WriteToMemory([])
    assert isinstance(SourceTransform(Odd()).to_primitive(), Read)
    with pytest.raises(UnsupportedByRunner, match="the runner cannot read Odd as a stream"):
        plan_of(pipeline)


def test_a_stream_is_not_for_batch_mode():
    pipeline = beam.Pipeline()
    _ = pipeline | lines() | WriteToMemory([])
    refusal = r"(?s)batch mode cannot read an unbounded source.*leave out mode='batch'"
    with pytest.raises(UnsupportedByRunner, match=refusal):
        plan_of(pipeline, "batch")


@pytest.mark.parametrize("interval", [0, -1, float("nan"), "soon"])
def test_an_interval_must_be_a_length_of_time(interval):
    pipeline = beam.Pipeline(trigger_interval=interval)
    _ = pipeline | beam.Create([1]) | WriteToMemory([])
    with pytest.raises(ValueError, match="trigger_interval"):
        pipeline.run()


def test_explain_says_why_a_stream_of_columns_is_python_s():
    pipeline = beam.Pipeline()
    columns = beam.io.ReadFromParquet("/in/*.parquet", validate=False, as_rows=True).as_stream()
    _ = pipeline | columns | "Few" >> beam.Filter(beam.field("n") > 0) | "Write columns" >> WriteToMemory([])
    _ = pipeline | lines() | "Write lines" >> WriteToMemory([])
    text = show_stream_plan(plan_of(pipeline))
    assert "ReadFromParquet = Read(stream of parquet /in/*.parquet, IngressTime)  # columns end here" in text
    assert text.count("columns end here") == 1
