"""Adds up the points of each player of a game (the first of Beam's mobile gaming examples).

A line of the input is ``player,team,points,milliseconds since 1970``. The program counts the lines that cannot be
read, and writes them to a file of their own.

    python examples/user_score.py --input examples/data/scores.csv --output out/user_score
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import penstock as beam
from penstock.metrics import Metrics, MetricsFilter
from penstock.options.pipeline_options import PipelineOptions

SCORES = Path(__file__).parent / "data" / "scores.csv"
BAD_LINES = Metrics.counter("game", "bad_lines")


class Score(NamedTuple):
    """Points that a player won for the team, at a time in seconds since 1970."""

    player: str
    team: str
    points: int
    seconds: float


def parse(line: str) -> Score:
    """Parses the score of a line.

    >>> parse("kim,RedKite,4,1447700400000")
    Score(player='kim', team='RedKite', points=4, seconds=1447700400.0)
    """
    player, team, points, milliseconds = line.split(",")
    return Score(player, team, int(points), int(milliseconds) / 1000)


def dead_letter(line, failure):
    """Formats a line that cannot be read, with the reason, and counts it."""
    BAD_LINES.inc()
    _, error, _ = failure
    return f"{line}\t{error}"


class ReadScores(beam.PTransform):
    """Reads the scores of text files; lines that cannot be read go to a file ``bad_lines.txt``."""

    def __init__(self, file_pattern, folder):
        super().__init__()
        self.file_pattern = file_pattern
        self.folder = folder

    def expand(self, pipeline):
        lines = pipeline | beam.io.ReadFromText(self.file_pattern)
        scores, bad = lines | beam.Map(parse).with_exception_handling()
        (
            bad
            | "DeadLetters" >> beam.MapTuple(dead_letter)
            | beam.io.WriteToText(f"{self.folder}/bad_lines.txt", shard_name_template="")
        )
        return scores


def totals(scores, field):
    """Adds up the points by player or by team."""
    return (
        scores
        | "KeyBy" >> beam.Map(lambda score: (getattr(score, field), score.points))
        | "SumPoints" >> beam.CombinePerKey(sum)
    )


def report(folder, result):
    """Prints the totals, the best first, and how many lines could not be read."""
    lines = Path(folder, "totals.csv").read_text(encoding="utf-8").splitlines()
    for line in sorted(lines, key=lambda line: -int(line.rpartition(",")[2])):
        *names, points = line.split(",")
        print(f"{int(points):6}  {'  '.join(names)}")
    found = result.metrics().query(MetricsFilter().with_name("bad_lines"))["counters"]
    bad = sum(counter.committed for counter in found)
    if bad:
        print(f"{bad} lines could not be read; they are in {folder}/bad_lines.txt")


def run(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--input", default=str(SCORES), help="the files of scores; * and ? are wildcards")
    parser.add_argument("--output", default="out/user_score", help="the folder of the results")
    known, rest = parser.parse_known_args(argv)

    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        scores = pipeline | ReadScores(known.input, known.output)
        (
            totals(scores, "player")
            | "Lines" >> beam.MapTuple("{},{}".format)
            | beam.io.WriteToText(f"{known.output}/totals.csv", shard_name_template="")
        )
    report(known.output, pipeline.result)


if __name__ == "__main__":
    run()
