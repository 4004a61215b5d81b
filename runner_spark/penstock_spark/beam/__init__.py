"""Unchanged Beam pipelines on Spark: ``--runner=penstock_spark.beam.BeamRunner``."""

from penstock_spark.beam.version import check_version

check_version()

from penstock_spark.beam.runner import BeamRunner  # noqa: E402  Beam must be there, and be known.

__all__ = ["BeamRunner"]
