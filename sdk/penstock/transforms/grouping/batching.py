"""Elements in batches, as they come or sorted by size: `BatchElements` and `SortAndBatchElements`."""

from __future__ import annotations

import bisect
import contextlib
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.checks.whole_numbers import check_whole_number
from penstock.coders.coders import FastPrimitivesCoder, VarIntCoder
from penstock.construction.applicable import T
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import UnsupportedByRunner, make_value_error, refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    BagStateSpec,
    BaseTimer,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.metrics import Metrics
from penstock.transforms.elements.pardo import ParDo
from penstock.typehints import List, Tuple, with_input_types, with_output_types
from penstock.utils import clock
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import WindowedValue
from penstock.windows.time_domain import TimeDomain


class WithBucket(DoFn):
    """Pairs elements with the bucket whose batches they go into; 0 without buckets."""

    def __init__(self, bucket_of: Callable[[Any], int] | None) -> None:
        super().__init__()
        self._bucket_of = bucket_of

    def process(self, element: object) -> Iterator[tuple[int, Any]]:
        yield (self._bucket_of(element) if self._bucket_of else 0), element


@dataclass(eq=False)
class WaitingBatchDoFn(DoFn):
    """Keeps the elements of a bucket and window until there are enough, or the first has waited long enough.

    Waiting uses the engine's time; 0 seconds means any time. Each worker measures the costs of batches alone.
    """

    VALUES = BagStateSpec("values", FastPrimitivesCoder())
    SIZE = ReadModifyWriteStateSpec("size", VarIntCoder())
    WAITED = TimerSpec("waited", TimeDomain.REAL_TIME)

    estimator: BatchSizeEstimator
    element_size_fn: Callable[[Any], int]
    max_batch_duration_secs: float
    target: int | None = None

    def process(
        self,
        element: tuple[int, Any],
        values: BagRuntimeState = DoFn.StateParam(VALUES),
        size: ReadModifyWriteRuntimeState = DoFn.StateParam(SIZE),
        waited: BaseTimer = DoFn.TimerParam(WAITED),
    ) -> Iterator[list[Any]]:
        """Yields a batch, if this element makes it large enough."""
        if self.target is None:
            self.target = self.estimator.next_batch_size()
        before = size.read()
        values.add(element[1])
        total = (before or 0) + self.element_size_fn(element[1])
        size.write(total)
        if total >= self.target:
            waited.clear()
            yield from self.flush(values, size)
        elif before is None and self.max_batch_duration_secs:
            waited.set_relative(self.max_batch_duration_secs)

    @on_window_expiration
    @on_timer(WAITED)
    def flush(
        self,
        values: BagRuntimeState = DoFn.StateParam(VALUES),
        size: ReadModifyWriteRuntimeState = DoFn.StateParam(SIZE),
    ) -> Iterator[list[Any]]:
        """Yields the waiting elements, as a batch."""
        batch, total = list(values.read()), size.read() or 0
        values.clear()
        size.clear()
        if batch:
            with self.estimator.record_time(total):
                yield batch
            self.target = self.estimator.next_batch_size()


_MOST_TIMINGS = 100
_MOST_GROWTH = 2


@dataclass(frozen=True)
class BatchTargets:
    """The targets for a batch; a target that is None or 0 does not count.

    Raises:
        ValueError: If the sizes are the wrong way round, a target is out of range, or there is none.

    >>> BatchTargets(min_batch_size=10, max_batch_size=10).next_size([])
    10
    """

    min_batch_size: int = 1
    max_batch_size: int = 10000
    overhead: float | None = 0.05
    """The share of a batch's time that does not depend on its size."""

    duration_seconds: float | None = 10
    """A batch's time without that share."""

    duration_with_fixed_cost_seconds: float | None = None
    variance: float = 0.25
    """The part of a size by which others may differ from it, so that there is something to learn from."""

    def __post_init__(self) -> None:
        for name in ("min_batch_size", "max_batch_size"):
            check_whole_number(name, getattr(self, name))
            if getattr(self, name) < 1:
                raise make_value_error(f"{name} is {getattr(self, name)}", "pass 1 or more")
        if self.min_batch_size > self.max_batch_size:
            raise make_value_error(
                f"Minimum ({self.min_batch_size}) must not be greater than maximum ({self.max_batch_size})",
                f"pass max_batch_size={self.min_batch_size} or more",
            )
        if self.overhead and not 0 < self.overhead <= 1:
            what = f"target_batch_overhead ({self.overhead}) must be between 0 and 1"
            raise make_value_error(what, "pass the share of the time, such as 0.05")
        if self.duration_seconds and self.duration_seconds <= 0:
            what = f"target_batch_duration_secs ({self.duration_seconds}) must be positive"
            raise make_value_error(what, "pass seconds, or None for no such target")
        whole = self.duration_with_fixed_cost_seconds
        if whole and whole <= 0:
            what = f"target_batch_duration_secs_including_fixed_cost ({whole}) must be positive"
            raise make_value_error(what, "pass seconds, or None for no such target")
        if not (self.overhead or self.duration_seconds or whole):
            raise make_value_error(
                "At least one of target_batch_overhead or target_batch_duration_secs or "
                "target_batch_duration_secs_including_fixed_cost must be positive.",
                "leave them out: each has a default",
            )

    def next_size(self, timings: Sequence[tuple[float, float]]) -> int:
        """The size of the next batch, from pairs of the size of a batch and the seconds that it took, in order."""
        if self.min_batch_size == self.max_batch_size or not timings:
            return self.min_batch_size
        if len(timings) == 1:
            # A line needs two different sizes.
            return max(min(self.max_batch_size, self.min_batch_size * _MOST_GROWTH), self.min_batch_size + 1)
        # Large batches vary most, and weigh most in a regression: the top fifth does not count.
        usual = sorted(timings)[: max(20, len(timings) * 4 // 5)]
        fixed, per_element = linear_regression(*zip(*usual, strict=True))
        target = self._target(max(fixed, 1e-10), max(per_element, 1e-20))
        if len(timings) > 10:
            target += int(target * self.variance * 2 * (random.random() - 0.5))
        cap = min(timings[-1][0] * _MOST_GROWTH, self.max_batch_size)
        # Every other batch has one more element, so that the sizes do not all become the same.
        return int(max(self.min_batch_size + len(timings) % 2, min(target, cap)))

    def _target(self, fixed: float, per_element: float) -> float:
        """The largest size that meets every target, if a batch of x takes ``fixed + per_element * x``."""
        target: float = self.max_batch_size
        if self.duration_with_fixed_cost_seconds:
            target = min(target, (self.duration_with_fixed_cost_seconds - fixed) / per_element)
        if self.duration_seconds:
            target = min(target, self.duration_seconds / per_element)
        if self.overhead:
            target = min(target, fixed / per_element * (1 / self.overhead - 1))
        return target


class BatchSizeEstimator:
    """Times batches, and suggests the size of the next.

    Unless `record_metrics` is False, sizes and times go into the distributions ``batch_size`` and ``msec_per_batch``
    of the namespace ``BatchElements``.
    """

    def __init__(
        self, targets: BatchTargets, clock: Callable[[], float] = clock.seconds, record_metrics: bool = True
    ) -> None:
        self._targets = targets
        self._clock = clock
        self._timings: list[tuple[float, float]] = []
        self._ignore_next = False
        self._replay: int | None = None
        self._owed_millis = 0.0
        self._sizes: Any = Metrics.distribution("BatchElements", "batch_size") if record_metrics else None
        self._times: Any = Metrics.distribution("BatchElements", "msec_per_batch") if record_metrics else None

    def ignore_next_timing(self) -> None:
        """Leaves the next timing out: a first batch also pays for setting things up."""
        self._ignore_next = True

    @contextlib.contextmanager
    def record_time(self, batch_size: int) -> Iterator[None]:
        """Times the ``with`` block, which processes a batch of that size."""
        start = self._clock()
        yield
        seconds = float(self._clock() - start)
        if self._sizes is not None:
            # Distributions take integers; the next batch gets the fraction.
            millis = seconds * 1000 + self._owed_millis
            self._owed_millis = millis - int(millis)
            self._sizes.update(int(batch_size))
            self._times.update(int(millis))
        if self._ignore_next:
            self._ignore_next = False
            self._replay = min(batch_size, self._targets.max_batch_size)
            return
        self._timings.append((batch_size, seconds))
        if len(self._timings) >= _MOST_TIMINGS:
            # Two at a time, mostly old ones: `next_size` looks at whether their number is odd.
            self._timings.pop(random.randrange(len(self._timings) // 4))
            self._timings.pop(random.randrange(len(self._timings) // 2))

    def next_batch_size(self) -> int:
        """Returns the size that the next batch should have; the last one again, if its timing was ignored."""
        if self._replay:
            size, self._replay = self._replay, None
            return size
        return self._targets.next_size(self._timings)


def linear_regression(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Returns the line through points: its height at 0, and its slope.

    With ten points or more, those that pull the line most (Cook's distance above 0.5) are left out, and the others
    weigh in inverse proportion to x, since small batches tell most about the cost at 0.
    """
    count = len(xs)
    if all(x == xs[0] for x in xs):
        mean = sum(ys) / count
        return (0, mean / xs[0]) if xs[0] else (mean, 0)
    height, slope = _least_squares(xs, ys, [1.0] * count)
    errors = [height + slope * x - y for x, y in zip(xs, ys, strict=True)]
    spread = sum(error * error for error in errors) / (count - 2) if count > 2 else 0.0
    if count < 10 or not spread or min(xs) <= 0:
        return height, slope
    sum_x, sum_xx = sum(xs), sum(x * x for x in xs)
    weights = []
    for x, error in zip(xs, errors, strict=True):
        leverage = (sum_xx - 2 * sum_x * x + count * x * x) / (count * sum_xx - sum_x * sum_x)
        distance = (
            0.5 / spread * error * error * leverage / (1 - leverage) ** 2 if leverage < 1 else float("inf")
        )
        weights.append(1 / x if distance <= 0.5 else 0.0)
    if len({x for x, weight in zip(xs, weights, strict=True) if weight}) < 2:
        return height, slope
    # The weights of the errors, not of their squares.
    return _least_squares(xs, ys, [weight * weight for weight in weights])


def _least_squares(xs: Sequence[float], ys: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    whole = sum(weights)
    mean_x = sum(weight * x for weight, x in zip(weights, xs, strict=True)) / whole
    mean_y = sum(weight * y for weight, y in zip(weights, ys, strict=True)) / whole
    trios = list(zip(weights, xs, ys, strict=True))
    slope = sum(weight * (x - mean_x) * (y - mean_y) for weight, x, y in trios) / sum(
        weight * (x - mean_x) ** 2 for weight, x, _ in trios
    )
    return mean_y - slope * mean_x, slope


_MOST_OPEN_BATCHES = 10
_DEFAULT_BOUNDARIES = (16, 32, 64, 128, 256, 512)


def _one(_: object) -> int:
    return 1


@with_input_types(T)
@with_output_types(List[T])
class BatchElements(PTransform[Any, Any]):
    """Emits lists of elements, of a size that makes the next steps efficient (Beam's ``BatchElements``).

    The transform measures how long the fused steps downstream take for a batch, assumes ``fixed + per_element * size``,
    and chooses sizes that meet the targets. Batches do not cross windows or bundles, and have the timestamp of their
    window's end.

    Args:
        min_batch_size: The minimum size; only the last batches of a bundle may be smaller.
        max_batch_size: The maximum size; equal to the minimum for a fixed size.
        target_batch_overhead: The share of the fixed cost in a batch's time.
        target_batch_duration_secs: A batch's time in seconds, without the fixed cost.
        target_batch_duration_secs_including_fixed_cost: A batch's time in seconds.
        max_batch_duration_secs: How many seconds a batch may wait for more elements. Bounded input never
            waits. With unbounded input, the elements of a window and bucket then wait together, across bundles.
        element_size_fn: A function from an element to the size that it adds to a batch.
        variance: How far sizes may differ from the best known size, as a share of it.
        clock: Returns the time in seconds for measurements; waiting uses the engine's time.
        record_metrics: Whether the distributions ``batch_size`` and ``msec_per_batch`` are recorded.
        length_fn: A function from an element to its length; elements are then batched with others of about the same
            length.
        bucket_boundaries: The lengths at which a new kind of batch begins, ascending; by default 16, 32,
            64, 128, 256 and 512.

    Raises:
        ValueError: If sizes, targets or boundaries make no sense.
        UnsupportedByRunner: If `max_batch_duration_secs` is given and the windows of unbounded input merge.

    Example: ``images | BatchElements(min_batch_size=8, max_batch_size=64) | Map(classify_all)``.
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
        if self._max_batch_duration_secs is not None and not pcoll.is_bounded:
            if pcoll.windowing.windowfn.is_merging():
                what = "max_batch_duration_secs needs state, and the windows of the input merge"
                hint = "leave it out; batches then do not wait"
                raise UnsupportedByRunner(what, where=f"at step {self.label!r}", hint=hint)
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


@dataclass(eq=False)
class BatchingDoFn(DoFn):
    """Collects the elements of each window and bucket, and emits them as lists."""

    estimator: BatchSizeEstimator
    element_size_fn: Callable[[Any], int]
    bucket_of: Callable[[Any], int] | None

    def start_bundle(self) -> None:
        self._open: dict[tuple[Any, int | None], tuple[list[Any], int]] = {}
        self._target = self.estimator.next_batch_size()
        self.estimator.ignore_next_timing()

    def process(self, element: object, window: object = DoFn.WindowParam) -> Iterator[Any]:
        """Adds an element to its batch; a batch that would become too large goes out first."""
        place = window, self.bucket_of(element) if self.bucket_of else None
        size = self.element_size_fn(element)
        if place in self._open and self._open[place][1] + size > self._target:
            yield from self._send(place)
        batch, batch_size = self._open.get(place, ([], 0))
        batch.append(element)
        self._open[place] = batch, batch_size + size
        if len(self._open) > _MOST_OPEN_BATCHES:
            yield from self._send(max(self._open, key=lambda each: self._open[each][1]))

    def finish_bundle(self) -> Iterator[Any]:
        for place in list(self._open):
            yield from self._send(place)

    def _send(self, place: tuple[Any, int | None]) -> Iterator[Any]:
        batch, size = self._open.pop(place)
        window = place[0]
        with self.estimator.record_time(size):
            yield WindowedValue(batch, window.max_timestamp(), (window,))
        self._target = self.estimator.next_batch_size()


def _bucketing(
    length_fn: Callable[[Any], int] | None, boundaries: Sequence[int] | None
) -> Callable[[Any], int] | None:
    """The function from an element to its bucket, or None without buckets."""
    if boundaries is not None and length_fn is None:
        what = "bucket_boundaries requires length_fn to be set."
        raise refusal(ValueError, what, hint="pass length_fn=len")
    if length_fn is None:
        return None
    chosen = list(_DEFAULT_BOUNDARIES if boundaries is None else boundaries)
    if not chosen or min(chosen) <= 0 or chosen != sorted(chosen):
        what = "bucket_boundaries must be a non-empty sorted list of positive values."
        raise refusal(ValueError, what, hint="for example [16, 64, 256]")
    return lambda element: bisect.bisect_right(chosen, length_fn(element))


@with_input_types(T)
@with_output_types(List[T])
class SortAndBatchElements(PTransform[Any, Any]):
    """Emits lists of elements of about the same size, shorter ones first (Beam's ``SortAndBatchElements``).

    All elements of a bundle are held in memory until it ends. Batches do not cross windows, and have the
    timestamp of their window's end.

    Args:
        min_batch_size: The minimum of `max_batch_size`; last batches may be smaller.
        max_batch_size: The maximum number of elements.
        max_batch_weight: An upper limit for the sum of the sizes of a batch of more than one element.
        element_size_fn: A function from an element to its size; by default `len`, or 1 if an element has no length.

    Raises:
        ValueError: If a number is below 1, or the two sizes are the wrong way round.

    Example: ``sentences | SortAndBatchElements(1, 32, 4096)`` needs little padding.
    """

    def __init__(
        self,
        min_batch_size: int,
        max_batch_size: int,
        max_batch_weight: int,
        element_size_fn: Callable[[Any], int] | None = None,
    ) -> None:
        super().__init__()
        hint = "use 1 <= min_batch_size <= max_batch_size and a weight of 1 or more"
        for name, number in (("min_batch_size", min_batch_size), ("max_batch_weight", max_batch_weight)):
            if number < 1:
                raise refusal(ValueError, f"{name} must be >= 1, got {number}", hint=hint)
        if max_batch_size < min_batch_size:
            what = f"max_batch_size ({max_batch_size}) must be >= min_batch_size ({min_batch_size})"
            raise refusal(ValueError, what, hint=hint)
        if element_size_fn is not None and not callable(element_size_fn):
            raise refusal(TypeError, "element_size_fn must be callable", hint="pass a function")
        self._fn = SortingBatchDoFn(max_batch_size, max_batch_weight, element_size_fn or LengthOrOne())

    def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]:
        return pcoll | ParDo(self._fn).with_output_types(List[pcoll.element_type])


class LengthOrOne:
    """The size of an element: its length, or, with one warning for all, 1."""

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
                    "SortAndBatchElements assigns elements of type %s the size 1, since they have no len(); "
                    "pass element_size_fn for another size",
                    type(element).__name__,
                )
            return 1


@dataclass(eq=False)
class SortingBatchDoFn(DoFn):
    """Collects the elements of each window, and emits them as lists, sorted by size."""

    max_batch_size: int
    max_batch_weight: int
    element_size_fn: Callable[[Any], int]

    def start_bundle(self) -> None:
        self._waiting: dict[Any, list[Any]] = {}

    def process(self, element: object, window: object = DoFn.WindowParam) -> Iterator[Any]:
        """Keeps the element; if there are too many windows, the one with most elements goes out."""
        self._waiting.setdefault(window, []).append(element)
        if len(self._waiting) > _MOST_OPEN_BATCHES:
            yield from self._send(max(self._waiting, key=lambda each: len(self._waiting[each])))

    def finish_bundle(self) -> Iterator[Any]:
        for window in list(self._waiting):
            yield from self._send(window)

    def _send(self, window: BoundedWindow) -> Iterator[Any]:
        sized = [(self.element_size_fn(element), element) for element in self._waiting.pop(window)]
        sized.sort(key=lambda pair: pair[0])
        batch: list[Any] = []
        weight = 0
        for size, element in sized:
            if batch and (len(batch) >= self.max_batch_size or weight + size >= self.max_batch_weight):
                yield WindowedValue(batch, window.max_timestamp(), (window,))
                batch, weight = [], 0
            batch.append(element)
            weight += size
        yield WindowedValue(batch, window.max_timestamp(), (window,))
