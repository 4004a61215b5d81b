"""Combines elements on their way to a grouping: all of one logical time, key and window travel as one."""

from __future__ import annotations

from functools import partial
from typing import Any

from penstock.coders.deterministic import encode_keys, find_plain_key_type
from penstock.functions.folds import fold_of
from penstock.metrics.execution import MetricsContainer
from penstock_spark.folding.gathering import Gathering, Group, PairGathering, gathering_of
from penstock_spark.folding.loops import kind_of_keys
from penstock_spark.plan.hosts import Loop
from penstock_spark.reports.failure import guarded, step_failed
from penstock_spark.stream.program import CombiningWriterSpec
from penstock_spark.stream.transport.writer import Outbox, shard_of
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.fixed_windows import FixedAssigner
from penstock_spark.worker.keys import keys_to_carry
from penstock_spark.worker.messages import LogicalTime, Part, Place
from penstock_spark.worker.pairs import split_pairs, unexpected_retraction
from penstock_spark.worker.pushing import Combining, Node, Records

_MOST_ENTRIES = 200_000
_MOST_ELEMENTS = 1_000_000


class CombiningWriter(Combining, Node):
    """Combines pairs, and puts the result of each key into the message of the key's shard.

    It fills the messages at the end of a bundle, or earlier if memory demands: then several parts hold the
    elements of one key, window and logical time, and the shard combines them.
    """

    def __init__(self, spec: CombiningWriterSpec, outbox: Outbox, metrics: MetricsContainer) -> None:
        self.spec = spec
        self.combine = spec.combine
        self.outbox = outbox
        self._guard = partial(guarded, metrics, spec.where)
        self._new_gathering = gathering_of(spec.windowing, spec.combine, spec.loop)
        # If the order of values may matter, each place in a source is kept separately.
        self._keeps_order = spec.combine is None or fold_of(spec.combine).heeds_order
        # The type of the keys that are their own names; None if names are encoded keys.
        self._kind: type | None = None
        self._clear()

    def push(self, batch: Batch) -> Records:
        return self._pushed(batch, None)

    def take_fixed(self, batch: Batch, windows: FixedAssigner) -> Records:
        """Takes a batch of pairs with a list of timestamps, by which windows are found."""
        return self._pushed(batch, windows)

    def _pushed(self, batch: Batch, windows: FixedAssigner | None) -> Records:
        if batch.retracts:
            step_failed(unexpected_retraction(), self.spec.where)
        self._guard(self._take, batch, windows)
        return iter(())

    def finish_bundle(self) -> Records:
        self._guard(self._flush)
        return iter(())

    def _clear(self) -> None:
        self._gatherings: dict[
            tuple[LogicalTime, Place], Gathering
        ] = {}  # The arrivals of each logical time.
        self._carried: dict[bytes, Any] = {}
        self._entries = 0
        self._elements = 0

    def _take(self, batch: Batch, windows: FixedAssigner | None) -> None:
        count = len(batch.values)
        taken = self._take_pairs(batch, windows) if self.spec.loop is Loop.PAIRS else 0
        if taken:
            batch = batch.sliced(taken, count)
        if batch.values:
            if windows is not None:
                batch = Batch(batch.values, batch.timestamps, windows(batch), batch.panes)
            self._take_any(batch)
        self._elements += count
        if self._entries >= _MOST_ENTRIES or self._elements >= _MOST_ELEMENTS:
            self._flush()

    def _take_pairs(self, batch: Batch, windows: FixedAssigner | None) -> int:
        """Takes leading pairs whose keys are their own names; returns how many."""
        kind = _kind_of_leading(batch.values)
        if kind is None:
            return 0
        gathering: PairGathering = self._gathering(kind)
        try:
            taken, entries = gathering.add_pairs(batch, kind, windows)
        except Exception:
            # An error of a pair or a key takes precedence over a value that cannot be added.
            encode_keys(split_pairs(batch, self.spec.where)[0])
            raise
        self._entries += entries
        return taken

    def _take_any(self, batch: Batch) -> None:
        keys, values = split_pairs(batch, self.spec.where)
        kind = find_plain_key_type(keys)
        names: list[Any] = keys if kind is not None else encode_keys(keys)
        gathering = self._gathering(kind)
        if kind is None:
            self._carried.update(keys_to_carry(names, keys))
        self._entries += gathering.add(names, values, batch)

    def _gathering(self, kind: type | None) -> Any:
        """The arrivals of this logical time and place, whose names are keys of a type, or encoded keys."""
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        address = self.outbox.now, self.outbox.place if self._keeps_order else ()
        if address not in self._gatherings:
            self._gatherings[address] = self._new_gathering()
        return self._gatherings[address]

    def _flush(self) -> None:
        addresses: dict[Any, tuple[bytes, int]] = {}
        for (logical_time, place), gathering in self._gatherings.items():
            for group in gathering.groups():
                self._put(logical_time, place, group, addresses)
        self._clear()

    def _put(
        self, logical_time: LogicalTime, place: Place, group: Group, addresses: dict[Any, tuple[bytes, int]]
    ) -> None:
        shards, names = self.outbox.shards, group.names
        if new := [name for name in names if name not in addresses]:
            encoded = new
            if self._kind is not None:
                encoded = encode_keys(new)
                self._carried.update(keys_to_carry(encoded, new))
            addresses.update(
                {name: (data, shard_of(data, shards)) for name, data in zip(new, encoded, strict=True)}
            )
        own: dict[int, tuple[list[bytes], list[int]]] = {}
        for row, (data, shard) in enumerate(map(addresses.__getitem__, names)):
            if shard not in own:
                own[shard] = [], []
            own[shard][0].append(data)
            own[shard][1].append(row)
        for shard, (data_of_all, rows) in own.items():
            message = self.outbox.messages[self.spec.level, shard]
            part = self._part(logical_time, group, data_of_all, rows)._replace(place=place)
            message.parts.setdefault(self.spec.label, []).append(part)
            if self._carried:
                message.carried.update({n: self._carried[n] for n in data_of_all if n in self._carried})

    def _part(self, logical_time: LogicalTime, group: Group, names: list[bytes], rows: list[int]) -> Part:
        timestamps = group.timestamps
        return Part(
            logical_time,
            names,
            Batch(group.partials, windows=group.windows).taken(rows),
            [group.counts[row] for row in rows],
            None if timestamps is None else [timestamps[row] for row in rows],
        )


def _kind_of_leading(pairs: list[Any]) -> type | None:
    """The type of the keys of leading pairs, if they are their own names."""
    kind = kind_of_keys(pairs, (str, int))
    first = pairs[0] if pairs else None
    if kind is not None or type(first) is not tuple or not first or not isinstance(first[0], tuple):
        return kind
    try:
        return find_plain_key_type([key for key, _ in pairs])
    except (TypeError, ValueError):
        # Something is not a pair, or is one of another kind.
        return None
