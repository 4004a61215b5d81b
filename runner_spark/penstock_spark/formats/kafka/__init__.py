"""Kafka's topics, by the client ``confluent-kafka``, which tasks and the driver import when they use it."""

from __future__ import annotations

from penstock_spark.formats.format import Format
from penstock_spark.formats.kafka.sink import plan_topic, prepare_topic
from penstock_spark.formats.kafka.source import open_topics, open_topics_stream

KAFKA = Format(open_topics, open_topics_stream, plan=plan_topic, prepare=prepare_topic)
