"""The windows of a SlidingWindows for whole batches, made once for all times that are in the same ones."""

from __future__ import annotations

from penstock.windows.window_fn import SlidingWindows
from penstock_spark.worker.batch import Batch, Windows
from penstock_spark.worker.fixed_windows import WindowsByTime


class SlidingAssigner:
    """The windows of a SlidingWindows: a tuple for each stretch of time in which no window starts or ends.

    >>> windows = SlidingAssigner(SlidingWindows(10, 5))
    >>> first, other, again = windows(Batch([1, 2, 3], [6_000_000, 11_000_000, 9_999_999]))
    >>> first, other, first is again
    (([5.0, 15.0), [0.0, 10.0)), ([10.0, 20.0), [5.0, 15.0)), True)
    """

    def __init__(self, windowfn: SlidingWindows) -> None:
        self._windowfn = windowfn
        self._made = WindowsByTime(windowfn)

    def __call__(self, batch: Batch) -> Windows | list[Windows]:
        timestamps = batch.timestamps
        if not isinstance(timestamps, list):
            return tuple(self._windowfn.assign_micros(timestamps))
        period, offset = self._windowfn.period_micros, self._windowfn.offset_micros
        ends_offset = offset + self._windowfn.size_micros
        assigned: list[Windows] = []
        add = assigned.append
        start = end = 0
        own: Windows = ()
        for at in timestamps:
            # Elements that come together mostly share their windows, and two comparisons are cheaper than divisions.
            if not start <= at < end:
                since_start, since_end = (at - offset) % period, (at - ends_offset) % period
                start = at - min(since_start, since_end)
                end = at + period - max(since_start, since_end)
                own = self._made[start]
            add(own)
        return assigned
