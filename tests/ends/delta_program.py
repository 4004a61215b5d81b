"""A program that tests kill and start again: scores of files, one in each micro-batch, into a Delta table.

Arguments: ``append`` or ``merge``, the folders of the input, the table and the checkpoint; then the number of the
micro-batch and the moment, ``before`` or ``after`` its commit, at which the program kills itself and all that it has
started.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NamedTuple

import pyarrow as pa

import penstock as beam
from penstock.io.delta import WriteToDelta
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.upserts import Upserts
from penstock_spark.formats.delta import writer


class Score(NamedTuple):
    team: str
    number: int


def score_of(line: str) -> Score:
    """The score of a line."""
    team, number = line.split(",")
    return Score(team, int(number))


def kill_at(number: int, moment: str) -> None:
    """Lets the driver die as by a power cut when it commits a micro-batch."""
    add = writer._Commit._add

    def dying(self: Any, table: Any, written: Any, batch: Any, properties: Any) -> None:
        if batch.number == number and moment == "before":
            os.killpg(0, signal.SIGKILL)
        add(self, table, written, batch, properties)
        if batch.number == number and moment == "after":
            os.killpg(0, signal.SIGKILL)

    writer._Commit._add = dying  # type: ignore[method-assign]


def run(how: str, source: str, target: str, checkpoint: str) -> None:
    """Runs the pipeline to its end, or until it dies."""
    flags = [
        f"--checkpoint_location={checkpoint}",
        "--mode=streaming",
        "--shuffle_partitions=2",
        "--fast_start",
    ]
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        read = beam.io.ReadFromText(f"{source}/*.txt").as_stream(max_files_per_batch=1, ends=True)
        scores = pipeline | read | beam.Map(score_of).with_output_types(Score)
        if how == "append":
            _ = scores | WriteToDelta(target, partition_by="team")
        else:
            schema = pa.schema([pa.field("team", pa.string(), False), ("highest", pa.int64())])
            highest = beam.WindowInto(
                beam.window.GlobalWindows(),
                trigger=beam.trigger.Repeatedly(beam.trigger.AfterCount(1)),
                accumulation_mode=beam.trigger.AccumulationMode.ACCUMULATING,
            )
            pairs = scores | beam.Map(lambda score: (score.team, score.number)).with_output_types(
                tuple[str, int]
            )
            best = pairs | highest | beam.CombinePerKey(max)
            _ = best | Upserts() | WriteToDelta(target, key="team", value="highest", schema=schema)


if __name__ == "__main__":
    kill_at(int(sys.argv[5]), sys.argv[6])
    run(*sys.argv[1:5])
