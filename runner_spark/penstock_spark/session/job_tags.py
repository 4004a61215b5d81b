"""Tags the jobs of a batch run with its name, so that a signal cancels them and no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.utils import clock
from penstock_spark.process.interrupts import report_after_signal
from penstock_spark.process.threads import call_with_timeout

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_END_SECONDS_MAX = 5.0
"""The time that cancelled tasks get to end, before their files are removed."""


def tag_of(run: str) -> str:
    return f"penstock-{run}"


def leave_connection() -> bool:
    """Closes this thread's connection to Java, on which an answer may be due that is not read any more; returns True.

    The next question would wait for that answer.
    """
    gateway: JavaGateway = SparkContext._gateway
    # Whatever goes wrong, the program must end.
    with contextlib.suppress(Exception):
        connection = gateway._gateway_client.get_thread_connection()
        if connection is not None:
            connection.close()
    return True


@contextlib.contextmanager
def cancel_on_signals(spark: SparkSession, run: str) -> Iterator[None]:
    """Makes Ctrl-C and SIGTERM cancel the jobs that a block starts."""
    context = spark.sparkContext
    tag = tag_of(run)

    def cancel_jobs() -> None:
        context.cancelJobsWithTag(tag)
        until = clock.monotonic_seconds() + _END_SECONDS_MAX
        while context.statusTracker().getActiveStageIds() and clock.monotonic_seconds() < until:
            clock.sleep(0.05)

    def cancel() -> bool:
        # Whatever goes wrong, the program must end.
        with contextlib.suppress(Exception):
            # This thread waits for Java's answer on its own connection, which can take no second question.
            call_with_timeout(cancel_jobs, "penstock cancel", 2 * _END_SECONDS_MAX)
        return leave_connection()

    said = "the run was cancelled; its temporary files are removed, and files that already had their final names stay"
    context.addJobTag(tag)
    try:
        with report_after_signal(lambda: said, cancel):
            yield
    finally:
        with contextlib.suppress(Exception):
            context.removeJobTag(tag)
