"""The watermarks of sources at work: what tasks send of their elements, and what every shard makes of it.

`estimator.Estimator` is all that others need; `rules` has the policies' own parts, `delays` the percentiles.
"""

from __future__ import annotations

from penstock_spark.source_watermarks.estimator import Estimator, Reached, State, Summary

__all__ = ["Estimator", "Reached", "State", "Summary"]
