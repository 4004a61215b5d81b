"""The windows of a FixedWindows for whole batches, with integer arithmetic."""

from __future__ import annotations

from penstock.windows.window_fn import FixedWindows, SlidingWindows
from penstock_spark.worker.batch import Batch, Windows

CACHE_LIMIT = 10_000
"""The number of windows that are kept for use again."""


class WindowsByTime(dict[int, Windows]):
    """The windows of a time, which are made when they are first asked for."""

    def __init__(self, windowfn: FixedWindows | SlidingWindows) -> None:
        self._windowfn = windowfn

    def __missing__(self, micros: int) -> Windows:
        if len(self) > CACHE_LIMIT:
            self.clear()
        made = self[micros] = tuple(self._windowfn.assign_micros(micros))
        return made


class FixedAssigner:
    """The windows of a FixedWindows, each of which is made once."""

    def __init__(self, windowfn: FixedWindows) -> None:
        self.size_micros = windowfn.size_micros
        self.offset_micros = windowfn.offset_micros
        self._windowfn = windowfn
        self._made = WindowsByTime(windowfn)

    def windows_at(self, start_micros: int) -> Windows:
        return self._made[start_micros]

    def __call__(self, batch: Batch) -> Windows | list[Windows]:
        timestamps = batch.timestamps
        if not isinstance(timestamps, list):
            return tuple(self._windowfn.assign_micros(timestamps))
        size, offset = self.size_micros, self.offset_micros
        assigned: list[Windows] = []
        add = assigned.append
        start = end = 0
        own: Windows = ()
        for at in timestamps:
            # Elements that come together are mostly of one window, and two comparisons are cheaper than a division.
            if not start <= at < end:
                start = at - (at - offset) % size
                end = start + size
                own = self.windows_at(start)
            add(own)
        return assigned
