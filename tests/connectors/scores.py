"""Scores in files, one in each micro-batch, for tests and programs that write them into lakes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.relations.upserts import Upserts

FILES = 5
HIGHEST = pa.schema([pa.field("team", pa.string(), False), ("highest", pa.int64())])
"""The columns of a table that is kept by key."""


class Score(NamedTuple):
    team: str
    number: int


def score_of(line: str, kind: Any) -> Any:
    """The score of a line."""
    team, number = line.split(",")
    return kind(team, int(number))


def put(source: Path, number: int) -> None:
    """Adds a file; the third one is empty."""
    lines = [f"{'abc'[row % 3]},{number * 100 + row}" for row in range(20)]
    if number == 2:
        lines = []
    (source / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    os.utime(source / f"{number}.txt", (1_700_000_000 + number,) * 2)


def expected_of(how: str, files: int = FILES) -> list[dict[str, Any]]:
    """The rows of all files; or, of a table that is kept by key, the highest number of each team."""
    scores = [
        ("abc"[row % 3], number * 100 + row) for number in range(files) if number != 2 for row in range(20)
    ]
    if how == "append":
        return sorted(({"team": team, "number": number} for team, number in scores), key=repr)
    return sorted(
        ({"team": team, "highest": max(n for t, n in scores if t == team)} for team in "abc"), key=repr
    )


def pipeline_of(checkpoint: str | Path, *flags: str) -> beam.Pipeline:
    """A streaming pipeline with a checkpoint."""
    flags = (f"--checkpoint_location={checkpoint}", "--mode=streaming", "--shuffle_partitions=2", *flags)
    return beam.Pipeline(options=PipelineOptions(list(flags)))


def scores_of(pipeline: beam.Pipeline, source: str | Path, kind: Any = Score) -> Any:
    """The scores of the files that are there, as rows of some type."""
    read = beam.io.ReadFromText(f"{source}/*.txt").as_stream(max_files_per_batch=1, existing_only=True)
    return pipeline | read | beam.Map(score_of, kind).with_output_types(kind)


def highest_of(scores: Any) -> Any:
    """The changes of a table with the highest number of each team."""
    highest = beam.WindowInto(
        beam.window.GlobalWindows(),
        trigger=beam.trigger.Repeatedly(beam.trigger.AfterCount(1)),
        accumulation_mode=beam.trigger.AccumulationMode.ACCUMULATING,
    )
    pairs = beam.Map(lambda score: (score.team, score.number)).with_output_types(tuple[str, int])
    return scores | pairs | highest | beam.CombinePerKey(max) | Upserts()
