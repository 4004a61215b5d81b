"""Turns Spark's report of a grouping that it runs on its own into the reports of a shard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Row

from penstock.machines.records import DropReason
from penstock.metrics.execution import COUNTERS, Snapshot
from penstock.utils import clock
from penstock_spark.folding.machine_read import DROPPED
from penstock_spark.live.stream_snapshots import RunFacts
from penstock_spark.plan.spark_watermark import AHEAD_METRIC, ROWS_METRIC, WRITTEN_METRIC, watermark_micros
from penstock_spark.reports.metrics import GroupingReport, Report, Reports
from penstock_spark.stream.sources.reading import AHEAD


def native_reports(label: str | None, progress: Mapping[str, Any]) -> Reports:
    """The report of the grouping, if there is one, in the form of a report of its only shard.

    Between micro-batches, Spark may report a watermark for which windows have not fired yet.
    """
    if label is None or "addBatch" not in progress["durationMs"]:
        return {}
    micros = watermark_micros(progress["eventTime"].get("watermark"))
    states = progress["stateOperators"]
    rows, size = (sum(each[part] for each in states) for part in ("numRowsTotal", "memoryUsedBytes"))
    told = GroupingReport(micros, micros, keys=rows, state_bytes=size, windows=rows)
    return {(1, 0): Report(int(progress["batchId"]), clock.micros(), {label: told})}


def native_counts(about: RunFacts, progress: Mapping[str, Any]) -> Snapshot:
    """The numbers of elements that a micro-batch has dropped as late, and of elements too far ahead of the clock.

    Spark adds up the elements of a key and window first, and counts the rows that it then drops.
    """
    label = about.native_grouping
    if label is None or "addBatch" not in progress["durationMs"]:
        return {}
    [source] = about.sources
    dropped = sum(each["numRowsDroppedByWatermark"] for each in progress["stateOperators"])
    ahead = _observed(progress, AHEAD_METRIC)
    counted = {(label, *DROPPED[DropReason.EXPIRED]): dropped, (source, *AHEAD): ahead}
    return {(COUNTERS, *name): count for name, count in counted.items() if count}


def native_rows(about: RunFacts, progress: Mapping[str, Any]) -> dict[str, int]:
    """The rows of the source in a micro-batch, by its label, if Spark reads more than these."""
    if ROWS_METRIC not in progress.get("observedMetrics", {}):
        return {}
    [source] = about.sources
    return {source: _observed(progress, ROWS_METRIC)}


def native_writes(about: RunFacts, progress: Mapping[str, Any]) -> dict[str, int]:
    """The rows that Spark has made for the sink in a micro-batch, by the number of its edge."""
    if WRITTEN_METRIC not in progress.get("observedMetrics", {}):
        return {}
    count = _observed(progress, WRITTEN_METRIC)
    return {str(edge): count for edge in about.written_by_spark}


def _observed(progress: Mapping[str, Any], name: str) -> int:
    """A number that Spark has observed in a micro-batch, under its own name; 0 if there is none."""
    found = progress["observedMetrics"].get(name)
    if found is None:
        return 0
    row = found.asDict() if isinstance(found, Row) else found
    # A client of Spark Connect leaves the row as Spark has written it.
    return int(row["values"][0] if "values" in row else row[name])
