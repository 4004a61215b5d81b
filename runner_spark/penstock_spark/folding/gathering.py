"""Pairs of one logical time, folded by window and key before they are sent to a grouping of a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import Fold, fold_of
from penstock.machines.folds import LIST
from penstock.transforms.window import BoundedWindow
from penstock.windows.output_times import OutputTimes, output_times_of
from penstock.windows.window_fn import Sessions, runs
from penstock.windows.windowing import Windowing
from penstock_spark.folding.loops import loop_of
from penstock_spark.folding.tables import Table, table_for
from penstock_spark.plan.hosts import Loop
from penstock_spark.worker.batch import Batch, Windows, by_windows
from penstock_spark.worker.fixed_windows import FixedAssigner


class Group(NamedTuple):
    """The folded elements of one window or of several."""

    windows: Windows | list[Windows]  # The window in a 1-tuple, or such a tuple for each key.
    names: list[Any]
    partials: list[Any]  # The partial result of each key.
    counts: list[int]  # The number of elements of each key.
    timestamps: list[tuple[int, ...]] | None  # The timestamps that may decide the output's; None if none may.


def gathering_of(windowing: Windowing, combine: CombineFn | None, loop: Loop) -> Callable[[], Gathering]:
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

    def _needed(self, window: BoundedWindow, names: list[Any]) -> list[tuple[int, ...]] | None:
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
            for window, places in runs(windows, self._merge_touching):
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
