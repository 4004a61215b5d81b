"""The Spark accumulator that brings metrics from the workers to the driver.

Workers of a streaming query unpickle it before anything else, so this module imports nothing that takes long.
"""

from __future__ import annotations

import weakref

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from penstock_spark.session.backend import Told


class SnapshotParam(AccumulatorParam[Told]):
    """A later snapshot of a partition replaces the earlier one."""

    def zero(self, value: Told) -> Told:
        return {}

    def addInPlace(self, value1: Told, value2: Told) -> Told:
        value1.update(value2)
        return value1


_accumulators: weakref.WeakKeyDictionary[SparkContext, Accumulator[Told]] = weakref.WeakKeyDictionary()


def accumulator_of(context: SparkContext) -> Accumulator[Told]:
    """Returns the single accumulator of a SparkContext: Spark never frees accumulators, so runs share it."""
    if context not in _accumulators:
        _accumulators[context] = context.accumulator({}, SnapshotParam())
    return _accumulators[context]
