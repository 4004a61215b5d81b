"""Sealed segments of long lists, beside the pages of a grouping: a micro-batch writes only what is new in a list.

A segment's number is below zero, which a page's never is. It belongs to one key, and moves to another shard with it.
Its number stays the same there. Therefore two shards never assign the same number, and a shard never assigns one
twice, even after the number of shards has changed.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from penstock.error import refusal
from penstock.machines.long_lists import AnyList, LongList, Segment, Snapshot
from penstock_spark.process.written_formats import SEGMENT
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.stored import content_of, load_pickle
from penstock_spark.worker.batch import dumps
from penstock_spark.worker.keys import shard_of

SEAL_BYTES = 64 << 10
"""If a state takes more, it is worth a check whether a list in it does."""

Sizes = Mapping[int, int]
"""The sizes of segments in bytes, by number."""

GetMany = Callable[[Sequence[int]], list[bytes | None]]


class Segments:
    """The segments of one grouping in one shard, in one micro-batch; `changes` are to be stored."""

    def __init__(self, get_many: GetMany, notes: PageNotes, spread: int) -> None:
        self.seal_bytes = SEAL_BYTES
        self.changes: dict[int, bytes | None] = {}
        self._get_many = get_many
        self._notes = notes
        self._spread = spread
        self._lent: WeakSet[Snapshot] = WeakSet()

    def read(self, segments: Sequence[Segment]) -> Iterator[list[Any]]:
        stored = self._get_many([segment.number for segment in segments])
        return values_of(zip(segments, stored, strict=True))

    def lend(self, snapshot: Snapshot) -> None:
        self._lent.add(snapshot)

    def keep(self, held: AnyList) -> AnyList:
        """Gives a list from an earlier micro-batch access to its segments."""
        if isinstance(held, LongList):
            held.keeper = self
        return held

    def shortened(self, name: bytes, held: AnyList) -> AnyList:
        """Returns the list of a key, whose values in memory are sealed if they take much."""
        parts = held.unsealed if isinstance(held, LongList) else [held]
        sealed = [(part, dumps(part)) for part in parts if part]
        if sum(len(content) for _, content in sealed) <= self.seal_bytes:
            return held
        contents = iter(sealed)
        long = held if isinstance(held, LongList) else LongList([held], self)
        long.seal(lambda part: self._sealed(name, len(part), next(contents)[1]))
        return long

    def replace(self, before: Sizes, after: Sizes) -> None:
        """Replaces segments of a state by others; removes those that no state has any more."""
        for number in before.keys() - after.keys():
            self.changes[number] = None
            self._notes.segment_bytes -= before[number]

    def taken_changes(self) -> Iterator[tuple[int, bytes | None]]:
        """Yields the changes to store, once, at the end of the micro-batch."""
        for snapshot in [*self._lent]:
            snapshot.read()
        changes, self.changes = self.changes, {}
        yield from changes.items()

    def _sealed(self, name: bytes, length: int, values: bytes) -> Segment:
        content = pickle.dumps((SEGMENT.number, name, values), pickle.HIGHEST_PROTOCOL)
        # Of any `_spread` consecutive numbers, each shard has one.
        first = self._notes.next_segment
        number = first + (shard_of(name, self._spread) - first) % self._spread
        self._notes.next_segment = number + 1
        self._notes.segment_bytes += len(content)
        self.changes[~number] = content
        return Segment(~number, length, len(content))


def values_of(stored: Iterable[tuple[Segment, bytes | None]]) -> Iterator[list[Any]]:
    """Yields the values of segments; ValueError if one has another format, or is not there."""
    for segment, content in stored:
        if content is None:
            what = f"a list of values in the state lacks a part, of {segment.length:,} values"
            raise refusal(ValueError, what, hint="restore the checkpoint from a copy")
        _, values = content_of(content, SEGMENT)
        yield load_pickle(values, SEGMENT.name)


def key_of_segment(content: bytes) -> bytes:
    """Returns the encoded key to which a segment belongs."""
    name: bytes
    name, _ = content_of(content, SEGMENT)
    return name


def sizes_of(helds: Sequence[Any]) -> dict[int, int]:
    """Returns the segments of the long lists among what windows or cells hold; quick if there is none."""
    if LongList not in set(map(type, helds)):
        return {}
    return {
        segment.number: segment.size_bytes
        for held in helds
        if type(held) is LongList
        for segment in held.segments
    }
