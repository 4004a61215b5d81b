"""Warns of a stream whose micro-batch makes no progress, and names the task that it waits for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from penstock.utils import clock
from penstock_spark.session.backend import TaskActivity
from penstock_spark.session.backends import backend_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_SECONDS = 10.0
_PATIENCE_SECONDS = 120.0
"""The time without progress before the first warning of a run; each further warning comes after twice the time."""

_PATIENCE_SECONDS_MAX = 3_600.0

_OF_A_TASK = (
    "see what the Python worker of this task waits for, for example another system that a step asks; if you cancel the "
    "run, the next run continues from the checkpoint"
)
_OF_THE_DRIVER = "see what Java's threads wait for, for example a source or a sink; `jstack` prints them"

_LOGGER = logging.getLogger(__name__)


class StallWatcher:
    """Watches the micro-batches of a run.

    Args:
        look: Returns what Spark does; None while it rests.
        place: Returns the words for a task that is at work on these things; None without one.
    """

    def __init__(
        self, look: Callable[[], TaskActivity | None], place: Callable[[TaskActivity], str | None]
    ) -> None:
        self._look = look
        self._place = place
        self._next_seconds = clock.monotonic_seconds() + _LOOK_SECONDS
        self._patience_seconds = _PATIENCE_SECONDS
        self._seen: tuple[int, TaskActivity] | None = None
        self._since_seconds = self._due_seconds = 0.0

    def watch(self, batch: int) -> None:
        """Looks every few seconds, and warns of a micro-batch that has made no progress for a long time.

        Args:
            batch: The last finished micro-batch.
        """
        now_seconds = clock.monotonic_seconds()
        if now_seconds < self._next_seconds:
            return
        self._next_seconds = now_seconds + _LOOK_SECONDS
        try:
            doing = self._look()
            seen = None if doing is None else (batch, doing)
            if doing is None or seen != self._seen:
                self._seen, self._since_seconds = seen, now_seconds
                self._due_seconds = now_seconds + self._patience_seconds
            elif now_seconds >= self._due_seconds:
                self._patience_seconds = min(2 * self._patience_seconds, _PATIENCE_SECONDS_MAX)
                self._due_seconds = now_seconds + self._patience_seconds
                self._warn(doing, now_seconds - self._since_seconds)
        except Exception as error:
            # A session that ends takes the answers with it.
            _LOGGER.debug("cannot find out what Spark is doing: %s", type(error).__name__)

    def _warn(self, doing: TaskActivity, seconds: float) -> None:
        place, hint = self._place(doing), _OF_A_TASK
        if place is None:
            place, hint = f"no task is running, and Spark says {doing.status!r}", _OF_THE_DRIVER
        _LOGGER.warning("the stream has made no progress for %.0f s: %s\n  hint: %s", seconds, place, hint)


def stall_watcher_of(started: StreamingQuery, spark: SparkSession) -> StallWatcher:
    """The watch over a query that has started."""
    backend = backend_of(spark)
    return StallWatcher(partial(backend.activity, started), backend.longest_task)
