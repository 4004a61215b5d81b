"""The outbox of a task or a shard: messages to the shards of later levels, by the hash of keys, and rows of sinks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar, cast

import pyarrow as pa
from pyspark.sql import Row as SparkRow

from penstock.coders.deterministic import encode_keys
from penstock.metrics.execution import MetricsContainer
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.stream.program import (
    MessageWriterSpec,
    RestrictionWriterSpec,
    SinkPagesSpec,
    SinkRowsSpec,
)
from penstock_spark.worker.batch import Batch, dumps, encode_page
from penstock_spark.worker.keys import find_keys_to_pickle, shard_of
from penstock_spark.worker.messages import LogicalTime, Message, Part, Place
from penstock_spark.worker.pairs import split_pairs
from penstock_spark.worker.pushing import Node, Records
from penstock_spark.worker.writers import SinkWriter

Result = TypeVar("Result")


Row = tuple[int, int, bytes]
"""Level, shard, and the pickled message; or the negative level of a sink, the shard it comes from, and a page."""

_SCHEMA = pa.schema([("level", pa.int32()), ("shard", pa.int32()), ("payload", pa.binary())])

BYTES_AT_ONCE = 64 << 20
"""So many bytes, at least, leave a task together where there are more."""

Moment = tuple[LogicalTime, Place]
"""The time of an element, and its place in its source."""


class _Messages(dict[tuple[int, int], Message]):
    """Messages by address; a message begins when there is something for its address."""

    def __init__(self, producer: tuple[int, int]) -> None:
        super().__init__()
        self._producer = producer

    def __missing__(self, address: tuple[int, int]) -> Message:
        message = self[address] = Message(self._producer)
        return message


class Outbox:
    """The messages of one producer, by level and shard, and pages or rows of sinks, by level.

    A shard gets a message only if there is something for it: its own elements, or a report to all shards of
    its level. Such a report is encoded once for all of them.
    """

    def __init__(self, producer: tuple[int, int], shards: int) -> None:
        self.producer = producer
        self.shards = shards
        self.now = LogicalTime(0, 0)  # The logical time at which elements are written.
        self.place: Place = ()  # Their position in the source.
        self.numbered = 0  # How many elements were numbered so far.
        self.held_bytes = 0  # About how much memory its content takes.
        self._sink_rows: list[Row] = []
        self._taken = 0
        self.messages = _Messages(producer)
        self._to_all: dict[int, Message] = {}

    @property
    def moment(self) -> Moment:
        return self.now, self.place

    @moment.setter
    def moment(self, moment: Moment) -> None:
        self.now, self.place = moment

    def add_to_sink(self, level: int, rows: Iterable[bytes]) -> None:
        """Takes rows, or pages, for the sink of a level."""
        shard = self.producer[1] % self.shards
        for row in rows:
            self._sink_rows.append((level, shard, row))
            self.held_bytes += len(row)

    @property
    def is_full(self) -> bool:
        """True if it holds enough to be taken before more is made."""
        return self.held_bytes >= BYTES_AT_ONCE

    def _next_number(self) -> int:
        self._taken += 1
        return self._taken

    def to_all(self, level: int) -> Message:
        """The message to all shards of a level."""
        if level not in self._to_all:
            self._to_all[level] = Message(self.producer)
        return self._to_all[level]

    def take(self) -> list[Row]:
        """Its content: messages, and rows of sinks, which bypass later levels in a shard."""
        rows: list[Row] = []
        number = self._next_number()
        along: dict[int, Message] = {}  # What is small goes along with a shard's own elements.
        for level, told in self._to_all.items():
            if told.is_empty:
                continue
            numbered = replace(told, number=self._next_number() if told.parts else number)
            if not told.parts:
                along[level] = numbered
            payload = dumps(numbered)
            own = self.messages if level in along else {}
            rows += [(level, shard, payload) for shard in range(self.shards) if (level, shard) not in own]
        for (level, shard), message in self.messages.items():
            telling = along.get(level, Message(self.producer, number))
            payload = dumps(replace(telling, parts=message.parts, pickled_keys=message.pickled_keys))
            rows.append((level, shard, payload))
        rows += self._sink_rows
        self._sink_rows, self._to_all, self.held_bytes = [], {}, 0
        self.messages.clear()
        return rows


def records_of(rows: list[Row], shard_keys: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are not much larger than their largest row: many shards may share one payload."""
    start, held_bytes = 0, 0
    for stop, row in enumerate(rows, 1):
        held_bytes += len(row[2])
        if held_bytes >= BYTES_AT_ONCE or stop == len(rows):
            levels, shards, payloads = zip(*rows[start:stop], strict=True)
            keys = [shard_keys[shard] for shard in shards]
            columns = [
                pa.array(levels, pa.int32()),
                pa.array(keys, pa.int32()),
                pa.array(payloads, pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
            start, held_bytes = stop, 0


def send_to_spark(
    giving: Generator[list[Row], None, Result],
    shard_keys: tuple[int, ...],
    here: Mapping[int, Callable[[bytes], None]],
) -> Generator[SparkRow, None, Result]:
    """Yields the rows of a shard for the stateful operator of Spark without delay; returns its result.

    The functions `here` take the payloads for the later levels of the same operator.
    """
    while True:
        try:
            rows = next(giving)
        except StopIteration as end:
            return cast(Result, end.value)
        for level, shard, payload in rows:
            if level in here:
                here[level](payload)
            else:
                yield SparkRow(level=level, shard=shard_keys[shard], payload=payload)


class MessageWriter(Node):
    """Puts pairs into the messages of the shards that their keys belong to."""

    def __init__(
        self, spec: MessageWriterSpec | RestrictionWriterSpec, outbox: Outbox, metrics: MetricsContainer
    ) -> None:
        self.spec = spec
        self.outbox = outbox
        self.metrics = metrics

    def push(self, batch: Batch) -> Records:
        self.outbox.held_bytes += batch.estimated_bytes()
        call_guarded(self.metrics, self.spec.where, self._put, batch)
        return iter(())

    def _put(self, batch: Batch) -> None:
        keys, values = split_pairs(batch, self.spec.where)
        names = encode_keys(keys)
        pickled_keys = find_keys_to_pickle(names, keys)
        places: dict[int, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(shard_of(name, self.outbox.shards), []).append(place)
        whole = Batch(values, batch.timestamps, batch.windows, batch.panes)
        for shard, own in places.items():
            message = self.outbox.messages[self.spec.level, shard]
            names_here = [names[place] for place in own]
            part = Part(self.outbox.now, names_here, whole.taken(own), place=self.outbox.place)
            message.parts.setdefault(self.spec.label, []).append(part)
            message.pickled_keys.update(
                {name: pickled_keys[name] for name in part.names if name in pickled_keys}
            )


class RestrictionWriter(MessageWriter):
    """Puts elements with their restrictions into the messages of shards, each under a key of its own.

    The key says where and when the producer has made the element, so a task that runs again makes the same keys.
    """

    def _put(self, batch: Batch) -> None:
        outbox, level = self.outbox, self.spec.level
        first, outbox.numbered = outbox.numbered, outbox.numbered + len(batch.values)
        beginning = (*outbox.producer, *outbox.now, *map(str, outbox.place))
        names = encode_keys([(*beginning, first + number) for number in range(len(batch.values))])
        # Neighbours go to different shards, so that few restrictions are also spread evenly.
        for beginning_at in range(min(outbox.shards, len(names))):
            own = list(range(beginning_at, len(names), outbox.shards))
            message = outbox.messages[level, (first + beginning_at) % outbox.shards]
            part = Part(outbox.now, [names[place] for place in own], batch.taken(own), place=outbox.place)
            message.parts.setdefault(self.spec.label, []).append(part)


class SinkPages(Node):
    """Turns elements into pages for a sink."""

    def __init__(self, spec: SinkPagesSpec, outbox: Outbox) -> None:
        self._spec = spec
        self._outbox = outbox

    def push(self, batch: Batch) -> Records:
        try:
            self._outbox.add_to_sink(self._spec.level, [encode_page(batch)])
        except Exception as error:
            fail_step(error, self._spec.where)
        return iter(())


class SinkRows(SinkWriter):
    """Encodes elements as the rows that a sink is written with."""

    spec: SinkRowsSpec

    def __init__(self, spec: SinkRowsSpec, outbox: Outbox) -> None:
        super().__init__(spec)
        self._outbox = outbox

    def start_bundle(self) -> None:
        self.start()

    def _out(self, record: pa.RecordBatch | None) -> Records:
        if record is not None:
            (column,) = record.columns
            self._outbox.add_to_sink(self.spec.level, column.cast(pa.binary()).to_pylist())
        return iter(())
