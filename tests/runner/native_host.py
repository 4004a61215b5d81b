"""A toy of Spark's stateful aggregate: rows in micro-batches, and the watermark of the micro-batch before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.machines.records import MAX_MICROS, MIN_MICROS


class Row(NamedTuple):
    """A row of the source."""

    key: str | None
    number: int
    time_micros: int
    is_wanted: bool = True  # Whether it passes the filter before the grouping.


class Result(NamedTuple):
    """What a grouping emits for a key and window."""

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
    _state: dict[tuple[str | None, int], int] = field(default_factory=dict)

    def step(self, rows: Sequence[Row], clock_micros: int) -> list[Result]:
        """A micro-batch."""
        evicting_micros = self._next_micros
        changed: set[tuple[str | None, int]] = set()
        for row in rows:
            for start_micros in self._starts(row.time_micros) if row.is_wanted else ():
                if self._over(start_micros) <= self._late_micros:
                    self.dropped.append((self.batch, row.key, start_micros))
                    continue
                place = row.key, start_micros
                self._state[place] = self._state.get(place, 0) + row.number
                changed.add(place)
        over = {place for place in self._state if self._over(place[1]) <= evicting_micros}
        emitted = changed if self.updates else over
        found = [Result(self.batch, *place, self._state[place]) for place in emitted]
        for place in over:
            del self._state[place]
        for row in rows:
            if self.moves_watermark(row, clock_micros):
                self._next_micros = max(self._next_micros, row.time_micros - self.delay_micros)
        self._late_micros = evicting_micros
        self.batch += 1
        return found

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
