"""Writing for connectors: tasks encode elements, and the driver or the tasks commit the rows of each micro-batch."""

from penstock_spark.sinks.plan import CommitStopped, Encoder, MicroBatch, SinkPlan
from penstock_spark.sinks.task_writes import write_in_tasks

__all__ = ["CommitStopped", "Encoder", "MicroBatch", "SinkPlan", "write_in_tasks"]
