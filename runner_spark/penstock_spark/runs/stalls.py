"""Warns of a stream whose micro-batch makes no progress, and names the task that it waits for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from penstock.utils import clock

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
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


@dataclass(frozen=True)
class TaskActivity:
    """The work of Spark in a micro-batch: as long as two looks find the same, it makes no progress.

    Attributes:
        status: Spark's own words.
        stages: For each stage at work its number, its attempt, its tasks, its finished tasks, and the rows that have
            gone through its tasks.
    """

    status: str
    stages: tuple[tuple[int, ...], ...]


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
        """Looks every few seconds, and warns of a micro-batch that has made no progress for long.

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
            _LOGGER.debug("it is not known what Spark does: %s", type(error).__name__)

    def _warn(self, doing: TaskActivity, seconds: float) -> None:
        place, hint = self._place(doing), _OF_A_TASK
        if place is None:
            place, hint = f"no task is running, and Spark says {doing.status!r}", _OF_THE_DRIVER
        _LOGGER.warning("the stream has made no progress for %.0f s: %s\n  hint: %s", seconds, place, hint)


def stall_watcher_of(started: StreamingQuery, context: SparkContext) -> StallWatcher:
    """The watch over a query that has started."""
    return StallWatcher(partial(_doing, started, context), partial(_task, context))


def _doing(started: StreamingQuery, context: SparkContext) -> TaskActivity | None:
    status = started.status
    if not status["isTriggerActive"]:
        return None
    store, tracker, run = context._jsc.sc().statusStore(), context.statusTracker(), str(started.runId)
    stages = []
    for number in tracker.getActiveJobsIds():
        group, job = store.job(number).jobGroup(), tracker.getJobInfo(number)
        if job is not None and group.isDefined() and group.get() == run:
            stages += [_stage(store.lastStageAttempt(each)) for each in job.stageIds]
    return TaskActivity(status["message"], tuple(sorted(stage for stage in stages if stage)))


def _stage(stage: JavaObject) -> tuple[int, ...]:
    """A stage that is at work; empty if it waits or is over."""
    if not stage.numActiveTasks():
        return ()
    rows = (
        stage.inputRecords(),
        stage.shuffleReadRecords(),
        stage.shuffleWriteRecords(),
        stage.outputRecords(),
    )
    return (stage.stageId(), stage.attemptId(), stage.numTasks(), stage.numCompleteTasks(), *rows)


def _task(context: Any, doing: TaskActivity) -> str | None:
    """The task that has been at work for the longest time."""
    store = context._jsc.sc().statusStore()
    at_work = []
    for number, attempt, tasks, done, *_ in doing.stages:
        found = store.taskList(number, attempt, tasks)
        for task in (found.apply(place) for place in range(found.size())):
            if task.status() == "RUNNING":
                at_work.append((task.launchTime().getTime(), number, tasks, done, task))
    if not at_work:
        return None
    began_millis, number, tasks, done, task = min(at_work, key=lambda each: each[:2])
    seconds = (context._jvm.java.lang.System.currentTimeMillis() - began_millis) / 1_000
    return (
        f"the task {task.index()} of Spark stage {number}, of which {done} of {tasks} tasks are done, has run for "
        f"{seconds:.0f} s in the executor {task.executorId()} on {task.host()}"
    )
