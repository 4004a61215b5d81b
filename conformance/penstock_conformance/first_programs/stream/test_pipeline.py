"""Each minute has its own means, in whatever order measurements come."""

from pipeline import means_by_minute, parse, time_of

import penstock as beam
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.window import TimestampedValue


def test_a_line_has_a_place_a_time_and_a_temperature() -> None:
    line = "harbour,1970-01-01T00:01:10Z,11.5"
    assert (parse(line), time_of(line).timestamp()) == (("harbour", 11.5), 70)


def test_each_minute_has_its_own_means() -> None:
    day = "2026-03-02T"
    lines = [f"harbour,{day}08:01:20Z,20.0", f"harbour,{day}08:00:10Z,11.0", f"harbour,{day}08:00:50Z,12.0"]
    with TestPipeline() as pipeline:
        measured = pipeline | beam.Create(lines)
        timed = measured | "Time" >> beam.Map(lambda line: TimestampedValue(line, time_of(line).timestamp()))
        assert_that(means_by_minute(timed), equal_to([("harbour", 11.5), ("harbour", 20.0)]))
