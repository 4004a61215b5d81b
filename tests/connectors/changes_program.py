"""A program that tests kill and start again: the changes of a table of PostgreSQL into another table.

Arguments: the folder of the checkpoint. The URL of the database is in the environment.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import penstock as beam
from penstock.io.database import WriteToDatabase
from penstock.io.postgres_changes import ReadChangesFromPostgres
from penstock.options.pipeline_options import PipelineOptions


def url() -> str:
    """The URL, with a password."""
    return os.environ["CHANGES_URL"]


def build(checkpoint: str, *flags: str, mode: str = "streaming", ends: bool = False) -> beam.Pipeline:
    """A replica of the table ``scores``."""
    options = [f"--mode={mode}", f"--checkpoint_location={checkpoint}", "--shuffle_partitions=2", *flags]
    pipeline: Any = beam.Pipeline(options=PipelineOptions(options))
    read = ReadChangesFromPostgres(url, "scores", slot="replica", publication="everything")
    changes = pipeline | "Changes" >> read.as_stream(max_records_per_batch=500, existing_only=ends)
    _ = changes | WriteToDatabase(url, "replica", mode="upsert", key="id")
    return pipeline


if __name__ == "__main__":
    program = build(sys.argv[1], "--fast_start", "--take_over")
    print(program.explain(), flush=True)
    program.run().wait_until_finish()
