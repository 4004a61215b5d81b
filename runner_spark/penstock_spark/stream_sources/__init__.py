"""Opening unbounded sources: each description becomes a streaming DataFrame and a decoder of its batches."""

from __future__ import annotations

from penstock_spark.stream_sources import csv_stream, json_stream, parquet_stream, table_stream, text_stream
from penstock_spark.stream_sources.heartbeats import Heartbeat, HeartbeatScan, open_heartbeats
from penstock_spark.stream_sources.scan import Rejected, StreamDecoder, StreamScan, open_stream
from penstock_spark.stream_sources.staging import open_staged, stage_bounded

__all__ = [
    "Heartbeat",
    "HeartbeatScan",
    "Rejected",
    "StreamDecoder",
    "StreamScan",
    "csv_stream",
    "json_stream",
    "open_heartbeats",
    "open_staged",
    "open_stream",
    "parquet_stream",
    "stage_bounded",
    "table_stream",
    "text_stream",
]
