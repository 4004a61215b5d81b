"""Unchanged Beam pipelines on Spark: ``--runner=penstock_spark.beam.BeamRunner``."""

from penstock_spark.beam.runner import BeamRunner

__all__ = ["BeamRunner"]
