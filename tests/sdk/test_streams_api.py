"""Sources that are read continuously, as they are written down: what `as_stream` gives, and times of elements."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pytest

import penstock as beam
from penstock import graph
from penstock.coders import coders
from penstock.io import (
    ReadFromCsv,
    ReadFromJson,
    ReadFromParquet,
    ReadFromSpark,
    ReadFromText,
    ReadFromTextWithFilename,
)
from penstock.io.formats.text_source import TextSource
from penstock.io.rejects import RejectedRecord
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import REJECTED, StreamSource
from penstock.io.watermarks import (
    BoundedDisorder,
    IdleTimeout,
    IngressTime,
    OrderedPartitions,
    Percentiles,
)
from penstock.typehints import typehints
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp

# Nothing there matches, so that no columns are known; looking for it in all folders of the machine takes a while.
CSV = ReadFromCsv(f"{Path(__file__).parent}/data/*.csv")
JSON = ReadFromJson(f"{Path(__file__).parent}/data/*.jsonl")
KAFKA = ReadFromSpark("kafka", subscribe="clicks")
LINES = ReadFromText("/logs/*.txt", validate=False)
PARQUET = ReadFromParquet("/data/*", validate=False)
FILES = [LINES, CSV, JSON, PARQUET, ReadFromSpark("orc", "/data", schema="at timestamp")]


class Click(NamedTuple):
    at: Any


def first_of(element: Any) -> Any:
    return element[0]


def step_of(transform: Any) -> tuple[Any, graph.Step]:
    """What a transform gives, and the one step that it is."""
    pipeline = beam.Pipeline()
    result = pipeline | transform
    [step] = pipeline.to_graph().steps
    return result, step


# ------------------------------------------------------------------------------------------ what it gives


@pytest.mark.parametrize(
    ("read", "element_type"),
    [
        (LINES, str),
        (CSV, beam.Row),
        (JSON, beam.Row),
        (PARQUET, typehints.Dict[str, typehints.Any]),
        (ReadFromParquet("/data/*", validate=False, as_rows=True), beam.Row),
        (KAFKA, beam.Row),
        (ReadFromSpark("rate", rowsPerSecond=5), beam.Row),
    ],
)
def test_what_spark_can_stream_becomes_an_unbounded_root_of_the_same_elements(
    read: Any, element_type: Any
) -> None:
    stream, step = step_of(read.as_stream(first_of, BoundedDisorder(60)))
    assert isinstance(step.primitive, graph.Read)
    source = step.primitive.source
    assert isinstance(source, StreamSource)
    assert source.source is read.source
    assert (stream.is_bounded, source.is_bounded, step.label) == (False, False, read.label)
    assert stream.element_type == element_type
    assert stream.windowing == (beam.Pipeline() | beam.Create([1])).windowing


def test_labels_and_declared_types_are_kept() -> None:
    declared = ReadFromText("/logs/*", validate=False, coder=coders.PickleCoder()).with_output_types(bytes)
    stream, step = step_of("Clicks" >> declared.as_stream())
    assert (stream.element_type, step.label) == (bytes, "Clicks")
    stream, step = step_of(("Clicks" >> LINES).as_stream())
    assert (stream.element_type, step.label) == (str, "Clicks")
    assert (
        step_of(ReadFromTextWithFilename("/a", validate=False).as_stream())[0].element_type
        == (typehints.KV[str, str])
    )
    hinted = ReadFromText("/logs/*", validate=False).with_resource_hints(min_ram="2GB")
    assert step_of(hinted.as_stream())[1].resource_hints == step_of(hinted)[1].resource_hints != ()


def test_what_is_said_nothing_about_arrives_when_it_is_read() -> None:
    source = LINES.as_stream().source
    assert source.watermark == IngressTime()
    assert source.event_time_of() is source.arrival_time_of() is source.partition_of() is None
    assert (source.tick_micros, source.max_ahead_micros) == (1_000_000, 86_400_000_000)
    assert (source.has_rejects, source.options, source.existing_only) == (False, (), False)


def test_all_that_is_said_is_in_the_description() -> None:
    policy = IdleTimeout(OrderedPartitions(at_least=3))
    source = KAFKA.as_stream(
        "timestamp",
        policy,
        arrival_time="read",
        tick=0.5,
        partition="partition",
        max_ahead=Duration(7),
        rejects=True,
        existing_only=True,
    ).source
    assert (source.event_time, source.watermark, source.arrival_time) == ("timestamp", policy, "read")
    assert (source.tick_micros, source.partition, source.max_ahead_micros) == (
        500_000,
        "partition",
        7_000_000,
    )
    assert (source.has_rejects, source.existing_only) == (True, True)
    assert source.describe() == "stream of spark kafka, IdleTimeout(OrderedPartitions)"
    assert LINES.as_stream(max_ahead=0).source.max_ahead_micros == 0
    assert LINES.as_stream(max_ahead=None).source.max_ahead_micros is None


def test_limits_are_options_of_sparks_reader_of_files() -> None:
    for read in FILES:
        assert read.as_stream(max_files_per_batch=3, max_bytes_per_batch=10**6).source.options == (
            ("maxFilesPerTrigger", 3),
            ("maxBytesPerTrigger", 10**6),
        )


def test_a_description_survives_pickling() -> None:
    source = LINES.as_stream(
        lambda line: float(line), Percentiles(BoundedDisorder(60)), partition=None
    ).source
    copy = cloudpickle.loads(cloudpickle.dumps(source))
    assert (copy.source, copy.watermark) == (source.source, source.watermark)
    assert copy.event_time_of()("1.5") == 1_500_000
    # What names fields needs no help to be pickled.
    source = (
        SourceTransform(TextSource("a", coder=3)).as_stream("at", OrderedPartitions(), partition="of").source
    )
    assert pickle.loads(pickle.dumps(source.event_time_of())) == source.event_time_of()
    assert pickle.loads(pickle.dumps(source.partition_of())) == source.partition_of()


@pytest.mark.parametrize("read", [LINES, PARQUET, CSV])
def test_a_stream_with_rejects_has_two_unbounded_outputs(read: Any) -> None:
    outputs, step = step_of(read.as_stream(first_of, BoundedDisorder(60), rejects=True))
    accepted, rejected = outputs
    assert [output.tag for output in step.outputs] == [None, REJECTED]
    assert (accepted.is_bounded, rejected.is_bounded) == (False, False)
    assert outputs.rejected is outputs[REJECTED] is rejected
    assert accepted.element_type == step_of(read.as_stream())[0].element_type
    assert rejected.element_type is RejectedRecord
    # Both can be used, also by their names out of a composite.
    lengths = accepted | "Length" >> beam.Map(len)
    letters = rejected | "Letter" >> beam.Map(lambda record: record.line)
    assert (lengths.is_bounded, letters.is_bounded) == (False, False)
    with pytest.raises(ValueError, match="neither the main tag"):
        _ = outputs.other


def test_partitions_of_files_are_known_and_those_that_are_told_may_be_counted() -> None:
    assert LINES.as_stream(first_of, OrderedPartitions()).source.partition is None
    assert KAFKA.as_stream("timestamp", OrderedPartitions()).source.partition is None
    told = KAFKA.as_stream("timestamp", OrderedPartitions(at_least=3), partition="partition").source
    assert told.partition_of()({"partition": 7}) == 7
    assert LINES.as_stream(first_of, BoundedDisorder(60, per_partition=True), partition=first_of).source


# ------------------------------------------------------------------------------------------ times of elements


SUMMER = datetime.timezone(datetime.timedelta(hours=2))
HALF_PAST = datetime.datetime(1970, 1, 1, 0, 30)


@pytest.mark.parametrize(
    ("moment", "micros"),
    [
        (Timestamp(1.5), 1_500_000),
        (Timestamp(micros=-1), -1),
        (HALF_PAST, 1_800_000_000),
        (HALF_PAST.replace(tzinfo=datetime.UTC), 1_800_000_000),
        (HALF_PAST.replace(tzinfo=SUMMER), 1_800_000_000 - 7_200_000_000),
        (HALF_PAST.replace(microsecond=7), 1_800_000_007),
        (3, 3_000_000),
        (-1.25, -1_250_000),
        (MIN_TIMESTAMP, MIN_TIMESTAMP.micros),
        (MAX_TIMESTAMP.predecessor(), MAX_TIMESTAMP.micros - 1),
    ],
)
def test_a_time_is_a_timestamp_a_datetime_or_seconds(moment: Any, micros: int) -> None:
    reader = KAFKA.as_stream("at", BoundedDisorder(60), arrival_time=lambda element: element.at).source
    for element in (Click(moment), beam.Row(at=moment)):
        assert reader.event_time_of()(element) == reader.arrival_time_of()(element) == micros
    assert reader.event_time_of()({"at": moment}) == micros


def test_times_of_numpy_and_pandas_count_too() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    read = KAFKA.as_stream("at", BoundedDisorder(60)).source.event_time_of()
    assert read(Click(numpy.int64(5))) == read(Click(numpy.float64(5))) == 5_000_000
    assert read(Click(pandas.Timestamp("1970-01-01 00:00:05"))) == 5_000_000
    assert read(Click(pandas.Timestamp("1970-01-01 02:00:05", tz="Europe/Athens"))) == 5_000_000
    with pytest.raises(ValueError, match="has no event time"):
        read(Click(pandas.NaT))


@pytest.mark.parametrize(
    ("element", "error", "text"),
    [
        (Click(None), ValueError, "an element of type Click has no event time: it is None"),
        (Click(float("nan")), ValueError, "has no event time: it is nan"),
        (beam.Row(other=1), ValueError, "an element of type Row has no field 'at'"),
        ({"other": 1}, ValueError, "an element of type dict has no field 'at'"),
        ("a line", ValueError, "an element of type str has no field 'at'"),
        (None, ValueError, "an element of type NoneType has no field 'at'"),
        (
            Click("2024-01-01T00:00:00Z"),
            TypeError,
            "the event time of an element is a str, which is not a time",
        ),
        (Click(True), TypeError, "is a bool"),
        (Click(float("inf")), TypeError, "is a float"),
        (Click(Duration(5)), TypeError, "is a Duration"),
        (Click(datetime.date(2024, 1, 1)), TypeError, "is a date"),
        (Click(1_700_000_000_000_000_000), ValueError, "beyond the ends of time"),
        (Click(MAX_TIMESTAMP), ValueError, "beyond the ends of time"),
    ],
)
def test_an_element_without_a_time_is_an_error_that_does_not_show_it(
    element: Any, error: type[Exception], text: str
) -> None:
    read = KAFKA.as_stream("at", BoundedDisorder(60)).source.event_time_of()
    with pytest.raises(error, match=text) as caught:
        read(element)
    assert "hint: " in str(caught.value)
    assert "2024" not in str(caught.value)
    assert "line" not in str(caught.value).split("\n")[0]


def test_what_a_function_of_the_user_raises_stays_what_it_is() -> None:
    read = LINES.as_stream(float, BoundedDisorder(60)).source.event_time_of()
    with pytest.raises(ValueError, match="could not convert string to float"):
        read("no number")
