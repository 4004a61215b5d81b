"""Counts of numbers by bucket, and percentiles estimated from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from penstock.error import refusal


@runtime_checkable
class BucketType(Protocol):
    """A division of numbers into buckets (Beam's ``apache_beam.utils.histogram.BucketType``)."""

    def range_from(self) -> float:
        """Returns the lower bound of the first bucket."""

    def range_to(self) -> float:
        """Returns the upper bound of the last bucket."""

    def num_buckets(self) -> int:
        """Returns the number of buckets."""

    def bucket_index(self, value: float) -> int:
        """Returns the number of the bucket that a value falls into, from 0."""

    def bucket_size(self, index: int) -> float:
        """Returns the width of a bucket."""

    def accumulated_bucket_size(self, end_index: int) -> float:
        """Returns the widths of the first `end_index` buckets together."""


@dataclass(frozen=True, init=False)
class LinearBucket(BucketType):
    """Buckets of one width (Beam's ``LinearBucket``).

    >>> LinearBucket(0, 10, 5).bucket_index(25)
    2
    """

    start: float
    width: float
    count: int

    def __init__(self, start: float, width: float, num_buckets: int) -> None:
        for name, value in (("start", start), ("width", width), ("count", num_buckets)):
            object.__setattr__(self, name, value)

    def range_from(self) -> float:
        return self.start

    def range_to(self) -> float:
        return self.start + self.width * self.count

    def num_buckets(self) -> int:
        return self.count

    def bucket_index(self, value: float) -> int:
        return math.floor((value - self.start) / self.width)

    def bucket_size(self, index: int) -> float:
        return self.width

    def accumulated_bucket_size(self, end_index: int) -> float:
        return self.width * end_index


@dataclass(frozen=True)
class HistogramData:
    """The number of numbers in each bucket, below all and above all (Beam's ``HistogramData``).

    >>> data = HistogramData(LinearBucket(0, 10, 5)).record(3).record(4).record(99)
    >>> data.total_count(), data.above, data.percentile(0.5)
    (3, 1, 7.5)
    """

    bucket_type: BucketType
    counts: Mapping[int, int] = field(default_factory=dict)
    below: int = 0
    above: int = 0

    def record(self, value: float) -> HistogramData:
        """Returns these counts and one more number."""
        if value >= self.bucket_type.range_to():
            return HistogramData(self.bucket_type, self.counts, self.below, self.above + 1)
        if value < self.bucket_type.range_from():
            return HistogramData(self.bucket_type, self.counts, self.below + 1, self.above)
        index = self.bucket_type.bucket_index(value)
        counts = {**self.counts, index: self.counts.get(index, 0) + 1}
        return HistogramData(self.bucket_type, counts, self.below, self.above)

    def combine(self, other: HistogramData | None) -> HistogramData:
        """Returns the two counts combined; ValueError if the buckets differ."""
        if other is None:
            return self
        if self.bucket_type != other.bucket_type:
            what = f"histograms of different buckets: {self.bucket_type} and {other.bucket_type}"
            raise refusal(ValueError, what, hint="give a histogram of one name the same buckets everywhere")
        indexes = {*self.counts, *other.counts}
        counts = {index: self.counts.get(index, 0) + other.counts.get(index, 0) for index in indexes}
        return HistogramData(self.bucket_type, counts, self.below + other.below, self.above + other.above)

    def total_count(self) -> int:
        """Returns the number of numbers."""
        return sum(self.counts.values()) + self.below + self.above

    def percentile(self, fraction: float) -> float:
        """Returns the number below which a fraction of the numbers lies, as if each bucket were evenly filled.

        Args:
            fraction: From 0 to 1.

        Returns:
            Minus or plus infinity if it lies outside of the buckets.
        """
        if not 0 <= fraction <= 1:
            raise refusal(ValueError, f"the fraction is {fraction}", hint="use a number from 0 to 1")
        total = self.total_count()
        if not total:
            raise refusal(ValueError, "the histogram is empty", hint="update it before you read it")
        # Shares are divided where Beam divides them, so that the last digit of a result is Beam's.
        if self.below / total >= fraction:
            return -math.inf
        so_far = self.below
        for index in sorted(self.counts):
            count = self.counts[index]
            if (so_far + count) / total >= fraction:
                inside = (fraction - so_far / total) * self.bucket_type.bucket_size(index) / (count / total)
                before = self.bucket_type.accumulated_bucket_size(index)
                return self.bucket_type.range_from() + before + inside
            so_far += count
        return math.inf


@dataclass(frozen=True)
class HistogramResult:
    """The result of a query for a histogram (Beam's ``HistogramResult``).

    >>> HistogramResult(HistogramData(LinearBucket(0, 10, 1)).record(5)).p90
    9.0
    """

    data: HistogramData

    @property
    def histogram(self) -> HistogramData:
        """The counts."""
        return self.data

    @property
    def p99(self) -> float:
        """The 99th percentile."""
        return self.data.percentile(0.99)

    @property
    def p95(self) -> float:
        """The 95th percentile."""
        return self.data.percentile(0.95)

    @property
    def p90(self) -> float:
        """The 90th percentile."""
        return self.data.percentile(0.90)
