"""Runs a batch job again if Spark has given it up because a machine was lost.

Spark recomputes lost rows of a shuffle. If they differ from the first ones, because a user's function returns
something else each time, it starts the stages behind them again. It cannot start the last stage again once it has
results of it, and fails the job. Nothing is committed by then, so the job can run from its beginning.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame

_JOBS = 4
"""The maximum number of runs of a job; Spark runs a stage as often."""

_GIVEN_UP = re.compile(r"stage with indeterminate output was failed and retried")
_LOGGER = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def rerun_if_given_up(
    frame: DataFrame,
    job: Callable[[DataFrame], _Result],
    again: Callable[[DataFrame], DataFrame] | None = None,
) -> _Result:
    """Returns the result of a job on a frame; `again` makes the frame for a retry, which shares no shuffle with it."""
    for _ in range(_JOBS - 1):
        try:
            return job(frame)
        except Exception as error:
            if _GIVEN_UP.search(str(error)) is None:
                raise
        _LOGGER.warning("a machine was lost, and Spark abandoned a job: it runs again")
        frame = frame.select("*") if again is None else again(frame)
    return job(frame)
