"""The jobs of a batch run have its name as a tag, so that a signal cancels them and no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import SparkSession

from penstock.base import clock
from penstock_spark.process.interrupts import stoppable

_END_SECONDS_MAX = 5.0
"""So long tasks that were cancelled may take to end, before what they write is removed."""


@contextlib.contextmanager
def cancelled_by_signals(spark: SparkSession, run: str) -> Iterator[None]:
    """Has Ctrl-C and SIGTERM cancel the jobs that are started in a block.

    Args:
        spark: The session.
        run: The run's name.
    """
    context = spark.sparkContext
    tag = f"penstock-{run}"

    def cancel() -> bool:
        # Whatever goes wrong, the program is to end.
        with contextlib.suppress(Exception):
            context.cancelJobsWithTag(tag)
            until = clock.monotonic_seconds() + _END_SECONDS_MAX
            while context.statusTracker().getActiveStageIds() and clock.monotonic_seconds() < until:
                clock.sleep(0.05)
        return True

    said = (
        "the run was cancelled; its temporary files are removed, and files that had their names already stay"
    )
    context.addJobTag(tag)
    try:
        with stoppable(lambda: said, cancel):
            yield
    finally:
        with contextlib.suppress(Exception):
            context.removeJobTag(tag)
