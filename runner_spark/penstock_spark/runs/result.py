"""The results of runs on Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.figures.of_runs import Figure, recording_of_grouping
from penstock.figures.recording import Recording
from penstock.metrics.execution import Snapshot
from penstock.metrics.metric import MetricResults
from penstock.runners.runner import PipelineResult, PipelineState
from penstock.utils.timestamp import Duration, Timestamp
from penstock_spark.process.interrupts import same_command, stoppable, tell
from penstock_spark.runs.running import Running


class RecordedResult(PipelineResult):
    """A run that can be drawn, if it has recorded what happened."""

    mode = "batch"

    def recording(self, pcoll: Any) -> Recording:
        """What happened at the grouping that a PCollection comes from (penstock's own); also while the run goes on.

        Args:
            pcoll: The output of a GroupByKey or of a Combine, or of steps behind one.

        Raises:
            ValueError: No grouping leads to it; or nothing is recorded: the option ``record_events`` has that done.
        """
        return recording_of_grouping(pcoll, self._snapshot_now(), self.mode)

    def figure(self, pcoll: Any) -> Figure:
        """The same as a drawing, which notebooks show, and ``save`` writes to a file; see `recording`."""
        return Figure(self.recording(pcoll))

    def _snapshot_now(self) -> Snapshot:
        raise NotImplementedError


class SparkResult(RecordedResult):
    """A run that has ended.

    Args:
        state: A `penstock.runners.runner.PipelineState`.
        snapshot: The metrics of all steps.
    """

    def __init__(self, state: str, snapshot: Snapshot) -> None:
        super().__init__(state)
        self._snapshot = snapshot

    def metrics(self) -> MetricResults:
        """The metrics of the run; committed and attempted are the same, since each partition counts once."""
        return MetricResults(self._snapshot)

    def _snapshot_now(self) -> Snapshot:
        return self._snapshot


@dataclass(frozen=True)
class StepWatermark:
    """How far a grouping has come (the book's chapter 3).

    Attributes:
        input: The watermark of its input.
        output: That of its output: the same, or what is held back.
        clock: Processing time at the end of the last micro-batch: nothing that arrived before is still to be done.
        lag: How far the output's watermark is behind the clock: the delay in event time.
        processing_lag: How far that clock is behind the machine's: the delay in processing time; None where the clock
            is that of recorded input.
        waiting: How many elements wait for each side input, by the label of the grouping that makes it.
    """

    input: Timestamp
    output: Timestamp
    clock: Timestamp
    lag: Duration
    processing_lag: Duration | None
    waiting: dict[str, int] = field(default_factory=dict)


class StreamResult(RecordedResult):
    """A streaming query, running or ended.

    Args:
        running: The query.
        mode: ``micro_batch`` or ``streaming``.
        is_live: Whether its clock is the machine's.
        checkpoint: The folder of its progress and state; None if that is gone with the run.
        drain_on_signal: Whether Ctrl-C and SIGTERM drain the run, and do not cancel it.
    """

    def __init__(
        self,
        running: Running,
        mode: str,
        is_live: bool,
        checkpoint: str | None,
        drain_on_signal: bool = False,
    ) -> None:
        super().__init__(running.state)
        self.mode = mode
        self._running = running
        self._is_live = is_live
        self.checkpoint = checkpoint
        self._drain_on_signal = drain_on_signal

    @property
    def state(self) -> str:
        """The state the run is in now."""
        return self._running.state

    def wait_until_finish(self, duration: int | None = None) -> str | None:
        """Waits for the run to end.

        In the main thread, Ctrl-C and SIGTERM cancel the run, or drain it with the option ``drain_on_signal``; a second
        one ends the program at once.

        Args:
            duration: How long at most, in milliseconds; None waits for ever.

        Returns:
            The state at the end; None if the time was up before.

        Raises:
            Exception: What made the run fail, with the step named.
            KeyboardInterrupt: Ctrl-C has cancelled the run.
            SystemExit: SIGTERM has; with the status 143.
        """
        with stoppable(self._how_to_go_on, self._take_signal):
            try:
                has_ended = self._running.join(None if duration is None else duration / 1000)
            except (KeyboardInterrupt, SystemExit):
                self._running.cancel()
                raise
        if not has_ended:
            return None
        if self._running.failure is not None:
            raise self._running.failure
        return self.state

    def _take_signal(self) -> bool:
        """Drains if that was asked for, and waits on; whether to stop waiting."""
        if not self._drain_on_signal:
            return True
        self._running.drain()
        tell("draining: what is there is read, and all windows fire; Ctrl-C ends it at once")
        return False

    def _how_to_go_on(self) -> str:
        if self._running.state != PipelineState.CANCELLED:
            return f"the stream has ended: {self._running.state}"
        if self.checkpoint is None:
            return "the stream was cancelled; its state is gone, since it had no checkpoint_location"
        return (
            f"the stream was cancelled; what it had finished is in the checkpoint {self.checkpoint}\n"
            f"  to go on from there: {same_command()}"
        )

    def cancel(self) -> str:
        """Stops the run where it is; with a checkpoint, the next run goes on from there.

        Returns:
            The state at the end.
        """
        self._running.cancel()
        return self.state

    def drain(self) -> str:
        """Ends all sources (penstock's own): what has arrived is processed, all windows fire, and the run ends.

        Returns:
            The state now; wait for the end with `wait_until_finish`.
        """
        self._running.drain()
        return self.state

    def signal(self, name: str) -> None:
        """Sends a signal to all groupings whose trigger waits for one (penstock's own); see ``AfterSignal``.

        Args:
            name: The signal's name.
        """
        self._running.signal(name)

    def metrics(self) -> MetricResults:
        """The metrics of all micro-batches that are finished, also while the run goes on."""
        return MetricResults(self._snapshot_now())

    def _snapshot_now(self) -> Snapshot:
        return self._running.snapshot()

    def watermarks(self) -> dict[str, StepWatermark]:
        """How far each grouping has come, by label (penstock's own); also while the run goes on."""
        told = self._running.watermarks()
        clock = Timestamp.from_micros(told.clock_micros)
        behind = Timestamp.now() - clock if self._is_live else None
        return {
            label: StepWatermark(
                Timestamp.from_micros(own.entering_micros),
                Timestamp.from_micros(own.leaving_micros),
                clock,
                max(Duration(0), clock - Timestamp.from_micros(own.leaving_micros)),
                behind,
                dict(own.waits),
            )
            for label, own in told.by_grouping().items()
        }
