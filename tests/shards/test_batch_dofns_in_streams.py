"""DoFns with a process_batch in a stream: the steps of a level, behind a source and behind a grouping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.window import FixedWindows
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000


class Scaled(beam.DoFn):
    """Multiplies arrays, and yields nothing for a zero."""

    def process_batch(self, batch: np.ndarray, factor: int) -> Iterator[np.ndarray]:
        assert len(batch)
        yield batch[batch != 0] * factor

    def infer_output_type(self, input_type: Any) -> Any:
        return input_type


@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
@pytest.mark.parametrize("whole_batches", [True, False])
def test_batches_of_a_stream_keep_their_windows(mode: str, whole_batches: bool) -> None:
    pipeline = beam.Pipeline()
    lines = beam.io.ReadFromText("/in/*.txt", validate=False).as_stream(
        event_time=lambda number: number % 100, watermark=BoundedDisorder(2)
    )
    numbers = pipeline | "Read" >> lines | beam.Map(lambda number: number).with_output_types(int)
    scaled = numbers | "One" >> beam.ParDo(Scaled(), 2) | "Two" >> beam.ParDo(Scaled(), 5)
    pairs = scaled | beam.WindowInto(FixedWindows(10)) | beam.Map(lambda number: (number % 2, number))
    sums = pairs | beam.CombinePerKey(sum) | beam.Values().with_output_types(int)
    _ = sums | "Three" >> beam.ParDo(Scaled(), 3) | "Write" >> WriteToMemory([])
    query = ToyQuery(pipeline, mode, without=() if whole_batches else ("whole_batches",))
    [sink] = query.plan.sinks
    first = query.batch({"Read": [[0, 101, 201, 7, 9], [0, 15]]}, 100 * SECOND)[sink.label]
    second = query.batch({"Read": [[140, 240]]}, 101 * SECOND)[sink.label]
    early, late, last = 3 * 10 * (101 + 201 + 7 + 9), 3 * 10 * 15, 3 * 10 * (140 + 240)
    if mode == "micro_batch":
        assert (sorted(first), second) == (sorted([early, late]), [last])
    else:
        assert sorted(first + second) == sorted([early, late])
