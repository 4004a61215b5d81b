"""What went wrong in Spark, in the terms of the pipeline."""

from __future__ import annotations

from typing import NoReturn

from pyspark.errors import PySparkException

from penstock.error import RunnerError
from penstock_spark.operators.failure import find_failure, to_exception
from penstock_spark.operators.reporting import Reporting, reporting_now, reports_of


def raise_translated(error: Exception, reporting: Reporting | None = None) -> NoReturn:
    """Raises what went wrong in the terms of the pipeline, where it was user code's doing."""
    other = translated(error, reporting)
    if other is error:
        raise error
    raise other from other.__cause__


def translated(error: Exception, reporting: Reporting | None = None) -> BaseException:
    """What went wrong in the terms of the pipeline, where it was user code's doing."""
    with reports_of(reporting or reporting_now()):
        failure = find_failure(str(error))
    if failure is not None:
        return to_exception(failure)
    if isinstance(error, PySparkException):
        what = RunnerError(
            f"Spark failed: {error}", hint="the cause is above; explain() tells which steps a stage runs"
        )
        what.__cause__ = error
        return what
    return error
