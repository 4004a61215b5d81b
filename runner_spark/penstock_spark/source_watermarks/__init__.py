"""Computes the watermarks of sources: tasks send summaries of their elements, and every shard folds the summaries.

Other packages need only `estimator.Estimator`; `rules` has a rule for each policy, and `delays` the percentiles.
"""

from __future__ import annotations

from penstock_spark.source_watermarks.estimator import ENDED, Estimator, ReachedWatermark, State, Summary

__all__ = ["ENDED", "Estimator", "ReachedWatermark", "State", "Summary"]
