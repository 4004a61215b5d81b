"""A program that tests kill and start again: scores of files, one in each micro-batch, into folders of partitions.

Arguments: the format, the folders of the input, the output and the checkpoint; then the number of the micro-batch and
the moment at which the program kills itself and all that it has started: ``before`` its files get their names, when
``half`` of them have, or ``after`` all have.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import penstock as beam
from penstock.io import WriteToCsv, WriteToJson, WriteToOrc, WriteToParquet
from penstock.io.avroio import WriteToAvro
from penstock_spark.sinks import files
from tests.connectors import power_cuts
from tests.connectors.scores import pipeline_of, scores_of

WRITERS = {
    "parquet": WriteToParquet,
    "orc": WriteToOrc,
    "csv": WriteToCsv,
    "json": WriteToJson,
    "avro": WriteToAvro,
}


def kill_at(target: str, number: int, moment: str) -> None:
    """Lets the driver die as by a power cut while it gives the files of a micro-batch in a folder their names."""
    name_files = files._name_files

    def dying(system: Any, written: Sequence[str], names: Sequence[str], old: set[str]) -> None:
        is_meant = any(target in name and f"batch-{number:06d}" in name for name in names)
        if is_meant and moment != "after":
            half = len(names) // 2 if moment == "half" else 0
            name_files(system, written[:half], names[:half], old)
            power_cuts.die()
        name_files(system, written, names, old)
        if is_meant:
            power_cuts.die()

    files._name_files = dying


def build(how: str, source: str, target: str, checkpoint: str) -> beam.Pipeline:
    """The pipeline, which has an end."""
    pipeline = pipeline_of(checkpoint, "--fast_start")
    _ = scores_of(pipeline, source) | WRITERS[how](f"{target}/o", partition_by="team")
    return pipeline


if __name__ == "__main__":
    kill_at(sys.argv[3], int(sys.argv[5]), sys.argv[6])
    build(*sys.argv[1:5]).run().wait_until_finish()
