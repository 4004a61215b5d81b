"""A toy of Spark's stateful aggregate: rows in micro-batches, and the watermark of the micro-batch before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.machines.records import MAX_MICROS, MIN_MICROS


class Group(NamedTuple):
    """The key and the window of a group of rows."""

    key: Any
    over_micros: int  # The watermark at which the group takes nothing more.


Sums = Mapping[Group, tuple[int, ...]]
"""The state of the aggregate, of which Spark keeps a version for each micro-batch."""


class Aggregated(NamedTuple):
    """The result of the aggregate for the rows of a micro-batch."""

    emitted: Sums
    state: Sums
    dropped: list[Group]  # Those of late rows, with each row.


def aggregate(
    before: Sums,
    rows: Iterable[tuple[Group, tuple[int, ...]]],
    late_micros: int,
    evicting_micros: int,
    updates: bool,
) -> Aggregated:
    """Adds rows up, and takes the groups out that are over.

    Args:
        before: The state of the micro-batch before.
        rows: What to add to the groups.
        late_micros: The watermark of the micro-batch before, for which rows are late.
        evicting_micros: The watermark of this micro-batch, at which groups are over.
        updates: Whether to emit each group that has changed, and not each that is over.
    """
    state, dropped, changed = dict(before), [], set()
    for group, numbers in rows:
        if group.over_micros <= late_micros:
            dropped.append(group)
            continue
        sums = state.get(group, (0,) * len(numbers))
        state[group] = tuple(one + other for one, other in zip(sums, numbers, strict=True))
        changed.add(group)
    over = {group for group in state if group.over_micros <= evicting_micros}
    emitted = {group: state[group] for group in (changed if updates else over)}
    return Aggregated(emitted, {group: sums for group, sums in state.items() if group not in over}, dropped)


def runs_without_data(evicted_micros: int | None, next_micros: int) -> bool:
    """True if Spark starts a micro-batch although there is no data: groups may be over that were not yet.

    Args:
        evicted_micros: The watermark of the last micro-batch of this run; None if there was none, as after a restart.
        next_micros: The watermark for the next one.
    """
    return evicted_micros is not None and next_micros > evicted_micros


class Row(NamedTuple):
    """A row of the source."""

    key: str | None
    number: int
    time_micros: int
    is_wanted: bool = True  # Whether it passes the filter before the grouping.


class Result(NamedTuple):
    """A result that a grouping emits for a key and window."""

    batch: int
    key: str | None
    start_micros: int
    total: int


@dataclass
class NativeHost:
    """Sums for each key and window, as Spark's own aggregate emits them; a mutant overrides a method."""

    size_micros: int
    delay_micros: int
    lateness_micros: int = 0
    updates: bool = False  # Whether it emits each window that a micro-batch has changed.
    max_ahead_micros: int | None = None
    period_micros: int | None = None  # The time from one window's start to the next one's; None for the size.
    batch: int = 0
    dropped: list[tuple[int, str | None, int]] = field(default_factory=list)  # Micro-batch, key and window.
    _late_micros: int = MIN_MICROS  # The watermark that decides what is late.
    _next_micros: int = MIN_MICROS  # The watermark for the end of the next micro-batch.
    _state: Sums = field(default_factory=dict)

    def step(self, rows: Sequence[Row], clock_micros: int) -> list[Result]:
        """A micro-batch."""
        evicting_micros = self._next_micros
        wanted = [(group, (row.number,)) for row in rows if row.is_wanted for group in self._groups(row)]
        made = aggregate(self._state, wanted, self._late_micros, evicting_micros, self.updates)
        self._state = made.state
        self.dropped += [(self.batch, *group.key) for group in made.dropped]
        for row in rows:
            if self.moves_watermark(row, clock_micros):
                self._next_micros = max(self._next_micros, row.time_micros - self.delay_micros)
        self._late_micros = evicting_micros
        self.batch += 1
        return [Result(self.batch - 1, *group.key, total) for group, (total,) in made.emitted.items()]

    def _groups(self, row: Row) -> list[Group]:
        return [Group((row.key, start), self._over(start)) for start in self._starts(row.time_micros)]

    def end(self) -> list[Result]:
        """The micro-batch with the row at the end of time, and the one without data after it."""
        self._next_micros = MAX_MICROS
        return self.without_data()

    def without_data(self) -> list[Result]:
        """The micro-batch that Spark starts because the watermark has moved."""
        return self.step([], MIN_MICROS)

    def moves_watermark(self, row: Row, clock_micros: int) -> bool:
        """True if the watermark follows a row."""
        return self.max_ahead_micros is None or row.time_micros <= clock_micros + self.max_ahead_micros

    def _starts(self, time_micros: int) -> range:
        """The starts of the windows that a row is in."""
        period_micros = self.period_micros or self.size_micros
        latest_micros = time_micros - time_micros % period_micros
        return range(latest_micros, time_micros - self.size_micros, -period_micros)

    def _over(self, start_micros: int) -> int:
        """The watermark at which a window takes nothing more."""
        return start_micros + self.size_micros + self.lateness_micros
