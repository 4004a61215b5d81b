"""Spark's own worker keeps its socket where `penstock_spark.session.worker_socket` looks for it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock_spark.session import worker_socket


def test_nothing_on_the_socket_of_a_worker_waits_to_be_confirmed(spark: SparkSession) -> None:
    def options(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in worker_socket.acknowledge_each(records):
            number = worker_socket._number_of_socket()
            assert number is not None
            with socket.socket(fileno=os.dup(number)) as known:
                is_tcp = known.family in (socket.AF_INET, socket.AF_INET6)
                is_set = is_tcp and bool(known.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            yield pa.record_batch(
                {"is_tcp": [is_tcp] * record.num_rows, "is_set": [is_set] * record.num_rows}
            )

    found = spark.range(2).mapInArrow(options, "is_tcp boolean, is_set boolean").collect()
    assert len(found) == 2
    assert all(row.is_set == row.is_tcp for row in found)
