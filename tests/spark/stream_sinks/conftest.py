"""Micro-batches made by hand, and what Spark calls with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.graph import Step, Write
from penstock_spark.lowering.batch_writer import BatchWriter
from penstock_spark.lowering.context import Context
from penstock_spark.lowering.stream_sink import StreamSink
from penstock_spark.session.backends import backend_of, is_connect
from penstock_spark.worker.batch import Batch, encode_page
from tests.spark.stream_sinks.writing import ROWS


@pytest.fixture
def writer(spark: SparkSession) -> Callable[..., BatchWriter]:
    """Makes what Spark calls with each micro-batch; one for each time that the program is started."""

    def make(*sinks: Any, app: str = "app") -> BatchWriter:
        descriptions = [getattr(sink, "sink", sink) for sink in sinks]
        steps = [
            Step(f"Write {number}", Write(sink), inputs=(number,))
            for number, sink in enumerate(descriptions, 1)
        ]
        return BatchWriter(
            [StreamSink(-number, step) for number, step in enumerate(steps, 1)],
            Context(spark, "run", backend_of(spark).reports(), 1, cloudpickle.dumps),
            app,
            lambda: None,
        )

    return make


@pytest.fixture
def rows(spark: SparkSession) -> Callable[..., DataFrame]:
    """The rows of a micro-batch: for each sink, elements; one page each, dealt out to partitions in turn."""
    session = backend_of(spark).clone({"spark.sql.adaptive.enabled": "false"})

    def make(*elements: list[Any], partitions: int = 2, effects: Path | None = None) -> DataFrame:
        found = [
            (-number, 0, encode_page(Batch([value])))
            for number, values in enumerate(elements, 1)
            for value in values
        ]
        if is_connect(spark):
            # As the other branch deals them out.
            numbered = [(at * partitions // len(found), *row) for at, row in enumerate(found)]
            dealt = spark.createDataFrame(numbered, f"part int, {ROWS}").repartitionById(partitions, "part")
            pages = dealt.drop("part")
        else:
            pages = spark.createDataFrame(spark.sparkContext.parallelize(found, partitions), ROWS)
        frame = backend_of(session).moved(pages)
        return frame if effects is None else frame.mapInArrow(_noting(effects), ROWS)

    return make


def _noting(effects: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Has each task leave a line in a file: how often the steps before the sinks have run."""

    def note(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from records
        with effects.open("a") as file:
            file.write("a task\n")

    return note
