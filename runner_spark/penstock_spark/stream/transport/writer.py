"""Elements on their way to the shards of a grouping: dealt out by the hash of their keys, and kept to the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from zlib import crc32

from penstock.coders.deterministic import encode_keys
from penstock.metrics.execution import MetricsContainer
from penstock_spark.reports.failure import call_guarded
from penstock_spark.stream.program import MessageWriterSpec, RestrictionWriterSpec
from penstock_spark.worker.batch import Batch, dumps
from penstock_spark.worker.keys import find_keys_to_pickle
from penstock_spark.worker.messages import LogicalTime, Message, Part, Place
from penstock_spark.worker.pairs import split_pairs
from penstock_spark.worker.pushing import Node, Records


def shard_of(name: bytes, shards: int) -> int:
    """The shard of an encoded key; the same in every process."""
    return crc32(name) % shards


Row = tuple[int, int, bytes]
"""Level, shard, and the pickled message; or the negative level of a sink, the shard it comes from, and a page."""

BYTES_AT_ONCE = 64 << 20
"""So many bytes, at least, leave a task together where there are more."""

Moment = tuple[LogicalTime, Place]
"""When, and where in its source, an element takes place."""


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

    A shard gets a message only if there is something for it: elements of its own, or what all shards of its level
    are told. That is written down once for all of them.
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
            payload = dumps(replace(telling, parts=message.parts, carried=message.carried))
            rows.append((level, shard, payload))
        rows += self._sink_rows
        self._sink_rows, self._to_all, self.held_bytes = [], {}, 0
        self.messages.clear()
        return rows


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
        carried = find_keys_to_pickle(names, keys)
        places: dict[int, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(shard_of(name, self.outbox.shards), []).append(place)
        whole = Batch(values, batch.timestamps, batch.windows, batch.panes)
        for shard, own in places.items():
            message = self.outbox.messages[self.spec.level, shard]
            names_here = [names[place] for place in own]
            part = Part(self.outbox.now, names_here, whole.taken(own), place=self.outbox.place)
            message.parts.setdefault(self.spec.label, []).append(part)
            message.carried.update({name: carried[name] for name in part.names if name in carried})


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
