"""A program that tests kill and start again: files of scores, as upserts and as rows, into tables of a database.

Arguments: the URL of the database, the folder of the input, and the folder of the checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.upserts import Upserts
from penstock.transforms.trigger import AccumulationMode, AfterCount, Repeatedly


class Score(NamedTuple):
    """A line of the input."""

    team: str
    number: int


class Total(NamedTuple):
    """A row of the table that is kept by key."""

    team: str
    total: int


def score(line: str) -> Score:
    """A line as a record."""
    team, number = line.split(",")
    return Score(team, int(number))


def keep(pipeline: beam.Pipeline, urls: Sequence[str], source: str, are_rows_kept: bool = True) -> None:
    """All lines in the table ``scores``, if they are kept, and the sum of each team in the table ``totals``.

    Each database has both tables.
    """
    lines = pipeline | beam.io.ReadFromText(f"{source}/*.txt").as_stream(
        max_files_per_batch=1, existing_only=True
    )
    scores = lines | beam.Map(score).with_output_types(Score)
    for number, url in enumerate(urls if are_rows_kept else ()):
        _ = scores | f"WriteScores{number}" >> WriteToDatabase(url, "scores", create=True)
    panes = beam.WindowInto(
        beam.window.GlobalWindows(), Repeatedly(AfterCount(1)), AccumulationMode.ACCUMULATING
    )
    totals = scores | panes | beam.Map(lambda each: (each.team, each.number)) | beam.CombinePerKey(sum)
    changes = totals | Upserts()
    for number, url in enumerate(urls):
        write = WriteToDatabase(url, "totals", mode="upsert", key="team", create=True, schema=Total)
        _ = changes | f"WriteTotals{number}" >> write


def main(url: str, source: str, checkpoint: str, *further: str) -> None:
    """Runs the pipeline to its end."""
    flags = [f"--checkpoint_location={checkpoint}", "--mode=streaming", "--shuffle_partitions=2", *further]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        keep(pipeline, [url], source)


if __name__ == "__main__":
    main(*sys.argv[1:])
