"""Beam's path for histograms by bucket: ``penstock.utils.histogram``."""

from __future__ import annotations

from penstock.metrics.histogram import BucketType, HistogramData, LinearBucket

Histogram = HistogramData
"""Beam's name of `HistogramData`."""

__all__ = ["BucketType", "Histogram", "LinearBucket"]
