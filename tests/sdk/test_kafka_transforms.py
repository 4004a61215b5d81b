"""Kafka's transforms as they are written down."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io.kafka import KafkaRecord, KafkaSource, ReadFromKafka, WriteToKafka
from penstock.transforms.window import FixedWindows

BROKERS = {"bootstrap.servers": "kafka:9092"}


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_is_read_is_a_pair_that_can_be_grouped(is_stream: bool) -> None:
    read: Any = ReadFromKafka(BROKERS, ["clicks"])
    pairs = beam.Pipeline() | (read.as_stream() if is_stream else read)
    grouped = pairs | beam.WindowInto(FixedWindows(60)) | beam.GroupByKey()
    assert str(pairs.element_type) == "Tuple[Any, Any]"
    assert str(grouped.element_type) == "Tuple[Any, Iterable[Any]]"
    with_metadata = beam.Pipeline() | ReadFromKafka(BROKERS, ["clicks"], with_metadata=True)
    assert with_metadata.element_type == KafkaRecord


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"dynamic_read_poll_interval_seconds": "10"},
            "dynamic_read_poll_interval_seconds must be a number of",
        ),
        ({"patience_seconds": -1}, "patience_seconds must be a number of seconds from 0, but is -1"),
        (
            {"consumer_config": {**BROKERS, "auto.offset.reset": "none"}},
            "auto.offset.reset must be 'earliest'",
        ),
        (
            {"consumer_config": {**BROKERS, "enable.auto.commit": True}},
            "enable.auto.commit would commit what is not",
        ),
        (
            {"consumer_config": {**BROKERS, "enable.auto.commit": "true"}},
            "enable.auto.commit would commit what is",
        ),
        ({"max_read_time": -1}, "max_read_time must be a number of seconds from 0, but is -1"),
        ({"start_offsets": "first"}, "start_offsets must be 'earliest', 'latest' or offsets, but is 'first'"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        ReadFromKafka(**{"consumer_config": BROKERS, "topics": ["clicks"], **arguments})
    assert "at test_kafka_transforms.py:" in str(caught.value)


def test_what_programs_for_beam_pass_is_taken() -> None:
    config = {**BROKERS, "enable.auto.commit": "false"}
    read = ReadFromKafka(
        config,
        ["clicks"],
        ReadFromKafka.byte_array_deserializer,
        ReadFromKafka.byte_array_deserializer,
        None,
        7,
        30,
        False,
        ReadFromKafka.create_time_policy,
        dynamic_read_poll_interval_seconds=None,
        expansion_service="localhost:8097",
        redistribute=False,
        redistribute_num_keys=0,
        allow_duplicates=False,
        consumer_factory_fn_class=None,
    )
    assert isinstance(read.source, KafkaSource)
    assert read.source.poll_partitions_seconds == 10
    assert (read.source.max_num_records, read.source.max_read_seconds) == (7, 30)
    assert read.source.timestamp_policy == "CreateTime"
    WriteToKafka(BROKERS, "sums", expansion_service="localhost:8097")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"consumer_polling_timeout": 5}, "patience_seconds says"),
        ({"redistribute": True}, "leave it out: tasks share"),
        ({"redistribute_num_keys": 8}, r"beam.Reshuffle\(num_buckets\)"),
        ({"allow_duplicates": True}, "each record counts once"),
        ({"consumer_factory_fn_class": "org.example.Make"}, "it names a Java class"),
    ],
)
def test_arguments_of_beams_without_a_meaning_here_are_refused_with_a_hint(arguments: Any, hint: str) -> None:
    what = f"ReadFromKafka does not have Beam's {next(iter(arguments))}\n  at test_kafka_transforms.py:"
    with pytest.raises(UnsupportedByRunner, match=f"{what}[0-9 in]*.*\n  hint: .*{hint}"):
        ReadFromKafka(BROKERS, ["clicks"], **arguments)


def test_a_stream_does_not_end_by_the_maximum_time_of_a_batch() -> None:
    read: Any = ReadFromKafka(BROKERS, ["clicks"], max_read_time=30)
    with pytest.raises(ValueError, match="max_read_time ends a batch, and a stream continues") as caught:
        read.as_stream()
    assert "drain the stream" in str(caught.value)
