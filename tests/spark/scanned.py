"""What comes out of an open source, read as the runner reads it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pyarrow as pa

from penstock_spark.sources.scan import Scan, with_plain_names

WHERE = "at step 'Read' (game.py:41)"
"""The step that reads, in errors."""


def elements(scan: Scan) -> list[Any]:
    """Runs the reader where the runner does: in each task, over the task's batches in order."""
    frame, make_reader = with_plain_names(scan.decoded_frame, scan.make_reader)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = make_reader()
        for values in itertools.chain.from_iterable(map(read, batches)):
            yield pa.RecordBatch.from_pydict({"e": [cloudpickle.dumps(value) for value in values]})

    return [cloudpickle.loads(row.e) for row in frame.mapInArrow(run, "e binary").collect()]
