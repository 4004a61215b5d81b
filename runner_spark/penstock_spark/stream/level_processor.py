"""Levels of a streaming query as Spark's stateful operator.

Before the first micro-batch Spark unpickles the processor in a separate Python process, only to ask which state it
has, and waits for that. So this module imports nothing that takes long; the rest is imported with the first rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from penstock_spark.session.worker_socket import confirm_at_once
from penstock_spark.stream.state_server import answers_in_time

if TYPE_CHECKING:
    from penstock_spark.session.backend import ReportSink

ROWS = "level int, shard int, payload binary"
"""The columns between the operators of a query."""

_FIRST_LOOK = "pyspark.sql.streaming.transform_with_state_driver_worker"

# Types and not their names, which Spark's processes would ask each other to read with every micro-batch.
_KEYS = StructType([StructField("grouping", StringType()), StructField("page", LongType())])
_PAGES = StructType([StructField("page", BinaryType())])


def quiet_first_look() -> None:
    """Keeps PySpark's program that asks for the state of a query from printing its questions and answers.

    It runs as the main module there, and prints PySpark objects.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == _FIRST_LOOK:
        setattr(main, "print", lambda *_: None)  # noqa: B010


class ShardProcessor(StatefulProcessor):
    """A stateful operator whose keys are shards, each with its pages."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Comes before the first rows."""
        self.__dict__.update(state)
        quiet_first_look()
        confirm_at_once()

    def init(self, handle: StatefulProcessorHandle) -> None:
        # A single variable, because Spark reopens each of them in every micro-batch.
        with answers_in_time(handle):
            self._pages = handle.getMapState("pages", _KEYS, _PAGES)

    def close(self) -> None:
        """Does nothing: Spark closes everything."""


class LevelProcessor(ShardProcessor):
    """Levels as a stateful operator: its keys are shards, and one call is one shard's micro-batch."""

    def __init__(
        self,
        programs: Mapping[int, bytes],
        shard_keys: tuple[int, ...],
        views: Mapping[int, Any],
        metrics: ReportSink,
        sys_path: tuple[str, ...],
    ) -> None:
        self._programs = programs
        self._shard_keys = shard_keys
        self._views = views
        self._metrics = metrics
        self._sys_path = sys_path

    def handleInputRows(
        self, key: tuple[int, ...], rows: Iterator[Any], timerValues: object
    ) -> Iterator[Any]:
        from penstock_spark.stream.tasks import run_shard

        yield from run_shard(
            self._programs,
            self._sys_path,
            self._shard_keys,
            key[0],
            rows,
            self._pages,
            self._views,
            self._metrics,
        )
