"""The times at which keys are due, or to which they hold back: earliest first, sorted only on demand."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

_SHARE = 16
"""If less than one in this many entries is wanted, they are taken from the heap; otherwise all are scanned."""

Entry = tuple[int, bytes]
"""A time in microseconds, and the name of a key."""


class DueTimes:
    """Due times of many keys; a key may have several entries, and the caller knows which one is current.

    Most micro-batches add thousands of entries and then take most of them at once: a scan of all entries
    costs a tenth of taking them from a heap one by one.
    """

    __slots__ = ("_heap", "_new")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._new: list[Entry] = []

    def add(self, micros: int, name: bytes) -> None:
        self._new.append((micros, name))

    def first(self) -> int | None:
        """Returns the earliest time, current or not."""
        heap = self._ordered()
        return heap[0][0] if heap else None

    def earliest(self, is_current: Callable[[int, bytes], bool]) -> int | None:
        """Returns the earliest time of a current entry; it may remove other entries."""
        heap, dropped = self._ordered(), 0
        while heap and not is_current(*heap[0]):
            heappop(heap)
            dropped += 1
            if dropped * _SHARE > len(heap):
                heap[:] = [entry for entry in heap if is_current(*entry)]
                heapify(heap)
        return heap[0][0] if heap else None

    def take(self, until_micros: int) -> list[Entry]:
        """Removes the entries up to a time, and returns them in any order."""
        heap = self._ordered()
        taken: list[Entry] = []
        while heap and heap[0][0] <= until_micros:
            taken.append(heappop(heap))
            if len(taken) * _SHARE > len(heap):
                taken += [entry for entry in heap if entry[0] <= until_micros]
                heap[:] = [entry for entry in heap if entry[0] > until_micros]
                heapify(heap)
        return taken

    def _ordered(self) -> list[Entry]:
        heap, new = self._heap, self._new
        if new:
            if len(new) * _SHARE > len(heap):
                heap += new
                heapify(heap)
            else:
                for entry in new:
                    heappush(heap, entry)
            self._new = []
        return heap
