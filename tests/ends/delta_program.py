"""A program that tests kill and start again: scores of files, one in each micro-batch, into a Delta table.

Arguments: ``append`` or ``merge``, the folders of the input, the table and the checkpoint; then the number of the
micro-batch and the moment, ``before`` or ``after`` its commit, at which the program kills itself and all that it has
started.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from scores import HIGHEST, highest_of, pipeline_of, scores_of

from penstock.io.delta import WriteToDelta
from penstock_spark.formats.delta import writer


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
    with pipeline_of(checkpoint, "--fast_start") as pipeline:
        scores = scores_of(pipeline, source)
        if how == "append":
            _ = scores | WriteToDelta(target, partition_by="team")
        else:
            _ = highest_of(scores) | WriteToDelta(target, key="team", value="highest", schema=HIGHEST)


if __name__ == "__main__":
    kill_at(int(sys.argv[5]), sys.argv[6])
    run(*sys.argv[1:5])
