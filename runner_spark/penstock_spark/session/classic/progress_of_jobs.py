"""Asks the status store of a SparkContext how far jobs have come."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock_spark.session.backend import JobNow, JobProgress

if TYPE_CHECKING:
    from pyspark.core.context import SparkContext


def progress_of(context: SparkContext, tag: str) -> JobProgress:
    """Returns the progress of the jobs with a tag in a SparkContext."""
    scala = context._jsc.sc()
    tracker, store = scala.statusTracker(), scala.statusStore()

    def jobs() -> Iterable[JobNow]:
        for number in sorted(tracker.getJobIdsForTag(tag)):
            info = context.statusTracker().getJobInfo(number)
            if info is not None:
                yield JobNow(number, info.status, tuple(info.stageIds))

    def stage(number: int) -> tuple[int, int, int, int] | None:
        # Spark has forgotten it, or has not begun it.
        with suppress(Exception):
            data = store.lastStageAttempt(number)
            return (
                data.numTasks(),
                data.numCompleteTasks(),
                data.inputRecords(),
                data.outputRecords(),
            )
        return None

    return JobProgress(jobs, stage)
