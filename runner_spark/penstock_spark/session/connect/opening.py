"""Opens a session of a Spark Connect server, and finds out within seconds if no server answers."""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy

from penstock.error import RunnerError
from penstock_spark.session.connect.server_life import client_of, explain_server_loss, name_of_server

_LOGGER = logging.getLogger(__name__)

_RETRIES = 4
"""With its waits, about five seconds. PySpark's own fifteen take more than ten minutes, also for a wrong address."""

_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable by which PySpark knows, from the first such session on, that it is one of Connect."""


def open_remote(address: str, conf: Mapping[str, str]) -> SparkSession:
    """Returns a session of the server at an address, with some properties.

    Args:
        address: The server, as in ``sc://host:15002``, or a master for which PySpark starts a server.
        conf: The properties. What the server does not let a session set is said in the log.
    """
    mode = os.environ.get(_MODE)
    try:
        spark = SparkSession.builder.remote(address).getOrCreate()
    except PySparkException as error:
        if mode is None:
            os.environ.pop(_MODE, None)
        if error.getCondition() != "INVALID_CONNECT_URL":
            raise
        raise RunnerError(
            f"{address.partition(';')[0]!r} is not the address of a Spark Connect server",
            where="in the option master, or in $SPARK_REMOTE",
            hint="write it as in sc://host:15002, or with options as in sc://host:443/;use_ssl=true;token=...",
        ) from None
    try:
        version_of_server(spark)
    except Exception:
        # The next pipeline may name another server.
        client_of(spark).set_retry_policies([])
        spark.stop()
        raise
    for name, value in conf.items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            _LOGGER.warning(
                "the Spark Connect server does not let a session set %s, which is left out: %s",
                name,
                str(error).partition("\n")[0],
            )
    return spark


@functools.lru_cache(maxsize=16)
def version_of_server(spark: SparkSession) -> str:
    """Returns the version of a session's Spark; RunnerError if no server answers, or if it does not let one in."""
    client = client_of(spark)
    policies = client.get_retry_policies()
    client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    try:
        with warnings.catch_warnings():
            # PySpark warns that it has tried often enough.
            warnings.simplefilter("ignore", UserWarning)
            return spark.version
    except Exception as error:
        lost = explain_server_loss(error, f"in the session of {name_of_server(spark)}")
        raise (error if lost is None else lost) from None
    finally:
        client.set_retry_policies(policies)
