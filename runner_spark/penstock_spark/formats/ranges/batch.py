"""A Python source in batch mode: the driver finds the ranges, and a row for each task carries its number."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.io.custom.ranges import RangesOfSource
from penstock_spark.formats.ranges.positions import ask_source, ranges_between
from penstock_spark.formats.ranges.reading import BatchReader, distribute_ranges
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.sources.parts import scan_of_parts
from penstock_spark.sources.scan import Scan

_TASKS_MAX = 1_000
"""All tasks get to know all ranges, so there are not too many of them."""


def open_ranges_with_rejects(description: RangesOfSource, spark: SparkSession, where: str) -> Scan:
    """Opens everything that exists now, and keeps elements that cannot be decoded."""
    return open_ranges(description, spark, where, has_rejects=True)


def open_ranges(
    description: RangesOfSource, spark: SparkSession, where: str, *, has_rejects: bool = False
) -> Scan:
    """Opens everything that exists now."""
    source = description.source
    parallelism = parallelism_of(spark)
    try:
        start = ask_source(source.first_position, where)
        end = ask_source(lambda: source.last_position(start, None), where)
        ranges = ranges_between(source, start, end, parallelism, where)
    finally:
        ask_source(source.close, where)
    tasks = distribute_ranges(ranges, _TASKS_MAX)
    return scan_of_parts(spark, BatchReader(source, tasks, where, has_rejects))
