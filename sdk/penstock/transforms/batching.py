"""Elements in batches, as they come or sorted by size: `BatchElements` and `SortAndBatchElements`."""

from __future__ import annotations

import bisect
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from penstock.base import clock
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import UnsupportedByRunner, three_parts
from penstock.functions.dofn import DoFn
from penstock.transforms.batch_sizes import BatchSizeEstimator, BatchTargets
from penstock.transforms.batching_over_time import WaitingBatchDoFn, WithBucket
from penstock.transforms.pardo import ParDo
from penstock.typehints import List, Tuple, with_input_types, with_output_types
from penstock.utils.windowed_value import WindowedValue

T = TypeVar("T")

_MOST_OPEN_BATCHES = 10
_DEFAULT_BOUNDARIES = (16, 32, 64, 128, 256, 512)


def _one(_: Any) -> int:
    return 1


@with_input_types(T)
@with_output_types(List[T])
class BatchElements(PTransform[Any, Any]):
    """Lists of elements, of a size that makes the steps after it efficient (Beam's ``BatchElements``).

    The time that the fused steps downstream take for a batch is measured, and taken for ``fixed + per_element
    * size``; sizes are chosen to keep to the targets. Batches do not cross windows or bundles, and have the
    timestamp of their window's end.

    Args:
        min_batch_size: The least size; only the last batches of a bundle may be smaller.
        max_batch_size: The greatest size; equal to the least for a fixed size.
        target_batch_overhead: The share of the fixed cost in a batch's time.
        target_batch_duration_secs: A batch's time in seconds, without the fixed cost.
        target_batch_duration_secs_including_fixed_cost: A batch's time in seconds.
        max_batch_duration_secs: How many seconds a batch may wait for more elements. Bounded input never
            waits. Of unbounded input, the elements of a window and bucket then wait in one place, across bundles.
        element_size_fn: From an element to what it adds to the size of a batch.
        variance: How far sizes may stray from the best known one, as a share of it.
        clock: Gives the time in seconds, to measure by; what waits goes by the time of the engine.
        record_metrics: Whether the distributions ``batch_size`` and ``msec_per_batch`` are recorded.
        length_fn: From an element to its length; elements are then batched with others of about their length.
        bucket_boundaries: The lengths at which another kind of batch begins, ascending; by default 16, 32,
            64, 128, 256 and 512.

    Raises:
        ValueError: If sizes, targets or boundaries make no sense.
        UnsupportedByRunner: If `max_batch_duration_secs` is given and the windows of unbounded input merge.

    Example: ``images | BatchElements(min_batch_size=8, max_batch_size=64) | Map(classify_all)``.

    >>> BatchElements(min_batch_size=100, max_batch_size=100).default_label()
    'BatchElements'
    """

    def __init__(
        self,
        min_batch_size: int = 1,
        max_batch_size: int = 10000,
        target_batch_overhead: float | None = 0.05,
        target_batch_duration_secs: float | None = 10,
        target_batch_duration_secs_including_fixed_cost: float | None = None,
        max_batch_duration_secs: float | None = None,
        *,
        element_size_fn: Callable[[Any], int] = _one,
        variance: float = 0.25,
        clock: Callable[[], float] = clock.seconds,
        record_metrics: bool = True,
        length_fn: Callable[[Any], int] | None = None,
        bucket_boundaries: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        targets = BatchTargets(
            min_batch_size,
            max_batch_size,
            target_batch_overhead,
            target_batch_duration_secs,
            target_batch_duration_secs_including_fixed_cost,
            variance,
        )
        self._estimator = BatchSizeEstimator(targets, clock, record_metrics)
        self._element_size_fn = element_size_fn
        self._max_batch_duration_secs = max_batch_duration_secs
        self._bucket_of = _bucketing(length_fn, bucket_boundaries)

    def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]:
        """Collects within each bundle; of unbounded input that may wait, in state."""
        if self._max_batch_duration_secs is not None and not pcoll.is_bounded:
            if pcoll.windowing.windowfn.is_merging():
                raise UnsupportedByRunner(
                    "max_batch_duration_secs needs state, and the windows of the input merge",
                    where=f"at step {self.label!r}",
                    hint="leave it out; batches then do not wait",
                )
            waiting = WaitingBatchDoFn(self._estimator, self._element_size_fn, self._max_batch_duration_secs)
            keyed = ParDo(WithBucket(self._bucket_of)).with_output_types(Tuple[int, pcoll.element_type])
            batched: PCollection[list[T]] = (
                pcoll
                | "Bucket" >> keyed
                | "Wait" >> ParDo(waiting).with_output_types(List[pcoll.element_type])
            )
            return batched
        batching = ParDo(BatchingDoFn(self._estimator, self._element_size_fn, self._bucket_of))
        return pcoll | batching.with_output_types(List[pcoll.element_type])


class BatchingDoFn(DoFn):
    """Collects the elements of each window and bucket, and gives them out as lists.

    Args:
        estimator: Says how large batches should be.
        element_size_fn: From an element to what it adds to a batch's size.
        bucket_of: From an element to the kind of batch it belongs in; None makes all one kind.
    """

    def __init__(
        self,
        estimator: BatchSizeEstimator,
        element_size_fn: Callable[[Any], int],
        bucket_of: Callable[[Any], int] | None,
    ) -> None:
        super().__init__()
        self._estimator = estimator
        self._element_size_fn = element_size_fn
        self._bucket_of = bucket_of

    def start_bundle(self) -> None:
        """Begins with nothing."""
        self._open: dict[tuple[Any, int | None], tuple[list[Any], int]] = {}
        self._target = self._estimator.next_batch_size()
        self._estimator.ignore_next_timing()

    def process(self, element: Any, window: Any = DoFn.WindowParam) -> Iterator[Any]:
        """Adds an element to its batch; a batch that would become too large goes out first."""
        place = window, self._bucket_of(element) if self._bucket_of else None
        size = self._element_size_fn(element)
        if place in self._open and self._open[place][1] + size > self._target:
            yield from self._send(place)
        batch, batch_size = self._open.get(place, ([], 0))
        batch.append(element)
        self._open[place] = batch, batch_size + size
        if len(self._open) > _MOST_OPEN_BATCHES:
            yield from self._send(max(self._open, key=lambda each: self._open[each][1]))

    def finish_bundle(self) -> Iterator[Any]:
        """Sends what is left."""
        for place in list(self._open):
            yield from self._send(place)

    def _send(self, place: tuple[Any, int | None]) -> Iterator[Any]:
        batch, size = self._open.pop(place)
        window = place[0]
        with self._estimator.record_time(size):
            yield WindowedValue(batch, window.max_timestamp(), (window,))
        self._target = self._estimator.next_batch_size()


def _bucketing(
    length_fn: Callable[[Any], int] | None, boundaries: Sequence[int] | None
) -> Callable[[Any], int] | None:
    """The function from an element to its bucket, or None if there are no buckets."""
    where = "at BatchElements"
    if boundaries is not None and length_fn is None:
        what = "bucket_boundaries requires length_fn to be set."
        raise ValueError(three_parts(what, where=where, hint="pass length_fn=len"))
    if length_fn is None:
        return None
    chosen = list(_DEFAULT_BOUNDARIES if boundaries is None else boundaries)
    if not chosen or min(chosen) <= 0 or chosen != sorted(chosen):
        what = "bucket_boundaries must be a non-empty sorted list of positive values."
        raise ValueError(three_parts(what, where=where, hint="for example [16, 64, 256]"))
    return lambda element: bisect.bisect_right(chosen, length_fn(element))


@with_input_types(T)
@with_output_types(List[T])
class SortAndBatchElements(PTransform[Any, Any]):
    """Lists of elements of about the same size, shorter ones first (Beam's ``SortAndBatchElements``).

    All elements of a bundle are held in memory until it ends. Batches do not cross windows, and have the
    timestamp of their window's end.

    Args:
        min_batch_size: The least number of elements that `max_batch_size` may be; last batches may be
            smaller.
        max_batch_size: The greatest number of elements.
        max_batch_weight: What the sizes of a batch of more than one element sum up to at most, less 1.
        element_size_fn: From an element to its size; by default `len`, or 1 for what has none.

    Raises:
        ValueError: If a number is below 1, or the two sizes are the wrong way round.
        TypeError: If `element_size_fn` cannot be called.

    Example: ``sentences | SortAndBatchElements(1, 32, 4096)`` needs little padding.

    >>> SortAndBatchElements(1, 32, 4096).default_label()
    'SortAndBatchElements'
    """

    def __init__(
        self,
        min_batch_size: int,
        max_batch_size: int,
        max_batch_weight: int,
        element_size_fn: Callable[[Any], int] | None = None,
    ) -> None:
        super().__init__()
        where, hint = (
            "at SortAndBatchElements",
            "use 1 <= min_batch_size <= max_batch_size and a weight of 1 or more",
        )
        for name, number in (("min_batch_size", min_batch_size), ("max_batch_weight", max_batch_weight)):
            if number < 1:
                raise ValueError(three_parts(f"{name} must be >= 1, got {number}", where=where, hint=hint))
        if max_batch_size < min_batch_size:
            what = f"max_batch_size ({max_batch_size}) must be >= min_batch_size ({min_batch_size})"
            raise ValueError(three_parts(what, where=where, hint=hint))
        if element_size_fn is not None and not callable(element_size_fn):
            raise TypeError(
                three_parts("element_size_fn must be callable", where=where, hint="pass a function")
            )
        self._fn = SortingBatchDoFn(max_batch_size, max_batch_weight, element_size_fn or LengthOrOne())

    def expand(self, pcoll: Any) -> Any:
        """Collects within each bundle."""
        return pcoll | ParDo(self._fn).with_output_types(List[pcoll.element_type])


class LengthOrOne:
    """The size of an element: its length, or, with one warning for all, 1.

    >>> LengthOrOne()("abc")
    3
    """

    def __init__(self) -> None:
        self._has_warned = False

    def __call__(self, element: Any) -> int:
        """The size."""
        try:
            return len(element)
        except TypeError:
            if not self._has_warned:
                self._has_warned = True
                logging.getLogger("penstock.transforms.util").warning(
                    "SortAndBatchElements gives elements of type %s the size 1, since they have no len(); "
                    "pass element_size_fn for another size",
                    type(element).__name__,
                )
            return 1


class SortingBatchDoFn(DoFn):
    """Collects the elements of each window, and gives them out as lists, sorted by size.

    Args:
        max_batch_size: The greatest number of elements of a batch.
        max_batch_weight: The weight that a batch of more than one element stays below.
        element_size_fn: From an element to its size.
    """

    def __init__(
        self, max_batch_size: int, max_batch_weight: int, element_size_fn: Callable[[Any], int]
    ) -> None:
        super().__init__()
        self._max_batch_size = max_batch_size
        self._max_batch_weight = max_batch_weight
        self._element_size_fn = element_size_fn

    def start_bundle(self) -> None:
        """Begins with nothing."""
        self._waiting: dict[Any, list[Any]] = {}

    def process(self, element: Any, window: Any = DoFn.WindowParam) -> Iterator[Any]:
        """Keeps the element; of too many windows, the one with most elements goes out."""
        self._waiting.setdefault(window, []).append(element)
        if len(self._waiting) > _MOST_OPEN_BATCHES:
            yield from self._send(max(self._waiting, key=lambda each: len(self._waiting[each])))

    def finish_bundle(self) -> Iterator[Any]:
        """Sends what is left."""
        for window in list(self._waiting):
            yield from self._send(window)

    def _send(self, window: Any) -> Iterator[Any]:
        sized = [(self._element_size_fn(element), element) for element in self._waiting.pop(window)]
        sized.sort(key=lambda pair: pair[0])
        batch: list[Any] = []
        weight = 0
        for size, element in sized:
            if batch and (len(batch) >= self._max_batch_size or weight + size >= self._max_batch_weight):
                yield WindowedValue(batch, window.max_timestamp(), (window,))
                batch, weight = [], 0
            batch.append(element)
            weight += size
        yield WindowedValue(batch, window.max_timestamp(), (window,))
