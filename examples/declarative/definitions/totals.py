"""A table with the total of each team and minute, which a pipeline computes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

import penstock as beam
from penstock.io import from_dataframe, to_streaming_dataframe

SCORES = (Path(__file__).parents[1] / "scores").as_uri()


class Total(NamedTuple):
    team: str
    start: int
    points: int


def with_start(team, points, window=beam.DoFn.WindowParam):
    return Total(team, int(window.start), points)


def totals_of(spark):
    scores = spark.readStream.schema("team string, points bigint, at timestamp").json(SCORES)
    return to_streaming_dataframe(
        beam.Pipeline(spark=spark)
        | "Scores" >> from_dataframe(scores.withWatermark("at", "30 seconds"))
        | beam.WindowInto(beam.window.FixedWindows(60))
        | beam.Map(lambda row: (row.team, row.points)).with_output_types(tuple[str, int])
        | "Sums" >> beam.CombinePerKey(sum)
        | beam.MapTuple(with_start).with_output_types(Total)
    )


# Spark lets the function of a flow only return a DataFrame, so it is made here.
totals_by_minute = totals_of(SparkSession.active())
dp.create_streaming_table("totals")


@dp.append_flow(target="totals")
def totals():
    return totals_by_minute
