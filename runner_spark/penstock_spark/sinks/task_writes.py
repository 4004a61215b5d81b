"""A job whose tasks write the rows of a sink to another system, each task in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import Reporting, current_reporting, report_with
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.session.spark_versions import repartition_by_number
from penstock_spark.shipping.import_paths import import_like_driver, worker_sys_path
from penstock_spark.worker.batch import loads
from penstock_spark.worker.programs import dumps_for_workers

WriteRows = Callable[[Iterator[pa.RecordBatch]], int]
"""Writes the rows of a task, and returns how many elements they were."""


def write_in_tasks(
    frame: DataFrame, write: WriteRows, where: str, parts: int | None = None, part: str = ""
) -> None:
    """Runs a job whose tasks write all rows.

    Args:
        frame: The rows, as the encoders of the sink have made them.
        write: Writes the rows of a task; it travels to the tasks, and a task may run again.
        where: The step, for errors of the tasks.
        parts: How many tasks there are; None leaves the rows where they are.
        part: The column with the number of the task that gets a row; only with `parts`.

    Raises:
        Exception: What `write` raises, as the failure of the step.
    """
    if parts is not None:
        frame = repartition_by_number(frame, parts, frame[part])
    spark = frame.sparkSession
    sys_path = worker_sys_path(spark)
    function = _in_task(dumps_for_workers((write, where, current_reporting()), spark), sys_path)
    map_in_arrow(frame, function, "written long").write.format("noop").mode("overwrite").save()


def _in_task(
    program: bytes, sys_path: tuple[str, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import_like_driver(sys_path)
        write: WriteRows
        where: str
        reporting: Reporting
        write, where, reporting = loads(program)
        report_with(reporting)
        try:
            written = write(rows)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            fail_step(error, where)
        yield pa.RecordBatch.from_arrays([pa.array([written], pa.int64())], names=["written"])

    return run
