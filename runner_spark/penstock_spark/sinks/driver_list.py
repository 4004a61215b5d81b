"""A list of the program as a sink: what ``[1, 2] | transform`` gives."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.graph import DriverList
from penstock_spark.operators.batch import dumps
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink


@plan_sink.register
def plan_driver_list(sink: DriverList, where: str) -> SinkPlan:
    """Each batch of elements is one pickled row; the driver appends what it unpickles."""

    def commit(frame: DataFrame) -> list[Any]:
        for row in frame.toArrow().column("value").to_pylist():
            sink.into.extend(pickle.loads(row))
        return []

    return SinkPlan("value binary", PickledRows, None, commit)


class PickledRows(Encoder):
    """One row for each batch of elements."""

    def start(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """The elements as one row."""
        return pa.RecordBatch.from_arrays([pa.array([dumps(values)], pa.binary())], names=["value"])

    def finish(self) -> pa.RecordBatch | None:
        """Nothing."""
        return None
