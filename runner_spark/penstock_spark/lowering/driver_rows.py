"""Makes the rows of a stage on the driver, as a frame that Spark reads without a Python task."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.metrics.execution import set_current
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.frames import frame_of_rows
from penstock_spark.stages.stage import Stage
from penstock_spark.worker.program import StageProgram, WriterSpec

_ONLY_SLICE = pa.record_batch({"id": [0]})


def make_rows_on_driver(
    program: StageProgram[WriterSpec], outputs: int, context: Context
) -> DataFrame | None:
    """The frame of a stage's rows; None if the stage fails, or an output has no row.

    Tasks then run the stage: users know the errors of tasks, and a frame without rows would give its reader
    no task.
    """
    stage = Stage(replace(program, partitions=1), 0, {})
    try:
        records = list(stage.run(iter([_ONLY_SLICE])))
    except Exception:
        return None
    finally:
        set_current(None)
    if {output for record in records for output in record.column("output").to_pylist()} != set(
        range(outputs)
    ):
        return None
    if snapshot := stage.snapshot():
        context.metrics.add({(context.run, program.stage, 0): snapshot})
    return frame_of_rows(pa.Table.from_batches(records), context.spark)
