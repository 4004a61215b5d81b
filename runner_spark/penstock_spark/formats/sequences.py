"""Numbers that follow the clock, in a pipeline that does not wait for it: all of them, each with the time it is due."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.io.external.generate_sequence import SequenceSource
from penstock.utils import clock
from penstock_spark.formats.format import Format
from penstock_spark.sources.scan import Scan


def open_sequence(source: SequenceSource, spark: SparkSession, where: str) -> Scan:
    """The numbers of a finite sequence, as TimestampedValue objects, spread over Spark's default parallelism."""
    schedule = source.schedule_from(clock.micros())
    assert schedule.count is not None

    def decode(batch: pa.RecordBatch) -> list[Any]:
        return [source.element(number, schedule.due_micros(number)) for number in batch.column(0).to_pylist()]

    return Scan(spark.range(schedule.count), lambda: decode)


SEQUENCES = Format(open_sequence)
