"""Kafka's transforms as they are written down."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io.kafka import KafkaRecord, ReadFromKafka
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
