"""A program that tests kill and start again: scores of files, one in each micro-batch, into a Delta table.

Arguments: ``append`` or ``merge``, the folders of the input, the table and the checkpoint. If the program shall kill
itself and all that it has started: also the moment, ``before`` or ``after`` a commit, and how many commits it makes
before that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import penstock as beam
from penstock.io.delta import WriteToDelta
from penstock_connectors.delta import writer
from tests.connectors import power_cuts
from tests.connectors.scores import HIGHEST, highest_of, pipeline_of, scores_of


def kill_at(moment: str, commits: int) -> None:
    """Lets the driver die as by a power cut when it commits a micro-batch."""
    left = [commits]

    def dying(commit: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0 and moment == "before":
                power_cuts.die()
            result = commit(*arguments)
            if left[0] < 0:
                power_cuts.die()
            return result

        return wrapped

    writer._Commit._add = dying(writer._Commit._add)  # type: ignore[method-assign]


def build(how: str, source: str, target: str, checkpoint: str) -> beam.Pipeline:
    """The pipeline, which has an end."""
    pipeline = pipeline_of(checkpoint, "--fast_start")
    scores = scores_of(pipeline, source)
    if how == "append":
        _ = scores | WriteToDelta(target, partition_by="team")
    else:
        _ = highest_of(scores) | WriteToDelta(target, key="team", value="highest", schema=HIGHEST)
    return pipeline


if __name__ == "__main__":
    if sys.argv[5:]:
        kill_at(sys.argv[5], int(sys.argv[6]))
    build(*sys.argv[1:5]).run().wait_until_finish()
