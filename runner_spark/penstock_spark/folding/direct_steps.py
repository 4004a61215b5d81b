"""Steps that leave their work to the grouping after them, and so make no pair and no window for each element."""

from __future__ import annotations

from typing import Any, Protocol

from penstock.utils.timestamp import MAX_TIMESTAMP
from penstock.windows.window_fn import FixedWindows, Sessions
from penstock_spark.folding.sessions import Spans
from penstock_spark.worker.batch import MIN_MICROS, Batch
from penstock_spark.worker.fixed_windows import FixedAssigner
from penstock_spark.worker.pushing import Node, Records
from penstock_spark.worker.windowing import AssignStep

_MAX_MICROS: int = MAX_TIMESTAMP.micros


class FixedWriter(Protocol):
    """A writer that finds fixed windows on its own."""

    def take_fixed(self, batch: Batch, windows: FixedAssigner) -> Records:
        """Takes a batch of pairs with a list of timestamps, by which windows are found."""


class DirectWriter(FixedWriter, Protocol):
    """A writer that makes pairs, and finds fixed windows and sessions, on its own."""

    def take(self, keys: list[Any], values: list[Any], batch: Batch) -> Records:
        """Takes keys and values with the times and windows of a batch."""

    def take_sessions(self, batch: Batch, spans: Spans) -> Records:
        """Takes a batch of pairs, each in a session from a start to an end, whatever its windows."""


class PairStep(Node):
    """Pairs elements with None for groupings alone, which would take the pairs apart again."""

    def __init__(self, writers: list[DirectWriter]) -> None:
        self.writers = writers

    def push(self, batch: Batch) -> Records:
        nothing = [None] * len(batch.values)
        for writer in self.writers:
            yield from writer.take(batch.values, nothing, batch)


class FixedStep(Node):
    """Puts pairs into fixed windows for loops alone, which find each window by its time."""

    def __init__(self, general: AssignStep, windowfn: FixedWindows, writers: list[FixedWriter]) -> None:
        self.general = general
        self.windows = FixedAssigner(windowfn)
        self.writers = writers

    def push(self, batch: Batch) -> Records:
        batch = batch.explode()
        if not isinstance(batch.timestamps, list):
            yield from self.general.push(batch)
            return
        for writer in self.writers:
            yield from writer.take_fixed(batch, self.windows)


class SessionStep(Node):
    """Puts elements into sessions for loops alone, which need only the time of each."""

    def __init__(self, general: AssignStep, windowfn: Sessions, writers: list[DirectWriter]) -> None:
        self.general = general
        self.gap_micros = windowfn.gap_micros
        self.writers = writers

    def push(self, batch: Batch) -> Records:
        batch = batch.explode()
        count, gap = len(batch.values), self.gap_micros
        times = batch.timestamps if isinstance(batch.timestamps, list) else [batch.timestamps] * count
        if not times or min(times) < MIN_MICROS or max(times) > _MAX_MICROS - gap:
            # Windows end where time begins and ends.
            yield from self.general.push(batch)
            return
        spans = times, [time + gap for time in times]
        for writer in self.writers:
            yield from writer.take_sessions(batch, spans)


class DirectCounting:
    """Counts what a step hands to the writers that do its work, so that nothing goes along its edge.

    It precedes them, and has the methods by which such a step calls a writer.
    """

    def __init__(self, counts: dict[int, int], edge: int) -> None:
        self._counts = counts
        self._edge = edge

    def take(self, keys: list[Any], values: list[Any], batch: Batch) -> Records:
        return self._count(values)

    def take_fixed(self, batch: Batch, windows: FixedAssigner) -> Records:
        return self._count(batch.values)

    def take_sessions(self, batch: Batch, spans: Spans) -> Records:
        return self._count(batch.values)

    def _count(self, values: list[Any]) -> Records:
        self._counts[self._edge] += len(values)
        return iter(())
