"""Sources that follow the clock: Spark sends a heartbeat each second, with the work that is due in it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.elements.bounded_window import TimestampedValue
from penstock.io.streaming.schedules import ScheduledSource, is_over, list_due_elements

_SECOND_MICROS = 1_000_000


class ClockPeriod(NamedTuple):
    """The seconds from one time at which the clock was found set back until the next one.

    See `penstock_spark.checkpoints.custody.clock_resets`.
    """

    first: int  # The number of its first second.
    start_millis: int  # The second with the number n begins n seconds later.


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
class HeartbeatDecoder:
    """Decodes the seconds of `open_heartbeats` for a source that follows the clock, such as a ``PeriodicSource``.

    Spark keeps the time at which the query first started in the checkpoint. The row with the value n is the second
    that begins n seconds later, and has that time; it comes when the second is over.

    >>> from penstock.io.streaming.periodic_sequence import PeriodicSource
    >>> source = PeriodicSource(0, 3_500_000, 500_000, data=tuple("abcdefg"))
    >>> rows = pa.RecordBatch.from_pydict({"value": [0, 1, 2], "timestamp_micros": [1_200_000, 2_200_000, 3_200_000]})
    >>> beats = HeartbeatDecoder(source)(rows)
    >>> [("".join(each.value for each in beat.elements), beat.is_over) for beat in beats]
    [('abcde', False), ('fg', True), ('', True)]

    If the clock was set back between two runs, nothing is due until the clock shows a time again that it has not shown
    before. Here, second 1 begins when second 0 began:

    >>> eras = ClockPeriod(0, 1_200), ClockPeriod(1, 200)
    >>> beats = HeartbeatDecoder(source, eras)(rows)
    >>> [("".join(each.value for each in beat.elements), beat.until_micros) for beat in beats]
    [('abcde', 2200000), ('', 2200000), ('fg', 3200000)]
    """

    source: ScheduledSource
    eras: tuple[ClockPeriod, ...] = ()  # What the clock was set back to; empty if it never was.

    def __call__(self, batch: pa.RecordBatch) -> list[Heartbeat]:
        numbers, times = (batch.column(name).to_pylist() for name in ("value", "timestamp_micros"))
        return [
            self._beat(number, *self._second(number, from_micros))
            for number, from_micros in zip(numbers, times, strict=True)
        ]

    def _second(self, number: int, from_micros: int) -> tuple[int, int, int]:
        """The time of the first start of the query, and the time that passes in a second: from when, and until when."""
        if not self.eras:
            return from_micros - number * _SECOND_MICROS, from_micros, from_micros + _SECOND_MICROS
        era = max(era for era in self.eras if era.first <= number)
        # The clock has shown all seconds that an earlier era has counted.
        counted = (
            old.start_millis + new.first * 1_000 for old, new in pairwise(self.eras) if new.first <= number
        )
        shown_millis = max(counted, default=0)
        begin_millis = era.start_millis + number * 1_000
        return (
            self.eras[0].start_millis * 1_000,
            max(begin_millis, shown_millis) * 1_000,
            max(begin_millis + 1_000, shown_millis) * 1_000,
        )

    def _beat(self, number: int, started_micros: int, from_micros: int, until_micros: int) -> Heartbeat:
        elements = list_due_elements(self.source, started_micros, from_micros, until_micros)
        return Heartbeat(until_micros, elements, is_over(self.source, started_micros, until_micros))
