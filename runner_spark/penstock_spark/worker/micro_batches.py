"""The micro-batch of a task, which Spark names in the properties of the task."""

from __future__ import annotations

from pyspark import TaskContext

from penstock_spark.session.micro_batches import number_of_micro_batch


def batch_number() -> int:
    """Returns the number of the micro-batch; a micro-batch that runs again has the same one."""
    return number_of_micro_batch(current_task())


def current_task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "only tasks ask for it"
    return task
