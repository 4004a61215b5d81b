"""Combines elements on their way to a grouping: all of one logical time, key and window travel as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from penstock.coders.deterministic import encode_keys, find_plain_key_type
from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import Fold, fold_of
from penstock.machines.folds import LIST
from penstock.metrics.execution import MetricsContainer
from penstock.windows.output_times import OutputTimes, output_times_of
from penstock.windows.window_fn import Sessions, merge_runs
from penstock.windows.windowing import Windowing
from penstock_spark.folding.loops import kind_of_keys, loop_of
from penstock_spark.folding.tables import Table, table_for
from penstock_spark.plan.hosts import Loop
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.stream.program import CombiningWriterSpec
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.batch import Batch, Windows, by_windows
from penstock_spark.worker.fixed_windows import FixedAssigner
from penstock_spark.worker.flush_limit import MOST_COMBINED, MOST_NAMES
from penstock_spark.worker.keys import find_keys_to_pickle, shard_of
from penstock_spark.worker.messages import LogicalTime, Part, Place
from penstock_spark.worker.pairs import make_retraction_error, split_pairs
from penstock_spark.worker.pushing import Combining, Node, Records


class Group(NamedTuple):
    """The folded elements of one window or of several."""

    windows: Windows | list[Windows]  # The window in a 1-tuple, or such a tuple for each key.
    names: list[Any]
    partials: list[Any]  # The partial result of each key.
    counts: list[int]  # The number of elements of each key.
    timestamps: list[tuple[int, ...]] | None  # The timestamps that may decide the output's; None if none may.


class CombiningWriter(Combining, Node):
    """Combines pairs, and puts the result of each key into the message of the key's shard.

    It fills the messages at the end of a bundle, or earlier if memory demands: then several parts hold the
    elements of one key, window and logical time, and the shard combines them.
    """

    def __init__(self, spec: CombiningWriterSpec, outbox: Outbox, metrics: MetricsContainer) -> None:
        self.spec = spec
        self.combine = spec.combine
        self.outbox = outbox
        self._guard = partial(call_guarded, metrics, spec.where)
        self._new_gathering = make_gathering(spec.windowing, spec.combine, spec.loop)
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
            fail_step(make_retraction_error(), self.spec.where)
        self._guard(self._take, batch, windows)
        return iter(())

    def finish_bundle(self) -> Records:
        self._guard(self._flush)
        return iter(())

    def _clear(self) -> None:
        self._gatherings: dict[
            tuple[LogicalTime, Place], Gathering
        ] = {}  # The arrivals of each logical time.
        self._pickled_keys: dict[bytes, Any] = {}
        self._entries = 0
        self._elements = 0

    def _take(self, batch: Batch, windows: FixedAssigner | None) -> None:
        count = len(batch.values)
        taken = self._take_pairs(batch, windows) if self.spec.loop is Loop.PAIRS else 0
        if taken:
            batch = batch.slice(taken, count)
        if batch.values:
            if windows is not None:
                batch = Batch(batch.values, batch.timestamps, windows(batch), batch.panes)
            self._take_any(batch)
        self._elements += count
        if self._entries >= MOST_NAMES or self._elements >= MOST_COMBINED:
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
            self._pickled_keys.update(find_keys_to_pickle(names, keys))
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
                self._pickled_keys.update(find_keys_to_pickle(encoded, new))
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
            if self._pickled_keys:
                message.pickled_keys.update(
                    {n: self._pickled_keys[n] for n in data_of_all if n in self._pickled_keys}
                )

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


def make_gathering(windowing: Windowing, combine: CombineFn | None, loop: Loop) -> Callable[[], Gathering]:
    """Returns a function that makes an empty gathering of a grouping."""
    fold = LIST if combine is None else fold_of(combine)
    times, windowfn = output_times_of(windowing.timestamp_combiner, windowing.windowfn), windowing.windowfn
    if loop is Loop.PAIRS:
        return lambda: PairGathering(fold)
    if loop is Loop.SESSIONS:
        assert isinstance(windowfn, Sessions)
        return lambda: SessionGathering(fold, times, windowfn.merge_touching)
    return lambda: WindowGathering(fold, loop, times)


class WindowGathering:
    """Elements by window and key, in tables; windows do not merge."""

    def __init__(self, fold: Fold, loop: Loop, output_times: OutputTimes) -> None:
        self._is_list = fold is LIST
        self._compact = fold.compact
        self._make_table = table_for(fold, loop)
        self._output_times = output_times
        self._tables: dict[Any, tuple[Table, Counter[Any]]] = {}
        self._timestamps: dict[tuple[Any, Any], set[int]] = {}

    def add(self, names: list[Any], values: list[Any], batch: Batch) -> int:
        """Takes elements; returns the number of new entries."""
        more = 0
        for windows, some_names, some_values in by_windows(batch.windows, names, values):
            for window in windows:
                found = self._tables.get(window)
                if found is None:
                    found = self._tables[window] = self._make_table(), Counter()
                table, counts = found
                more -= len(table)
                table.add(some_names, some_values)
                more += len(table)
                if not self._is_list:
                    counts.update(some_names)
        if self._output_times.together is not None:
            self._note_timestamps(names, batch)
        return more

    def _note_timestamps(self, names: list[Any], batch: Batch) -> None:
        only_latest = self._output_times.together is max
        for name, (_, timestamp_micros, windows, _) in zip(names, batch.rows(), strict=True):
            for window in windows:
                known = self._timestamps.setdefault((window, name), set())
                known.add(timestamp_micros)
                if only_latest and len(known) > 1:
                    known.discard(min(known))

    def groups(self) -> Iterator[Group]:
        for window, (table, counts) in self._tables.items():
            partials_by_name = table.partials_by_name()
            names, partials = list(partials_by_name), list(map(self._compact, partials_by_name.values()))
            numbers = map(len, partials) if self._is_list else map(counts.__getitem__, names)
            yield Group((window,), names, partials, list(numbers), self._needed(window, names))

    def _needed(self, window: object, names: list[Any]) -> list[tuple[int, ...]] | None:
        if self._output_times.together is None:
            return None
        nothing: set[int] = set()
        return [self._output_times.needed(self._timestamps.get((window, name), nothing)) for name in names]


class PairGathering:
    """Partial results of pairs, and their number, by window and key, made by a loop; windows do not merge.

    Elements in several windows are folded once for all elements in the same ones, and the results merged once for each
    window: of sliding windows, many more elements share all their windows than there are keys.
    """

    def __init__(self, fold: Fold) -> None:
        assert fold.source is not None
        self._merge = fold.merge
        self._add_by_window = loop_of(fold.source, "window", counts=True)
        self._add_by_time = loop_of(fold.source, "time", counts=True)
        self._held: dict[Any, dict[Any, list[Any]]] = {}

    def add(self, names: list[Any], values: list[Any], batch: Batch) -> int:
        """Takes elements; returns the number of new entries."""
        own = batch.with_values(list(zip(names, values, strict=True)))
        return self.add_pairs(own, type(names[0]))[1]

    def add_pairs(self, batch: Batch, kind: type, fixed: FixedAssigner | None = None) -> tuple[int, int]:
        """Takes pairs up to the first whose key has another type; returns the number of pairs and of new entries.

        `fixed` finds the only window of each pair by its timestamp; None if they are in windows already.
        """
        times, windows = batch.timestamps, batch.windows
        added: tuple[int, int]
        if fixed is not None and isinstance(times, list):

            def held_at(start_micros: int) -> dict[Any, list[Any]]:
                return self._held_of(fixed.windows_at(start_micros))

            spacing = fixed.size_micros, fixed.offset_micros
            added = self._add_by_time(held_at, *spacing, times, batch.values, kind)
        else:
            own = windows if isinstance(windows, list) else [windows] * len(batch.values)
            if batch.has_one_window_each:
                added = self._add_by_window(self._held_of, own, batch.values, kind)
            else:
                shared: dict[Windows, dict[Any, list[Any]]] = {}
                taken, _ = self._add_by_window(
                    lambda own: shared.setdefault(own, {}), own, batch.values, kind
                )
                added = taken, self._share(shared)
        return added

    def _share(self, shared: dict[Windows, dict[Any, list[Any]]]) -> int:
        """Merges partial results of elements in the same windows into each; returns the number of new entries."""
        merge, more = self._merge, 0
        for windows, of_names in shared.items():
            for window in windows:
                into = self._held.setdefault(window, {})
                more -= len(into)
                for name, (held, count) in of_names.items():
                    both = into.get(name)
                    if both is None:
                        # Windows share a partial result, which never changes, but not the list that is written to.
                        into[name] = [held, count]
                    else:
                        both[0] = merge(both[0], held)
                        both[1] += count
                more += len(into)
        return more

    def _held_of(self, windows: Windows) -> dict[Any, list[Any]]:
        [window] = windows
        return self._held.setdefault(window, {})

    def groups(self) -> Iterator[Group]:
        for window, held in self._held.items():
            partials, counts = map(list, zip(*held.values(), strict=True))
            yield Group((window,), list(held), partials, counts, None)


class SessionGathering:
    """Elements by key; those of overlapping sessions are folded at the end, before further merging."""

    def __init__(self, fold: Fold, output_times: OutputTimes, merge_touching: bool) -> None:
        self._fold = fold
        self._output_times = output_times
        self._merge_touching = merge_touching
        self._elements: dict[Any, tuple[list[Any], list[Any], list[int]]] = {}

    def add(self, names: list[Any], values: list[Any], batch: Batch) -> int:
        """Takes elements; returns the number of new entries."""
        rows = batch.with_values(values).rows()
        for name, (value, timestamp_micros, windows, _) in zip(names, rows, strict=True):
            own = self._elements.get(name)
            if own is None:
                own = self._elements[name] = [], [], []
            for window in windows:
                own[0].append(window)
                own[1].append(value)
                own[2].append(timestamp_micros)
        return len(values)

    def groups(self) -> Iterator[Group]:
        group = Group([], [], [], [], None if self._output_times.together is None else [])
        assert isinstance(group.windows, list)
        fold = self._fold
        for name, (windows, values, timestamps) in self._elements.items():
            for window, places in merge_runs(windows, self._merge_touching):
                places.sort()
                group.windows.append((window,))
                group.names.append(name)
                group.partials.append(
                    fold.compact(fold.add(fold.empty(), [values[place] for place in places]))
                )
                group.counts.append(len(places))
                if group.timestamps is not None:
                    group.timestamps.append(self._output_times.needed(timestamps[place] for place in places))
        if group.names:
            yield group


Gathering = WindowGathering | PairGathering | SessionGathering
