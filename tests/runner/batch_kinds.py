"""DoFns with a process_batch, of several kinds of batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import penstock as beam
from penstock.typehints.batch import NumpyArray


class Same(beam.DoFn):
    """Its elements are of the input's type."""

    def infer_output_type(self, input_type: Any) -> Any:
        return input_type


class Doubled(Same):
    """Doubles lists."""

    seen: list[Any] = []

    def process_batch(self, batch: list[int]) -> Iterator[list[int]]:
        assert batch
        self.seen.append(batch)
        yield [2 * element for element in batch]


class DoubledArray(Same):
    """Doubles arrays."""

    seen: list[Any] = []

    def process_batch(self, batch: np.ndarray) -> Iterator[np.ndarray]:
        assert len(batch)
        self.seen.append(batch)
        yield batch * 2


class DoubledSeries(Same):
    def process_batch(self, batch: pd.Series) -> Iterator[pd.Series]:
        yield batch * 2


class DoubledArrow(Same):
    def process_batch(self, batch: pa.Array) -> Iterator[pa.Array]:
        yield pa.array([2 * each for each in batch.to_pylist()], batch.type)


class Either(Same):
    """Has both methods, and tells which it was."""

    calls: list[tuple[str, int]] = []

    def process(self, element: int) -> Iterator[int]:
        self.calls.append(("process", 1))
        yield 2 * element

    def process_batch(self, batch: list[int]) -> Iterator[list[int]]:
        self.calls.append(("process_batch", len(batch)))
        yield [2 * element for element in batch]


class Lengths(beam.DoFn):
    """An element for each batch."""

    @beam.DoFn.yields_elements
    def process_batch(self, batch: list[int]) -> Iterator[tuple[int, int]]:
        yield len(batch), sum(batch)


class Repeated(Same):
    """A batch for each element."""

    @beam.DoFn.yields_batches
    def process(self, element: int) -> Iterator[list[int]]:
        yield [element] * element


class Tripled(Same):
    """Triples arrays of a fixed type."""

    made: list[Any] = []

    def process_batch(self, batch: NumpyArray[np.int64]) -> Iterator[NumpyArray[np.int64]]:  # type: ignore[valid-type]
        self.made.append(batch * 3)
        yield self.made[-1]
