"""A program that tests kill: a topic is copied into another, in transactions.

Arguments: the brokers and the topic to read, the brokers and the topic to write, and the checkpoint.
"""

from __future__ import annotations

import sys

import penstock as beam
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock.options.pipeline_options import PipelineOptions

RECORDS_PER_BATCH = 50


def main(source: str, read: str, target: str, written: str, checkpoint: str, *flags: str) -> None:
    """Copies until the present end."""
    options = PipelineOptions(
        ["--mode=streaming", "--shuffle_partitions=2", f"--checkpoint_location={checkpoint}", *flags]
    )
    with beam.Pipeline(options=options) as pipeline:
        topic = ReadFromKafka({"bootstrap.servers": source}, [read])
        records = pipeline | topic.as_stream(max_records_per_batch=RECORDS_PER_BATCH, existing_only=True)
        counted = records | beam.MapTuple(lambda key, value: (key, b"%d" % (2 * int(value))))
        _ = counted | WriteToKafka({"bootstrap.servers": target}, written, exactly_once=True, transactions=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
