"""Whether Java is still there, and what to say when it has died under a run."""

from __future__ import annotations

import logging
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from penstock.error import RunnerError

if TYPE_CHECKING:
    from pyspark import SparkContext

_ECHO_SECONDS = 0.5
_WAIT_SECONDS = 2.0
"""So long it may take until a process that has hung up is known to have ended."""

_LOGGER = logging.getLogger(__name__)


def java_death(error: BaseException, where: str | None = None) -> RunnerError | None:
    """The error to raise in the place of one that came of Java's death; None if Java lives.

    Java is forgotten then, so that the next run starts another one.

    Args:
        error: What was raised.
        where: The middle part of the text.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "py4j.protocol"}
    if "Py4JJavaError" in kinds:
        return None  # It speaks.
    status = _ended(_WAIT_SECONDS if kinds or isinstance(error, ConnectionError) else 0.0)
    if status is None and "Py4JNetworkError" not in kinds:
        return None
    _forget_java()
    _LOGGER.debug("Java has died: %s", error, exc_info=error)
    return RunnerError(
        f"Spark's Java process has died{_how(status)}, and the run with it",
        where=where or "in the driver",
        hint="its last words are above, or in the system's log if it was killed for its memory: then raise "
        "spark.driver.memory; a stream goes on from its checkpoint, and a batch is run again",
    )


def quiet_about_death(context: SparkContext) -> None:
    """Has PySpark and Py4J print no traces of their own of Java's death and of Ctrl-C: there is one error that says so.

    Args:
        context: A SparkContext that was just made.
    """
    logging.getLogger().addFilter(_is_no_echo)
    server = context._accumulatorServer
    told = server.handle_error

    def handle_error(*args: Any) -> None:
        if not java_is_dead(_ECHO_SECONDS):
            told(*args)

    vars(server)["handle_error"] = handle_error


def _is_no_echo(record: logging.LogRecord) -> bool:
    if record.msg == "KeyboardInterrupt while sending command.":
        return False  # Who has pressed it knows, and the run says what became of it.
    return record.msg != "Exception while sending command." or not java_is_dead(_ECHO_SECONDS)


def java_is_dead(seconds: float = 0.0) -> bool:
    """Whether the process of this program's Spark is known to have ended, or was forgotten.

    Args:
        seconds: How long to wait for that.
    """
    from pyspark import SparkContext

    return SparkContext._gateway is None or _ended(seconds) is not None


def _ended(seconds: float) -> int | None:
    """The status with which Java has ended; None if it lives, or is not this program's child."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(seconds))
    except subprocess.TimeoutExpired:
        return None


def _how(status: int | None) -> str:
    if status is None:
        return ""
    if status < 0:
        return f", killed by {signal.Signals(-status).name}"
    return f" with the status {status}"


def _forget_java() -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext
    context._gateway = context._jvm = context._active_spark_context = None
    session: Any = SparkSession
    session._instantiatedSession = None
