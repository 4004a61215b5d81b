"""The workloads as Beam pipelines; which package they are built with is an argument, since the names are the same."""

from __future__ import annotations

from typing import Any

from workloads import WINDOW_SECONDS


def run(beam: Any, pipeline: Any, workload: str, source: str, target: str) -> None:
    """Runs a workload from a text file to a folder of text files.

    Args:
        beam: ``penstock`` or ``apache_beam``.
        pipeline: A pipeline of that package.
        workload: Its name.
        source: The text file.
        target: The folder.
    """
    body = {"word_count": word_count, "team_sums": team_sums}[workload]
    with pipeline:
        lines = pipeline | beam.io.ReadFromText(source)
        _ = body(beam, lines) | beam.io.WriteToText(f"{target}/part")


def word_count(beam: Any, lines: Any) -> Any:
    """Counts every word."""
    return (
        lines
        | beam.FlatMap(str.split)
        | beam.combiners.Count.PerElement()
        | beam.MapTuple(lambda word, count: f"{word}\t{count}")
    )


def team_sums(beam: Any, lines: Any) -> Any:
    """Sums the scores of each team in each two minutes of event time."""
    timestamped = beam.window.TimestampedValue

    def parse(line: str) -> Any:
        _, team, score, seconds = line.split(",")
        return timestamped((team, int(score)), int(seconds))

    def show(team_sum: tuple[str, int], window: Any = beam.DoFn.WindowParam) -> str:
        return f"{team_sum[0]} {int(window.start)}\t{team_sum[1]}"

    return (
        lines
        | beam.Map(parse)
        | beam.WindowInto(beam.window.FixedWindows(WINDOW_SECONDS))
        | beam.CombinePerKey(sum)
        | beam.Map(show)
    )
