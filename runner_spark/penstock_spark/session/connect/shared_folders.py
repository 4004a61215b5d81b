"""Checks that the workers of a Connect server see a folder of this program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.error import RunnerError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_TASKS_MAX = 32
"""With more tasks, a start would take longer, and they would hardly find another machine."""


def check_workers_see(spark: SparkSession, tasks: int, file: str, folder: str) -> None:
    """Refuses a checkpoint on a disk that a worker does not share; `file` is a file in it, with the scheme ``file``."""
    path = "/" + file.removeprefix("file:").lstrip("/")
    count = max(1, min(tasks, _TASKS_MAX))
    rows = spark.range(0, count, 1, count).mapInArrow(_asking(path), "sees boolean")
    if not all(row.sees for row in rows.collect()):
        raise RunnerError(
            "the workers of the Spark Connect server do not see the checkpoint, or have another folder of this name",
            where=f"in the checkpoint {folder}",
            hint="pass --checkpoint_location with a folder on a disk or a volume that this program, the server and its "
            "workers have under the same name",
        )


def _asking(path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the function of a task; it travels with its code, so it uses nothing of this module."""

    def ask(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"sees": [os.path.exists(path)] * batch.num_rows})

    return ask
