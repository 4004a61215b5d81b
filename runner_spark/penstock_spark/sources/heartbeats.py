"""Sources that follow the clock: a heartbeat of Spark's each second, and what is due in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.base.bounded_window import TimestampedValue
from penstock.io.schedules import ScheduledSource, due, is_over

_SECOND_MICROS = 1_000_000


class Heartbeat(NamedTuple):
    """The elements that are due in one second."""

    until_micros: int  # The end of the second, which the clock has passed when the heartbeat comes.
    # The elements in order, with their event times. The first second also has what was due before the query
    # first started.
    elements: list[TimestampedValue[Any]]
    is_over: bool  # Whether nothing comes later.


def open_heartbeats(spark: SparkSession) -> DataFrame:
    """A row for each second since the query first started, in order; after a restart, also for each missed second."""
    rate = spark.readStream.format("rate").options(rowsPerSecond=1, numPartitions=1).load()
    return rate.select("value", F.unix_micros("timestamp").alias("timestamp_micros"))


@dataclass(frozen=True)
class Beats:
    """Decodes the seconds of `open_heartbeats` for a source that follows the clock, such as a ``PeriodicSource``.

    Spark keeps the time at which the query first started in the checkpoint. The row with the value n is the second
    that begins n seconds later, and has that time; it comes when the second is over.

    >>> from penstock.transforms.periodicsequence import PeriodicSource
    >>> decode = Beats(PeriodicSource(0, 3_500_000, 500_000, data=tuple("abcdefg")))
    >>> rows = pa.RecordBatch.from_pydict({"value": [0, 1, 2], "timestamp_micros": [1_200_000, 2_200_000, 3_200_000]})
    >>> [("".join(each.value for each in heartbeat.elements), heartbeat.is_over) for heartbeat in decode(rows)]
    [('abcde', False), ('fg', True), ('', True)]
    """

    source: ScheduledSource

    def __call__(self, batch: pa.RecordBatch) -> list[Heartbeat]:
        rows = zip(
            batch.column("value").to_pylist(), batch.column("timestamp_micros").to_pylist(), strict=True
        )
        return [self._beat(number, from_micros) for number, from_micros in rows]

    def _beat(self, number: int, from_micros: int) -> Heartbeat:
        started_micros = from_micros - number * _SECOND_MICROS
        until_micros = from_micros + _SECOND_MICROS
        elements = due(self.source, started_micros, from_micros, until_micros)
        return Heartbeat(until_micros, elements, is_over(self.source, started_micros, until_micros))
