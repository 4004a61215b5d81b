"""Reads and writes Kafka topics with the package ``confluent-kafka``, without Java.

Install it with ``pip install 'penstock[kafka]'``. Spark's own connector, which needs a jar, is
``ReadFromSpark("kafka", ...)`` and ``WriteToSpark("kafka", ...)``.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.checks.unsupported_arguments import refuse_unsupported
from penstock.error import noun_for, refusal
from penstock.graph import Sink
from penstock.io.argument_checks import check_number_from_zero
from penstock.io.sink_transforms import SinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import Streamable
from penstock.typehints import typehints

__all__ = [
    "AvroDeserializer",
    "KafkaRecord",
    "KafkaSink",
    "KafkaSource",
    "ReadFromKafka",
    "WriteToKafka",
]

Serializer = Callable[[Any], bytes]

_JAVA = "org.apache.kafka.common.serialization."
_NUMBERS = {"Short": ">h", "Integer": ">i", "Long": ">q", "Float": ">f", "Double": ">d"}
_NO_NUMBER = "leave it out if it has no meaning here"
_POLICIES = ("ProcessingTime", "CreateTime", "LogAppendTime")
_INSTEAD = {
    "consumer_polling_timeout": "patience_seconds says how long to wait for brokers that cannot be reached",
    "redistribute": "leave it out: tasks share the records of a partition; beam.Reshuffle() spreads them again",
    "redistribute_num_keys": "leave it out: beam.Reshuffle(num_buckets) spreads records over that number of keys",
    "allow_duplicates": "leave it out: each record counts once",
    "consumer_factory_fn_class": "it names a Java class; put what it sets into consumer_config",
    "consumer_factory_fn_params": "they are for a Java class; put what it sets into consumer_config",
}


class KafkaRecord(NamedTuple):
    """A record with all its metadata in Kafka (penstock's own).

    Attributes:
        topic: The name of the topic.
        partition: The number of the partition.
        offset: The number of the record in the partition.
        timestamp_millis: Its time in milliseconds since 1970, or -1 if it has none.
        timestamp_type: ``"CreateTime"``, ``"LogAppendTime"`` or ``"NoTimestampType"``.
        headers: Pairs of a name and bytes, or None for a header without a value.
        key: The key, after the deserializer; None for a record without a key.
        value: The value, after the deserializer; None for a record that deletes its key.
    """

    topic: str
    partition: int
    offset: int
    timestamp_millis: int
    timestamp_type: str
    headers: tuple[tuple[str, bytes | None], ...]
    key: Any
    value: Any


@dataclass(frozen=True)
class AvroDeserializer:
    """Decodes bytes that hold one Avro value without a header (penstock's own); needs the package ``fastavro``.

    Args:
        schema: The writer's schema, as a dict.
        reader_schema: The schema to read it as; by default the writer's.
    """

    schema: Any
    reader_schema: Any = None


Deserializer = Callable[[bytes], Any] | AvroDeserializer


@dataclass(frozen=True, eq=False)
class KafkaSource(Streamable):
    """Describes topics of Kafka; see `ReadFromKafka`."""

    config: Mapping[str, Any] = field(repr=False)  # It may contain passwords.
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[tuple[str, int], ...] = ()
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    start: str | Mapping[str, Mapping[int, int]] = "earliest"
    end: Mapping[str, Mapping[int, int]] | None = None
    start_millis: int | None = None
    end_millis: int | None = None
    max_num_records: int | None = None
    max_read_seconds: float = 0.0
    timestamp_policy: str = "ProcessingTime"
    with_metadata: bool = False
    commits_offsets: bool = False
    poll_partitions_seconds: float = 10.0
    patience_seconds: float = 60.0

    reads_files = False
    limits_records = True
    has_partitions = True

    def describe(self) -> str:
        what = f"topics {self.pattern}" if self.pattern else f"topic {', '.join(self.names)}"
        return f"kafka {what} at {self.config['bootstrap.servers']}"

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that must exist."""
        return self.topics or tuple(dict.fromkeys(topic for topic, _ in self.partitions))

    @property
    def acknowledges(self) -> bool:  # type: ignore[override]
        """True if its offsets are committed to its group."""
        return self.commits_offsets

    @property
    def has_times(self) -> bool:  # type: ignore[override]
        """True if its elements have event times of their own."""
        return self.timestamp_policy != _POLICIES[0]

    def why_no_stream(self) -> tuple[str, str] | None:
        if self.max_num_records is not None:
            return (
                "max_num_records ends a batch, and a stream continues",
                "pass max_records_per_batch to as_stream",
            )
        if self.max_read_seconds:
            return (
                "max_read_time ends a batch, and a stream continues",
                "drain the stream when it has run that long",
            )
        return None


@dataclass(frozen=True, eq=False)
class KafkaSink(Sink):
    """Describes a topic that is written; see `WriteToKafka`."""

    config: Mapping[str, Any] = field(repr=False)  # It may contain passwords.
    topic: str = ""
    key_serializer: Serializer | None = None
    value_serializer: Serializer | None = None
    with_headers: bool = False
    is_exactly_once: bool = False
    transactions: int = 4

    def describe(self) -> str:
        return f"kafka topic {self.topic} at {self.config['bootstrap.servers']}"


class ReadFromKafka(SourceTransform[Any]):
    """Reads Kafka's topics (Beam's ``ReadFromKafka``, without Java).

    Elements are pairs of key and value, or `KafkaRecord` values. It reads the records that exist when the pipeline
    starts; ``.as_stream(...)`` also reads later records. Spark's checkpoint keeps the offsets, so each record counts
    once. Partitions that are added later are read from their beginning. Watermarks may follow each partition:
    ``BoundedDisorder(60, per_partition=True)``, inside an ``IdleTimeout`` if partitions may become idle.

    A record that a deserializer refuses is an error, or with ``rejects=True`` one of the rejects, with its topic,
    partition and offset. If records are removed before a stream has read them, or a topic is deleted and created again,
    the stream fails.

    Args:
        consumer_config: The options of librdkafka's consumer, such as ``bootstrap.servers``, ``security.protocol`` and
            ``sasl.password``; they are never shown. Without ``isolation.level``, only committed records are read.
        topics: The names of topics.
        key_deserializer: A function from the key's bytes to an object; a name that Beam takes, such as
            ``"org.apache.kafka.common.serialization.StringDeserializer"``; ``"json"``; an object with a method
            ``decode``, such as a coder; or a class of Protobuf messages. By default, keys are bytes. None stays None.
        value_deserializer: The same for values.
        start_read_time: Where to begin, in milliseconds since 1970: at the first records that are not older.
        max_num_records: The maximum number of records, in batch mode.
        max_read_time: How many seconds to wait for records, in batch mode. The records of the topics are read after
            this time, or as soon as there are `max_num_records` records. By default, a batch does not wait.
        commit_offset_in_finalize: Whether a stream also commits the offsets to the group ``group.id``, so that tools
            show its progress.
        timestamp_policy: Where event times come from: ``"ProcessingTime"`` (the arrival time in a stream, none in batch
            mode), ``"CreateTime"`` or ``"LogAppendTime"``. A record without such a time cannot be decoded.
        with_metadata: Whether elements are `KafkaRecord` values.
        dynamic_read_poll_interval_seconds: How often a stream looks for new topics and partitions, in seconds; by
            default 10.
        expansion_service: Has no effect: there is nothing to expand.
        topic_pattern: A regular expression for the names of topics, which must match from beginning to end.
        partitions: Some partitions of topics, as ``{"topic": [0, 1]}``.
        start_offsets: ``"earliest"``, ``"latest"``, or the offsets of partitions, as ``{"topic": {0: 17}}``; partitions
            that are left out begin at the earliest. By default ``auto.offset.reset``, otherwise ``"earliest"``.
        end_offsets: The offsets before which to end, in the same format; partitions that are left out, or have fewer
            records, are read to their current end.
        end_read_time: Where to end, in milliseconds since 1970: before the first record that is not older.
        patience_seconds: How long to wait for brokers that cannot be reached while a pipeline runs.
        rejects: Whether there is a second output, tagged ``"rejected"``, with a `penstock.io.rejects.RejectedRecord`
            for each record that cannot be read; otherwise it is an error.
        unsupported: Beam's arguments that have no meaning without Java; refused.

    Raises:
        TypeError: An argument has the wrong type, or is unknown.
        UnsupportedByRunner: A Beam argument that penstock does not have is passed.
        ValueError: An argument has an invalid value, or two do not fit together.

    >>> read = ReadFromKafka({"bootstrap.servers": "kafka:9092"}, ["clicks"], value_deserializer="json")
    >>> read.source.describe()
    'kafka topic clicks at kafka:9092'
    """

    byte_array_deserializer = f"{_JAVA}ByteArrayDeserializer"
    processing_time_policy, create_time_policy, log_append_time = _POLICIES

    def __init__(
        self,
        consumer_config: Mapping[str, Any],
        topics: Sequence[str] | None = None,
        key_deserializer: object = byte_array_deserializer,
        value_deserializer: object = byte_array_deserializer,
        start_read_time: int | None = None,
        max_num_records: int | None = None,
        max_read_time: float | None = None,
        commit_offset_in_finalize: bool = False,
        timestamp_policy: str = processing_time_policy,
        *,
        with_metadata: bool = False,
        expansion_service: object = None,
        dynamic_read_poll_interval_seconds: float | None = None,
        topic_pattern: str | None = None,
        partitions: Mapping[str, Sequence[int]] | None = None,
        start_offsets: str | Mapping[str, Mapping[int, int]] | None = None,
        end_offsets: Mapping[str, Mapping[int, int]] | None = None,
        end_read_time: int | None = None,
        patience_seconds: float = 60.0,
        rejects: bool = False,
        **unsupported: object,
    ) -> None:
        refuse_unsupported(ReadFromKafka, unsupported, _INSTEAD)
        config = _config("consumer_config", consumer_config)
        _check_topics(topics, topic_pattern, partitions)
        if timestamp_policy not in _POLICIES:
            what = f"timestamp_policy must be one of {', '.join(_POLICIES)}, but is {timestamp_policy!r}"
            raise refusal(ValueError, what, hint='write timestamp_policy="CreateTime", for example')
        if str(config.get("enable.auto.commit")).lower() == "true":
            what = "enable.auto.commit would commit what is not processed; offsets are kept in the checkpoint"
            hint = "leave it out; commit_offset_in_finalize=True commits what is processed, for tools"
            raise refusal(ValueError, what, hint=hint)
        if commit_offset_in_finalize and "group.id" not in config:
            what = "commit_offset_in_finalize needs a group, but consumer_config has no group.id"
            raise refusal(ValueError, what, hint="add group.id to consumer_config")
        start = _start(start_offsets, start_read_time, config)
        if end_offsets is not None and end_read_time is not None:
            what = "end_offsets and end_read_time both say where to end"
            raise refusal(ValueError, what, hint="pass one of them")
        super().__init__(
            KafkaSource(
                config,
                tuple(topics or ()),
                topic_pattern,
                tuple((topic, number) for topic, numbers in (partitions or {}).items() for number in numbers),
                _deserializer("key_deserializer", key_deserializer),
                _deserializer("value_deserializer", value_deserializer),
                start,
                None if end_offsets is None else _offsets("end_offsets", end_offsets),
                check_number_from_zero("start_read_time", start_read_time, _NO_NUMBER),
                check_number_from_zero("end_read_time", end_read_time, _NO_NUMBER),
                check_number_from_zero("max_num_records", max_num_records, _NO_NUMBER),
                _seconds("max_read_time", max_read_time, 0.0),
                timestamp_policy,
                with_metadata,
                commit_offset_in_finalize,
                _seconds("dynamic_read_poll_interval_seconds", dynamic_read_poll_interval_seconds, 10.0),
                _seconds("patience_seconds", patience_seconds, 60.0),
            ),
            rejects=rejects,
        )

    def infer_output_type(self, input_type: object) -> object:
        assert isinstance(self.source, KafkaSource)
        return KafkaRecord if self.source.with_metadata else typehints.Tuple[Any, Any]


class WriteToKafka(SinkTransform[Any]):
    """Writes pairs of key and value to a Kafka topic (Beam's ``WriteToKafka``, without Java); no output.

    By default, each element is written at least once: Kafka drops records that a producer sends twice, but a
    micro-batch is written again if the program died after writing it and before its commit in the checkpoint. With
    `exactly_once`, each micro-batch is written in transactions that also store its number in Kafka. Readers must then
    read only committed records, as ``ReadFromKafka`` does.

    Args:
        producer_config: The options of librdkafka's producer, such as ``bootstrap.servers`` and ``sasl.password``; they
            are never shown.
        topic: The topic, which must exist.
        key_serializer: A function from a key to bytes; a name that Beam takes, such as
            ``"org.apache.kafka.common.serialization.StringSerializer"``; ``"json"``; or an object with a method
            ``encode``, such as a coder. By default, keys must be bytes. None stays None.
        value_serializer: The same for values.
        with_headers: Whether elements are rows with the fields ``key``, ``value``, and optionally ``headers`` (pairs
            or rows of ``key`` and ``value``), ``topic``, ``partition`` and ``timestamp`` (milliseconds since 1970, and
            not 0). A `KafkaRecord` is refused, because it names the topic that it was read from.
        expansion_service: Has no effect: there is nothing to expand.
        exactly_once: Whether to write in transactions.
        transactions: With `exactly_once`, the number of transactions into which a micro-batch is divided by key; a
            separate task may write each of them. A restarted stream must have the same number.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has an invalid value.

    >>> WriteToKafka({"bootstrap.servers": "kafka:9092"}, "sums", value_serializer="json").sink.describe()
    'kafka topic sums at kafka:9092'
    """

    byte_array_serializer = f"{_JAVA}ByteArraySerializer"

    def __init__(
        self,
        producer_config: Mapping[str, Any],
        topic: str,
        key_serializer: object = byte_array_serializer,
        value_serializer: object = byte_array_serializer,
        with_headers: bool = False,
        expansion_service: object = None,
        *,
        exactly_once: bool = False,
        transactions: int = 4,
    ) -> None:
        config = _config("producer_config", producer_config)
        if not isinstance(topic, str) or not topic:
            what = f"the topic must be a string, but is {topic!r}"
            raise refusal(TypeError, what, hint='write topic="sums", for example')
        if "transactional.id" in config:
            what = "producer_config has a transactional.id, but tasks need one each"
            raise refusal(ValueError, what, hint="leave it out, and pass exactly_once=True")
        if not isinstance(transactions, int) or isinstance(transactions, bool) or transactions < 1:
            what = f"transactions must be 1 or more, but is {transactions!r}"
            raise refusal(ValueError, what, hint="write transactions=4, for example")
        super().__init__(
            KafkaSink(
                config,
                topic,
                _serializer("key_serializer", key_serializer),
                _serializer("value_serializer", value_serializer),
                with_headers,
                exactly_once,
                transactions,
            )
        )


def _config(argument: str, config: object) -> Mapping[str, Any]:
    """The options as a dict of their own, with the brokers."""
    if not isinstance(config, Mapping):
        what = f"{argument} must be a dict, but is {noun_for(config)}"
        raise refusal(TypeError, what, hint=f'write {argument}={{"bootstrap.servers": "host:9092"}}')
    if not isinstance(config.get("bootstrap.servers"), str):
        what = f"{argument} does not say where the brokers are"
        raise refusal(ValueError, what, hint='add "bootstrap.servers": "host:9092"')
    return dict(config)


def _check_topics(topics: object, pattern: Any, partitions: object) -> None:
    given = [
        name
        for name, value in [("topics", topics), ("topic_pattern", pattern), ("partitions", partitions)]
        if value
    ]
    if len(given) != 1:
        what = "ReadFromKafka takes one of topics, topic_pattern and partitions, but got "
        what += " and ".join(given) or "none"
        raise refusal(ValueError, what, hint='write topics=["clicks"], for example')
    if isinstance(topics, str):
        what = f"topics must be a list of names, but is {topics!r}"
        raise refusal(TypeError, what, hint=f"write topics=[{topics!r}]")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            what = f"topic_pattern is not a regular expression: {error}"
            raise refusal(ValueError, what, hint="write topic_pattern='clicks-.*', for example") from None


def _seconds(argument: str, given: object, default: float) -> float:
    if given is None:
        return default
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return given
    what = f"{argument} must be a number of seconds from 0, but is {given!r}"
    raise refusal(ValueError, what, hint=f"write {argument}={default:g}, for example")


def _start(offsets: object, millis: int | None, config: Mapping[str, Any]) -> Any:
    argument = "start_offsets"
    if offsets is None:
        argument = "auto.offset.reset"
        offsets = config.get(argument, "earliest") if millis is None else "earliest"
    elif millis is not None:
        what = "start_offsets and start_read_time both say where to begin"
        raise refusal(ValueError, what, hint="pass one of them")
    named = {"earliest": "earliest", "smallest": "earliest", "beginning": "earliest"}
    named |= {"latest": "latest", "largest": "latest", "end": "latest"}
    if isinstance(offsets, str):
        if offsets in named:
            return named[offsets]
        what = f"{argument} must be 'earliest', 'latest' or offsets, but is {offsets!r}"
        raise refusal(ValueError, what, hint='write start_offsets="latest", for example')
    return _offsets("start_offsets", offsets)


def _offsets(argument: str, offsets: Any) -> Mapping[str, Mapping[int, int]]:
    is_right = isinstance(offsets, Mapping) and all(
        isinstance(topic, str)
        and isinstance(own, Mapping)
        and all(isinstance(number, int) and number >= 0 for pair in own.items() for number in pair)
        for topic, own in offsets.items()
    )
    if is_right:
        return {topic: dict(own) for topic, own in offsets.items()}
    what = f"{argument} must be offsets of partitions of topics, but is {offsets!r}"
    raise refusal(TypeError, what, hint=f'write {argument}={{"clicks": {{0: 17, 1: 4}}}}, for example')


def _deserializer(argument: str, given: object) -> Deserializer | None:
    """A function from bytes; None for the bytes themselves.

    >>> _deserializer("value_deserializer", "org.apache.kafka.common.serialization.LongDeserializer")(bytes(8))
    0
    """
    name = given.removeprefix(_JAVA).removesuffix("Deserializer") if isinstance(given, str) else ""
    if given is None or name == "ByteArray":
        return None
    if name in _NUMBERS:
        return _Numbers(_NUMBERS[name]).unpack
    if name == "String":
        return bytes.decode
    if name == "json":
        return json.loads
    for method in ("FromString", "decode"):
        if not isinstance(given, str) and callable(getattr(given, method, None)):
            found: Deserializer = getattr(given, method)
            return found
    if callable(given) or isinstance(given, AvroDeserializer):
        return given
    raise _unknown(argument, given)


def _serializer(argument: str, given: Any) -> Serializer | None:
    """A function to bytes; None for bytes.

    >>> _serializer("value_serializer", "json")({"a": 1})
    b'{"a": 1}'
    """
    name = given.removeprefix(_JAVA).removesuffix("Serializer") if isinstance(given, str) else ""
    if given is None or name == "ByteArray":
        return None
    if name in _NUMBERS:
        return _Numbers(_NUMBERS[name]).pack
    if name == "String":
        return str.encode
    if name == "json":
        return _json_bytes
    if not isinstance(given, str) and callable(getattr(given, "encode", None)):
        found: Serializer = given.encode
        return found
    if callable(given):
        return given  # type: ignore[no-any-return]
    raise _unknown(argument, given)


def _unknown(argument: str, given: object) -> Exception:
    what = f"{argument} must be a function, 'json' or the name of one that Kafka has, but is {given!r}"
    return refusal(ValueError, what, hint=f'write {argument}="json", or pass a function')


def _json_bytes(value: object) -> bytes:
    return json.dumps(value).encode()


@dataclass(frozen=True)
class _Numbers:
    """Numbers as Kafka's own classes write them."""

    format: str

    def unpack(self, data: bytes) -> object:
        return struct.unpack(self.format, data)[0]

    def pack(self, number: object) -> bytes:
        return struct.pack(self.format, number)
