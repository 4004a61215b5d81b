"""Asks a standalone master whether it knows the program: Spark does not say that it was forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.utils import clock

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_SCHEME = "spark://"
_ANSWER_SECONDS_MAX = 10.0
_POLL_SECONDS = 0.05


def is_standalone(master: str) -> bool:
    """True if a standalone master provides the program's executors.

    >>> is_standalone("spark://one:7077,two:7077"), is_standalone("yarn")
    (True, False)
    """
    return master.startswith(_SCHEME)


def is_known_to_master(context: Any) -> bool | None:
    """True if the active master of a SparkContext may provide executors; False if not; None if no master answers."""
    java, scheduler = context._jvm, context._jsc.sc().schedulerBackend()
    request = getattr(getattr(java, "org.apache.spark.deploy.DeployMessages$RequestMasterState$"), "MODULE$")
    for address in str(context.master).removeprefix(_SCHEME).split(","):
        endpoint = _answer(scheduler.rpcEnv().asyncSetupEndpointRefByURI(f"{_SCHEME}Master@{address}"))
        if endpoint is None:
            continue
        state = _answer(endpoint.ask(request, java.scala.reflect.ClassTag.AnyRef()))
        # One that is recovering does not have all programs yet, and one that stands by has none.
        if state is not None and state.status().toString() == "ALIVE":
            # Of each, the answer has only what was so at its start.
            return any(program.id() == context.applicationId for program in state.activeApps())
    return None


def _answer(future: JavaObject) -> JavaObject | None:
    """The value of a Scala future; None if there is none in time. Java would wait for a master for two minutes."""
    until = clock.monotonic_seconds() + _ANSWER_SECONDS_MAX
    while not future.isCompleted():
        if clock.monotonic_seconds() > until:
            return None
        clock.sleep(_POLL_SECONDS)
    value = future.value().get()
    return value.get() if value.isSuccess() else None
