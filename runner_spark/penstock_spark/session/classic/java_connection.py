"""Leaves the connection of a thread to Java."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from penstock_spark.session.classic.context import context_class

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway


def leave_connection() -> bool:
    """Closes this thread's connection to Java, on which an answer may be due that is not read any more; returns True.

    The next question would wait for that answer. Without Java, there is nothing to close.
    """
    # Whatever goes wrong, the program must end.
    with contextlib.suppress(Exception):
        gateway: JavaGateway = context_class()._gateway  # type: ignore[union-attr]
        connection = gateway._gateway_client.get_thread_connection()
        if connection is not None:
            connection.close()
    return True


def kill_java() -> None:
    """Kills the Java process that this program has started, if there is one."""
    context = context_class()
    process = None if context is None else getattr(context._gateway, "proc", None)
    if process is not None:
        process.kill()


def has_context() -> bool:
    """True if the program has a SparkContext."""
    context = context_class()
    return context is not None and context._active_spark_context is not None
