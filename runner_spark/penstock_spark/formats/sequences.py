"""Numbers that follow the clock, in a pipeline that does not wait for it: all of them, each with the time it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.base import clock
from penstock.io.external.generate_sequence import SequenceSource
from penstock.io.schedules import Schedule
from penstock_spark.formats.format import Format
from penstock_spark.sources.scan import Decoder, Scan


def open_sequence(source: SequenceSource, spark: SparkSession, where: str) -> Scan:
    """The numbers of a finite sequence, as TimestampedValue objects, spread over Spark's default parallelism."""
    schedule = source.schedule_from(clock.micros())
    assert schedule.count is not None
    return Scan(spark.range(schedule.count), _Numbers(source, schedule))


@dataclass(frozen=True)
class _Numbers:
    """Makes a decoder of rows that hold the index of a number in its sequence."""

    source: SequenceSource
    schedule: Schedule

    def __call__(self) -> Decoder:
        return self._decode

    def _decode(self, batch: pa.RecordBatch) -> list[Any]:
        schedule, element = self.schedule, self.source.element
        return [element(number, schedule.due_micros(number)) for number in batch.column(0).to_pylist()]


SEQUENCES = Format(open_sequence)
