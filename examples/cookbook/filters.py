"""Keeps the days that are colder than the average of all days: a filter with a computed threshold."""

from __future__ import annotations

from typing import NamedTuple

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions


class Day(NamedTuple):
    """A day's mean temperature in degrees Celsius."""

    name: str
    month: int
    degrees: float


DAYS = [
    Day("1 January", 1, -3.5),
    Day("2 January", 1, 1.0),
    Day("1 April", 4, 9.0),
    Day("1 July", 7, 21.5),
    Day("2 July", 7, 24.0),
]


def cold_days(days, month):
    """Gives the days of a month that were colder than the average day of all months."""
    average = days | "Degrees" >> beam.Map(lambda day: day.degrees) | beam.combiners.Mean.Globally()
    return (
        days
        | "InMonth" >> beam.Filter(lambda day: day.month == month)
        | "BelowAverage"
        >> beam.Filter(lambda day, limit: day.degrees < limit, limit=beam.pvalue.AsSingleton(average))
    )


def run(argv=None):
    with beam.Pipeline(options=PipelineOptions(argv)) as pipeline:
        days = pipeline | beam.Create(DAYS)
        cold_days(days, month=1) | beam.Map(print)


if __name__ == "__main__":
    run()
