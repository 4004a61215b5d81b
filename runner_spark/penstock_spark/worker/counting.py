"""Counts the elements of edges for the view of a run, batch by batch."""

from __future__ import annotations

from typing import Any

from penstock_spark.worker.batch import Batch
from penstock_spark.worker.pushing import Consumer, Records


class Counting:
    """Counts what an edge carries, on its way to the reader of the edge.

    Args:
        counts: The number of elements so far, by edge; other consumers count here, too.
        edge: The edge.
        consumer: Its reader.
    """

    def __init__(self, counts: dict[int, int], edge: int, consumer: Consumer) -> None:
        self._counts = counts
        self._edge = edge
        self._push = consumer.push

    def push(self, batch: Batch) -> Records:
        self._counts[self._edge] += len(batch.values)
        return self._push(batch)


class DirectCounting:
    """Counts what a step hands to the writers that do its work, so that nothing goes along its edge.

    It stands before them, and has the methods by which such a step calls a writer.
    """

    def __init__(self, counts: dict[int, int], edge: int) -> None:
        self._counts = counts
        self._edge = edge

    def take(self, names: list[Any], values: list[Any], batch: Batch) -> Records:
        return self._count(values)

    def take_fixed(self, batch: Batch, windows: Any) -> Records:
        return self._count(batch.values)

    def take_sessions(self, batch: Batch, spans: Any) -> Records:
        return self._count(batch.values)

    def _count(self, values: list[Any]) -> Records:
        self._counts[self._edge] += len(values)
        return iter(())
