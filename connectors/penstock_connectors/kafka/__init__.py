"""Kafka's topics, by the client ``confluent-kafka``, which tasks and the driver import when they use it."""

from __future__ import annotations

from penstock.io.kafka import AvroDeserializer, KafkaSink, KafkaSource
from penstock_connectors.kafka.sink import plan_topic, prepare_topic
from penstock_connectors.kafka.source import open_topics, open_topics_stream, open_topics_with_rejects
from penstock_connectors.packages import CONFLUENT_KAFKA, FASTAVRO_OF_RECORDS
from penstock_spark.connecting.formats import Format, Package


def _packages(topics: KafkaSource | KafkaSink) -> tuple[Package, ...]:
    deserializers = (getattr(topics, f"{of}_deserializer", None) for of in ("key", "value"))
    needs_avro = any(isinstance(each, AvroDeserializer) for each in deserializers)
    return (CONFLUENT_KAFKA, FASTAVRO_OF_RECORDS) if needs_avro else (CONFLUENT_KAFKA,)


KAFKA = Format(
    open_topics,
    open_topics_stream,
    plan=plan_topic,
    prepare=prepare_topic,
    packages=_packages,
    open_with_rejects=open_topics_with_rejects,
)
