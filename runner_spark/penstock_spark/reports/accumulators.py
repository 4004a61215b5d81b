"""The Spark accumulator that brings metrics from the workers to the driver.

Workers of a streaming query unpickle it before anything else, so this module imports nothing that takes long.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

Snapshots = dict[tuple[str, int, Hashable], Any]
"""Snapshots by run, stage and partition; in a streaming query, the partition is (micro-batch, producer)."""


class SnapshotParam(AccumulatorParam[Snapshots]):
    """A later snapshot of a partition replaces the earlier one."""

    def zero(self, value: Snapshots) -> Snapshots:
        return {}

    def addInPlace(self, value1: Snapshots, value2: Snapshots) -> Snapshots:
        value1.update(value2)
        return value1


_accumulators: weakref.WeakKeyDictionary[SparkContext, Accumulator[Snapshots]] = weakref.WeakKeyDictionary()


def accumulator_of(context: SparkContext) -> Accumulator[Snapshots]:
    """Returns the single accumulator of a SparkContext: Spark never frees accumulators, so runs share it."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, SnapshotParam())
    return _accumulators[context]
