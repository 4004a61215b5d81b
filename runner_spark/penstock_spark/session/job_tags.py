"""Tags the jobs of a batch run with its name, so that a signal cancels them and no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import SparkSession

from penstock.base import clock
from penstock_spark.process.interrupts import stoppable

_END_SECONDS_MAX = 5.0
"""How long cancelled tasks may take to end, before their files are removed."""


def tag_of(run: str) -> str:
    return f"penstock-{run}"


@contextlib.contextmanager
def cancelled_by_signals(spark: SparkSession, run: str) -> Iterator[None]:
    """Makes Ctrl-C and SIGTERM cancel the jobs that a block starts."""
    context = spark.sparkContext
    tag = tag_of(run)

    def cancel() -> bool:
        # Whatever goes wrong, the program must end.
        with contextlib.suppress(Exception):
            context.cancelJobsWithTag(tag)
            until = clock.monotonic_seconds() + _END_SECONDS_MAX
            while context.statusTracker().getActiveStageIds() and clock.monotonic_seconds() < until:
                clock.sleep(0.05)
        return True

    said = "the run was cancelled; its temporary files are removed, and files that already had their final names stay"
    context.addJobTag(tag)
    try:
        with stoppable(lambda: said, cancel):
            yield
    finally:
        with contextlib.suppress(Exception):
            context.removeJobTag(tag)
