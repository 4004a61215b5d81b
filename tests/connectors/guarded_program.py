"""A program with passwords for Kafka and for a database, whose processes and files a test searches for them.

Arguments: the brokers to read and to write, the URL of the database, and a folder. The passwords are not in its command
line: they come through its standard input.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from pyspark.sql import SparkSession

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.io.kafka import ReadFromKafka, WriteToKafka
from penstock.options.pipeline_options import PipelineOptions


class Name(NamedTuple):
    """A row of the table."""

    name: str


def main(source: str, target: str, folder: str) -> None:
    """Runs until it is killed."""
    password, url = sys.stdin.read().split("\n")
    session = SparkSession.builder.master("local[2]").config("spark.eventLog.enabled", "true")
    session = session.config("spark.eventLog.dir", f"{folder}/events").config("spark.ui.enabled", "false")
    spark = session.config("spark.local.dir", f"{folder}/local").getOrCreate()
    secret = {"sasl.username": "amy", "sasl.password": password}
    flags = ["--mode=streaming", "--shuffle_partitions=2", f"--checkpoint_location={folder}/checkpoint"]
    pipeline = beam.Pipeline(options=PipelineOptions(flags), spark=spark)
    pairs = pipeline | ReadFromKafka({"bootstrap.servers": source, **secret}, ["guarded"]).as_stream()
    _ = pairs | WriteToKafka(
        {"bootstrap.servers": target, **secret}, "guarded", exactly_once=True, transactions=1
    )
    names = pairs | beam.MapTuple(lambda key, value: Name(value.decode())).with_output_types(Name)
    _ = names | WriteToDatabase(url, "names", create=True)
    print(pipeline.explain(), flush=True)
    pipeline.run().wait_until_finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
