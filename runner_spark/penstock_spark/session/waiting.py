"""Warns while the tasks of a cluster get no core: Spark waits for one without an end, and mostly without a word."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext

from penstock.base import clock
from penstock_spark.session.session import is_local

_LOOK_SECONDS = 5.0
_PATIENCE_SECONDS = 20.0
"""How long tasks wait before the first warning; each further one comes after twice the time."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Waiting:
    """The tasks that wait while none is at work.

    Attributes:
        tasks: Their number.
        executors: The number of executors that the program has.
    """

    tasks: int
    executors: int


@contextmanager
def warned_of_waiting(context: SparkContext) -> Iterator[None]:
    """Within the block, warns if the program's tasks wait for a core of a cluster."""
    if is_local(str(context.master)):
        yield
        return
    over = threading.Event()
    arguments = (lambda: waiting_in(context), str(context.master), over.wait)
    threading.Thread(target=warn_of_waiting, args=arguments, name="penstock waiting", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def warn_of_waiting(
    look: Callable[[], Waiting | None], master: str, is_over: Callable[[float], bool]
) -> None:
    """Looks every few seconds, until it is over; `look` gives None if a task is running, or if none has work to do."""
    since: float | None = None
    patience_seconds = _PATIENCE_SECONDS
    has_warned = False
    while not is_over(_LOOK_SECONDS):
        try:
            found = look()
        except Exception as error:
            # A session that ends takes the answers with it.
            _LOGGER.debug("nobody knows whether tasks wait: %s", type(error).__name__)
            return
        now = clock.monotonic_seconds()
        if found is None:
            if has_warned:
                _LOGGER.warning("tasks have a core of %s again", master)
            since, patience_seconds, has_warned = None, _PATIENCE_SECONDS, False
            continue
        since = now if since is None else since
        if now - since >= patience_seconds:
            _LOGGER.warning("%s", _said(found, master, now - since))
            patience_seconds, has_warned = 2 * (now - since), True


def _said(found: Waiting, master: str, seconds: float) -> str:
    tasks = "1 task has" if found.tasks == 1 else f"{found.tasks} tasks have"
    has = "no executor" if not found.executors else f"executors ({found.executors}) that take no task"
    return (
        f"{tasks} waited {seconds:.0f} s for a core of {master}, and no task is running: the program has {has}\n"
        "  hint: check whether other programs use all cores, and whether a worker has the memory and the cores that an "
        "executor needs (spark.executor.memory, spark.executor.cores); if a standalone master without "
        "spark.deploy.recoveryMode was started again, it has forgotten this program: start the program again, too"
    )


def waiting_in(context: Any) -> Waiting | None:
    """What waits in a SparkContext; None if a task is running, or if none has work to do."""
    tracker = context.statusTracker()
    stages = [info for number in tracker.getActiveStageIds() if (info := tracker.getStageInfo(number))]
    if any(stage.numActiveTasks for stage in stages):
        return None
    tasks = sum(stage.numTasks - stage.numCompletedTasks for stage in stages)
    # The driver is among them.
    return Waiting(tasks, len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1) if tasks else None
