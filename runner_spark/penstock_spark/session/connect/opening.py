"""Opens a session of a Spark Connect server, and finds out within seconds if no server answers."""

from __future__ import annotations

import functools
import logging
import re
import warnings
import weakref
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy

from penstock.error import RunnerError
from penstock.utils import clock
from penstock_spark.session.backend import TIME_ZONE
from penstock_spark.session.connect.server_life import (
    at_loss,
    client_of,
    end_without_retries,
    explain_server_loss,
    name_of_server,
)

_LOGGER = logging.getLogger(__name__)

_RETRIES = 4
"""With its waits, about five seconds. PySpark's own fifteen take more than ten minutes, also for a wrong address."""

_TRIES_OF_A_RUN = 14
_PAUSE_MILLIS_MAX = 10_000
"""With both, a run waits for two minutes. PySpark itself waits for more than ten."""

_WARNINGS_SECONDS = 30.0

_REFUSED_SECONDS = 30.0
"""The time in which a server may listen again: a new one does not know the session that the run needs."""

_REFUSED = re.compile("connection refused", re.IGNORECASE)


class Patience(DefaultPolicy):
    """Tries again for two minutes, with warnings in the log; for half a minute if nothing listens at the port."""

    def __init__(self) -> None:
        super().__init__(max_retries=_TRIES_OF_A_RUN, max_backoff=_PAUSE_MILLIS_MAX)
        self._next_warning = clock.monotonic_seconds()
        self._refused_since = self._refused_last = float("-inf")

    def can_retry(self, e: BaseException) -> bool:
        if not super().can_retry(e) or self._is_refused_for_long(e):
            return False
        if clock.monotonic_seconds() >= self._next_warning:
            self._next_warning = clock.monotonic_seconds() + _WARNINGS_SECONDS
            _LOGGER.warning(
                "the Spark Connect server does not answer: trying again for up to two minutes, unless it has lost the "
                "session"
            )
        return True

    def _is_refused_for_long(self, error: BaseException) -> bool:
        if not _REFUSED.search(str(error)):
            return False
        now = clock.monotonic_seconds()
        # A longer pause means that the server has answered in between.
        if now - self._refused_last > _REFUSED_SECONDS:
            self._refused_since = now
        self._refused_last = now
        return now - self._refused_since > _REFUSED_SECONDS


_opened: weakref.WeakSet[SparkSession] = weakref.WeakSet()
"""The sessions that pipelines have opened."""


def open_remote(address: str, conf: Mapping[str, str]) -> SparkSession:
    """Returns a session of the server at an address, with some properties.

    Args:
        address: The server, as in ``sc://host:15002``, or a master for which PySpark starts a server.
        conf: The properties. What the server does not let a session set is said in the log.
    """
    if address.startswith("sc:"):
        _check_address(address)
    spark = SparkSession.builder.remote(address).getOrCreate()
    try:
        version_of_server(spark)
    except Exception:
        # The next pipeline may name another server.
        client_of(spark).set_retry_policies([])
        spark.stop()
        raise
    client_of(spark).set_retry_policies([Patience()])
    end_without_retries()
    _opened.add(spark)
    # As in a session that pipelines open without a server.
    for name, value in {TIME_ZONE: "UTC", **conf}.items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            _LOGGER.warning(
                "the Spark Connect server does not let a session set %s, which is left out: %s",
                name,
                str(error).partition("\n")[0],
            )
    return spark


def _check_address(address: str) -> None:
    try:
        DefaultChannelBuilder(address)
    except ValueError:
        raise RunnerError(
            f"{address.partition(';')[0]!r} is not the address of a Spark Connect server",
            where="in the option master, or in $SPARK_REMOTE",
            hint="write it as in sc://host:15002, or with options as in sc://host:443/;use_ssl=true;token=...",
        ) from None


def opened_sessions() -> list[SparkSession]:
    """Returns the sessions that pipelines have opened and nothing has stopped."""
    return [spark for spark in _opened if not client_of(spark).is_closed]


def has_lost_server(spark: SparkSession) -> bool:
    """True if a pipeline has opened this session, and its server does not know it any more; it is then stopped."""
    if spark not in _opened:
        return False
    try:
        version_of_server(spark)
    except RunnerError:
        client_of(spark).set_retry_policies([])
        spark.stop()
        return True
    return False


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


at_loss(version_of_server.cache_clear)
