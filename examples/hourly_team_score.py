"""Adds up the points of each team by the hour in which they were won, however late they arrived.

python examples/hourly_team_score.py --start 2015-11-16T20:00 --stop 2015-11-16T22:00
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows, TimestampedValue
from user_score import SCORES, ReadScores, report, totals


def seconds(text):
    """Converts a time in UTC to seconds since 1970.

    >>> seconds("2015-11-16T19:00")
    1447700400.0
    """
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def hourly_totals(scores, start, stop, minutes=60):
    """Adds up the points of each team in each hour between two times."""
    windows = (
        scores
        | "Between" >> beam.Filter(lambda score: start <= score.seconds < stop)
        | "AtItsTime" >> beam.Map(lambda score: TimestampedValue(score, score.seconds))
        | "ByHour" >> beam.WindowInto(FixedWindows(minutes * 60))
    )
    return totals(windows, "team")


def line(total, window=beam.DoFn.WindowParam):
    """Formats a total as a line: the hour, the team, the points."""
    team, points = total
    return f"{window.start.to_utc_datetime():%Y-%m-%d %H:%M},{team},{points}"


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--input", default=str(SCORES), help="the files of scores; * and ? are wildcards")
    parser.add_argument("--output", default="out/hourly_team_score", help="the folder of the results")
    parser.add_argument("--start", type=seconds, default="2015-11-16T19:00", help="leave out what is earlier")
    parser.add_argument("--stop", type=seconds, default="2015-11-17T00:00", help="and from here on")
    parser.add_argument("--minutes", type=int, default=60, help="the length of an 'hour'")
    known, rest = parser.parse_known_args(argv)

    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        scores = pipeline | ReadScores(known.input, known.output)
        (
            hourly_totals(scores, known.start, known.stop, known.minutes)
            | "Lines" >> beam.Map(line)
            | beam.io.WriteToText(f"{known.output}/totals.csv", shard_name_template="")
        )
    report(known.output, pipeline.result)


if __name__ == "__main__":
    run()
