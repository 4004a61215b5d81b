"""Brings metrics from the workers to the driver: one snapshot for each partition of each stage of each run.

Spark adds to accumulators again when it retries a task. Snapshots are therefore kept by partition: a second attempt
replaces the snapshot of the first one, and what a task counted counts once. In a streaming query, the number of
the micro-batch is part of the partition. Shards of a streaming query also report their watermarks, of which the
last report counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.accumulators import Accumulator

from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.metrics.execution import Snapshot, merge_snapshots
from penstock_spark.reports.accumulators import Snapshots


def take_snapshots(accumulator: Accumulator[Snapshots], run: str, batch: int | None = None) -> Snapshot:
    """Removes the metrics of a run from the accumulator, up to a micro-batch or all, and returns them."""

    def is_finished(key: tuple[str, int, Any]) -> bool:
        # Jobs before the query compute the side inputs; their partitions are plain numbers.
        return key[0] == run and (batch is None or isinstance(key[2], int) or key[2][0] <= batch)

    merged: Snapshot = {}
    held: Any = accumulator.value
    for key in filter(is_finished, list(held)):
        merged = merge_snapshots(merged, held.pop(key))
    return merged


class Told(NamedTuple):
    """A shard's report about a grouping."""

    entering_micros: int  # The watermark of the grouping's input.
    leaving_micros: int  # The watermark of its output.
    # How many elements wait for each side input, by the label of the grouping that makes it.
    waits: Mapping[str, int] = {}
    keys: int = 0  # How many keys have state.
    state_bytes: int = 0  # The size of that state.
    # The watermarks on which the input's watermark depends, by the label of a source or an earlier grouping.
    awaited: Mapping[str, int] = {}


@dataclass(frozen=True)
class Watermarks:
    # Each shard's last report, by level and number, for each grouping.
    by_shard: Mapping[tuple[int, int], Mapping[str, Told]]
    clock_micros: int  # Processing time, as the shard that is furthest behind knows it.

    def by_grouping(self) -> dict[str, Told]:
        """The minimum of the watermarks over all shards, and the sums of what is counted."""
        found: dict[str, Told] = {}
        for shard in self.by_shard.values():
            for label, told in shard.items():
                known = found.get(label, Told(MAX_MICROS, MAX_MICROS))
                found[label] = Told(
                    min(known.entering_micros, told.entering_micros),
                    min(known.leaving_micros, told.leaving_micros),
                    Counter(known.waits) + Counter(told.waits),
                    known.keys + told.keys,
                    known.state_bytes + told.state_bytes,
                    {
                        origin: min(micros, known.awaited.get(origin, micros))
                        for origin, micros in told.awaited.items()
                    },
                )
        return found

    def earliest_micros(self) -> int:
        """The watermark of the output that is furthest behind.

        A splittable DoFn may hold its output back long after its input has ended.
        """
        return min((told.leaving_micros for told in self.by_grouping().values()), default=MAX_MICROS)


def report_watermarks(
    accumulator: Any, run: str, level: int, shard: int, clock_micros: int, told: Mapping[str, Told]
) -> None:
    accumulator.add({(_reports(run), level, shard): (clock_micros, told)})


def watermarks_of_shards(accumulator: Accumulator[Snapshots], run: str) -> Watermarks:
    held: Any = accumulator.value
    wanted = _reports(run)
    told = {key[1:]: held[key] for key in list(held) if key[0] == wanted}
    clock_micros = min((clock for clock, _ in told.values()), default=MIN_MICROS)
    return Watermarks({place: marks for place, (_, marks) in told.items()}, clock_micros)


def report_end(accumulator: Any, run: str, origin: str) -> None:
    accumulator.add({(_ends(run), 0, origin): True})


def ended_sources(accumulator: Accumulator[Snapshots], run: str) -> set[str]:
    held: Any = accumulator.value
    return {key[2] for key in list(held) if key[0] == _ends(run)}


def forget_reports(accumulator: Accumulator[Snapshots], run: str) -> None:
    held: Any = accumulator.value
    for key in [key for key in list(held) if key[0] in (_reports(run), _ends(run))]:
        del held[key]


def _ends(run: str) -> str:
    return f"{run}/ends"


def _reports(run: str) -> str:
    return f"{run}/watermarks"
