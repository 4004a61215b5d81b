"""Writes a topic: tasks produce the records of a micro-batch, at least once or in transactions.

In transactions, the records of a micro-batch are divided by key, always in the same way. Each part is one transaction,
which also commits the number of the micro-batch plus one as the offset of a consumer group of its own. A micro-batch
that is written again finds that offset, and leaves the part out. A transactional identifier for each part shuts out
no matter who wrote it before. The driver writes a small micro-batch itself, and tasks write a large one.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from queue import Empty
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.checks.similar_names import hint_at_name
from penstock.error import noun_for, refusal
from penstock.io.kafka import KafkaRecord, KafkaSink
from penstock.utils.identifiers import identifier
from penstock_connectors.kafka.client import (
    REQUEST_SECONDS,
    THREAD,
    ClientStalled,
    ask_brokers,
    call_in_time,
    load_package,
    make_client,
)
from penstock_connectors.kafka.producers import (
    TRANSACTION_SECONDS,
    Clients,
    Producer,
    ProducerFailure,
    Record,
)
from penstock_spark.connecting.running import fail_step, start_in_thread
from penstock_spark.connecting.tables import is_committed
from penstock_spark.connecting.writing import CommitStopped, Encoder, MicroBatch, SinkPlan, write_in_tasks

_LOGGER = logging.getLogger(__name__)

_STOP_SECONDS = 0.5

_CLIENTS_OF_TASKS = Clients()
"""Shared by all tasks of this worker, whichever run they belong to."""


def plan_topic(sink: KafkaSink, is_stream: bool, where: str) -> SinkPlan:
    load_package(where)
    # For what this process writes itself. Another run of the stream in this process has clients of its own.
    clients = Clients()

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        if not batch.stream:
            check_topic(sink)
        stream = hashlib.sha256((batch.stream or identifier()).encode()).hexdigest()[:16]
        # The serializers may be functions that only this process can import; the records are bytes by now.
        target = replace(sink, key_serializer=None, value_serializer=None)
        writing = _Writing(target, where, f"penstock-{stream}", batch.number)
        if not sink.is_exactly_once:
            write_in_tasks(frame, partial(_write_in_task, writing), where)
        elif batch.is_small:
            _write_here(writing, clients, frame, batch)
        else:
            write_in_tasks(frame, partial(_write_in_task, writing), where, sink.transactions, "part")
        return []

    if sink.is_exactly_once:
        make: Callable[[], Encoder] = partial(Parts, sink, where)
        return SinkPlan(
            "part int, value binary",
            make,
            None,
            commit,
            commits_in_tasks=True,
            commits_small_batches=is_stream,
            close=clients.close,
        )
    return SinkPlan("value binary", partial(Records, sink, where), None, commit, commits_in_tasks=True)


def prepare_topic(sink: KafkaSink, spark: SparkSession, where: str, stream: str) -> None:
    try:
        check_topic(sink)
    except Exception as error:
        fail_step(error, where)


def check_topic(sink: KafkaSink) -> None:
    """Refuses a topic that does not exist, before anything is written; a ConnectionError if no broker answers."""
    brokers = sink.config["bootstrap.servers"]
    producer = make_client("Producer", sink.config)
    topics = ask_brokers(
        lambda: producer.list_topics(timeout=REQUEST_SECONDS).topics,
        "the topics cannot be listed",
        brokers,
        asker=producer,
    )
    if sink.topic not in topics:
        what = f"there is no topic {sink.topic!r} at {brokers}"
        hint = hint_at_name(sink.topic, topics, "check the name, and make the topic first")
        raise refusal(LookupError, what, hint=hint)


@dataclass
class Records(Encoder):
    """One pickled row of records for each batch of elements."""

    sink: KafkaSink
    where: str

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [pa.array([pickle.dumps(self.records(values))], pa.binary())], names=["value"]
        )

    def records(self, values: list[Any]) -> list[Record]:
        try:
            make_record = self._of_row if self.sink.with_headers else self._of_pair
            return list(map(make_record, values))
        except Exception as error:
            fail_step(error, self.where)

    def _of_pair(self, element: Any) -> Record:
        try:
            key, value = element
        except (TypeError, ValueError):
            what = f"an element is {noun_for(element)}, and not a pair of key and value"
            raise refusal(TypeError, what, where=self.where, hint="make pairs of them with a Map") from None
        return self._record(key, value)

    def _of_row(self, element: object) -> Record:
        if isinstance(element, KafkaRecord):
            what = "an element is a KafkaRecord, which names the topic that it was read from"
            hint = "make rows of the key, the value and other fields to write, such as headers, with a Map"
            raise refusal(TypeError, what, where=self.where, hint=hint)

        def found(name: str) -> Any:
            return element.get(name) if isinstance(element, dict) else getattr(element, name, None)

        for name in ("key", "value"):
            # Without it, the record would delete its key.
            if not (name in element if isinstance(element, dict) else hasattr(element, name)):
                what = f"an element is {noun_for(element)} without the field {name!r}"
                hint = "make rows with the fields key and value, which may be None, with a Map"
                raise refusal(TypeError, what, where=self.where, hint=hint)
        topic, partition, timestamp = found("topic"), found("partition"), found("timestamp")
        self._check(topic is None or isinstance(topic, str), "topic", "is not a string")
        self._check(partition is None or _is_number(partition, 0), "partition", "is not a number, 0 or more")
        # Kafka's client takes the time 0 for none.
        is_right = timestamp is None or _is_number(timestamp, 1)
        self._check(is_right, "timestamp", "is not an integer, in milliseconds after 1970")
        headers = self._headers(found("headers"))
        return self._record(found("key"), found("value"), topic, partition, timestamp, headers)

    def _headers(self, headers: Iterable[Any] | None) -> list[tuple[str, Any]] | None:
        if headers is None:
            return None
        try:
            pairs: list[Any] = [
                tuple(header) if isinstance(header, list | tuple) else (header.key, header.value)
                for header in headers
            ]
        except (AttributeError, TypeError):
            pairs = [()]
        is_right = all(
            len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], bytes | str | None)
            for pair in pairs
        )
        self._check(is_right, "headers", "are not pairs of a string and bytes")
        return pairs

    def _check(self, is_right: bool, part: str, why_not: str) -> None:
        if not is_right:
            what = f"the {part} of an element {why_not}"
            raise refusal(TypeError, what, where=self.where, hint="correct it in a Map, or leave it out")

    def _record(
        self,
        key: object,
        value: object,
        topic: str | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: object = None,
    ) -> Record:
        sink = self.sink
        key = self._bytes("key", key, sink.key_serializer)
        value = self._bytes("value", value, sink.value_serializer)
        return (
            topic or sink.topic,
            value,
            key,
            -1 if partition is None else partition,
            timestamp or 0,
            headers,
        )

    def _bytes(self, part: str, data: Any, serialize: Callable[[Any], Any] | None) -> bytes | None:
        if data is not None and serialize is not None:
            data = serialize(data)
        if data is None or isinstance(data, bytes):
            return data
        what = f"the {part} of an element is {noun_for(data)}, but Kafka takes bytes"
        hint = f'pass {part}_serializer to WriteToKafka, such as "json"'
        raise refusal(TypeError, what, where=self.where, hint=hint)


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) < 2**63


class Parts(Records):
    """A row for each part of a batch's records, with the number of the part, which follows from the record alone."""

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        parts: dict[int, list[Record]] = {}
        for record in self.records(values):
            _, value, key, *_ = record
            content = (value or b"") if key is None else key
            parts.setdefault(zlib.crc32(content) % self.sink.transactions, []).append(record)
        columns = [
            pa.array(list(parts), pa.int32()),
            pa.array([pickle.dumps(part) for part in parts.values()], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["part", "value"])


@dataclass(frozen=True)
class _Writing:
    """The description of a micro-batch with which a task writes its share."""

    sink: KafkaSink
    where: str
    name: str  # Of the stream and the sink, or of a run in batch mode.
    batch: int


def _write_in_task(writing: _Writing, rows: Iterator[pa.RecordBatch]) -> int:
    write = write_parts if writing.sink.is_exactly_once else write_all
    return write(writing, _CLIENTS_OF_TASKS, rows)


def _write_here(writing: _Writing, clients: Clients, frame: DataFrame, batch: MicroBatch) -> None:
    """Writes a small micro-batch from this process.

    Its producers stay. A task may run in any of Spark's workers, and one that was not the last to write a part needs a
    new producer for it, which takes longer than all records of a small micro-batch.
    """
    rows = frame.toArrow().to_batches()
    batch.check()
    outcomes = start_in_thread(partial(write_parts, writing, clients, iter(rows)), THREAD)
    while True:
        try:
            _, failure = outcomes.get(timeout=_STOP_SECONDS)
            break
        except Empty:
            # Otherwise the run would wait a minute for brokers that are away.
            if batch.stopping.is_set():
                # The thread ends with these clients. The next run's shut it out.
                clients.close()
                raise CommitStopped from None
    if failure is not None:
        fail_step(failure, writing.where)


def write_all(writing: _Writing, clients: Clients, rows: Iterator[pa.RecordBatch]) -> int:
    """Writes records at least once; returns how many."""
    written = 0
    producer = clients.producer(writing.sink, repr(sorted(writing.sink.config.items())))
    try:
        for batch in rows:
            for page in batch.column("value").to_pylist():
                written += producer.send(pickle.loads(page))
        producer.flush()
    except BaseException as error:
        # After a fatal error, a producer never works again.
        clients.drop(producer)
        if isinstance(error, ProducerFailure):
            raise producer.explained(error.error) from None
        raise
    return written


def write_parts(writing: _Writing, clients: Clients, rows: Iterator[pa.RecordBatch]) -> int:
    """Writes each part in a transaction, unless an earlier try has; returns how many records."""
    parts: dict[int, list[bytes]] = {}
    for batch in rows:
        for part, page in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            parts.setdefault(part, []).append(page)
    return sum(_write_part(writing, clients, part, pages) for part, pages in sorted(parts.items()))


def _write_part(writing: _Writing, clients: Clients, part: int, pages: list[bytes]) -> int:
    name = f"{writing.name}-{part}"
    try:
        return _write_once(writing, clients, name, pages)
    except ClientStalled as error:
        # Records that the new clients find uncommitted are void as soon as they begin.
        _LOGGER.warning("%s: new clients replace the clients of %s: %s", writing.where, name, error)
        clients.leave(name)
        return _write_once(writing, clients, name, pages)


def _write_once(writing: _Writing, clients: Clients, name: str, pages: list[bytes]) -> int:
    """Writes a part, unless its mark says that it is written; returns how many records."""
    new_ones = 0
    while True:
        producer = clients.known(name)
        if producer is None:
            producer = clients.producer(writing.sink, name)
            producer.last_batch = clients.last_batch(writing.sink, name)
            new_ones += 1
        try:
            return _in_transaction(writing, clients, producer, pages)
        except ProducerFailure as failed:
            # Another worker may have written this part since, or the commit has succeeded: the mark shows it. A new
            # producer may be shut out by a request that an ended run has left at a broker.
            may_succeed = failed.ends_producer if new_ones == 0 else failed.is_shut_out and new_ones == 1
            if not may_succeed:
                raise producer.explained(failed.error) from None
            _LOGGER.info("%s: a new producer replaces %s: %s", writing.where, name, failed.error.str())


def _in_transaction(writing: _Writing, clients: Clients, producer: Producer, pages: list[bytes]) -> int:
    sink, package = writing.sink, load_package()
    if is_committed(producer.last_batch, writing.batch):
        return 0
    try:
        producer.client.begin_transaction()
        written = sum(producer.send(pickle.loads(page)) for page in pages)
        mark = package.TopicPartition(sink.topic, 0, writing.batch + 1)
        group = clients.group(sink, producer.name).consumer_group_metadata()
        send = partial(producer.client.send_offsets_to_transaction, [mark], group, TRANSACTION_SECONDS)
        call_in_time(send, TRANSACTION_SECONDS)
        call_in_time(partial(producer.client.commit_transaction, TRANSACTION_SECONDS), TRANSACTION_SECONDS)
        producer.check()
    except package.KafkaException as error:
        clients.drop(producer)
        raise producer.failed(error) from None
    except BaseException:
        clients.drop(producer)
        raise
    producer.last_batch = writing.batch
    return written
