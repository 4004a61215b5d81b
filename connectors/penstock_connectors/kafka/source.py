"""Kafka's topics as a Python source: offsets are its positions, and tasks consume ranges of them."""

from __future__ import annotations

import importlib
import io
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from penstock.checks.similar_names import hint_at_name
from penstock.error import refusal
from penstock.io.custom.ranges import (
    NumberedSource,
    RangesOfSource,
    SourceRange,
    TimedElements,
    UnreadableElement,
)
from penstock.io.kafka import AvroDeserializer, KafkaRecord, KafkaSource
from penstock.io.rejects import Position, Unreadable, say_why
from penstock.io.streaming.stream_sources import StreamSource
from penstock.utils import clock
from penstock.utils.timestamp import MAX_TIMESTAMP
from penstock_connectors.kafka.client import (
    REQUEST_SECONDS,
    ClientStalled,
    abandon,
    ask_brokers,
    call_in_time,
    explain_error,
    load_package,
    make_client,
    topic_of,
    topic_partition,
)
from penstock_spark.connecting.reading import Scan, StreamScan, open_range_stream, open_ranges

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message
    from confluent_kafka.admin import AdminClient

_LOGGER = logging.getLogger(__name__)

_RECORDS_AT_ONCE = 5_000
_WAIT_SECONDS = 0.02
_COMMIT_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_NO_TIME = -1
"""The time in milliseconds of a record that has none, although its topic has times."""

_MAX_MILLIS = MAX_TIMESTAMP.micros // 1000

_TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")

_consumers: dict[str, Any] = {}
"""The consumers of this process, which keep their connections from range to range."""


def open_topics(source: KafkaSource, spark: SparkSession, where: str) -> Scan:
    return open_ranges(RangesOfSource(Topics(source)), spark, where)


def open_topics_with_rejects(source: KafkaSource, spark: SparkSession, where: str) -> Scan:
    return open_ranges(RangesOfSource(Topics(source)), spark, where, has_rejects=True)


def open_topics_stream(
    source: KafkaSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    return open_range_stream(RangesOfSource(Topics(source)), stream, spark, where)


def _forget(consumer: Consumer) -> None:
    for key in [key for key, each in _consumers.items() if each is consumer]:
        abandon(_consumers.pop(key))


class Topics(NumberedSource[Any]):
    """Partitions have names such as ``clicks/3``.

    Beside the offset of each partition, a position has the identifier of each topic, if the brokers return it. A topic
    that is deleted and created again has another one.
    """

    # Its client reconnects on its own; when `read` raises a TimeoutError, the patience has ended.
    connection_errors = (ConnectionError,)
    # The latest offset moves on, and so does the earliest one when records are removed.
    asks_first_position_once = True

    def __init__(self, source: KafkaSource) -> None:
        self._source = source
        self.has_times = source.has_times
        self.patience_seconds = source.patience_seconds
        self._brokers = source.config["bootstrap.servers"]
        self._found: list[str] = []
        self._found_seconds: float | None = None
        self._identifiers: dict[str, str] = {}
        self._missing: set[str] = set()
        self._ends: dict[str, int] = {}
        self._admin: AdminClient | None = None
        self._planner: Consumer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_admin": None, "_planner": None, "_found_seconds": None}

    def describe(self) -> str:
        return self._source.describe()

    def first_position(self) -> dict[str, Any]:
        first = super().first_position()
        if not first:
            _LOGGER.warning("%s: the topic does not exist yet", self.describe())
        return {**self._identifiers, **first, **self._beginning(first)}

    def _beginning(self, first: dict[str, int]) -> dict[str, int]:
        """The offsets where the user wants to begin, if that is not at the first offset."""
        if self._source.start_millis is not None:
            return self._at_millis(list(first), self._source.start_millis)
        if self._source.start == "latest":
            return self._offsets(list(first), "latest")
        return self._named("start_offsets", self._source.start, first)

    def last_position(self, start: Mapping[str, Any], max_records: int | None) -> dict[str, Any]:
        self._wait_for_records(_offsets_of(start))
        partitions = self._partitions()
        self._check_identifiers(start, self._identifiers)
        self._check_partitions(_offsets_of(start), partitions)
        limits = [limit for limit in (max_records, self._source.max_num_records) if limit is not None]
        return {**self._identifiers, **super().last_position(start, min(limits, default=None))}

    def _wait_for_records(self, start: Mapping[str, int]) -> None:
        """Waits in a batch for `max_read_time`, or until the maximum number of records is there."""
        until_seconds = clock.monotonic_seconds() + self._source.max_read_seconds
        while (left_seconds := until_seconds - clock.monotonic_seconds()) > 0:
            if self._source.max_num_records is not None:
                ends = {name: end for name, (_, end) in self.bounds().items() if name in start}
                if sum(end - start[name] for name, end in ends.items()) >= self._source.max_num_records:
                    return
            clock.sleep(min(left_seconds, _LOOK_SECONDS))

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any], parallelism: int) -> list[SourceRange]:
        ranges = super().ranges(_offsets_of(start), _offsets_of(end), parallelism)
        to_read = {topic_of(piece.partition) for piece in ranges if piece.start < piece.end} & end.keys()
        # A micro-batch that runs again has not been asked for its end.
        found = self._identified(to_read)
        self._check_identifiers(end, found)
        if gone := sorted(to_read - found.keys()):
            what = f"the topic {gone[0]!r} at {self._brokers} is gone, and some of its records have not been read"
            raise refusal(
                LookupError, what, hint="start with a new checkpoint to continue without the lost ones"
            )
        return ranges

    def bounds(self) -> dict[str, tuple[int, int]]:
        try:
            return self._bounds(self._partitions())
        except ConnectionError:
            # A client that has heard that a partition has no leader asks for a new one only when it lists topics.
            self._found_seconds = None
            raise
        except LookupError:
            # A topic may be gone since they were looked up.
            self._found_seconds = None
            return self._bounds(self._partitions())

    def _bounds(self, partitions: list[str]) -> dict[str, tuple[int, int]]:
        first, last = self._offsets(partitions, "earliest"), self._offsets(partitions, "latest")
        ends = self._ends_of(partitions)
        return {
            name: (first[name], max(first[name], min(last[name], ends.get(name, last[name]))))
            for name in partitions
        }

    def read(self, piece: SourceRange) -> Iterator[Any]:
        consumer = self._consumer()
        consumer.assign([topic_partition(piece.partition, piece.start)])
        try:
            at, since_seconds = piece.start, clock.monotonic_seconds()
            while at < piece.end:
                consume = partial(consumer.consume, min(_RECORDS_AT_ONCE, piece.end - at), _WAIT_SECONDS)
                try:
                    messages = call_in_time(consume, _WAIT_SECONDS)
                except ClientStalled as error:
                    _LOGGER.warning("%s: another client continues: %s", piece.partition, error)
                    _forget(consumer)
                    consumer = self._consumer()
                    consumer.assign([topic_partition(piece.partition, at)])
                    messages = []
                events = [message for message in messages if message.error() is not None]
                records = [message for message in messages if message.error() is None] if events else messages
                if records:
                    at, since_seconds = records[-1].offset() + 1, clock.monotonic_seconds()
                    if at >= piece.end:
                        # While our records are worked on, the client would ask for more.
                        consumer.unassign()
                    # Behind a gap, such as the mark of a transaction, the next record may be beyond the end.
                    yield self._elements([record for record in records if record.offset() < piece.end])
                for event in events:
                    at = max(at, self._reached(event, piece))
                if clock.monotonic_seconds() - since_seconds > self.patience_seconds:
                    raise self._no_records(piece, at)
        finally:
            consumer.unassign()

    def commit(self, position: Mapping[str, Any]) -> None:
        if not self._source.commits_offsets:
            return
        offsets = [topic_partition(name, offset) for name, offset in _offsets_of(position).items()]
        if self._planner is None:
            self._planner = make_client("Consumer", self._source.config, **{"enable.auto.commit": False})
        commit = partial(self._planner.commit, offsets=offsets, asynchronous=False)
        self._asked(
            commit, f"the offsets of {self.describe()} cannot be committed", _COMMIT_SECONDS, self._planner
        )

    def close(self) -> None:
        if self._planner is not None:
            self._planner.close()
        self._admin = self._planner = None

    # Planning, on the driver

    def _partitions(self) -> list[str]:
        """The partitions to read, which are looked up again from time to time."""
        now = clock.monotonic_seconds()
        if self._found_seconds is None or now - self._found_seconds >= self._source.poll_partitions_seconds:
            self._found, self._found_seconds = self._look_up(), now
        return self._found

    def _look_up(self) -> list[str]:
        # Asking for all topics never makes one, as asking for a missing one by name may.
        found = self._ask(
            "the topics cannot be listed", lambda admin: admin.list_topics(timeout=REQUEST_SECONDS)
        )
        source = self._source
        names = source.names
        for name in names:
            topic = found.topics.get(name)
            if topic is None or not topic.partitions:
                what = f"there is no topic {name!r} at {self._brokers}"
                hint = hint_at_name(name, found.topics, "check the name, and make the topic first")
                raise refusal(LookupError, what, hint=hint)
        if source.partitions:
            for name, number in source.partitions:
                if number not in found.topics[name].partitions:
                    what = f"the topic {name!r} has no partition {number}"
                    raise refusal(LookupError, what, hint="leave it out of partitions")
        if source.pattern is not None:
            names = tuple(sorted(name for name in found.topics if re.fullmatch(source.pattern, name)))
        # Only the controller knows identifiers, and a cluster that elects one has none for a moment.
        self._identifiers = self._identified(names) if found.controller_id in found.brokers else {}
        if source.partitions:
            return [f"{name}/{number}" for name, number in source.partitions]
        return [f"{name}/{number}" for name in names for number in sorted(found.topics[name].partitions)]

    def _identified(self, topics: Collection[str]) -> dict[str, str]:
        """The identifiers of topics, without topics that are gone; none from brokers before Kafka 2.8."""
        if not topics:
            return {}
        package = load_package()

        def question(client: AdminClient) -> dict[str, str]:
            found = {}
            futures = client.describe_topics(
                package.TopicCollection(sorted(set(topics))), request_timeout=REQUEST_SECONDS
            )
            for topic, future in futures.items():
                try:
                    identifier = future.result().topic_id
                except package.KafkaException as error:
                    if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                        raise
                    continue
                if identifier.get_most_significant_bits() or identifier.get_least_significant_bits():
                    found[topic] = str(identifier)
            return found

        identifiers: dict[str, str] = self._ask("the topics cannot be described", question)
        return identifiers

    def _check_identifiers(self, position: Mapping[str, Any], identifiers: Mapping[str, str]) -> None:
        for topic, identifier in identifiers.items():
            if position.get(topic, identifier) != identifier:
                what = f"the topic {topic!r} at {self._brokers} is not the topic that the stream has read: "
                what += "it was deleted and created again, or these are other brokers"
                raise refusal(ValueError, what, hint="start with a new checkpoint")

    def _check_partitions(self, start: Mapping[str, int], partitions: list[str]) -> None:
        """Notices what the stream has read and what is gone, unless the user has left it out."""
        source = self._source
        topics = set(map(topic_of, partitions))
        for name in [] if source.partitions else start.keys() - set(partitions):
            topic = topic_of(name)
            if topic in topics:
                what = f"the topic {topic!r} has no partition {name.removeprefix(topic)[1:]} any more, "
                what += f"which the stream has read up to record {start[name]}"
                hint = "if it was deleted and created again, start with a new checkpoint"
                raise refusal(ValueError, what, hint=hint)
            if source.pattern and re.fullmatch(source.pattern, topic) and topic not in self._missing:
                what = "the topic %r is gone; records of it that were not read are lost"
                _LOGGER.warning("%s: " + what, self.describe(), topic)
                self._missing.add(topic)
        self._missing -= topics

    def _offsets(self, partitions: list[str], which: str, millis: int = 0) -> dict[str, int]:
        """The earliest or latest offsets, or the first ones at a time, of all partitions in one request."""
        if not partitions:
            return {}
        package, kinds = load_package(), importlib.import_module("confluent_kafka.admin").OffsetSpec
        spec = kinds.for_timestamp(millis) if which == "time" else getattr(kinds, which)()
        isolation = "READ_UNCOMMITTED"
        if self._source.config.get("isolation.level", "read_committed") == "read_committed":
            isolation = "READ_COMMITTED"
        asked_of = {topic_partition(name): spec for name in partitions}

        def question(client: AdminClient) -> dict[str, int]:
            futures = client.list_offsets(
                asked_of,
                isolation_level=getattr(package.IsolationLevel, isolation),
                request_timeout=REQUEST_SECONDS,
            )
            return {
                f"{part.topic}/{part.partition}": future.result().offset for part, future in futures.items()
            }

        offsets: dict[str, int] = self._ask("the offsets cannot be read", question)
        # -1 says that everything is older. A smaller number means that no answer came; the client raises no error then.
        if any(offset < (-1 if which == "time" else 0) for offset in offsets.values()):
            what = f"the offsets cannot be read: the brokers {self._brokers} cannot be reached"
            hint = "check that the brokers run, and that this machine can reach the addresses that they advertise"
            raise refusal(ConnectionError, what, hint=hint)
        return offsets

    def _at_millis(self, partitions: list[str], millis: int) -> dict[str, int]:
        """The first offsets at or after a time; the end where everything is older."""
        latest = self._offsets(partitions, "latest")
        found = self._offsets(partitions, "time", millis)
        return {name: latest[name] if offset < 0 else offset for name, offset in found.items()}

    def _ends_of(self, partitions: list[str]) -> dict[str, int]:
        """The offsets before which to end, where the user has named them.

        A partition of which all records are older than `end_read_time` has no end yet: more of them may come.
        """
        if self._source.end_millis is not None:
            open_ones = [name for name in partitions if name not in self._ends]
            found = self._offsets(open_ones, "time", self._source.end_millis)
            self._ends |= {name: offset for name, offset in found.items() if offset >= 0}
        elif not self._ends:
            self._ends = self._named("end_offsets", self._source.end, partitions)
        return self._ends

    def _named(self, argument: str, offsets: object, partitions: Iterable[str]) -> dict[str, int]:
        """The user's offsets by partition."""
        if not isinstance(offsets, Mapping):
            return {}
        named = {
            f"{topic}/{number}": offset for topic, own in offsets.items() for number, offset in own.items()
        }
        if unknown := sorted(set(named) - set(partitions)):
            what = f"{argument} names the partition {unknown[0]}, which is not read"
            raise refusal(LookupError, what, hint="correct the number of the partition, or leave it out")
        return named

    def _ask(self, what: str, question: Callable[..., Any]) -> Any:
        if self._admin is None:
            config = {name: value for name, value in self._source.config.items() if name not in _OF_CONSUMERS}
            self._admin = make_client("AdminClient", config)
        return self._asked(partial(question, self._admin), what, REQUEST_SECONDS, self._admin)

    def _asked(self, question: Callable[[], Any], what: str, seconds: float, asker: object) -> Any:
        """The brokers' answer; if a client hangs, the next question goes to new ones."""
        try:
            return ask_brokers(question, what, self._brokers, seconds, asker)
        except ClientStalled:
            abandon(self._admin, self._planner)
            self._admin = self._planner = None
            raise

    # Reading, in tasks

    def _consumer(self) -> Any:
        config = {
            "group.id": "penstock",
            # Nothing is asked for before all that came is taken. Otherwise the client asks for what is behind a range,
            # which the broker holds until there is something, and the next range waits as long.
            "queued.min.messages": 1,
            "fetch.queue.backoff.ms": 10,
            # A range may end with the mark of a transaction. Only a request for what is behind it shows that there is
            # nothing more.
            "fetch.wait.max.ms": 20,
            **self._source.config,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # Reading of removed records must be an error.
            "auto.offset.reset": "error",
        }
        key = repr(sorted(config.items()))
        if key not in _consumers:
            _consumers[key] = make_client("Consumer", config)
        return _consumers[key]

    def _reached(self, event: Any, piece: SourceRange) -> int:
        """The offset before which nothing more comes; raises what the event says is wrong."""
        error = event.error()
        match error.name():
            case "_PARTITION_EOF":
                offset: int = event.offset()
                return offset if offset >= piece.end else piece.start
            case "_ALL_BROKERS_DOWN" | "_TRANSPORT" | "_TIMED_OUT" | "_RESOLVE":
                # The client connects again, for as long as our patience lasts.
                return int(piece.start)
            case "_AUTO_OFFSET_RESET" | "OFFSET_OUT_OF_RANGE":
                what = f"records of {piece.partition} from offset {piece.start} or later have been deleted"
                hint = "keep records longer; start with a new checkpoint to continue without the lost ones"
                raise refusal(LookupError, what, hint=hint)
        raise explain_error(error, f"{piece.partition} cannot be read", self._brokers)

    def _no_records(self, piece: SourceRange, at: int) -> Exception:
        what = f"no record of {piece.partition} from offset {at} or later has arrived for "
        what += (
            f"{self.patience_seconds:g} seconds, although {self._brokers} reports records up to {piece.end}"
        )
        hint = "check that the brokers run, and that the workers can reach the addresses that they advertise"
        return refusal(TimeoutError, what, hint=hint)

    def _elements(self, messages: list[Any]) -> object:
        source = self._source
        keys: list[Any] = [message.key() for message in messages]
        values: list[Any] = [message.value() for message in messages]
        unreadable: dict[int, UnreadableElement] = {}
        for column, decode in ((keys, source.key_deserializer), (values, source.value_deserializer)):
            if decode is not None:
                _decode(column, deserializer_of(decode), messages, unreadable, is_key=column is keys)
        elements: list[Any] = list(zip(keys, values, strict=True))
        if source.with_metadata:
            elements = [_record(message, *pair) for message, pair in zip(messages, elements, strict=True)]
        times_micros = self._times(messages, unreadable) if self.has_times else None
        for place, element in unreadable.items():
            elements[place] = element
        return elements if times_micros is None else TimedElements(elements, times_micros)

    def _times(self, messages: list[Any], unreadable: dict[int, UnreadableElement]) -> list[int]:
        stamps = [message.timestamp() for message in messages]
        wanted = self._source.timestamp_policy
        for kind in {kind for kind, _ in stamps}:
            if _TIMESTAMP_TYPES[kind] != wanted:
                what = f"timestamp_policy is {wanted}, but {self.describe()} has records with {_TIMESTAMP_TYPES[kind]}"
                hint = "use the policy that fits the topic's message.timestamp.type, or pass event_time to as_stream"
                raise refusal(ValueError, what, hint=hint)
        times_millis = [millis for _, millis in stamps]
        if times_millis and (min(times_millis) < 0 or max(times_millis) > _MAX_MILLIS):
            for place, millis in enumerate(times_millis):
                if (why := _why_no_time(millis)) is not None:
                    hint = "pass rejects=True to as_stream, or leave timestamp_policy out and pass event_time"
                    unreadable[place] = _unreadable(messages[place], refusal(ValueError, why, hint=hint))
        return [millis * 1000 for millis in times_millis]


_OF_CONSUMERS = frozenset(
    {
        *("group.id", "auto.offset.reset", "enable.auto.commit", "isolation.level", "enable.partition.eof"),
        *(
            "session.timeout.ms",
            "max.poll.interval.ms",
            "fetch.min.bytes",
            "fetch.wait.max.ms",
            "fetch.max.bytes",
            "fetch.queue.backoff.ms",
        ),
        *("max.partition.fetch.bytes", "fetch.message.max.bytes", "queued.min.messages", "check.crcs"),
        *("queued.max.messages.kbytes", "partition.assignment.strategy", "group.instance.id"),
    }
)
"""Options that only a consumer knows."""


def _offsets_of(position: Mapping[str, Any]) -> dict[str, int]:
    """The offsets of a position, without the identifiers.

    >>> _offsets_of({"clicks": "vfQzg4kcRLKvp3Tuqlg_Nw", "clicks/0": 17})
    {'clicks/0': 17}
    """
    return {name: offset for name, offset in position.items() if isinstance(offset, int)}


def _decode(
    column: list[Any],
    decode: Callable[[bytes], Any],
    messages: list[Any],
    unreadable: dict[int, UnreadableElement],
    *,
    is_key: bool,
) -> None:
    """Decodes what is not None, in place; what cannot be decoded gets its original record."""
    for place, data in enumerate(column):
        if data is not None:
            try:
                column[place] = decode(data)
            except Exception as error:
                why: Exception = error
                if is_key:
                    why = Unreadable(f"the key cannot be decoded: {say_why(error)}", "key")
                unreadable[place] = _unreadable(messages[place], why)


def _why_no_time(millis: int) -> str | None:
    """The reason why the time of a record is wrong; None if it can be an event time."""
    if millis == _NO_TIME:
        return "a record has no time"
    return "the time of a record is out of range" if abs(millis) > _MAX_MILLIS else None


def _unreadable(message: Message, error: Exception) -> UnreadableElement:
    position = Position(None, message.partition(), message.offset())
    return UnreadableElement(message.value() or b"", error, message.topic(), position)


def deserializer_of(deserializer: object) -> Any:
    """A function from bytes."""
    if not isinstance(deserializer, AvroDeserializer):
        return deserializer
    fastavro = importlib.import_module("fastavro")

    def decode(data: bytes) -> object:
        stream = io.BytesIO(data)
        value = fastavro.schemaless_reader(stream, deserializer.schema, deserializer.reader_schema)
        if stream.read(1):
            raise ValueError("bytes are left over after the Avro value: is this the schema of the writer?")
        return value

    return decode


def _record(message: Any, key: object, value: object) -> KafkaRecord:
    kind, millis = message.timestamp()
    headers = tuple(message.headers() or ())
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        millis,
        _TIMESTAMP_TYPES[kind],
        headers,
        key,
        value,
    )
