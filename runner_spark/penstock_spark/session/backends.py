"""Chooses the backend of a session: the only place that asks which kind of session it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from penstock_spark.session.backend import Backend, Function
from penstock_spark.session.classic.java_connection import leave_connection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "backend_of",
    "has_lost_server",
    "is_connect",
    "is_local_session",
    "leave_connection",
    "map_in_arrow",
    "open_remote",
    "session_of_reader",
]


def is_connect(spark: object) -> bool:
    """True if a session, or something that belongs to one, is of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def backend_of(spark: SparkSession) -> Backend:
    """Returns what the runner does with a session."""
    if is_connect(spark):
        # It needs packages that a classic session does without.
        from penstock_spark.session.connect.backend import ConnectBackend

        return ConnectBackend(spark)
    # It needs parts of PySpark that the package pyspark-client lacks.
    from penstock_spark.session.classic.backend import ClassicBackend

    return ClassicBackend(spark)


def open_remote(address: str, conf: Mapping[str, str]) -> SparkSession:
    """Returns a session of the server of Spark Connect at an address, with some properties."""
    from penstock_spark.session.connect import opening

    return opening.open_remote(address, conf)


def has_lost_server(spark: object) -> bool:
    """True if a pipeline has opened a session of Spark Connect whose server does not know it any more."""
    if not is_connect(spark):
        return False
    from penstock_spark.session.connect import opening

    return opening.has_lost_server(cast("SparkSession", spark))


def is_local_session(spark: SparkSession) -> bool:
    """True if this program's own Java runs the tasks of a session."""
    return backend_of(spark).is_local


def session_of_reader(reader: DataFrameReader) -> SparkSession:
    """Returns the session that a reader of Spark is for."""
    kept = vars(reader)
    spark: SparkSession = kept["_client"] if is_connect(reader) else kept["_spark"]
    return spark


def map_in_arrow(frame: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """Spark's ``mapInArrow``, in the Python that `Backend.check_workers` chose."""
    if is_connect(frame):
        from penstock_spark.session.connect.travelling import travelling_function

        return frame.mapInArrow(travelling_function(function), schema)
    with backend_of(frame.sparkSession).workers_python():
        return frame.mapInArrow(function, schema)
