"""AssignWindows over a batch, with integer arithmetic for the window kinds that allow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.elements.bounded_window import BoundedWindow
from penstock.error import refusal
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils.timestamp import Timestamp
from penstock.windows.window_fn import FixedWindows, GlobalWindows, SlidingWindows, WindowFn
from penstock_spark.reports.failure import fail_step
from penstock_spark.worker.batch import GLOBAL, Batch, Windows
from penstock_spark.worker.fixed_windows import CACHE_LIMIT, FixedAssigner, WindowsByTime
from penstock_spark.worker.pushing import Consumer, Node, Records


class AssignStep(Node):
    """Gives each element its windows (Beam's ``WindowInto``)."""

    def __init__(
        self, windowfn: WindowFn | None, out: Consumer, metrics: MetricsContainer, where: str
    ) -> None:
        self.out = out
        self.metrics = metrics
        self.where = where
        self._assign = make_assigner(windowfn)

    def push(self, batch: Batch) -> Records:
        """An element in several windows counts as one for each of them, as in Beam."""
        batch = batch.explode()
        set_current(self.metrics)
        try:
            windows = self._assign(batch)
        except Exception as error:
            fail_step(error, self.where)
        lost = windows.count(()) if isinstance(windows, list) else 0 if windows else len(batch.values)
        if lost:
            # Sliding windows with gaps between them leave elements in no window, and a grouping never sees those.
            self.metrics.inc(("penstock", "elements_in_no_window"), lost)
        yield from self.out.push(Batch(batch.values, batch.timestamps, windows, batch.panes))


def make_assigner(windowfn: object) -> Callable[[Batch], Windows | list[Windows]]:
    """The function from a batch to its windows.

    Only exact types take the fast way: a subclass may assign as it likes.
    """
    if type(windowfn) is GlobalWindows:
        return lambda batch: GLOBAL
    if type(windowfn) is FixedWindows:
        return FixedAssigner(windowfn)
    if type(windowfn) is SlidingWindows:
        return SlidingAssigner(windowfn)
    if hasattr(windowfn, "assign_micros") and type(windowfn).__module__.startswith("penstock."):
        return _by_timestamp(windowfn.assign_micros)
    return _by_context(windowfn)


def _by_timestamp(assign_micros: Callable[[int], Windows]) -> Callable[[Batch], Windows | list[Windows]]:
    cache: dict[int, Windows] = {}

    def windows_at(micros: int) -> Windows:
        if len(cache) > CACHE_LIMIT:
            cache.clear()
        made = cache[micros] = tuple(assign_micros(micros))
        return made

    def assign(batch: Batch) -> Windows | list[Windows]:
        timestamps = batch.timestamps
        if not isinstance(timestamps, list):
            return windows_at(timestamps)
        return [cache[at] if at in cache else windows_at(at) for at in timestamps]

    return assign


def _by_context(windowfn: Any) -> Callable[[Batch], Windows | list[Windows]]:
    def assign(batch: Batch) -> list[Windows]:
        assigned = []
        for value, timestamp, windows, _ in batch.rows():
            context = windowfn.AssignContext(
                Timestamp.from_micros(timestamp), element=value, window=windows[0] if windows else None
            )
            made = tuple(windowfn.assign(context))
            for window in made:
                if not isinstance(window, BoundedWindow):
                    raise refusal(
                        TypeError,
                        f"{type(windowfn).__name__}.assign returned a {type(window).__name__}, not a window",
                        hint="return a list of windows, for example [IntervalWindow(start, end)]",
                    )
            assigned.append(made)
        return assigned

    return assign


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
