"""A run as Beam shows it."""

from __future__ import annotations

from apache_beam.runners.runner import PipelineResult

from penstock.runners.runner import PipelineResult as Result
from penstock_spark.beam.metrics import MetricResultsAdapter


class BeamResult(PipelineResult):  # type: ignore[misc]
    """The result of a Beam pipeline, which may still be running.

    Attributes:
        run: Penstock's own result, with everything that Beam's lacks, such as ``drain`` and ``watermarks``.
    """

    def __init__(self, run: Result) -> None:
        super().__init__(run.state)
        self.run = run

    @property
    def state(self) -> str:
        """The run's present state."""
        return self.run.state

    def wait_until_finish(self, duration: int | None = None) -> str | None:
        """Waits for the run to end, at most `duration` milliseconds; see `StreamResult.wait_until_finish`."""
        return self.run.wait_until_finish(duration)

    def cancel(self) -> str:
        """Ends the run without processing input that has arrived."""
        self.run.cancel()
        return self.run.state

    def metrics(self) -> MetricResultsAdapter:
        """Returns the metrics of the run, also while it runs."""
        return MetricResultsAdapter(self.run.metrics())
