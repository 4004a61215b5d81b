"""A program that tests kill and start again: scores of files, one in each micro-batch, into folders of partitions.

Arguments: the format, the folders of the input, the output and the checkpoint; then the number of the micro-batch and
the moment at which the program kills itself and all that it has started: ``before`` its files get their names, when
``half`` of them have, or ``after`` all have.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from scores import pipeline_of, scores_of

from penstock.io import WriteToCsv, WriteToJson, WriteToOrc, WriteToParquet
from penstock.io.avroio import WriteToAvro
from penstock_spark.sinks import files

WRITERS = {
    "parquet": WriteToParquet,
    "orc": WriteToOrc,
    "csv": WriteToCsv,
    "json": WriteToJson,
    "avro": WriteToAvro,
}


def kill_at(number: int, moment: str) -> None:
    """Lets the driver die as by a power cut while it gives the files of a micro-batch their names."""
    name_files = files._name_files

    def dying(system: Any, written: Sequence[str], names: Sequence[str], old: set[str]) -> None:
        is_meant = any(f"batch-{number:06d}" in name for name in names)
        if is_meant and moment != "after":
            half = len(names) // 2 if moment == "half" else 0
            name_files(system, written[:half], names[:half], old)
            os.killpg(0, signal.SIGKILL)
        name_files(system, written, names, old)
        if is_meant:
            os.killpg(0, signal.SIGKILL)

    files._name_files = dying


def run(how: str, source: str, target: str, checkpoint: str) -> None:
    """Runs the pipeline to its end, or until it dies."""
    with pipeline_of(checkpoint, "--fast_start") as pipeline:
        _ = scores_of(pipeline, source) | WRITERS[how](f"{target}/o", partition_by="team")


if __name__ == "__main__":
    kill_at(int(sys.argv[5]), sys.argv[6])
    run(*sys.argv[1:5])
