"""Brings metrics from the workers to the driver: one snapshot for each partition of each stage of each run.

A task that Spark tries again reports again. Snapshots are therefore kept by partition: a second attempt
replaces the snapshot of the first one, and what a task counted counts once. In a streaming query, the number of
the micro-batch is part of the partition. Shards of a streaming query also report their watermarks, and tasks the ends
of sources. Reports come before their micro-batch is written, so a driver asks for those of finished micro-batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.metrics.execution import ROWS, Snapshot, merge_snapshots
from penstock_spark.session.backend import ReportSink, TaskReports


def take_snapshots(told: TaskReports, run: str, batch: int | None = None) -> Snapshot:
    """Removes the metrics of a run from what tasks have reported, up to a micro-batch or all, and returns them."""

    def is_finished(key: tuple[str, int, Any]) -> bool:
        # Jobs before the query compute the side inputs; their partitions are plain numbers.
        return key[0] == run and (batch is None or isinstance(key[2], int) or key[2][0] <= batch)

    merged: Snapshot = {}
    held = told.value
    for key in filter(is_finished, list(held)):
        merged = merge_snapshots(merged, held.pop(key))
    return merged


def copy_snapshots(told: TaskReports, run: str) -> dict[tuple[str, int, Hashable], Snapshot]:
    """Returns the snapshots of a run's partitions that tasks have reported so far; they stay there."""
    held = told.value
    # Tasks that end meanwhile add theirs, and the end of the run takes all out.
    found = {key: held.get(key) for key in list(held) if key[0] == run}
    return {key: snapshot for key, snapshot in found.items() if snapshot is not None}


def find_rows(told: TaskReports, run: str) -> dict[int, dict[str, int]]:
    """Returns how many rows sources have read in each micro-batch that tasks have reported so far, by label."""
    found: dict[int, dict[str, int]] = {}
    for (_, _, partition), snapshot in copy_snapshots(told, run).items():
        for (kind, source, *_), count in snapshot.items():
            if kind == ROWS and isinstance(partition, tuple):
                own = found.setdefault(partition[0], {})
                own[source] = own.get(source, 0) + count
    return found


def forget_steps(told: TaskReports, run: str, steps: Set[str]) -> None:
    """Drops the counts of some steps so far: the steps run again, and an element counts once."""
    for key, snapshot in copy_snapshots(told, run).items():
        kept = {own: value for own, value in snapshot.items() if own[1] not in steps}
        told.value[key] = kept


class GroupingReport(NamedTuple):
    """A shard's report about a grouping."""

    entering_micros: int  # The watermark of the grouping's input.
    leaving_micros: int  # The watermark of its output.
    # The number of elements that wait for each side input, by the label of the grouping that makes it.
    waits: Mapping[str, int] = {}
    keys: int = 0  # How many keys have state.
    state_bytes: int = 0  # The size of that state.
    # The watermarks on which the input's watermark depends, by the label of a source or an earlier grouping.
    awaited: Mapping[str, int] = {}
    windows: int | None = None  # The number of windows with state, counted for each key; None if unknown.


@dataclass(frozen=True)
class Watermarks:
    # Each shard's last report of a finished micro-batch, by level and number, for each grouping.
    by_shard: Mapping[tuple[int, int], Mapping[str, GroupingReport]]
    clock_micros: int  # Processing time, as the shard that is furthest behind knows it.
    # For how long each shard worked on its last micro-batch, if that was the latest one of all.
    busy_micros: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def by_grouping(self) -> dict[str, GroupingReport]:
        """Returns the minimum of the watermarks over all shards, and the sums of the counts."""
        found: dict[str, GroupingReport] = {}
        for shard in self.by_shard.values():
            for label, told in shard.items():
                known = found.get(label, GroupingReport(MAX_MICROS, MAX_MICROS, windows=0))
                found[label] = GroupingReport(
                    min(known.entering_micros, told.entering_micros),
                    min(known.leaving_micros, told.leaving_micros),
                    Counter(known.waits) + Counter(told.waits),
                    known.keys + told.keys,
                    known.state_bytes + told.state_bytes,
                    {
                        origin: min(micros, known.awaited.get(origin, micros))
                        for origin, micros in told.awaited.items()
                    },
                    None if known.windows is None or told.windows is None else known.windows + told.windows,
                )
        return found

    def earliest_micros(self) -> int:
        """Returns the watermark of the output that is furthest behind.

        A splittable DoFn may hold its output back long after its input has ended.
        """
        return min((told.leaving_micros for told in self.by_grouping().values()), default=MAX_MICROS)


class Report(NamedTuple):
    """The report of a shard at the end of a micro-batch."""

    batch: int
    clock_micros: int
    told: Mapping[str, GroupingReport]
    busy_micros: int | None = None  # How long the work of the shard took.


Reports = dict[tuple[int, int], Report]
"""The last report of each shard, by level and number."""


def watermarks_of(reports: Reports) -> Watermarks:
    clock_micros = min((report.clock_micros for report in reports.values()), default=MIN_MICROS)
    latest = max((report.batch for report in reports.values()), default=-1)
    busy = {
        place: report.busy_micros
        for place, report in reports.items()
        if report.batch == latest and report.busy_micros is not None
    }
    return Watermarks({place: report.told for place, report in reports.items()}, clock_micros, busy)


def report_watermarks(sink: ReportSink, run: str, place: tuple[int, int], report: Report) -> None:
    """Reports from a shard, whose place is its level and its number."""
    level, shard = place
    sink.add({(_reports(run), level, (shard, report.batch)): report})


def take_reports(told: TaskReports, run: str, batch: int | None = None) -> Reports:
    """Removes shards' reports from what tasks have reported, up to a micro-batch or all, and returns the last ones."""
    held: dict[Any, Any] = told.value
    found: Reports = {}
    for key in [key for key in list(held) if key[0] == _reports(run)]:
        _, level, (shard, number) = key
        if batch is None or number <= batch:
            found = merge_reports(found, {(level, shard): held.pop(key)})
    return found


def merge_reports(some: Reports, others: Reports) -> Reports:
    """Returns the later report of each shard.

    >>> merged = merge_reports({(1, 0): Report(3, 0, {})}, {(1, 0): Report(2, 0, {}), (1, 1): Report(2, 0, {})})
    >>> {place: report.batch for place, report in merged.items()}
    {(1, 0): 3, (1, 1): 2}
    """
    found = dict(some)
    for place, report in others.items():
        if place not in found or report.batch >= found[place].batch:
            found[place] = report
    return found


def report_end(sink: ReportSink, run: str, origin: str, batch: int) -> None:
    sink.add({(_ends(run), 0, origin): batch})


def find_ended_sources(told: TaskReports, run: str, batch: int) -> set[str]:
    """Returns the sources whose end was read up to a micro-batch."""
    held: Mapping[Any, Any] = told.value
    return {key[2] for key in list(held) if key[0] == _ends(run) and held[key] <= batch}


def forget_reports(told: TaskReports, run: str) -> None:
    held = told.value
    for key in [key for key in list(held) if key[0] in (_reports(run), _ends(run))]:
        del held[key]


def _ends(run: str) -> str:
    return f"{run}/ends"


def _reports(run: str) -> str:
    return f"{run}/watermarks"
