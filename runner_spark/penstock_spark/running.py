"""A streaming query at work: it is watched from a thread, and ends when its sources have."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from penstock.machines.records import MAX_MICROS
from penstock.metrics.execution import Snapshot, merge_snapshots
from penstock.runners.runner import PipelineState
from penstock_spark.lowering.query import Query
from penstock_spark.lowering.readings import Opened
from penstock_spark.metrics import (
    Watermarks,
    ended_sources,
    fold_snapshots,
    watermarks_of_shards,
)

_POLL_SECONDS = 0.05
_LOGGER = logging.getLogger(__name__)


class Running:
    """A query that has been started.

    Args:
        started: Spark's query.
        query: What it runs.
        shards: How many shards report their watermarks: those of all levels.
        metrics: Spark's accumulator.
        run: The run's name.
        command: Writes a command to the query, as (name, argument).
        translate: From what Spark raised to what is raised to the user.
        tidy: Called when it is over.

    Attributes:
        state: One of `penstock.runners.runner.PipelineState`.
        failure: What made it fail.
    """

    def __init__(
        self,
        started: Any,
        query: Query,
        shards: int,
        metrics: Any,
        run: str,
        command: Callable[[str, str], None],
        translate: Callable[[Exception], BaseException],
        tidy: Callable[[], None],
    ) -> None:
        self.state = PipelineState.RUNNING
        self.failure: BaseException | None = None
        self._started = started
        self._query = query
        self._shards = shards
        self._metrics = metrics
        self._run = run
        self._command = command
        self._translate = translate
        self._tidy = tidy
        self._snapshot: Snapshot = {}
        self._last_watermarks: Watermarks | None = None
        self._ended: set[str] = set()
        self._batch = -1
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"penstock {run}", daemon=True)
        self._thread.start()

    def join(self, seconds: float | None) -> bool:
        """Waits for the end; whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Stops the query where it is, and waits for that."""
        if not PipelineState.is_terminal(self.state):
            self.state = PipelineState.CANCELLING
            self._stopping.set()
        self._thread.join()

    def drain(self) -> None:
        """Ends all sources, so that all windows fire; the query then ends by itself."""
        if self.state == PipelineState.RUNNING:
            self.state = PipelineState.DRAINING
            self._command("drain", "")

    def signal(self, name: str) -> None:
        """Sends a signal to all groupings."""
        self._command("signal", name)

    def snapshot(self) -> Snapshot:
        """The metrics of all finished micro-batches."""
        return self._snapshot

    def watermarks(self) -> Watermarks:
        """Where the watermarks are, by grouping; at the end, where they were."""
        return self._last_watermarks or watermarks_of_shards(self._metrics, self._run)

    def _watch(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self.failure = self._translate(error)
        finally:
            self._stop()

    def _follow(self) -> None:
        """Returns when the query is over, or has to be stopped."""
        while not self._stopping.wait(_POLL_SECONDS):
            batch = _last_batch(self._started)
            if batch is not None and batch != self._batch:
                self._batch = batch
                self._fold(batch)
                if self._is_over(self._started.lastProgress):
                    return
            if self._is_idle() and self._ends_by_pausing():
                return
            if not self._started.isActive:
                failure = self._started.exception()
                if failure is not None:
                    raise failure
                return

    def _is_idle(self) -> bool:
        """Whether the query has nothing to do until something new comes; asked only where that matters."""
        if not (self._query.rests or self.state == PipelineState.DRAINING):
            return False
        status = self._started.status
        is_at_work = status["isDataAvailable"] or status["isTriggerActive"]
        return not is_at_work and not status["message"].startswith("Initializing")

    def _ends_by_pausing(self) -> bool:
        """Ends the finite sources of a query that has nothing to do; whether that is the end of the query.

        A query without groupings, which no command reaches, is over then if no more can come.
        """
        if self.state != PipelineState.DRAINING:
            for reading in self._query.readings:
                if reading.ends_when_read:
                    self._end(reading)
        return not self._shards and (self.state == PipelineState.DRAINING or self._query.is_finite)

    def _end(self, reading: Opened) -> None:
        """Tells the groupings that a source has ended, the first time that it is called for it."""
        origin = reading.spec.origin
        if origin not in self._ended:
            self._ended.add(origin)
            if reading.spec.readers:
                self._command("end", origin)

    def _stop(self) -> None:
        """Stops Spark's query, and says how it went."""
        try:
            self._started.stop()
        except Exception as error:
            self.failure = self.failure or self._translate(error)
        self._fold(None)
        self._last_watermarks = self.watermarks()
        self._tidy()
        match self.state:
            case _ if self.failure is not None:
                self.state = PipelineState.FAILED
                _LOGGER.error("the query of the run %s failed: %s", self._run, self.failure)
            case PipelineState.CANCELLING:
                self.state = PipelineState.CANCELLED
            case PipelineState.DRAINING:
                self.state = PipelineState.DRAINED
            case _:
                self.state = PipelineState.DONE

    def _fold(self, batch: int | None) -> None:
        """Adds the metrics of finished micro-batches up."""
        self._snapshot = merge_snapshots(self._snapshot, fold_snapshots(self._metrics, self._run, batch))

    def _is_over(self, progress: Any) -> bool:
        """Whether nothing will come any more and all windows have fired."""
        is_read = [self._is_read(number, progress) for number in range(len(self._query.readings))]
        for reading, done in zip(self._query.readings, is_read, strict=True):
            if reading.ends_when_read and done:
                self._end(reading)
        reports = self.watermarks()
        all_fired = len(reports.by_shard) == self._shards and reports.earliest_micros() >= MAX_MICROS
        if self.state == PipelineState.DRAINING:
            return all_fired
        return all(is_read) and self._query.is_finite and self._batch >= self._query.batches - 1 and all_fired

    def _is_read(self, number: int, progress: Any) -> bool:
        """Whether a source has been read to its end, or had nothing new."""
        origin = self._query.readings[number].spec.origin
        if origin in self._ended or origin in ended_sources(self._metrics, self._run):
            return True
        source = progress["sources"][self._query.first_reading + number]
        return source["startOffset"] is not None and source["startOffset"] == source["endOffset"]


def _last_batch(started: Any) -> int | None:
    """The number of the last micro-batch that has ended, if any: all of its progress takes Java long to write down."""
    progress = started._jsq.lastProgress()
    return None if progress is None else int(progress.batchId())
