"""Tags the jobs of a batch run with its name, so that a signal cancels them and no others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pyspark.sql import SparkSession

from penstock_spark.process.interrupts import report_after_signal
from penstock_spark.process.threads import call_with_timeout
from penstock_spark.session.backends import backend_of, leave_connection

_END_SECONDS_MAX = 10.0
"""The time that Spark gets to cancel jobs, before the program ends."""


def tag_of(run: str) -> str:
    return f"penstock-{run}"


@contextlib.contextmanager
def cancel_on_signals(spark: SparkSession, run: str) -> Iterator[None]:
    """Makes Ctrl-C and SIGTERM cancel the jobs that a block starts."""
    backend, tag = backend_of(spark), tag_of(run)

    def cancel() -> bool:
        # Whatever goes wrong, the program must end.
        with contextlib.suppress(Exception):
            # This thread waits for Spark's answer on its own connection, which can take no second question.
            call_with_timeout(lambda: backend.cancel(tag), "penstock cancel", _END_SECONDS_MAX)
        return leave_connection()

    said = "the run was cancelled; its temporary files are removed, and files that already had their final names stay"
    with backend.tagged(tag), report_after_signal(lambda: said, cancel):
        yield
