"""How many elements go through a stage at a time: as many as take a few hundredths of a second.

A step makes all its outputs for a batch before the next step sees them. Where a step turns names of files into their
contents, a batch of thousands would not fit into memory, while for short lines a small batch would cost more than the
work. Large outputs take long to make, and so the time tells how large a batch may be.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock_spark.worker.batch import Batch
from penstock_spark.worker.pushing import Consumer, Records

_FIRST_ELEMENTS = 64
_FEWEST_ELEMENTS = 8
_MOST_ELEMENTS = 16_384
_QUICK_SECONDS = 0.02
_SLOW_SECONDS = 0.1


class BatchSizer:
    """Cuts batches to a size that takes about the intended time.

    >>> from itertools import count
    >>> pace = BatchSizer(clock=count().__next__)
    >>> pace.elements
    64
    >>> class Slow:
    ...     def push(self, batch):
    ...         return iter(())
    >>> list(pace.push(Slow(), Batch(list(range(200)))))
    []
    >>> pace.elements
    8
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.elements = _FIRST_ELEMENTS
        self._clock = clock

    def push(self, consumer: Consumer, batch: Batch) -> Records:
        """Pushes a batch, in parts if it is too large."""
        start, count = 0, len(batch.values)
        while start < count:
            some = min(self.elements, count - start)
            part = batch if some == count else batch.sliced(start, start + some)
            began = self._clock()
            yield from consumer.push(part)
            self._learn(some, self._clock() - began)
            start += some

    def _learn(self, pushed: int, seconds: float) -> None:
        if seconds > _SLOW_SECONDS:
            self.elements = max(pushed // 4, _FEWEST_ELEMENTS)
        elif seconds < _QUICK_SECONDS and pushed == self.elements:
            self.elements = min(self.elements * 4, _MOST_ELEMENTS)
