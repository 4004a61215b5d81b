"""Kafka's transforms as they are written down."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io.kafka import KafkaRecord, KafkaSource, ReadFromKafka
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
        ({"start_offsets": "first"}, "start_offsets must be 'earliest', 'latest' or offsets, but is 'first'"),
    ],
)
def test_arguments_that_cannot_be_are_refused_where_they_are_written(arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        ReadFromKafka(**{"consumer_config": BROKERS, "topics": ["clicks"], **arguments})
    assert "at test_kafka_transforms.py:" in str(caught.value)


def test_what_programs_for_beam_pass_is_taken() -> None:
    config = {**BROKERS, "enable.auto.commit": "false"}
    read = ReadFromKafka(config, ["clicks"], dynamic_read_poll_interval_seconds=None)
    assert isinstance(read.source, KafkaSource)
    assert read.source.poll_partitions_seconds == 10
