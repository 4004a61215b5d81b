"""Warns while the tasks of a cluster get no core, for which Spark waits forever, and ends runs that get none."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pyspark import SparkContext

from penstock.error import RunnerError
from penstock.utils import clock
from penstock_spark.session.classic.standalone import is_known_to_master, is_standalone
from penstock_spark.session.masters import is_local

_LOOK_SECONDS = 5.0
_PATIENCE_SECONDS = 20.0
"""The wait of tasks before the first warning; it doubles before each further one."""

_NO_CORE = (
    "check whether other programs use all cores, whether a worker has the memory and the cores that an executor needs "
    "(spark.executor.memory, spark.executor.cores, spark.task.cpus), and whether executors end as soon as they have "
    "started: their logs say why, for example that they cannot reach the driver (spark.driver.host)"
)
_NO_MASTER = "start the master again, or repair the network: only the master can give a program executors"

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
def watch_for_waiting(context: SparkContext) -> Iterator[None]:
    """Within the block, warns if the program's tasks wait for a core of a cluster.

    If they would wait forever, it cancels all jobs, and the block ends with a RunnerError that says why.
    """
    master = str(context.master)
    if is_local(master):
        yield
        return
    over = threading.Event()
    ends: list[RunnerError] = []

    def watch() -> None:
        ask = partial(is_known_to_master, context) if is_standalone(master) else None
        end = warn_of_waiting(partial(waiting_in, context), master, over.wait, ask)
        if end is not None and not over.is_set():
            ends.append(end)
            context.cancelAllJobs()

    threading.Thread(target=watch, name="penstock waiting", daemon=True).start()
    try:
        yield
    except Exception:
        if ends:
            raise ends[0] from None
        raise
    finally:
        over.set()


def warn_of_waiting(
    look: Callable[[], Waiting | None],
    master: str,
    is_over: Callable[[float], bool],
    ask: Callable[[], bool | None] | None = None,
) -> RunnerError | None:
    """Looks every few seconds, until it is over; returns an error if the tasks will never get a core.

    `look` returns None if a task is running, or if none has work to do; `ask` returns None if no standalone master
    answers.
    """
    since: float | None = None
    patience_seconds = _PATIENCE_SECONDS
    has_warned = False
    while not is_over(_LOOK_SECONDS):
        try:
            found = look()
            now = clock.monotonic_seconds()
            if found is None:
                if has_warned:
                    _LOGGER.warning("tasks have a core of %s again", master)
                since, patience_seconds, has_warned = None, _PATIENCE_SECONDS, False
                continue
            since = now if since is None else since
            if now - since < patience_seconds:
                continue
            has, hint = _has(found), _NO_CORE
            if ask is not None and not found.executors:
                is_known = ask()
                if is_known is None:
                    has, hint = f"{has}, and its master does not answer", _NO_MASTER
                elif not is_known:
                    return _forgotten(master)
        except Exception as error:
            # A session that ends takes the answers with it.
            _LOGGER.debug("it is unknown whether tasks wait: %s", type(error).__name__)
            return None
        _LOGGER.warning("%s", _describe_waiting(found, master, now - since, has, hint))
        patience_seconds, has_warned = 2 * (now - since), True
    return None


def _forgotten(master: str) -> RunnerError:
    return RunnerError(
        f"the master {master} has forgotten this program, which has no executor and would never get one",
        where="in the Spark session of the run",
        hint="run the program again; with a checkpoint_location, a stream continues where it was. A master that is "
        "started again knows its programs if it has a spark.deploy.recoveryMode",
    )


def _has(found: Waiting) -> str:
    return "no executor" if not found.executors else f"executors ({found.executors}) that do not take tasks"


def _describe_waiting(found: Waiting, master: str, seconds: float, has: str, hint: str) -> str:
    tasks = "1 task has" if found.tasks == 1 else f"{found.tasks} tasks have"
    return (
        f"{tasks} waited {seconds:.0f} s for a core of {master}, and no task is running: the program has {has}\n"
        f"  hint: {hint}"
    )


def waiting_in(context: SparkContext) -> Waiting | None:
    """The tasks that wait in a SparkContext; None if a task is running, or if none has work to do."""
    tracker = context.statusTracker()
    stages = [info for number in tracker.getActiveStageIds() if (info := tracker.getStageInfo(number))]
    if any(stage.numActiveTasks for stage in stages):
        return None
    tasks = sum(stage.numTasks - stage.numCompletedTasks for stage in stages)
    # The driver is among them.
    return Waiting(tasks, len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1) if tasks else None
