"""Beam's path for the approximate statistics: ``penstock.transforms.stats``."""

from __future__ import annotations

from penstock.transforms.approximate_quantiles import ApproximateQuantiles, ApproximateQuantilesCombineFn
from penstock.transforms.approximate_unique import ApproximateUnique, ApproximateUniqueCombineFn, K, T, V

__all__ = [
    "ApproximateQuantiles",
    "ApproximateQuantilesCombineFn",
    "ApproximateUnique",
    "ApproximateUniqueCombineFn",
    "K",
    "T",
    "V",
]
