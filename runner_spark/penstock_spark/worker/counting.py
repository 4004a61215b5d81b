"""Counts the elements of edges for the view of a run, batch by batch."""

from __future__ import annotations

from penstock_spark.worker.batch import Batch
from penstock_spark.worker.pushing import Consumer, Records


class Counting:
    """Counts what an edge carries, on its way to the reader of the edge.

    Args:
        counts: The number of elements so far, by edge; shared with other consumers.
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
