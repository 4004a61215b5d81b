"""Writes a topic: tasks produce the records of a micro-batch, at least once or in transactions.

In transactions, the records of a micro-batch are divided by key, always in the same way. Each part is one transaction,
which also commits the number of the micro-batch plus one as the offset of a consumer group of its own. A micro-batch
that is written again finds that offset, and leaves the part out. A transactional identifier for each part shuts out
whoever else wrote it before. The driver writes a small micro-batch itself, and tasks write a large one.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.base.identifiers import identifier
from penstock.error import refusal
from penstock.io.kafka import KafkaSink
from penstock_spark.formats.kafka.client import (
    FENCED,
    REQUEST_SECONDS,
    StandsStill,
    asked,
    client,
    explained,
    in_thread,
    in_time,
    leave,
    make,
)
from penstock_spark.reports.failure import step_failed
from penstock_spark.reports.reporting import Reporting, report_with, reporting_now
from penstock_spark.session.spark_versions import repartition_by_number
from penstock_spark.session.workers_python import map_in_arrow
from penstock_spark.shipping.import_paths import driver_sys_path, import_like_driver
from penstock_spark.sinks.plan import CommitStopped, Encoder, MicroBatch, SinkPlan
from penstock_spark.worker.batch import dumps, dumps_with_code, loads

_LOGGER = logging.getLogger(__name__)

_FLUSH_SECONDS = 0.5
_TRANSACTION_SECONDS = 60.0
_STOP_SECONDS = 0.5
_GROUP = "group "

Record = tuple[Any, ...]
"""What ``Producer.produce`` takes: topic, value, key, partition, timestamp in milliseconds, and headers."""

_producers: dict[str, Any] = {}
"""The producers of this process, which keep their connections from micro-batch to micro-batch."""


def plan_topic(sink: KafkaSink, is_stream: bool, where: str) -> SinkPlan:
    client(where)
    # Of the streams that this process has written itself.
    names: set[str] = set()

    def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
        if not batch.stream:
            check_topic(sink)
        stream = hashlib.sha256((batch.stream or identifier()).encode()).hexdigest()[:16]
        writing = _Writing(sink, where, f"penstock-{stream}", batch.number, reporting_now())
        if sink.is_exactly_once and batch.is_small:
            names.add(writing.name)
            _write_here(replace(writing, is_stopped=batch.stopping.is_set), frame, batch)
            return []
        if sink.is_exactly_once:
            frame = repartition_by_number(frame, sink.transactions, frame["part"])
        function = _writing_function(dumps_with_code(writing), driver_sys_path())
        map_in_arrow(frame, function, "written long").write.format("noop").mode("overwrite").save()
        return []

    if sink.is_exactly_once:
        make: Callable[[], Encoder] = partial(Parts, sink, where)
        return SinkPlan(
            "part int, value binary",
            make,
            None,
            commit,
            commits_in_tasks=True,
            commits_small_ones=is_stream,
            close=partial(_leave_clients, names),
        )
    return SinkPlan("value binary", partial(Records, sink, where), None, commit, commits_in_tasks=True)


def prepare_topic(sink: KafkaSink, spark: SparkSession, where: str, stream: str) -> None:
    try:
        check_topic(sink)
    except Exception as error:
        step_failed(error, where)


def check_topic(sink: KafkaSink) -> None:
    """Refuses a topic that does not exist, before anything is written; a ConnectionError if no broker answers."""
    brokers = sink.config["bootstrap.servers"]
    producer = make("Producer", sink.config)
    topics = asked(
        lambda: producer.list_topics(timeout=REQUEST_SECONDS).topics, "the topics cannot be listed", brokers
    )
    if sink.topic not in topics:
        what = f"there is no topic {sink.topic!r} at {brokers}"
        raise refusal(LookupError, what, hint="check the name, and make the topic first")


@dataclass
class Records(Encoder):
    """One pickled row of records for each batch of elements."""

    sink: KafkaSink
    where: str

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [pa.array([dumps(self.records(values))], pa.binary())], names=["value"]
        )

    def records(self, values: list[Any]) -> list[Record]:
        try:
            make_record = self._of_row if self.sink.with_headers else self._of_pair
            return list(map(make_record, values))
        except Exception as error:
            step_failed(error, self.where)

    def _of_pair(self, element: Any) -> Record:
        try:
            key, value = element
        except (TypeError, ValueError):
            what = f"an element is a {type(element).__name__}, and not a pair of key and value"
            raise refusal(TypeError, what, where=self.where, hint="make pairs of them with a Map") from None
        return self._record(key, value)

    def _of_row(self, element: Any) -> Record:
        def found(name: str) -> Any:
            return element.get(name) if isinstance(element, dict) else getattr(element, name, None)

        headers = found("headers")
        if headers is not None:
            headers = [
                tuple(header) if isinstance(header, list | tuple) else (header.key, header.value)
                for header in headers
            ]
        return self._record(
            found("key"), found("value"), found("topic"), found("partition"), found("timestamp"), headers
        )

    def _record(
        self,
        key: Any,
        value: Any,
        topic: str | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Any = None,
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

    def _bytes(self, part: str, data: Any, serialize: Any) -> bytes | None:
        if data is not None and serialize is not None:
            data = serialize(data)
        if data is None or isinstance(data, bytes):
            return data
        what = f"the {part} of an element is a {type(data).__name__}, but Kafka takes bytes"
        hint = f'pass {part}_serializer to WriteToKafka, such as "json"'
        raise refusal(TypeError, what, where=self.where, hint=hint)


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
            pa.array([dumps(part) for part in parts.values()], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, names=["part", "value"])


def _never() -> bool:
    """A task is not stopped: it ends with its process."""
    return False


@dataclass(frozen=True)
class _Writing:
    """What a task needs to write its share of a micro-batch."""

    sink: KafkaSink
    where: str
    name: str  # Of the stream and the sink, or of a run in batch mode.
    batch: int
    reporting: Reporting
    # Whether nobody waits for it any more, so that no new producer may begin.
    is_stopped: Callable[[], bool] = _never


def _writing_function(program: bytes, sys_path: tuple[str, ...]) -> Any:
    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import_like_driver(sys_path)
        writing: _Writing = loads(program)
        report_with(writing.reporting)
        try:
            written = write_parts(writing, rows) if writing.sink.is_exactly_once else write_all(writing, rows)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            step_failed(error, writing.where)
        yield pa.RecordBatch.from_arrays([pa.array([written], pa.int64())], names=["written"])

    return run


def _write_here(writing: _Writing, frame: DataFrame, batch: MicroBatch) -> None:
    """Writes a small micro-batch from this process.

    Its producers stay. A task may run in any of Spark's workers, and one that was not the last to write a part needs a
    new producer for it, which takes longer than all records of a small micro-batch.
    """
    rows = frame.toArrow().to_batches()
    batch.check()
    outcomes = in_thread(partial(write_parts, writing, iter(rows)))
    while True:
        try:
            _, failure = outcomes.get(timeout=_STOP_SECONDS)
            break
        except Empty:
            # Brokers that are away would be waited for for a minute.
            if batch.stopping.is_set():
                # The thread has these clients. New ones shut it out.
                _leave_clients({writing.name})
                raise CommitStopped from None
    if failure is not None:
        step_failed(failure, writing.where)


def _leave_clients(names: set[str]) -> None:
    """Gives up this process's clients of some streams."""
    if keys := [key for key in _producers if key.removeprefix(_GROUP).rpartition("-")[0] in names]:
        leave(*map(_producers.pop, keys))


def write_all(writing: _Writing, rows: Iterator[pa.RecordBatch]) -> int:
    """Writes records at least once; returns how many."""
    written = 0
    producer = _Producer.of(writing.sink, None)
    try:
        for batch in rows:
            for page in batch.column("value").to_pylist():
                written += producer.send(loads(page))
        producer.flush()
    except BaseException as error:
        # After a fatal error, a producer never works again.
        producer.drop()
        if isinstance(error, _Failed):
            raise producer.explained(error.error) from None
        raise
    return written


def write_parts(writing: _Writing, rows: Iterator[pa.RecordBatch]) -> int:
    """Writes each part in a transaction, unless an earlier try has; returns how many records."""
    parts: dict[int, list[bytes]] = {}
    for batch in rows:
        for part, page in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            parts.setdefault(part, []).append(page)
    return sum(_write_part(writing, part, pages) for part, pages in sorted(parts.items()))


def _write_part(writing: _Writing, part: int, pages: list[bytes]) -> int:
    name = f"{writing.name}-{part}"
    try:
        return _write_once(writing, name, pages)
    except StandsStill as error:
        # What the new clients find is not done is void as soon as they begin.
        _LOGGER.warning("%s: new clients replace the clients of %s: %s", writing.where, name, error)
        leave(_producers.pop(name, None), _producers.pop(_group_key(name), None))
        return _write_once(writing, name, pages)


def _write_once(writing: _Writing, name: str, pages: list[bytes]) -> int:
    """Writes a part, unless its mark says that it is written; returns how many records."""
    known = _producers.get(name)
    if known is not None:
        try:
            return _in_transaction(writing, known, pages)
        except _Failed as failed:
            if not failed.ends_producer:
                raise known.explained(failed.error) from None
            # Another worker may have written this part since, or the commit has succeeded: the mark shows it.
            _LOGGER.info("%s: a new producer replaces %s: %s", writing.where, name, failed.error.str())
    if writing.is_stopped():
        raise CommitStopped
    producer = _Producer.of(writing.sink, name)
    producer.last_batch = _last_batch(writing.sink, name)
    try:
        return _in_transaction(writing, producer, pages)
    except _Failed as failed:
        raise producer.explained(failed.error) from None


class _Failed(Exception):
    """A producer could not do its work.

    Attributes:
        error: Kafka's error.
        ends_producer: Whether a new producer may succeed: this one is shut out or in a state that it cannot leave, or
            the transaction is void.
    """

    def __init__(self, error: Any) -> None:
        super().__init__()
        self.error = error
        shut_out = error.name() in FENCED or error.name() == "_FATAL"
        self.ends_producer = shut_out or error.fatal() or error.txn_requires_abort()


def _in_transaction(writing: _Writing, producer: _Producer, pages: list[bytes]) -> int:
    sink, package = writing.sink, client()
    if producer.last_batch >= writing.batch:
        return 0
    try:
        producer.client.begin_transaction()
        written = sum(producer.send(loads(page)) for page in pages)
        mark = package.TopicPartition(sink.topic, 0, writing.batch + 1)
        group = _group(sink, producer.name).consumer_group_metadata()
        send = partial(producer.client.send_offsets_to_transaction, [mark], group, _TRANSACTION_SECONDS)
        in_time(send, _TRANSACTION_SECONDS)
        in_time(partial(producer.client.commit_transaction, _TRANSACTION_SECONDS), _TRANSACTION_SECONDS)
        producer.check()
    except package.KafkaException as error:
        producer.drop()
        raise producer.failed(error) from None
    except BaseException:
        producer.drop()
        raise
    producer.last_batch = writing.batch
    return written


def _last_batch(sink: KafkaSink, name: str) -> int:
    """The last micro-batch of which a part is written; -1 if there is none."""
    mark = client().TopicPartition(sink.topic, 0)
    brokers = sink.config["bootstrap.servers"]
    [found] = asked(
        lambda: _group(sink, name).committed([mark], REQUEST_SECONDS),
        "the last transaction cannot be found",
        brokers,
    )
    return max(int(found.offset), 0) - 1


def _group(sink: KafkaSink, name: str) -> Any:
    """A consumer that stands for a group, and never reads."""
    key = _group_key(name)
    if key not in _producers:
        known = {key: value for key, value in sink.config.items() if key not in _OF_PRODUCERS}
        # Only a reader of committed records waits for marks of which the transaction is about to end.
        own = {"group.id": name, "enable.auto.commit": False, "isolation.level": "read_committed"}
        _producers[key] = make("Consumer", {**known, **own})
    return _producers[key]


def _group_key(name: str) -> str:
    return f"{_GROUP}{name}"


class _Producer:
    """A producer, and the first error that ends it or keeps a record from being delivered."""

    def __init__(self, sink: KafkaSink, name: str) -> None:
        self.name = name
        self._sink = sink
        self._error: Any = None
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
        self.client = make("Producer", config)
        if sink.is_exactly_once:
            asked(
                lambda: self.client.init_transactions(_TRANSACTION_SECONDS),
                "no transaction can begin",
                sink.config["bootstrap.servers"],
                _TRANSACTION_SECONDS,
            )

    @staticmethod
    def of(sink: KafkaSink, transactional: str | None) -> _Producer:
        name = transactional or repr(sorted(sink.config.items()))
        if name not in _producers:
            _producers[name] = _Producer(sink, name)
        found: _Producer = _producers[name]
        found._error = None
        return found

    def drop(self) -> None:
        """Has the next micro-batch make another one."""
        leave(_producers.pop(self.name, None))

    def send(self, records: Sequence[Record]) -> int:
        """Hands records to the client; waits where its queue is full."""
        package, produce = client(), self.client.produce
        for topic, value, key, partition, timestamp, headers in records:
            while True:
                try:
                    produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                    break
                except BufferError:
                    in_time(partial(self.client.poll, _FLUSH_SECONDS), _FLUSH_SECONDS)
                    self.check()
                except package.KafkaException as error:
                    raise self.failed(error) from None
        self.client.poll(0)
        self.check()
        return len(records)

    def flush(self) -> None:
        """Waits until everything is delivered, or something cannot be."""
        while in_time(partial(self.client.flush, _FLUSH_SECONDS), _FLUSH_SECONDS):
            self.check()
        self.check()

    def check(self) -> None:
        """Raises what keeps records from being delivered."""
        if self._error is not None:
            raise _Failed(self._error)

    def failed(self, error: Any) -> _Failed:
        """What an exception of the client means: after a fatal error, each call only says that there was one."""
        found = error.args[0]
        if found.name() == "_FATAL":
            self.client.poll(0)
            found = self._error or found
        return _Failed(found)

    def _note(self, error: Any) -> None:
        # A fatal error is the cause of the errors of the records.
        if error is not None and (self._error is None or error.fatal()):
            self._error = error

    def explained(self, error: Any) -> Exception:
        """An error of Kafka's, as what it means for this topic."""
        topic, brokers = self._sink.topic, self._sink.config["bootstrap.servers"]
        return explained(error, f"the topic {topic!r} cannot be written", brokers)


_OF_PRODUCERS = frozenset(
    {
        *(
            "acks",
            "request.required.acks",
            "enable.idempotence",
            "linger.ms",
            "queue.buffering.max.ms",
            "retries",
        ),
        *(
            "message.send.max.retries",
            "batch.size",
            "batch.num.messages",
            "compression.type",
            "compression.codec",
        ),
        *(
            "compression.level",
            "delivery.timeout.ms",
            "message.timeout.ms",
            "partitioner",
            "transaction.timeout.ms",
        ),
        *("queue.buffering.max.messages", "queue.buffering.max.kbytes", "request.timeout.ms"),
        "sticky.partitioning.linger.ms",
    }
)
"""Options that only a producer knows."""
