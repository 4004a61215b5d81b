"""Sums records of Kafka by key and minute with Bytewax; run by the benchmark of Kafka, with a Python that has it.

Arguments: the brokers, the topic to read, and the topic to write. It prints its seconds, without imports.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main

RECORDS_AT_ONCE = 10_000


def sums(servers: str, source: str, target: str) -> Dataflow:
    """The dataflow, as Bytewax's documentation writes such sums."""
    flow = Dataflow("sums")
    records = op.input("read", flow, KafkaSource([servers], [source], tail=False, batch_size=RECORDS_AT_ONCE))
    pairs = op.map(
        "pairs",
        records,
        lambda message: (message.key.decode(), (message.timestamp[1] / 1000, int(message.value))),
    )
    clock = windowing.EventClock(
        lambda pair: datetime.fromtimestamp(pair[0], UTC), wait_for_system_duration=timedelta(seconds=10)
    )
    minutes = windowing.TumblingWindower(timedelta(minutes=1), datetime(2023, 1, 1, tzinfo=UTC))
    summed = windowing.fold_window(
        "sum",
        pairs,
        clock,
        minutes,
        lambda: 0,
        lambda total, pair: total + pair[1],
        lambda one, other: one + other,
    )
    messages = op.map(
        "messages",
        summed.down,
        lambda found: KafkaSinkMessage(found[0].encode(), b"%d %d" % found[1]),
    )
    op.output("write", messages, KafkaSink([servers], target))
    return flow


if __name__ == "__main__":
    start = time.perf_counter()
    run_main(sums(*sys.argv[1:]))
    print(time.perf_counter() - start)
