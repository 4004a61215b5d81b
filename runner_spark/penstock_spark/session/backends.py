"""Chooses the backend of a session: the only place that asks which kind of session it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock_spark.session.backend import Backend, Function
from penstock_spark.session.classic.backend import ClassicBackend
from penstock_spark.session.classic.java_connection import leave_connection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["backend_of", "is_connect", "is_local_session", "leave_connection", "map_in_arrow"]


def is_connect(spark: object) -> bool:
    """True if a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def backend_of(spark: SparkSession) -> Backend:
    """Returns what the runner does with a session."""
    if is_connect(spark):
        # It needs packages that a classic session does without.
        from penstock_spark.session.connect.backend import ConnectBackend

        return ConnectBackend(spark)
    return ClassicBackend(spark)


def is_local_session(spark: SparkSession) -> bool:
    """True if this program's own Java runs the tasks of a session."""
    return backend_of(spark).is_local


def map_in_arrow(frame: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """Spark's ``mapInArrow``, in the Python that `Backend.check_workers` chose."""
    with backend_of(frame.sparkSession).workers_python():
        return frame.mapInArrow(function, schema)
