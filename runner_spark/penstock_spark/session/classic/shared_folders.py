"""Checks that the workers of a cluster see the driver's files in a folder of a disk."""

from __future__ import annotations

import os

from pyspark import SparkContext

from penstock.error import RunnerError
from penstock_spark.session.masters import is_local

_SCHEME = "file:"
_TASKS_MAX = 32
"""With more tasks, a start would take longer, and they would hardly find another machine."""


def check_workers_see(context: SparkContext, file: str, folder: str) -> None:
    """Refuses a checkpoint on a disk that a worker does not share; `file` is a file in it, with its scheme.

    Spark would not notice: workers make the folder for their state on their own disks, and fail when another worker
    continues with it, perhaps after hours.
    """
    if is_local(str(context.master)) or not file.startswith(_SCHEME):
        return
    path = "/" + file.removeprefix(_SCHEME).lstrip("/")
    tasks = min(max(1, context.defaultParallelism), _TASKS_MAX)
    # A function from Python itself: a worker cannot unpickle one of a package that it lacks.
    sees = context.parallelize([path] * tasks, tasks).map(os.path.exists).collect()
    if not all(sees):
        raise RunnerError(
            "a worker of the cluster does not see the checkpoint: it has no such folder, or another one",
            where=f"in the checkpoint {folder}",
            hint="pass --checkpoint_location with a folder that all machines share: hdfs:///a/folder of its own, or "
            "one on a network disk",
        )
