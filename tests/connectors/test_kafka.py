"""Kafka's topics, read and written on Spark, against librdkafka's mock cluster and a broker of its own process."""

from __future__ import annotations

import io
import logging
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from queue import Empty
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.custom.ranges import SourceRange, UnreadableElement
from penstock.io.kafka import AvroDeserializer, KafkaRecord, ReadFromKafka, WriteToKafka
from penstock.io.rejects import Position
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock_connectors.kafka import sink as kafka_sink
from penstock_connectors.kafka.producers import Clients, Producer, ProducerFailure
from penstock_connectors.kafka.sink import (
    Parts,
    Records,
    _in_transaction,
    _write_part,
    _Writing,
    plan_topic,
    write_all,
    write_parts,
)
from penstock_connectors.kafka.source import Topics
from penstock_spark.formats.ranges.positions import Positions
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.process.threads import start_in_thread
from penstock_spark.sinks import task_writes
from penstock_spark.sinks.plan import CommitStopped, MicroBatch
from penstock_spark.worker.batch import dumps
from tests.connectors import copying
from tests.connectors.brokers import Mock, Tansu
from tests.connectors.copying import RECORDS_PER_BATCH
from tests.connectors.killed import micro_batches, started, wait_until
from tests.connectors.numbered_files import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COPYING = Path(__file__).parent / "copying.py"

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def topic(mock: Mock, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return mock.make(name)


def options(mode: str, *flags: str) -> PipelineOptions:
    return PipelineOptions([f"--mode={mode}", "--shuffle_partitions=2", *flags])


def read_all(transform: Any, mode: str = "batch", *flags: str) -> list[Any]:
    into: list[Any] = []
    with beam.Pipeline(options=options(mode, *flags)) as pipeline:
        _ = pipeline | transform | WriteToMemory(into)
    return into


def numbers(count: int) -> list[tuple[int, bytes, bytes]]:
    return [(number % 4, b"k%d" % number, b"%d" % number) for number in range(count)]


@pytest.mark.parametrize("mode", ["batch", "micro_batch", "streaming"])
def test_every_record_is_read_once(mock: Mock, topic: str, mode: str) -> None:
    mock.produce(topic, numbers(10_000))
    read = ReadFromKafka(mock.config, [topic])
    found = read_all(
        read if mode == "batch" else read.as_stream(max_records_per_batch=3_000, existing_only=True), mode
    )
    assert sorted(found) == sorted((key, value) for _, key, value in numbers(10_000))


def test_an_empty_topic(mock: Mock, topic: str) -> None:
    assert read_all(ReadFromKafka(mock.config, [topic])) == []
    assert read_all(ReadFromKafka(mock.config, [topic]).as_stream(existing_only=True), "streaming") == []


def test_metadata_and_deserializers(mock: Mock, topic: str) -> None:
    mock.produce(
        topic, [(2, b"a", b'{"n": 1}'), (2, None, None)], timestamp=1_500, headers=[("h", b"1"), ("n", None)]
    )
    string = "org.apache.kafka.common.serialization.StringDeserializer"
    read = ReadFromKafka(mock.config, [topic], string, "json", with_metadata=True)
    headers = (("h", b"1"), ("n", None))
    assert read_all(read) == [
        KafkaRecord(topic, 2, 0, 1_500, "CreateTime", headers, "a", {"n": 1}),
        KafkaRecord(topic, 2, 1, 1_500, "CreateTime", headers, None, None),
    ]


def test_where_to_begin_and_to_end(mock: Mock, topic: str) -> None:
    mock.produce(topic, [(0, None, b"%d" % number) for number in range(10)])
    mock.produce(topic, [(1, None, b"one")])

    def read(**arguments: Any) -> list[bytes]:
        return sorted(value for _, value in read_all(ReadFromKafka(mock.config, [topic], **arguments)))

    assert read(start_offsets={topic: {0: 7}}, end_offsets={topic: {0: 9}}) == [b"7", b"8", b"one"]
    assert read(start_offsets="latest") == []
    assert len(read(max_num_records=4)) == 4
    only = ReadFromKafka(mock.config, partitions={topic: [1]})
    assert read_all(only) == [(None, b"one")]
    matching = ReadFromKafka(mock.config, topic_pattern=topic[:-1] + ".")
    assert len(read_all(matching)) == 11


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_create_times_decide_the_windows(mock: Mock, topic: str, mode: str) -> None:
    for second in (1, 2, 11, 12, 25):
        mock.produce(topic, [(second % 4, b"red", b"")], timestamp=second * 1000)
    kafka = ReadFromKafka(mock.config, [topic], timestamp_policy="CreateTime")
    read: Any = (
        kafka if mode == "batch" else kafka.as_stream(watermark=BoundedDisorder(100), existing_only=True)
    )
    into: list[Any] = []
    with beam.Pipeline(options=options(mode)) as pipeline:
        ones = (
            pipeline | read | beam.MapTuple(lambda key, value: (key, 1)) | beam.WindowInto(FixedWindows(10))
        )
        counted = ones | beam.CombinePerKey(sum)
        stamped = counted | beam.Map(
            lambda pair, window=beam.DoFn.WindowParam: (*pair, window.start.seconds())
        )
        _ = stamped | WriteToMemory(into)
    assert sorted(into) == [(b"red", 1, 20), (b"red", 2, 0), (b"red", 2, 10)]


def test_another_kind_of_time_is_an_error(mock: Mock, topic: str) -> None:
    mock.produce(topic, [(0, None, b"x")])
    with pytest.raises(
        ValueError, match=r"timestamp_policy is LogAppendTime, but .* has records with CreateTime"
    ):
        read_all(ReadFromKafka(mock.config, [topic], timestamp_policy="LogAppendTime"))


@pytest.mark.parametrize(
    ("millis", "text"), [(-1, "has no time"), (2**62, "out of range"), (-(2**62), "out of range")]
)
def test_a_record_that_has_no_time_of_use_cannot_be_read_by_its_time(
    mock: Mock, topic: str, millis: int, text: str
) -> None:
    mock.produce(topic, [(0, b"k", b"before")], timestamp=1000)
    mock.produce(topic, [(0, b"k", b"x")], timestamp=millis)
    mock.produce(topic, [(0, b"k", b"after")], timestamp=2000)
    source = Topics(ReadFromKafka(mock.config, [topic], timestamp_policy="CreateTime").source)
    found = [
        pair
        for part in source.read(SourceRange(f"{topic}/0", 0, 3))
        for pair in zip(part.elements, part.times_micros, strict=True)
    ]
    assert [found[0], found[2]] == [((b"k", b"before"), 1_000_000), ((b"k", b"after"), 2_000_000)]
    unreadable = found[1][0]
    assert isinstance(unreadable, UnreadableElement)
    assert text in str(unreadable.error)
    assert (unreadable.raw, unreadable.source, unreadable.position) == (b"x", topic, Position(None, 0, 1))
    assert source._elements([]).elements == [], "all records were behind the range"
    # Without its time, it is a record like any other.
    whole = Topics(ReadFromKafka(mock.config, [topic]).source)
    assert sum(len(part) for part in whole.read(SourceRange(f"{topic}/0", 0, 3))) == 3


def test_poison_records(mock: Mock, topic: str) -> None:
    mock.produce(topic, [(0, b"k", b"1"), (0, b"k", b"{"), (0, b"k", b"2")])
    read = ReadFromKafka(mock.config, [topic], value_deserializer="json")
    with pytest.raises(
        ValueError, match=f"{topic}, partition 0, offset 1: the record cannot be read"
    ) as caught:
        read_all(read)
    assert "at step 'ReadFromKafka' (test_kafka.py:" in str(caught.value)
    for mode in ("batch", "streaming"):
        good: list[Any] = []
        bad: list[Any] = []
        rejecting = ReadFromKafka(mock.config, [topic], value_deserializer="json", rejects=True)
        with beam.Pipeline(options=options(mode)) as pipeline:
            both: Any = pipeline | (
                rejecting.as_stream(existing_only=True) if mode == "streaming" else rejecting
            )
            accepted, rejected = both
            _ = accepted | "Good" >> WriteToMemory(good)
            _ = rejected | "Bad" >> WriteToMemory(bad)
        assert good == [(b"k", 1), (b"k", 2)]
        [record] = bad
        assert record[:5] == (topic, None, 0, 1, None)
        assert (record.record, record.error) == ("{", "JSONDecodeError")
        assert record.reason.startswith("the record is not JSON (Expecting property name")


def test_avro(mock: Mock, topic: str) -> None:
    fastavro = pytest.importorskip("fastavro")
    schema = {"type": "record", "name": "Click", "fields": [{"name": "n", "type": "long"}]}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, {"n": 7})
    mock.produce(topic, [(0, b"k", written.getvalue())])
    read = ReadFromKafka(mock.config, [topic], value_deserializer=AvroDeserializer(schema))
    assert read_all(read) == [(b"k", {"n": 7})]
    mock.produce(topic, [(0, b"k", written.getvalue() + b"more")])
    with pytest.raises(ValueError, match="bytes are left over after the Avro value"):
        read_all(read)


def test_missing_topics_and_partitions(mock: Mock, topic: str) -> None:
    for read, text in (
        (ReadFromKafka(mock.config, [topic, "no-such"]), "there is no topic 'no-such'"),
        (ReadFromKafka(mock.config, partitions={topic: [9]}), f"the topic '{topic}' has no partition 9"),
        (
            ReadFromKafka(mock.config, [topic], start_offsets={topic: {9: 1}}),
            "start_offsets names the partition",
        ),
    ):
        with pytest.raises(LookupError, match=text):
            read_all(read)
    with pytest.raises(LookupError, match="there is no topic 'no-such'"):
        read_all(ReadFromKafka(mock.config, ["no-such"]).as_stream(), "streaming")
    with pytest.raises(LookupError, match="there is no topic 'no-such'"), beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([(b"k", b"v")]) | WriteToKafka(mock.config, "no-such")


def test_brokers_that_are_away(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("penstock_connectors.kafka.client.REQUEST_SECONDS", 0.3)
    monkeypatch.setattr("penstock_connectors.kafka.source.REQUEST_SECONDS", 0.3)
    monkeypatch.setattr("penstock_connectors.kafka.sink.REQUEST_SECONDS", 0.3)
    config = {"bootstrap.servers": "127.0.0.1:9", "sasl.password": "hush"}
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9 cannot be reached") as caught,
    ):
        read_all(ReadFromKafka(config, ["t"]))
    with (
        pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9 cannot be reached"),
        beam.Pipeline() as pipeline,
    ):
        _ = pipeline | beam.Create([(b"k", b"v")]) | WriteToKafka(config, "t")
    assert "hush" not in str(caught.value) + caplog.text + repr(getattr(caught.value, "__notes__", ()))


def test_options_that_the_client_refuses(mock: Mock) -> None:
    with pytest.raises(ValueError, match=r"Kafka's client refuses an option: .*no.such") as caught:
        read_all(ReadFromKafka({**mock.config, "no.such": "hush"}, ["t"]))
    assert "hush" not in str(caught.value)


def test_offsets_that_are_gone(mock: Mock, topic: str) -> None:
    mock.produce(topic, [(0, None, b"x")])
    with pytest.raises(
        ValueError, match=f"partition '{topic}/0' of .* ends before record 1, .* up to record 5"
    ):
        read_all(ReadFromKafka(mock.config, [topic], start_offsets={topic: {0: 5}}))


def test_a_stream_reads_what_comes(mock: Mock, topic: str) -> None:
    into: list[Any] = []
    mock.produce(topic, [(0, None, b"0")])
    pipeline = beam.Pipeline(options=options("streaming"))
    _ = pipeline | ReadFromKafka(mock.config, [topic]).as_stream() | WriteToMemory(into)
    result = pipeline.run()
    for number in range(1, 5):
        wait_for(lambda: len(into) == number, result)
        mock.produce(topic, [(number % 4, None, b"%d" % number)])
    wait_for(lambda: len(into) == 5, result)
    result.cancel()
    assert [int(value) for _, value in into] == list(range(5))


@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_what_is_written_is_there(mock: Mock, topic: str, mode: str) -> None:
    source = mock.make(f"from-{mode}")
    mock.produce(source, numbers(5_000))
    read = ReadFromKafka(mock.config, [source])
    with beam.Pipeline(options=options(mode)) as pipeline:
        pairs = pipeline | (read if mode == "batch" else read.as_stream(existing_only=True))
        doubled = pairs | beam.MapTuple(lambda key, value: (key, 2 * int(value)))
        _ = doubled | WriteToKafka(mock.config, topic, value_serializer="json")
    found = mock.consume(topic, 4)
    assert sorted((record.key(), int(record.value())) for record in found) == sorted(
        (key, 2 * int(value)) for _, key, value in numbers(5_000)
    )


def test_totals_of_sparks_own_aggregate_go_on_from_topic_to_topic(
    mock: Mock, topic: str, tmp_path: Path
) -> None:
    source = mock.make("from-rounds")
    found: list[Any] = []

    def started() -> Any:
        flags = f"--checkpoint_location={tmp_path}/checkpoint"
        pipeline = beam.Pipeline(options=options("micro_batch", flags))
        read = pipeline | ReadFromKafka(mock.config, [source]).as_stream()
        odd = read | beam.MapTuple(lambda key, value: (int(value) % 2, int(value))).with_output_types(
            tuple[int, int]
        )
        rounds = AfterWatermark(early=AfterProcessingTime(10))
        windows = beam.WindowInto(GlobalWindows(), rounds, AccumulationMode.ACCUMULATING)
        totals = odd | windows | beam.CombinePerKey(sum)
        texts = totals | beam.MapTuple(lambda key, total: (b"%d" % key, b"%d" % total))
        _ = texts | WriteToKafka(mock.config, topic)
        _ = totals | WriteToMemory(found)
        assert "then by Spark" in pipeline.explain()
        return pipeline.run()

    mock.produce(source, numbers(50))
    result = started()
    wait_for(lambda: {(0, 600), (1, 625)} <= set(found), result)
    assert result.cancel() == "CANCELLED"
    mock.produce(source, [(number % 4, None, b"%d" % number) for number in range(50, 100)])
    result = started()
    wait_for(lambda: {(0, 2_450), (1, 2_500)} <= set(found), result)
    result.drain()
    assert result.wait_until_finish() == "DRAINED"
    totals = [(record.key(), int(record.value())) for record in mock.consume(topic, 4)]
    assert {key: max(total for own, total in totals if own == key) for key, _ in totals} == {
        b"0": 2_450,
        b"1": 2_500,
    }


def test_rows_with_headers(mock: Mock, topic: str) -> None:
    with beam.Pipeline() as pipeline:
        row = beam.Row(key=b"k", value=b"v", headers=[("h", b"1")], partition=3, timestamp=7_000)
        _ = (
            pipeline
            | beam.Create([row, beam.Row(key=None, value=None)])
            | WriteToKafka(mock.config, topic, with_headers=True)
        )
    found = {record.key(): record for record in mock.consume(topic, 4)}
    first = found[b"k"]
    assert (first.partition(), first.timestamp()[1], first.headers()) == (3, 7_000, [("h", b"1")])
    assert found[None].value() is None


@pytest.mark.parametrize(
    ("element", "text"),
    [(7, "an element is an int, and not a pair"), ((b"k", 7), "the value of an element is an int")],
)
def test_elements_that_kafka_does_not_take(mock: Mock, topic: str, element: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text) as caught, beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([element]) | WriteToKafka(mock.config, topic)
    assert "test_kafka.py:" in str(caught.value)


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ((b"k", b"v"), "an element is a tuple without the field 'key'"),
        (beam.Row(key=b"k", vlaue=b"v"), "an element is a Row without the field 'value'"),
        ({"value": b"v"}, "an element is a dict without the field 'key'"),
        (
            KafkaRecord("from", 0, 0, 1, "CreateTime", (), b"k", b"v"),
            "an element is a KafkaRecord, which names the topic",
        ),
        ({"timestamp": 0}, "the timestamp of an element is not an integer, in milliseconds after 1970"),
        ({"timestamp": 1.5}, "the timestamp of an element is not"),
        ({"partition": -1}, "the partition of an element is not a number, 0 or more"),
        ({"topic": 7}, "the topic of an element is not a string"),
        ({"headers": {"h": b"1"}}, "the headers of an element are not pairs of a string and bytes"),
        ({"headers": [("h", 1)]}, "the headers of an element are not pairs"),
        ({"headers": [("h",)]}, "the headers of an element are not pairs"),
    ],
)
def test_rows_that_kafka_would_write_as_something_else(element: Any, text: str) -> None:
    """A record without a value deletes its key, and the client takes the time 0 for the present."""
    sink = WriteToKafka({"bootstrap.servers": "none"}, "t", with_headers=True).sink
    records = Records(sink, "here")
    if isinstance(element, dict) and "value" not in element:
        element = {"key": b"k", "value": b"v", **element}
    with pytest.raises(TypeError, match=text):
        records._of_row(element)


def test_rows_with_everything(mock: Mock, topic: str) -> None:
    sink = WriteToKafka(mock.config, topic, with_headers=True).sink
    header = SimpleNamespace(key="h", value=b"1")
    record = (topic, b"", None, 3, 7, [("h", b"1"), ("n", None), ("h", b"1")])
    row = {"key": None, "value": b"", "partition": 3, "timestamp": 7, "topic": topic}
    assert Records(sink, "here")._of_row({**row, "headers": [("h", b"1"), ["n", None], header]}) == record
    assert Records(sink, "here")._of_row({"key": b"", "value": None}) == (topic, None, b"", -1, 0, None)


def test_what_is_empty_is_not_taken_for_nothing(mock: Mock, topic: str) -> None:
    sink = WriteToKafka(mock.config, topic).sink
    pairs = [(b"", b""), (b"", None), (None, b""), (None, None)]
    rows = Records(sink, "here").encode(pairs)
    assert write_all(_Writing(sink, "here", "", 0), Clients(), iter([rows])) == 4
    found = [(record.key(), record.value()) for record in mock.consume(topic, 4)]
    assert sorted(found, key=repr) == sorted(pairs, key=repr)


def test_a_record_that_is_too_large(mock: Mock, topic: str) -> None:
    with pytest.raises(ValueError, match="a record is too large"), beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([(b"k", bytes(2_000_000))]) | WriteToKafka(mock.config, topic)
    config = {**mock.config, "message.max.bytes": 20_000_000}
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([(b"k", bytes(10_000_000))]) | WriteToKafka(config, topic)
    assert [len(value) for _, value in read_all(ReadFromKafka(mock.config, [topic]))] == [10_000_000]


def test_each_micro_batch_is_written_once(
    tansu: Tansu, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A micro-batch that is written again finds the mark of its transaction, whichever run has written it."""
    target = tansu.make("once", 3)
    sink = WriteToKafka(tansu.config, target, exactly_once=True, transactions=2).sink
    clients, seen = Clients(), []
    monkeypatch.setattr(kafka_sink, "Clients", lambda: clients)
    plan = plan_topic(sink, True, "here")

    def write(number: int, is_small: bool) -> None:
        rows = plan.make_encoder().encode(records_of(number))
        batch = MicroBatch(number, "a stream", check=lambda: seen.append(number), is_small=is_small)
        plan.commit(spark.createDataFrame(pa.Table.from_batches([rows])), batch)

    by_tasks, by_driver = False, True
    for number in (0, 2):
        write(number, by_tasks)
        write(number, by_driver)
        write(number + 1, by_driver)
        write(number + 1, by_tasks)
    assert values_in(tansu, target) == values_of(range(4))
    assert seen == [0, 1, 2, 3], "the driver asks before it writes"
    assert (len(clients._producers), len(clients._groups)) == (2, 2), "a producer and a group for each part"
    assert plan.close is not None
    plan.close()
    assert not clients._producers
    assert not clients._groups


def test_lines_of_files_go_into_a_topic(tansu: Tansu, tmp_path: Path) -> None:
    """Tasks write it, and only once the files have been checked."""
    target = tansu.make("of", 1)
    (tmp_path / "a.txt").write_text("1\n2\n")

    def run() -> Any:
        pipeline = beam.Pipeline(options=options("streaming", f"--checkpoint_location={tmp_path}/checkpoint"))
        lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt").as_stream()
        _ = lines | beam.Map(lambda line: (None, line.encode())) | WriteToKafka(tansu.config, target)
        return pipeline.run()

    commits = tmp_path / "checkpoint" / "spark" / "commits"
    for count in (2, 3):
        result = run()
        wait_for(lambda: len(tansu.consume(target, 1)) >= count, result)
        # Records that are written and not committed would be written again.
        wait_for(lambda: len([*commits.glob("[0-9]*")]) >= micro_batches(tmp_path / "checkpoint"), result)
        assert result.cancel() == "CANCELLED"
        (tmp_path / "b.txt").write_text("3\n")
    assert [record.value() for record in tansu.consume(target, 1)] == [b"1", b"2", b"3"]


def test_a_small_micro_batch_that_cannot_be_written_names_the_step(tansu: Tansu, tmp_path: Path) -> None:
    target = tansu.make("too-large", 1)
    (tmp_path / "a.txt").write_text("x" * 20_000 + "\n")
    write = WriteToKafka({**tansu.config, "message.max.bytes": 10_000}, target, exactly_once=True)
    pipeline = beam.Pipeline(options=options("streaming"))
    lines = pipeline | beam.io.ReadFromText(f"{tmp_path}/*.txt").as_stream(existing_only=True)
    _ = lines | beam.Map(lambda line: (None, line.encode())) | "Write" >> write
    with pytest.raises(ValueError, match="a record is too large") as error:
        pipeline.run().wait_until_finish()
    assert "at step 'Write' (test_kafka.py:" in str(error.value)


def test_each_part_of_a_micro_batch_is_written_once(tansu: Tansu) -> None:
    """Workers that take turns shut each other out, and find what the other has written."""
    target = tansu.make("parts", 3)
    sink = WriteToKafka(tansu.config, target, exactly_once=True, transactions=2).sink
    workers = [Clients(), Clients()]

    def write(number: int, worker: int) -> int:
        writing = _Writing(sink, "here", "penstock-parts", number)
        return write_parts(writing, workers[worker], iter([Parts(sink, "here").encode(records_of(number))]))

    assert [write(*each) for each in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 1))] == [20, 0, 20, 0, 20]
    for worker in workers:
        assert len(worker._producers) == len(worker._groups) == 2, "it has written two parts"
    assert values_in(tansu, target) == values_of(range(3))


def records_of(number: int) -> list[tuple[bytes, bytes]]:
    """The records of a micro-batch."""
    return [(b"%d" % value, b"%d-%d" % (number, value)) for value in range(20)]


def values_of(numbers: Iterable[int]) -> list[bytes]:
    return sorted(value for number in numbers for _, value in records_of(number))


def values_in(tansu: Tansu, topic: str) -> list[bytes]:
    return sorted(record.value() for record in tansu.consume(topic, 3))


def test_lines_that_a_file_had_lost_for_a_while_are_in_the_topic_in_the_end(
    tansu: Tansu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks commit, so what they have read is checked before they begin to write."""
    target, file = tansu.make("whole", 1), tmp_path / "a.txt"
    content = "".join(f"{number}\n" for number in range(100))
    file.write_text(content)

    def run() -> None:
        with beam.Pipeline(options=options("streaming", f"--checkpoint_location={tmp_path}/checkpoint")) as p:
            lines = p | beam.io.ReadFromText(f"{tmp_path}/*.txt").as_stream(existing_only=True)
            pairs = lines | beam.Map(lambda line: (None, line.encode()))
            _ = pairs | WriteToKafka(tansu.config, target, exactly_once=True, transactions=1)

    write = BatchWriter._write

    def shorter(self: BatchWriter, *args: Any) -> None:
        file.write_text("0\n")
        write(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_write", shorter)
        with pytest.raises(OSError, match="was truncated"):
            run()
    file.write_text(content)
    run()
    found = read_all(ReadFromKafka({**tansu.config, "isolation.level": "read_committed"}, [target]))
    assert sorted(int(value) for _, value in found) == list(range(100))


def test_another_writer_of_the_same_stream_is_shut_out(tansu: Tansu) -> None:
    sink = WriteToKafka(tansu.config, tansu.make("fenced", 1), exactly_once=True).sink
    pages = [dumps([("fenced", b"v", b"k", -1, 0, [])])]
    earlier, later = Clients(), Clients()

    def writing(batch: int) -> Any:
        return _Writing(sink, "here", "penstock-fenced", batch)

    assert _write_part(writing(0), earlier, 0, pages) == 1
    assert _write_part(writing(0), later, 0, pages) == 0, "the mark says that it is written"
    with pytest.raises(ProducerFailure) as failed:
        _in_transaction(writing(1), earlier, earlier._producers["penstock-fenced-0"], pages)
    assert failed.value.ends_producer
    assert len(tansu.consume("fenced", 1)) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_a_producer_that_is_shut_out_as_soon_as_it_begins_is_replaced_once(tansu: Tansu, times: int) -> None:
    """A run that has ended may have left a request at a broker; a run that continues shuts out each new producer."""
    topic = tansu.make(f"shut-out-{times}", 1)
    sink = WriteToKafka(tansu.config, topic, exactly_once=True).sink
    others: list[Producer] = []

    class Interrupted(Clients):
        def last_batch(self, sink: Any, name: str) -> int:
            if len(others) < times:
                others.append(Producer(sink, name))
            return super().last_batch(sink, name)

    writing = _Writing(sink, "here", topic, 0)
    pages = [dumps([(topic, b"v", b"k", -1, 0, [])])]
    if times == 1:
        assert _write_part(writing, Interrupted(), 0, pages) == 1
    else:
        with pytest.raises(RuntimeError, match="another run writes with the same transactions"):
            _write_part(writing, Interrupted(), 0, pages)
    assert len(others) == times
    assert len(tansu.consume(topic, 1)) == (times == 1)


def test_a_stopped_run_begins_no_transaction_once_the_brokers_are_back(tansu: Tansu) -> None:
    topic = tansu.make("stopped", 1)
    sink = WriteToKafka(tansu.config, topic, exactly_once=True).sink
    writing = _Writing(sink, "here", "penstock-stopped", 0)
    pages = [dumps([(topic, b"v", b"k", -1, 0, [])])]
    stopped = Clients()
    os.kill(tansu._process.pid, signal.SIGSTOP)
    try:
        outcomes = start_in_thread(lambda: _write_part(writing, stopped, 0, pages), "writes")
        with pytest.raises(Empty):
            outcomes.get(timeout=0.5)
        stopped.close()
    finally:
        os.kill(tansu._process.pid, signal.SIGCONT)
    written, failure = outcomes.get(timeout=30)
    assert isinstance(failure, CommitStopped), written
    assert not stopped._producers
    assert _write_part(writing, Clients(), 0, pages) == 1
    assert len(tansu.consume(topic, 1)) == 1


class Broken:
    """A client after a fatal error, of which each call only says that there was one."""

    def poll(self, seconds: float) -> int:
        return 0

    def begin_transaction(self) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    def produce(self, *record: Any, **more: Any) -> None:
        self.begin_transaction()


def test_a_producer_with_a_fatal_error_is_replaced(tansu: Tansu) -> None:
    topic = tansu.make("fatal", 1)
    clients, page = Clients(), dumps([(topic, b"v", b"k", -1, 0, [])])
    once = WriteToKafka(tansu.config, topic, exactly_once=True).sink
    for batch in range(2):
        writing = _Writing(once, "here", "penstock-fatal", batch)
        assert _write_part(writing, clients, 0, [page]) == 1
        clients._producers["penstock-fatal-0"].client = Broken()
    # Without transactions, the rows that are gone cannot be written again; the next attempt can.
    writing = _Writing(WriteToKafka(tansu.config, topic).sink, "here", "", 0)
    rows = [pa.record_batch({"value": pa.array([page], pa.binary())})]
    assert write_all(writing, clients, iter(rows)) == 1
    producer = next(
        each for each in clients._producers.values() if getattr(each, "_sink", None) is writing.sink
    )
    producer.client = Broken()
    producer._note(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "two are missing", fatal=True))
    with pytest.raises(ProducerFailure) as failed:
        producer.send([(topic, b"v", b"k", -1, 0, [])])
    assert "two are missing" in str(producer.explained(failed.value.error))
    with pytest.raises(RuntimeError, match="'fatal' cannot be written"):
        write_all(writing, clients, iter(rows))
    assert write_all(writing, clients, iter(rows)) == 1
    assert len(tansu.consume(topic, 1)) == 4


def test_a_transaction_that_fails_says_why_its_records_are_not_delivered(tansu: Tansu) -> None:
    topic = tansu.make("undelivered", 1)
    sink = WriteToKafka(tansu.config, topic, exactly_once=True).sink
    clients, page = Clients(), dumps([(topic, b"v", b"k", -1, 0, [])])
    writing = _Writing(sink, "here", "penstock-undelivered", 0)
    assert _write_part(writing, clients, 0, [page]) == 1
    producer = clients._producers["penstock-undelivered-0"]
    producer.last_batch = -1

    class Undelivered:
        def poll(self, seconds: float) -> int:
            producer._note(KafkaError(KafkaError._UNKNOWN_TOPIC))
            return 0

        def begin_transaction(self) -> None:
            raise KafkaException(
                KafkaError(KafkaError._INCONSISTENT, "1 message(s) failed", txn_requires_abort=True)
            )

    producer.client = Undelivered()
    with pytest.raises(ProducerFailure) as failed:
        _in_transaction(writing, clients, producer, [page])
    assert failed.value.ends_producer, "a new producer may succeed"
    assert "that topic or partition does not exist" in str(producer.explained(failed.value.error))


@pytest.mark.soak
@pytest.mark.parametrize("kills", [30])
def test_a_copy_that_is_killed_has_each_record_once(
    tansu: Tansu, mock: Mock, tmp_path: Path, kills: int
) -> None:
    """A kill behind the commit of a copy is in every run, in test_kafka_into_postgres.py."""
    random, log, checkpoint = Random(kills), tmp_path / "log", tmp_path / "checkpoint"
    # A kill costs two micro-batches at most.
    records = numbers(2 * RECORDS_PER_BATCH * kills)
    source, target = mock.make(f"to-copy-{kills}"), tansu.make(f"copied-{kills}", 3)
    mock.produce(source, records)
    arguments = [mock.servers, source, tansu.servers, target, str(checkpoint)]
    # Else the next run would wait until it is sure that the killed one is dead.
    arguments += ["--fast_start", "--take_over"]
    for _ in range(kills):
        # Each run gets a little further, and none to the end.
        goal = micro_batches(checkpoint) + random.randint(0, 1)
        with started(COPYING, *arguments, log=log) as process:
            wait_until(lambda goal=goal: micro_batches(checkpoint) >= goal, process, log)  # type: ignore[misc]
            time.sleep(random.random() * 0.3)
            assert process.poll() is None, "it has ended before it was killed"
    # The last run saves a start of Spark.
    copying.main(*arguments)
    found = sorted((record.key(), record.value()) for record in tansu.consume(target, 3))
    assert found == sorted((key, b"%d" % (2 * int(value))) for _, key, value in records)


def test_a_stream_that_begins_at_the_latest_record_asks_for_it_once(mock: Mock) -> None:
    topic = mock.make("asked-once")
    mock.produce(topic, [(0, None, b"before")])
    source = Topics(ReadFromKafka(mock.config, [topic], start_offsets="latest").source)
    positions = Positions(source, None, 2, "at step 'Read'")
    start = positions.last(positions.first(), False)
    assert positions.ranges(positions.first(), start) == []
    mock.produce(topic, [(0, None, b"after")])
    # A micro-batch that runs again begins where the first one did, not at the record that is the latest now.
    assert positions.ranges(positions.first(), start) == []
    found = positions.ranges(start, positions.last(start, False))
    assert [(piece.start, piece.end) for piece in found if piece.end > piece.start] == [(1, 2)]
    source.close()


def serialized(text: str) -> bytes:
    """A function of a module that the workers of a cluster do not have."""
    return text.encode()


def test_tasks_on_a_cluster_need_neither_the_serializers_nor_the_folders_of_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[tuple[bytes, tuple[str, ...]]] = []
    write = SimpleNamespace(format=lambda name: SimpleNamespace(mode=lambda mode: SimpleNamespace(save=list)))
    monkeypatch.setattr(task_writes, "_in_task", lambda *given: sent.append(given))
    monkeypatch.setattr(task_writes, "map_in_arrow", lambda *given: SimpleNamespace(write=write))
    made: Any = WriteToKafka({"bootstrap.servers": "kafka:9092"}, "a", value_serializer=serialized)
    for master, has_folders in (("spark://kafka:7077", False), ("local[2]", True)):
        session = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
        frame: Any = SimpleNamespace(sparkSession=session)
        plan_topic(made.sink, True, "here").commit(frame, MicroBatch(1, "stream"))
        program, folders = sent.pop()
        assert serialized.__name__.encode() not in program
        assert bool(folders) == has_folders
