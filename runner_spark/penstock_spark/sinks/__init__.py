"""Writing sinks: each description in `penstock.io` becomes an encoder for the tasks and a commit for the
driver.
"""

from __future__ import annotations

from penstock_spark.sinks import (
    batch_files,
    batch_tables,
    columns,
    driver_list,
    frames,
    on_driver,
    parquet,
    tables,
    text,
)
from penstock_spark.sinks.batches import BatchWriter
from penstock_spark.sinks.inside import encoders_inside
from penstock_spark.sinks.micro_batch import MicroBatch, of_batch, prepare, takes_streams
from penstock_spark.sinks.plan import Encoder, SinkPlan, plan_sink
from penstock_spark.sinks.stream_sink import StreamSink

__all__ = [
    "BatchWriter",
    "Encoder",
    "MicroBatch",
    "SinkPlan",
    "StreamSink",
    "batch_files",
    "batch_tables",
    "columns",
    "driver_list",
    "encoders_inside",
    "frames",
    "of_batch",
    "on_driver",
    "parquet",
    "plan_sink",
    "prepare",
    "tables",
    "takes_streams",
    "text",
]
