"""Asks a standalone master about the program: Spark says neither that it was forgotten nor that its executors end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.base import clock

_SCHEME = "spark://"
_ANSWER_SECONDS_MAX = 10.0
_POLL_SECONDS = 0.05
_FAILED = ("EXITED", "FAILED")


@dataclass(frozen=True)
class Known:
    """What a master knows of the program.

    Attributes:
        is_known: Whether it may give the program an executor.
        failed_executors: How many executors of the program have ended, if the last one failed; otherwise 0.
    """

    is_known: bool = True
    failed_executors: int = 0


def is_standalone(master: str) -> bool:
    """Whether a standalone master gives the program its executors.

    >>> is_standalone("spark://one:7077,two:7077"), is_standalone("yarn")
    (True, False)
    """
    return master.startswith(_SCHEME)


def known_to_master(context: Any) -> Known | None:
    """What the active master of a SparkContext knows of the program; None if none answers."""
    java, scheduler = context._jvm, context._jsc.sc().schedulerBackend()
    request = getattr(getattr(java, "org.apache.spark.deploy.DeployMessages$RequestMasterState$"), "MODULE$")
    for address in str(context.master).removeprefix(_SCHEME).split(","):
        found = scheduler.rpcEnv().asyncSetupEndpointRefByURI(f"{_SCHEME}Master@{address}")
        endpoint = _answer(found)
        if endpoint is None:
            continue
        state = _answer(endpoint.ask(request, java.scala.reflect.ClassTag.AnyRef()))
        # One that is recovering does not have all programs yet, and one that stands by has none.
        if state is not None and state.status().toString() == "ALIVE":
            return _known(state, str(context.applicationId))
    return None


def _known(state: Any, program: str) -> Known:
    for each in state.activeApps():
        if each.id() == program:
            ended = each.removedExecutors()
            count = int(ended.length())
            has_failed = count > 0 and ended.last().state().toString() in _FAILED
            return Known(failed_executors=count if has_failed else 0)
    return Known(is_known=False)


def _answer(future: Any) -> Any:
    """The value of a Scala future; None if there is none in time. Java would wait for a master for two minutes."""
    until = clock.monotonic_seconds() + _ANSWER_SECONDS_MAX
    while not future.isCompleted():
        if clock.monotonic_seconds() > until:
            return None
        clock.sleep(_POLL_SECONDS)
    value = future.value().get()
    return value.get() if value.isSuccess() else None
