"""The result of a run on Spark."""

from __future__ import annotations

from penstock.metrics.execution import Snapshot
from penstock.metrics.metric import MetricResults
from penstock.runners.runner import PipelineResult


class SparkResult(PipelineResult):
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
