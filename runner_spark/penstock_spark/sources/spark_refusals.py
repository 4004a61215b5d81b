"""Spark's refusals of a source before the query starts, as errors in three parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyspark
from pyspark.errors import PySparkException

from penstock.error import refusal
from penstock_spark.reports.spark_conditions import conditions_of
from penstock_spark.reports.spark_messages import OF_A_FILE

_PACKAGE = "add the package: --spark_conf=spark.jars.packages={}"
_SPARK_PACKAGE = _PACKAGE.format("org.apache.spark:{}_2.13:" + pyspark.__version__)
_SCHEMA = "pass a schema to ReadFromSpark, such as schema='name string, points int'"
_HINTS_OF_CONDITIONS = {
    "AVRO_DATA_SOURCE_NOT_ENABLED": _SPARK_PACKAGE.format("spark-avro"),
    "DATA_SOURCE_NOT_FOUND": "check the name; for a format that is not Spark's own, "
    + _PACKAGE.format("..."),
    "KAFKA_DATA_SOURCE_NOT_ENABLED": _SPARK_PACKAGE.format("spark-sql-kafka-0-10"),
    "PATH_NOT_FOUND": "create the folder before the pipeline starts, or give a pattern such as /logs/*",
    "UNABLE_TO_INFER_SCHEMA": _SCHEMA,
}
_HINTS = {
    # Before 4.3.
    "Failed to find data source: kafka": _SPARK_PACKAGE.format("spark-sql-kafka-0-10"),
    "Failed to find data source: avro": _SPARK_PACKAGE.format("spark-avro"),
    "does not support streamed reading": "read it as bounded input, without as_stream()",
    "does not support user-specified schema": "leave the schema out: this source has its own",
    "Schema must be specified": _SCHEMA,
    "No FileSystem for scheme": "check the path; a file system that is not Hadoop's own, "
    + _PACKAGE.format("..."),
}
"""Hints, by a part of the message from Spark; its conditions have other names in each version, or there is none."""

_COLON_IN_A_NAME = "Relative path in absolute URI"

_HINT = "check the options, the schema and the path"


@contextmanager
def translate_spark_errors(source: str, where: str) -> Iterator[None]:
    """Turns Spark's exceptions within the block into a ValueError of three parts.

    >>> with translate_spark_errors("spark rate", "at step 'Read' (game.py:41)"):
    ...     raise PySparkException("[A_CLASS] The option 'rowsPerSecond' must be positive. SQLSTATE: 42K03")
    Traceback (most recent call last):
        ...
    ValueError: Spark does not read spark rate as a stream: The option 'rowsPerSecond' must be positive
      at step 'Read' (game.py:41)
      hint: check the options, the schema and the path
    """
    try:
        yield
    except Exception as error:
        # Errors for which PySpark has no class come from Java unchanged.
        java = getattr(error, "java_exception", None)
        if java is None and not isinstance(error, PySparkException):
            raise
        said = str(error if java is None else java.getMessage()).strip()
        conditions = [each.name for each in conditions_of(error)]
        if _COLON_IN_A_NAME in said or any(name.startswith(OF_A_FILE) for name in conditions):
            # A file, or its name, is wrong, and not the source. Another module explains what Spark says of files.
            raise
        hints = [
            *(_HINTS_OF_CONDITIONS[name] for name in conditions if name in _HINTS_OF_CONDITIONS),
            *(hint for part, hint in _HINTS.items() if part in said),
            _HINT,
        ]
        what = f"Spark does not read {source} as a stream: {_sentence(said)}"
        raise refusal(ValueError, what, where=where, hint=hints[0]) from error


def _sentence(said: str) -> str:
    """Returns the first line of a message from Spark, without the names and numbers of error classes."""
    line = said.partition("\n")[0].partition(" SQLSTATE:")[0]
    if line.startswith("["):
        line = line.partition("] ")[2] or line
    return line.rstrip(". ")
