"""Pickles programs for the workers of a session, with the user's modules that they cannot import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock_spark.session.backends import is_local_session
from penstock_spark.shipping.user_modules import pickle_by_value, pickle_by_value_modules
from penstock_spark.worker.batch import dumps_with_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def dumps_for_workers(value: object, spark: SparkSession) -> bytes:
    """Returns a pickled program; the workers of a local session import the user's modules as the program does."""
    modules = () if is_local_session(spark) else pickle_by_value_modules([value])
    with pickle_by_value(modules):
        return dumps_with_code(value)
