"""Sums records of Kafka by key and minute in a loop without any framework: what the benchmark of Kafka is beside."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition

RECORDS_AT_ONCE, WAIT_SECONDS = 10_000, 0.1


def copy_sums(servers: str, source: str, target: str, partitions: int) -> None:
    """Reads a topic up to its present end, and writes each sum to another one."""
    config = {"bootstrap.servers": servers, "log_level": 0}
    reading = {"group.id": "plain", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**config, **reading, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(source, number, 0) for number in range(partitions)])
    sums: Counter[tuple[bytes, int]] = Counter()
    unread = partitions
    while unread:
        for message in consumer.consume(RECORDS_AT_ONCE, WAIT_SECONDS):
            if message.error() is not None:
                unread -= 1
            else:
                sums[message.key(), message.timestamp()[1] // 60_000] += int(message.value())
    consumer.close()
    producer = Producer({**config, "enable.idempotence": True})
    for (key, minute), total in sums.items():
        producer.produce(target, b"%d %d" % (minute, total), key)
        producer.poll(0)
    producer.flush()
