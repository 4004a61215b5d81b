"""Finds out whether Java still runs, and explains it when Java has died during a run."""

from __future__ import annotations

import logging
import signal
import subprocess
import traceback

from penstock.error import RunnerError
from penstock_spark.session.classic.context import context_class

_MOMENT_SECONDS = 0.5
_WAIT_SECONDS = 2.0
"""The time that the system may take to report that a process that hung up has ended."""

_LOGGER = logging.getLogger(__name__)

_NOT_STARTED = "JAVA_GATEWAY_EXITED"
"""PySpark's name of the error that a Java could not be started."""

_ENDED_BY_SIGTERM = (-signal.SIGTERM, 128 + signal.SIGTERM)
"""Exit statuses of a Java that SIGTERM has ended, without and with its own handler."""

_deaths: list[int | None] = []
"""The exit statuses of the Javas of this program that have died; None where it is unknown."""


def explain_java_death(error: BaseException, where: str | None = None) -> RunnerError | None:
    """Returns the error to raise instead of one that Java's death caused; None if Java lives.

    PySpark then forgets the dead Java, so that the next run starts a new one.
    """
    if "Py4JJavaError" in _py4j_kinds(error):
        return None  # Java answered.
    is_lost = _has_lost_java(error)
    status = _find_exit_status(_WAIT_SECONDS if is_lost else 0.0)
    if status is not None:
        _forget_java(status)
    elif is_lost and _deaths:
        # Another run of the program has noticed it first.
        status = _deaths[-1]
    elif "Py4JNetworkError" in _py4j_kinds(error):
        _forget_java(None)
    else:
        return None
    _LOGGER.debug("Java has died: %s", error, exc_info=error)
    return RunnerError(
        f"Spark's Java process has died{_how(status)}, and the run ended with it",
        where=where or "in the driver",
        hint=f"{_what_to_do(status)}; then run the program again (a stream continues from its checkpoint)",
    )


def is_cut_off(error: BaseException) -> bool:
    """True if PySpark's connection to Java has raised it, and not a user's connection to some service."""
    return isinstance(error, ConnectionError | EOFError) and _is_pysparks(error)


def find_packages_in_traceback(error: BaseException) -> set[str]:
    """Returns the packages whose code its traceback goes through.

    >>> import json
    >>> try: json.loads("[")
    ... except ValueError as error: "json" in find_packages_in_traceback(error)
    True
    """
    modules = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return {name.partition(".")[0] for name in modules}


def _has_lost_java(error: BaseException) -> bool:
    """True if it says that Java did not answer, or was raised in place of an error that says so."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_no_answer(cause):
            return True
        cause = cause.__context__
    return False


def _is_no_answer(error: BaseException) -> bool:
    kinds = _py4j_kinds(error)
    if kinds or is_cut_off(error):
        return "Py4JJavaError" not in kinds
    # Without a Java, PySpark fails in many ways: it looks for attributes of None, for example.
    is_away = _java_gateway() is None and _is_pysparks(error)
    return is_away and _NOT_STARTED not in str(error)


def _py4j_kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "py4j.protocol"}


def _is_pysparks(error: BaseException) -> bool:
    return not find_packages_in_traceback(error).isdisjoint({"pyspark", "py4j"})


def is_java_dead() -> bool:
    """True if Java is gone; waits a little for a Java that is about to end."""
    return _java_gateway() is None or _find_exit_status(_MOMENT_SECONDS) is not None


def _find_exit_status(seconds: float) -> int | None:
    """Java's exit status; None if Java lives, or is not this program's child."""
    process = getattr(_java_gateway(), "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(seconds))
    except subprocess.TimeoutExpired:
        return None


def _java_gateway() -> object:
    context = context_class()
    return None if context is None else context._gateway


def _what_to_do(status: int | None) -> str:
    if status in _ENDED_BY_SIGTERM:
        # Who means to end the program often signals all of its processes, and so takes Java from the run that ends.
        alone = "send SIGTERM to the program alone, which ends its Java itself"
        return f"{alone} (systemd: KillMode=mixed; timeout --foreground)"
    return (
        "look for its last messages above, or in the system's log if the system killed it for its memory: in "
        "that case raise spark.driver.memory"
    )


def _how(status: int | None) -> str:
    if status is None:
        return ""
    if status in _ENDED_BY_SIGTERM:
        return ", ended by SIGTERM"
    if status < 0:
        return f", killed by {signal.Signals(-status).name}"
    return f" with the status {status}"


def _forget_java(status: int | None) -> None:
    from pyspark.sql import SparkSession

    if (context := context_class()) is not None:
        context._gateway = context._jvm = context._active_spark_context = None
    session = SparkSession
    session._instantiatedSession = None
    _deaths.append(status)
