"""The micro-batch that a task belongs to, as Spark says it in the task."""

from __future__ import annotations

from pyspark import TaskContext


def batch_number() -> int:
    """Returns the number of the micro-batch; a micro-batch that runs again has the same one."""
    return int(current_task().getLocalProperty("streaming.sql.batchId") or "")


def current_task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "only tasks ask for it"
    return task
