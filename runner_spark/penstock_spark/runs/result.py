"""The results of runs on Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.metrics.execution import Snapshot
from penstock.metrics.metric import MetricResults
from penstock.runners.runner import PipelineResult, PipelineState
from penstock.tracebacks import shortens_tracebacks
from penstock.utils.timestamp import Duration, Timestamp
from penstock_figures.of_runs import Figure, recording_of_grouping
from penstock_figures.recording import Recording
from penstock_spark.live.notebook import page_frame, run_html
from penstock_spark.live.snapshot import RunSnapshot
from penstock_spark.process.interrupts import continuing_command, print_line, report_after_signal
from penstock_spark.runs.running import StreamRun


class RecordedResult(PipelineResult):
    """A run that can be drawn if it has recorded its events."""

    mode = "batch"

    def recording(self, pcoll: object) -> Recording:
        """The events at the grouping that a PCollection comes from (penstock's own); also during the run.

        Args:
            pcoll: The output of a GroupByKey or of a Combine, or of steps after one.

        Raises:
            ValueError: No grouping leads to it; or the run has not recorded, which needs the option ``record_events``.
        """
        return recording_of_grouping(pcoll, self._snapshot_now(), self.mode)

    def figure(self, pcoll: object) -> Figure:
        """The `recording` as a drawing, which notebooks show, and ``save`` writes to a file."""
        return Figure(self.recording(pcoll))

    live_url: str | None = None
    """The address of the page of the run, with the option ``live_port``; None without one (penstock's own)."""

    def snapshot(self) -> RunSnapshot:
        """The state of the run now: labels, counts and times, and no elements (penstock's own).

        It is made of what the driver knows anyway. Only with the options ``live`` or ``live_port``, workers count the
        elements of each step, and the panes of a stream.
        """
        raise NotImplementedError

    def metrics(self) -> MetricResults:
        """The metrics of the run, in a stream of all finished micro-batches, also during the run.

        Committed and attempted values are equal, because each partition counts once.
        """
        return MetricResults(self._snapshot_now())

    def _repr_html_(self) -> str:
        """The view for notebooks: the steps, the progress of the run, its groupings and its metrics so far."""
        page = {} if self.live_url is None else {"live page": self.live_url}
        return run_html(self.snapshot(), page | self._metric_texts())

    def page_html(self, height: int = 720, name: str = "penstock") -> str:
        """The live page with the present state of the run, as a frame for a notebook (penstock's own).

        ``penstock.notebooks.show`` shows it, and keeps it up to date.

        Args:
            height: The height of the frame, in pixels.
            name: The name of the frame in the notebook's document.
        """
        return page_frame(self.snapshot(), height, name)

    def _snapshot_now(self) -> Snapshot:
        raise NotImplementedError


class SparkResult(RecordedResult):
    """A run that has ended.

    Args:
        state: A `penstock.runners.runner.PipelineState`.
        snapshot: The metrics of all steps.
        last: What it looked like at its end.
        live_url: Where its page is.
    """

    def __init__(
        self, state: str, snapshot: Snapshot, last: RunSnapshot, live_url: str | None = None
    ) -> None:
        super().__init__(state)
        self._snapshot = snapshot
        self._last = last
        self.live_url = live_url

    def snapshot(self) -> RunSnapshot:
        return self._last

    def _snapshot_now(self) -> Snapshot:
        return self._snapshot


@dataclass(frozen=True)
class StepWatermark:
    """The progress of a grouping (the book's chapter 3).

    Attributes:
        input: The watermark of its input.
        output: The watermark of its output: the same, or earlier if something holds it back.
        clock: Processing time at the end of the last micro-batch: everything that arrived earlier has been processed.
        lag: How far the output's watermark is behind the clock: the delay in event time.
        processing_lag: How far the clock is behind the machine's clock: the delay in processing time; None for recorded
            input, which has its own clock.
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
        checkpoint: The folder of its progress and state; None if the folder is deleted with the run.
        drain_on_signal: Whether Ctrl-C and SIGTERM drain the run instead of cancelling it.
        live_url: Where its page is.
    """

    def __init__(
        self,
        running: StreamRun,
        mode: str,
        is_live: bool,
        checkpoint: str | None,
        drain_on_signal: bool = False,
        live_url: str | None = None,
    ) -> None:
        super().__init__(running.state)
        self.mode = mode
        self._running = running
        self._is_live = is_live
        self.checkpoint = checkpoint
        self._drain_on_signal = drain_on_signal
        self.live_url = live_url

    @property
    def state(self) -> str:
        """The run's present state."""
        return self._running.state

    @shortens_tracebacks
    def wait_until_finish(self, duration: int | None = None) -> str | None:
        """Waits for the run to end.

        In the main thread, Ctrl-C and SIGTERM cancel the run, or drain it with the option ``drain_on_signal``; a second
        one ends the program at once.

        Args:
            duration: How long to wait at most, in milliseconds; None waits without a limit.

        Returns:
            The state at the end; None if the run has not ended in that time.

        Raises:
            Exception: What made the run fail, with the name of the step.
            KeyboardInterrupt: Ctrl-C has cancelled the run.
            SystemExit: SIGTERM has cancelled the run; the status is 143.
        """
        with report_after_signal(self._how_to_go_on, self._take_signal):
            try:
                has_ended = self._running.join(None if duration is None else duration / 1000)
            except (KeyboardInterrupt, SystemExit):
                self._running.cancel()
                raise
        if not has_ended:
            return None
        if self._running.failure is not None:
            # Each wait raises it, and each has lines of its own.
            raise self._running.failure.with_traceback(self._running.failure_trace)
        return self.state

    def _take_signal(self) -> bool:
        """Returns True to stop waiting; with the option for it, drains the run instead."""
        if not self._drain_on_signal:
            return True
        self._running.drain()
        print_line(
            "draining: the run reads the available data, and all windows fire; press Ctrl-C to end it at once"
        )
        return False

    def _how_to_go_on(self) -> str:
        if self._running.state != PipelineState.CANCELLED:
            return f"the stream has ended: {self._running.state}"
        if self.checkpoint is None:
            return "the stream was cancelled; its state is gone, because it had no checkpoint_location"
        return (
            f"the stream was cancelled; its progress is in the checkpoint {self.checkpoint}\n"
            f"  to continue from there: {continuing_command()}"
        )

    def cancel(self) -> str:
        """Stops the run where it is; with a checkpoint, the next run continues from there.

        Returns:
            The state at the end.
        """
        self._running.cancel()
        return self.state

    def drain(self) -> str:
        """Ends all sources (penstock's own): the run processes what has arrived, fires all windows, and ends.

        Returns:
            The state now; wait for the end with `wait_until_finish`.
        """
        self._running.drain()
        return self.state

    def signal(self, name: str) -> None:
        """Sends a signal to all groupings whose trigger waits for it (penstock's own); see ``AfterSignal``."""
        self._running.signal(name)

    def _snapshot_now(self) -> Snapshot:
        return self._running.snapshot()

    def snapshot(self) -> RunSnapshot:
        return self._running.look()

    def watermarks(self) -> dict[str, StepWatermark]:
        """The progress of each grouping, by label (penstock's own); also during the run."""
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
