"""Values that cross a border in a pipeline arrive as `penstock.values` says; each mode has one pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from tests.values.borders import BORDERS
from tests.values.matrix import crossed_in_a_pipeline, steps_of


@pytest.mark.spark
@pytest.mark.parametrize("mode", ["batch", "streaming"])
def test_values_arrive_as_the_table_says(mode: str, spark: Any, tmp_path: Path) -> None:
    steps = steps_of(BORDERS, streams=mode == "streaming")
    found = crossed_in_a_pipeline(steps, tmp_path, beam.Pipeline(spark=spark, mode=mode))
    assert {way: told for way, told in found.items() if told} == {}
