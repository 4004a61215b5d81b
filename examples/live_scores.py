"""Follows a game while it is played: the points of each team by the hour, with scores that come out of order and late.

The program splits a file of scores into small files, which a stream reads one after the other, as if they came from
the game now. Each line of the output is a pane: early panes before the hour is over, one on time, and late panes
after it.

python examples/live_scores.py --disorder 600 --lateness 3600
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import penstock as beam
from penstock.io import WriteToConsole
from penstock.io.watermarks import BoundedDisorder
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from penstock.transforms.window import FixedWindows
from user_score import SCORES, parse

TIMINGS = ("early", "on time", "late")


def seconds_of(line):
    """Returns when the points of a line were won, in seconds since 1970.

    >>> seconds_of("kim,RedKite,4,1447700400000")
    1447700400.0
    """
    return parse(line).seconds


def points_of(line):
    """Parses the team and the points of a line.

    >>> points_of("kim,RedKite,4,1447700400000")
    ('RedKite', 4)
    """
    score = parse(line)
    return score.team, score.points


def pane_as_line(total, window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam):
    """Formats a pane as a line: the hour, the team, its points so far, and the timing of the pane."""
    team, points = total
    return f"{window.start.to_utc_datetime():%H:%M} {team:<12}{points:>4} {TIMINGS[pane.timing]}"


def deal_out(file, folder, count):
    """Splits a file into several, each a second younger than the previous one."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    for number, first in enumerate(range(0, len(lines), count)):
        piece = Path(folder, f"{number:04d}.csv")
        piece.write_text("".join(f"{line}\n" for line in lines[first : first + count]), encoding="utf-8")
        os.utime(piece, (number, number))


def follow(pipeline, pattern, disorder, lateness):
    """Gives the panes of all hours as lines, and the lines that are not scores."""
    lines, bad = pipeline | beam.io.ReadFromText(pattern).as_stream(
        seconds_of, BoundedDisorder(disorder), rejects=True, existing_only=True, max_files_per_batch=1
    )
    hours = beam.WindowInto(
        FixedWindows(3600),
        AfterWatermark(early=AfterCount(5), late=AfterCount(1)),
        AccumulationMode.ACCUMULATING,
        allowed_lateness=lateness,
    )
    totals = lines | "Points" >> beam.Map(points_of) | hours | beam.CombinePerKey(sum)
    return totals | "Lines" >> beam.Map(pane_as_line), bad | "Bad" >> beam.Map(
        lambda rejected: rejected.record
    )


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--input", default=str(SCORES), help="a file of scores")
    parser.add_argument("--count", type=int, default=10, help="the number of lines that come at once")
    parser.add_argument("--disorder", type=int, default=600, help="seconds by which scores come out of order")
    parser.add_argument(
        "--lateness", type=int, default=3600, help="seconds after which late scores are dropped"
    )
    known, rest = parser.parse_known_args(argv)

    with tempfile.TemporaryDirectory() as folder:
        deal_out(known.input, folder, known.count)
        with beam.Pipeline(options=PipelineOptions(["--mode=streaming", *rest])) as pipeline:
            panes, bad = follow(pipeline, f"{folder}/*.csv", known.disorder, known.lateness)
            _ = panes | "Panes" >> WriteToConsole()
            _ = bad | "BadLines" >> WriteToConsole("no score: ")


if __name__ == "__main__":
    run()
