"""A sample of the pipelines in which features meet, on Spark: many branches in one pipeline, and files in them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.runner.covering_pipelines import Choice, Program, covering_programs, differing, observed

SIDES = Program(
    1,
    (
        *(Choice("timed"), Choice("stream"), Choice("fixed", 0), Choice("fixed", 1), Choice("outputs", 2)),
        # Bounded side inputs that other steps read, too, and unbounded ones.
        *(Choice("itself", 2), Choice("tags beside", 2), Choice("list", 5, 2), Choice("iter", 3, 4)),
        *(Choice("singleton", 2, 3), Choice("dict", 3, 2), Choice("metric", 2), Choice("list", 14, 14)),
        *(Choice("flatten twice", 3), Choice("state", 2), Choice("reject", 5), Choice("retracting", 0)),
        *(Choice("write", 4), Choice("split", 2), Choice("cogroup", 3), Choice("write", 2)),
    ),
)
"""The pairs that are hardest to plan: side inputs and second readers."""


@pytest.mark.parametrize("mode", ["batch", "streaming", "micro_batch"])
def test_features_that_meet_mean_on_spark_what_the_graph_means(spark: Any, tmp_path: Path, mode: str) -> None:
    assert differences(SIDES, spark, tmp_path, mode) == []


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("number", range(8))
def test_more_features_mean_on_spark_what_the_graph_means(
    spark: Any, tmp_path: Path, mode: str, number: int
) -> None:
    [program] = islice(covering_programs(), number, number + 1)
    assert differences(program, spark, tmp_path, mode) == []


def differences(program: Program, spark: Any, folder: Path, mode: str) -> list[str]:
    making = program.build(mode != "batch", str(folder), spark=spark, mode=mode)
    found = observed(program, making)
    graph = making.pipeline.to_graph()
    making.pipeline.run().wait_until_finish()
    return differing(graph, found)
