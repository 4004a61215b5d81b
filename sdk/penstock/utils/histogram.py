"""Beam's path for histograms by bucket: one that records numbers, over the immutable counts of metrics."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from penstock.error import refusal
from penstock.metrics.histogram import BucketType, HistogramData, LinearBucket

__all__ = ["BucketType", "Histogram", "LinearBucket"]

_LOGGER = logging.getLogger(__name__)


class Histogram:
    """The number of numbers in each bucket, such as a `LinearBucket` (Beam's ``Histogram``).

    >>> histogram = Histogram(LinearBucket(0, 10, 5))
    >>> histogram.record(3, 4, 12)
    >>> histogram.total_count(), histogram.p50()
    (3, 7.5)
    """

    def __init__(self, bucket_type: BucketType) -> None:
        self._data = HistogramData(bucket_type)

    @property
    def _buckets(self) -> Mapping[int, int]:
        return self._data.counts

    def record(self, *args: float) -> None:
        """Counts numbers, with a warning for each outside of the buckets."""
        for value in args:
            bounds = self._data.bucket_type
            if value >= bounds.range_to():
                _LOGGER.warning("record is out of upper bound %s: %s", bounds.range_to(), value)
            elif value < bounds.range_from():
                _LOGGER.warning("record is out of lower bound %s: %s", bounds.range_from(), value)
            self._data = self._data.record(value)

    def clear(self) -> None:
        """Forgets all numbers."""
        self._data = HistogramData(self._data.bucket_type)

    def copy(self) -> Histogram:
        """Another histogram with the same counts."""
        return self._with(self._data)

    def combine(self, other: Histogram | None) -> Histogram:
        """The two counts combined; ValueError if the buckets differ."""
        return self._with(self._data.combine(None if other is None else other._data))

    def total_count(self) -> int:
        """The number of numbers."""
        return self._data.total_count()

    def p50(self) -> float:
        """The median; see `get_linear_interpolation`."""
        return self.get_linear_interpolation(0.50)

    def p90(self) -> float:
        """The 90th percentile; see `get_linear_interpolation`."""
        return self.get_linear_interpolation(0.90)

    def p99(self) -> float:
        """The 99th percentile; see `get_linear_interpolation`."""
        return self.get_linear_interpolation(0.99)

    def get_linear_interpolation(self, percentile: float) -> float:
        """The number below which a share of the numbers lies, as if each bucket were evenly filled.

        Args:
            percentile: The share, from 0 to 1.

        Returns:
            Minus or plus infinity if it lies outside of the buckets.

        Raises:
            RuntimeError: If there are no numbers.
        """
        if not 0 <= percentile <= 1:
            raise refusal(ValueError, f"the percentile is {percentile}", hint="use a number from 0 to 1")
        if not self.total_count():
            raise RuntimeError("histogram has no record.")
        return self._data.percentile(percentile)

    def get_percentile_info(self) -> str:
        """The count and the three percentiles in words."""
        if not self.total_count():
            return "Total count: 0"
        shares = (("P99", self.p99()), ("P90", self.p90()), ("P50", self.p50()))
        shown = ", ".join(f"{name}: {self._in_words(value)}" for name, value in shares)
        return f"Total count: {self.total_count()}, {shown}"

    def _in_words(self, value: float) -> str:
        if math.isinf(value):
            bounds = self._data.bucket_type
            return f"<{bounds.range_from()}" if value < 0 else f">={bounds.range_to()}"
        return str(round(value))

    def _with(self, data: HistogramData) -> Histogram:
        new = Histogram(data.bucket_type)
        new._data = data
        return new

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self._data == other._data

    def __hash__(self) -> int:
        data = self._data
        return hash((data.bucket_type, frozenset(data.counts.items()), data.below, data.above))
