"""Finding a good batch size from how long batches took downstream."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base import clock
from penstock.error import three_parts
from penstock.metrics import Metrics

_MOST_TIMINGS = 100
_MOST_GROWTH = 2


@dataclass(frozen=True)
class BatchTargets:
    """What a batch should be like; a target that is None or 0 does not count.

    Attributes:
        min_batch_size: The least size.
        max_batch_size: The greatest size; equal to the least for a fixed size.
        overhead: The share of a batch's time that is spent whatever its size.
        duration_seconds: The time of a batch, without what is spent whatever its size.
        duration_with_fixed_cost_seconds: The time of a batch.
        variance: How far sizes may stray from the best known one, as a share of it, so that there is
            something to learn from.

    Raises:
        ValueError: If the sizes are the wrong way round, a target is out of range, or there is none.

    >>> BatchTargets(min_batch_size=10, max_batch_size=10).next_size([])
    10
    """

    min_batch_size: int = 1
    max_batch_size: int = 10000
    overhead: float | None = 0.05
    duration_seconds: float | None = 10
    duration_with_fixed_cost_seconds: float | None = None
    variance: float = 0.25

    def __post_init__(self) -> None:
        if self.min_batch_size > self.max_batch_size:
            raise _wrong(
                f"Minimum ({self.min_batch_size}) must not be greater than maximum ({self.max_batch_size})"
            )
        if self.overhead and not 0 < self.overhead <= 1:
            raise _wrong(f"target_batch_overhead ({self.overhead}) must be between 0 and 1")
        if self.duration_seconds and self.duration_seconds <= 0:
            raise _wrong(f"target_batch_duration_secs ({self.duration_seconds}) must be positive")
        whole = self.duration_with_fixed_cost_seconds
        if whole and whole <= 0:
            raise _wrong(f"target_batch_duration_secs_including_fixed_cost ({whole}) must be positive")
        if not (self.overhead or self.duration_seconds or whole):
            raise _wrong(
                "At least one of target_batch_overhead or target_batch_duration_secs or "
                "target_batch_duration_secs_including_fixed_cost must be positive."
            )

    def next_size(self, timings: Sequence[tuple[float, float]]) -> int:
        """The size of the next batch.

        Args:
            timings: Pairs of the size of a batch and the seconds it took, in order.
        """
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
        # One more, every other time, so that the sizes do not become all the same.
        return int(max(self.min_batch_size + len(timings) % 2, min(target, cap)))

    def _target(self, fixed: float, per_element: float) -> float:
        """The greatest size that keeps to every target, if a batch of x takes ``fixed + per_element * x``."""
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

    Args:
        targets: What a batch should be like.
        clock: Gives the time in seconds.
        record_metrics: Whether sizes and times go into the distributions ``batch_size`` and
            ``msec_per_batch`` of the namespace ``BatchElements``.

    >>> estimator = BatchSizeEstimator(BatchTargets(max_batch_size=50), record_metrics=False)
    >>> estimator.next_batch_size()
    1
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
        """Leaves the next timing out: a first batch pays for things being set up."""
        self._ignore_next = True

    @contextlib.contextmanager
    def record_time(self, batch_size: int) -> Iterator[None]:
        """Times what is done with a batch of that size."""
        start = self._clock()
        yield
        seconds = float(self._clock() - start)
        if self._sizes is not None:
            # Distributions take whole numbers; what is cut off is owed to the next batch.
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
        """The size that the next batch should have; once more the last one, if its timing was ignored."""
        if self._replay:
            size, self._replay = self._replay, None
            return size
        return self._targets.next_size(self._timings)


def linear_regression(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """The line through points: its height at 0, and its slope.

    From ten points on, those that pull the line most (Cook's distance above 0.5) are left out, and the others
    weigh in inverse proportion to x, since small batches tell most about the cost at 0.

    >>> linear_regression([1, 2, 3], [3.0, 5.0, 7.0])
    (1.0, 2.0)
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


def _wrong(what: str) -> ValueError:
    return ValueError(three_parts(what, where="at BatchElements", hint="see the arguments of BatchElements"))
