"""How metrics come back from the workers: one snapshot for each partition of each stage of each run.

Spark adds to accumulators anew when a task is tried again. Snapshots are therefore kept under their partition: a
second try replaces the first one's snapshot, and what a task counted counts once.
"""

from __future__ import annotations

import weakref
from typing import Any

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from penstock.metrics.execution import Snapshot, merge_snapshots

Snapshots = dict[tuple[str, int, int], Snapshot]
"""By run, stage and partition."""


class SnapshotParam(AccumulatorParam[Snapshots]):  # type: ignore[misc]
    """Adds snapshots by replacing those of the same partition."""

    def zero(self, value: Snapshots) -> Snapshots:
        """No snapshots."""
        return {}

    def addInPlace(self, value1: Snapshots, value2: Snapshots) -> Snapshots:
        """Both; of one partition, the later."""
        value1.update(value2)
        return value1


_accumulators: weakref.WeakKeyDictionary[SparkContext, Accumulator[Snapshots]] = weakref.WeakKeyDictionary()


def accumulator_of(context: SparkContext) -> Accumulator[Snapshots]:
    """The one accumulator of a SparkContext: Spark keeps accumulators for ever, so runs share it."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, SnapshotParam())
    return _accumulators[context]


def take_snapshots(accumulator: Accumulator[Snapshots], run: str) -> Snapshot:
    """The metrics of a run; they are then gone from the accumulator."""
    merged: Snapshot = {}
    held: Any = accumulator.value
    for key in [key for key in held if key[0] == run]:
        merged = merge_snapshots(merged, held.pop(key))
    return merged
