"""A program that tests kill: visits in a topic of Kafka, copied, and summed by window into tables of a database.

Arguments: the brokers and the topic to read, the brokers and the topic of the copy, the URL of the database, and the
checkpoint.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows, Sessions
from penstock.utils.timestamp import Timestamp

WINDOW_SECONDS = 60
GAP_SECONDS = 20
DISORDER_SECONDS = 30
RECORDS_PER_BATCH = 100


class Sum(NamedTuple):
    """A row of both tables."""

    user: str
    started: Timestamp
    ended: Timestamp
    seconds: int


def sum_of(user: str, seconds: int, window: beam.window.IntervalWindow = beam.DoFn.WindowParam) -> Sum:
    """The sum of a user and a window as a row."""
    return Sum(user, window.start, window.end, seconds)


def bytes_of(user: str, seconds: int) -> tuple[bytes, bytes]:
    """A visit as a record of Kafka."""
    return user.encode(), b"%d" % seconds


def keep(pipeline: beam.Pipeline, servers: str, topic: str, target: str, copied: str, url: str) -> None:
    """Sums of minutes, each written once, and sums of sessions, which change until they are complete.

    The copy of a micro-batch is committed before its sums.
    """
    brokers, string = (
        {"bootstrap.servers": servers},
        "org.apache.kafka.common.serialization.StringDeserializer",
    )
    read = ReadFromKafka(brokers, [topic], string, "json", timestamp_policy="CreateTime")
    watermark = BoundedDisorder(DISORDER_SECONDS, per_partition=True)
    stream = read.as_stream(watermark=watermark, max_records_per_batch=RECORDS_PER_BATCH, existing_only=True)
    visits = pipeline | stream.with_output_types(tuple[str, int])
    copies = visits | beam.MapTuple(bytes_of)
    _ = copies | WriteToKafka({"bootstrap.servers": target}, copied, exactly_once=True, transactions=1)
    minutes = (
        visits | beam.WindowInto(FixedWindows(WINDOW_SECONDS)) | "SumOfMinutes" >> beam.CombinePerKey(sum)
    )
    _ = (
        minutes
        | beam.MapTuple(sum_of).with_output_types(Sum)
        | "WriteMinutes" >> WriteToDatabase(url, "minutes", create=True)
    )
    early = AfterWatermark(early=AfterCount(1))
    sessions = beam.WindowInto(Sessions(GAP_SECONDS), early, AccumulationMode.ACCUMULATING_AND_RETRACTING)
    key = ("user", "started", "ended")
    write = WriteToDatabase(url, "sessions", mode="upsert", key=key, create=True, schema=Sum)
    sums = visits | "Sessions" >> sessions | "SumOfSessions" >> beam.CombinePerKey(sum)
    _ = sums | beam.Upserts(by_window=True) | "WriteSessions" >> write


def main(servers: str, topic: str, target: str, copied: str, url: str, checkpoint: str, *flags: str) -> None:
    """Reads the topic up to its present end."""
    flags = (f"--checkpoint_location={checkpoint}", "--mode=streaming", "--shuffle_partitions=2", *flags)
    with beam.Pipeline(options=PipelineOptions(list(flags))) as pipeline:
        keep(pipeline, servers, topic, target, copied, url)


if __name__ == "__main__":
    main(*sys.argv[1:])
