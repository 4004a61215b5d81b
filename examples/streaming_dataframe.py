"""Sums scores by team and minute, between a streaming DataFrame of Spark and a query of Spark.

python examples/streaming_dataframe.py --input scores/ --output out/scores

The input is a folder of JSON lines such as {"team": "red", "points": 3, "at": "2026-01-01T00:00:05Z"}. Start it again
when there are more files: it continues from its checkpoint.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import from_dataframe, to_streaming_dataframe

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": "2",
}


class Total(NamedTuple):
    team: str
    start: int
    points: int


def with_start(team, points, window=beam.DoFn.WindowParam):
    return Total(team, int(window.start), points)


def totals_of(scores):
    """The totals of a streaming DataFrame of scores, as another one."""
    return to_streaming_dataframe(
        beam.Pipeline(spark=scores.sparkSession)
        | "Scores" >> from_dataframe(scores.withWatermark("at", "30 seconds"))
        | beam.WindowInto(beam.window.FixedWindows(60))
        | beam.Map(lambda row: (row.team, row.points)).with_output_types(tuple[str, int])
        | "Sums" >> beam.CombinePerKey(sum)
        | beam.MapTuple(with_start).with_output_types(Total)
    )


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--input", required=True, help="the folder of JSON files")
    parser.add_argument("--output", required=True, help="the folder of the totals and of the checkpoint")
    known = parser.parse_args(argv)
    spark = SparkSession.builder.config(map={**SETTINGS}).getOrCreate()
    scores = spark.readStream.schema("team string, points bigint, at timestamp").json(known.input)
    totals = totals_of(scores)
    query = totals.writeStream.trigger(availableNow=True).start(
        f"{known.output}/totals", format="parquet", checkpointLocation=f"{known.output}/checkpoint"
    )
    query.awaitTermination()
    spark.read.schema(totals.schema).parquet(f"{known.output}/totals").orderBy("start", "team").show()


if __name__ == "__main__":
    run()
