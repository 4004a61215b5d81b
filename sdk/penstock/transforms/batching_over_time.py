"""Batches of unbounded input that wait for more elements, for so many seconds: `BatchElements` over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.coders.pickles import FastPrimitivesCoder
from penstock.coders.primitives import VarIntCoder
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer
from penstock.functions.window_expiration import on_window_expiration
from penstock.transforms.batch_sizes import BatchSizeEstimator
from penstock.windows.timeutil import TimeDomain


class WithBucket(DoFn):
    """Pairs elements with the bucket whose batches they go into; 0 if there are no buckets.

    Args:
        bucket_of: From an element to its bucket, or None.
    """

    def __init__(self, bucket_of: Callable[[Any], int] | None) -> None:
        super().__init__()
        self._bucket_of = bucket_of

    def process(self, element: Any) -> Iterator[tuple[int, Any]]:
        """One pair."""
        yield (self._bucket_of(element) if self._bucket_of else 0), element


class WaitingBatchDoFn(DoFn):
    """Keeps the elements of a bucket and window until there are enough, or the first has waited long enough.

    The time is the engine's. What a batch costs is measured in each worker for itself.

    Args:
        estimator: Says how large batches should be.
        element_size_fn: From an element to what it adds to a batch's size.
        max_batch_duration_secs: How many seconds the first element of a batch may wait; 0 for any time.
    """

    VALUES = BagStateSpec("values", FastPrimitivesCoder())
    SIZE = ReadModifyWriteStateSpec("size", VarIntCoder())
    WAITED = TimerSpec("waited", TimeDomain.REAL_TIME)

    def __init__(
        self,
        estimator: BatchSizeEstimator,
        element_size_fn: Callable[[Any], int],
        max_batch_duration_secs: float,
    ) -> None:
        super().__init__()
        self._estimator = estimator
        self._element_size_fn = element_size_fn
        self._max_batch_duration_secs = max_batch_duration_secs
        self._target: int | None = None

    def process(
        self,
        element: tuple[int, Any],
        values: Any = DoFn.StateParam(VALUES),
        size: Any = DoFn.StateParam(SIZE),
        waited: Any = DoFn.TimerParam(WAITED),
    ) -> Iterator[list[Any]]:
        """A batch, if this element makes it large enough."""
        if self._target is None:
            self._target = self._estimator.next_batch_size()
        before = size.read()
        values.add(element[1])
        total = (before or 0) + self._element_size_fn(element[1])
        size.write(total)
        if total >= self._target:
            waited.clear()
            yield from self.flush(values, size)
        elif before is None and self._max_batch_duration_secs:
            waited.set_relative(self._max_batch_duration_secs)

    @on_timer(WAITED)
    def flush(
        self, values: Any = DoFn.StateParam(VALUES), size: Any = DoFn.StateParam(SIZE)
    ) -> Iterator[list[Any]]:
        """What is there, as a batch."""
        batch, total = list(values.read()), size.read() or 0
        values.clear()
        size.clear()
        if batch:
            with self._estimator.record_time(total):
                yield batch
            self._target = self._estimator.next_batch_size()

    @on_window_expiration
    def end(
        self, values: Any = DoFn.StateParam(VALUES), size: Any = DoFn.StateParam(SIZE)
    ) -> Iterator[list[Any]]:
        """What is left when the window ends."""
        yield from self.flush(values, size)
