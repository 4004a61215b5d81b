"""An index of a shard's pages, without reading them: a few numbers a page, in columns.

There may be a hundred thousand pages, and every micro-batch reads the notes of all of them: columns of machine numbers
come and go as a copy of memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.machines.trigger_machine import Domain

NOTHING = (1 << 63) - 1
"""Stands for no time in columns; it is later than all times."""


def _column() -> array[int]:
    return array("q")


@dataclass
class PageNotes:
    """The notes on the pages of one grouping in one shard."""

    sizes: array[int] = field(default_factory=_column)  # In bytes.
    hold_micros: array[int] = field(default_factory=_column)  # The earliest hold of each page's keys.
    # The earliest alarm of each page's keys, by domain.
    alarms: dict[Domain, array[int]] = field(default_factory=dict)
    keys: int = 0  # The number of keys in all pages.
    size_bytes: int = 0  # The size of all pages.
    # True if pages hold windows (see `penstock_spark.stream.state.window_pages`), not keys.
    by_window: bool = False
    # The number of windows in all pages, counted for each key; None if that is unknown: a version that did not
    # count them, or a move to other shards, which does not look into keys, has left pages. No pages have no windows.
    windows: int | None = None
    next_segment: int = 0  # No segment of a long list has this number or a higher one, in any shard.
    segment_bytes: int = 0  # The size of all segments.

    def __len__(self) -> int:
        return len(self.sizes)

    def add_pages(self, count: int) -> None:
        if not self.sizes:
            self.windows = 0
        self.sizes.extend([0] * count)
        for column in (self.hold_micros, *self.alarms.values()):
            column.extend([NOTHING] * count)

    def count_windows(self, more: int | None) -> None:
        """Adds to the number of windows; with None, the number becomes unknown.

        >>> notes = PageNotes()
        >>> notes.add_pages(4)
        >>> notes.count_windows(3)
        >>> notes.windows
        3
        """
        self.windows = None if self.windows is None or more is None else self.windows + more

    def note(self, number: int, size_bytes: int, alarms: Mapping[Domain, int], hold_micros: int) -> None:
        """Notes a page's new size, earliest alarms and earliest hold, or `NOTHING`.

        >>> notes = PageNotes()
        >>> notes.add_pages(2)
        >>> notes.note(1, 100, {"clock": 5}, 3)
        >>> notes.alarms["clock"][1], notes.hold_micros[1], notes.size_bytes
        (5, 3, 100)
        """
        self.size_bytes += size_bytes - self.sizes[number]
        self.sizes[number] = size_bytes
        self.hold_micros[number] = hold_micros
        for domain in alarms.keys() - self.alarms.keys():
            self.alarms[domain] = array("q", [NOTHING]) * len(self)
        for domain, column in self.alarms.items():
            column[number] = alarms.get(domain, NOTHING)


class Unread:
    """The pages that have not been read yet, by a time that is known of each, or `NOTHING`."""

    def __init__(self, times: array[int]) -> None:
        self._times = times[:]
        self._earliest: int | None = None
        self._earliest_pages = 0

    def earliest(self) -> int:
        """The earliest time, or `NOTHING`.

        >>> unread = Unread(array("q", [5, 3, 3]))
        >>> [unread.earliest(), unread.take(1), unread.earliest(), unread.take(2), unread.earliest()]
        [3, 3, 3, 3, 5]
        """
        if self._earliest is None:
            self._earliest = min(self._times, default=NOTHING)
            self._earliest_pages = self._times.count(self._earliest)
        return self._earliest

    def take(self, number: int) -> int:
        """Returns the time of a page that is being read, or `NOTHING`."""
        micros = self._times[number]
        self._times[number] = NOTHING
        if micros == self._earliest and micros != NOTHING:
            # Most pages often have the same time: only after the last of them, the next time is sought.
            self._earliest_pages -= 1
            if not self._earliest_pages:
                self._earliest = None
        return micros

    def due(self, now_micros: int) -> list[int]:
        if self.earliest() > now_micros or self.earliest() == NOTHING:
            return []
        return [number for number, micros in enumerate(self._times) if micros <= now_micros]
