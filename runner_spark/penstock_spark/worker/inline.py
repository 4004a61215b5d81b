"""Values that travel inside the program: each partition takes its slice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from penstock.elements.bounded_window import TimestampedValue
from penstock.utils.windowed_value import WindowedValue
from penstock_spark.worker.batch import CHUNK_ELEMENTS, Batch


def inline_batches(values: tuple[Any, ...], partition: int, partitions: int) -> Iterator[Batch]:
    """Yields the slice of one partition, in order, as batches.

    >>> [batch.values for batch in inline_batches((1, 2, 3), 1, 2)]
    [[2, 3]]
    """
    start = len(values) * partition // partitions
    end = len(values) * (partition + 1) // partitions
    for first in range(start, end, CHUNK_ELEMENTS):
        chunk = values[first : min(first + CHUNK_ELEMENTS, end)]
        for kind, same in groupby(chunk, key=_kind):
            yield _batch(kind, list(same))


def _kind(value: object) -> type | None:
    for kind in (WindowedValue, TimestampedValue):
        if isinstance(value, kind):
            return kind
    return None


def _batch(kind: type | None, values: list[Any]) -> Batch:
    if kind is None:
        return Batch(values)
    timestamps = [value.timestamp_micros for value in values]
    if kind is TimestampedValue:
        return Batch([value.value for value in values], timestamps)
    return Batch(
        [value.value for value in values],
        timestamps,
        [tuple(value.windows) for value in values],
        [value.pane_info for value in values],
    )
