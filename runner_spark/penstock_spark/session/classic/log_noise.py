"""Keeps out of a program's log what PySpark and Py4J say beside an error that a run raises, and about each call."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark.logger import PySparkLogger

from penstock_spark.session.classic.java_life import is_java_dead

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_ECHOES = ("Exception while sending command.", "There was an exception while executing the Python Proxy")
"""The beginnings of Py4J messages about an exception that is also raised."""


def quiet_session(spark: SparkSession) -> None:
    """Quiets the log of a session that penstock has started; a program's own session logs as the program likes."""
    _quiet_about_values()
    _quiet_about_death(spark.sparkContext)
    _quiet_about_calls()


def _quiet_about_values() -> None:
    """Keeps PySpark from logging an exception of a query beside raising it: the text may show a value of the data."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addFilter(_is_no_exception)


def _is_no_exception(record: logging.LogRecord) -> bool:
    return record.exc_info is None


def _quiet_about_death(context: SparkContext) -> None:
    """Keeps PySpark and Py4J from printing tracebacks when Java dies or after Ctrl-C: penstock reports one error."""
    logging.getLogger().addFilter(_is_no_echo)
    logging.getLogger("py4j.clientserver").addFilter(_is_no_echo)
    server = context._accumulatorServer
    print_error = server.handle_error

    def handle_error(*args: Any) -> None:
        if not is_java_dead():
            print_error(*args)

    vars(server)["handle_error"] = handle_error


def _is_no_echo(record: logging.LogRecord) -> bool:
    if record.msg == "KeyboardInterrupt while sending command.":
        return False  # The user knows, and the run says what became of it.
    return not str(record.msg).startswith(_ECHOES) or not is_java_dead()


def _quiet_about_calls() -> None:
    """Keeps Py4J from logging several lines for each micro-batch where a program logs everything at ``INFO``."""
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
