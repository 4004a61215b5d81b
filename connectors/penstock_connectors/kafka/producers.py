"""Producers of Kafka: the clients that write a topic, kept from micro-batch to micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.io.kafka import KafkaSink
from penstock_connectors.kafka.client import (
    FENCED,
    REQUEST_SECONDS,
    abandon,
    ask_brokers,
    call_in_time,
    explain_error,
    load_package,
    make_client,
)
from penstock_spark.connecting.writing import CommitStopped

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

TRANSACTION_SECONDS = 60.0
"""The time limit for a step of a transaction."""

_FLUSH_SECONDS = 0.5

_OF_PRODUCERS = frozenset(
    {
        "acks",
        "request.required.acks",
        "enable.idempotence",
        "linger.ms",
        "queue.buffering.max.ms",
        "retries",
        "message.send.max.retries",
        "batch.size",
        "batch.num.messages",
        "compression.type",
        "compression.codec",
        "compression.level",
        "delivery.timeout.ms",
        "message.timeout.ms",
        "partitioner",
        "transaction.timeout.ms",
        "queue.buffering.max.messages",
        "queue.buffering.max.kbytes",
        "request.timeout.ms",
        "sticky.partitioning.linger.ms",
    }
)
"""Options that only a producer knows."""

Record = tuple[Any, ...]
"""The arguments of ``Producer.produce``: topic, value, key, partition, timestamp in milliseconds, and headers."""


class Clients:
    """The clients of a run, or of all tasks of a worker, which stay connected from micro-batch to micro-batch."""

    def __init__(self) -> None:
        self._producers: dict[str, Producer] = {}
        self._groups: dict[str, Any] = {}
        self._is_closed = False

    def known(self, name: str) -> Producer | None:
        """Returns the producer of a name, if there is one."""
        return self._producers.get(name)

    def producer(self, sink: KafkaSink, name: str) -> Producer:
        """Returns the producer of a name; a new one if there is none."""
        if name not in self._producers:
            self._check()
            self._producers[name] = Producer(sink, name)
            # It may have waited for brokers since.
            self._check()
        found = self._producers[name]
        found.forget_error()
        return found

    def group(self, sink: KafkaSink, name: str) -> Any:
        """Returns a consumer that stands for a group, and never reads."""
        if name not in self._groups:
            known = {key: value for key, value in sink.config.items() if key not in _OF_PRODUCERS}
            # Only a reader of committed records waits for marks of which the transaction is about to end.
            own = {"group.id": name, "enable.auto.commit": False, "isolation.level": "read_committed"}
            self._groups[name] = make_client("Consumer", {**known, **own})
        return self._groups[name]

    def last_batch(self, sink: KafkaSink, name: str) -> int:
        """Returns the last micro-batch of which a part is written; -1 if there is none."""
        mark = load_package().TopicPartition(sink.topic, 0)
        brokers = sink.config["bootstrap.servers"]
        [found] = ask_brokers(
            lambda: self.group(sink, name).committed([mark], REQUEST_SECONDS),
            "the last transaction cannot be found",
            brokers,
        )
        return max(int(found.offset), 0) - 1

    def drop(self, producer: Producer) -> None:
        """Makes the next micro-batch create another producer."""
        abandon(self._producers.pop(producer.name, None))

    def leave(self, name: str) -> None:
        """Gives up all clients of a name."""
        abandon(self._producers.pop(name, None), self._groups.pop(name, None))

    def close(self) -> None:
        """Gives up all clients. A caller that still waits for one of them cannot make a new one."""
        self._is_closed = True
        abandon(*self._producers.values(), *self._groups.values())
        self._producers.clear()
        self._groups.clear()

    def _check(self) -> None:
        if self._is_closed:
            self.close()
            raise CommitStopped


class ProducerFailure(Exception):
    """A producer could not do its work.

    Attributes:
        error: Kafka's error.
        is_shut_out: Whether another producer has begun with the same transactional identifier.
        ends_producer: Whether a new producer may succeed: this one is shut out or in a state that it cannot leave, or
            the transaction is void.
    """

    def __init__(self, error: KafkaError, raised: KafkaError | None = None) -> None:
        super().__init__()
        self.error = error
        self.is_shut_out = error.name() in FENCED
        # The exception may only say that there was an error.
        both = (error, error if raised is None else raised)
        is_fatal = any(each.fatal() or each.name() == "_FATAL" for each in both)
        self.ends_producer = self.is_shut_out or is_fatal or any(each.txn_requires_abort() for each in both)


class Producer:
    """A producer, and the first error that ends it or keeps a record from being delivered."""

    def __init__(self, sink: KafkaSink, name: str) -> None:
        self.name = name
        self._sink = sink
        self._error: KafkaError | None = None
        # The last micro-batch that is known to be written, if it writes in transactions.
        self.last_batch = -1
        config: dict[str, Any] = {
            "enable.idempotence": True,
            "linger.ms": 5,
            **sink.config,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, message: self._note(error),
            "error_cb": lambda error: self._note(error if error.fatal() else None),
        }
        if sink.is_exactly_once:
            config["transactional.id"] = name
        self.client = make_client("Producer", config)
        if sink.is_exactly_once:
            ask_brokers(
                lambda: self.client.init_transactions(TRANSACTION_SECONDS),
                "no transaction can begin",
                sink.config["bootstrap.servers"],
                TRANSACTION_SECONDS,
            )

    def forget_error(self) -> None:
        """Starts over; a producer whose error lasts fails again."""
        self._error = None

    def send(self, records: Sequence[Record]) -> int:
        """Hands records to the client; waits where its queue is full."""
        package, produce = load_package(), self.client.produce
        for topic, value, key, partition, timestamp, headers in records:
            while True:
                try:
                    produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                    break
                except BufferError:
                    call_in_time(partial(self.client.poll, _FLUSH_SECONDS), _FLUSH_SECONDS)
                    self.check()
                except package.KafkaException as error:
                    raise self.failed(error) from None
        self.client.poll(0)
        self.check()
        return len(records)

    def flush(self) -> None:
        """Waits until everything is delivered, or something cannot be."""
        while call_in_time(partial(self.client.flush, _FLUSH_SECONDS), _FLUSH_SECONDS):
            self.check()
        self.check()

    def check(self) -> None:
        """Raises what keeps records from being delivered."""
        if self._error is not None:
            raise ProducerFailure(self._error)

    def failed(self, error: Any) -> ProducerFailure:
        """Returns the meaning of an exception of the client.

        After a fatal error, each call only says that there was one, and a transaction only that records are not
        delivered.
        """
        raised = found = error.args[0]
        if raised.name() in ("_FATAL", "_INCONSISTENT"):
            self.client.poll(0)
            found = self._error or raised
        return ProducerFailure(found, raised)

    def _note(self, error: KafkaError | None) -> None:
        # A fatal error is the cause of the errors of the records.
        if error is not None and (self._error is None or error.fatal()):
            self._error = error

    def explained(self, error: KafkaError) -> Exception:
        """Explains an error from Kafka in terms of this topic."""
        topic, brokers = self._sink.topic, self._sink.config["bootstrap.servers"]
        return explain_error(error, f"the topic {topic!r} cannot be written", brokers)
