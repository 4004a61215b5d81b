"""Runners, what they give back, and how a name becomes one (Beam's ``apache_beam.runners.runner``)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from penstock.base.engine import create_runner, spark_runner
from penstock.construction.pipeline import Pipeline
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin
from penstock.error import three_parts
from penstock.options.pipeline_options import PipelineOptions

if TYPE_CHECKING:
    from penstock.graph import Source
    from penstock.metrics.metric import MetricResults

__all__ = ["PipelineResult", "PipelineRunner", "PipelineState", "create_runner", "spark_runner"]

_LOGGER = logging.getLogger(__name__)


class PipelineState:
    """The states of a run (Beam's ``PipelineState``), as strings.

    >>> PipelineState.is_terminal(PipelineState.DONE), PipelineState.is_terminal(PipelineState.RUNNING)
    (True, False)
    """

    UNKNOWN = "UNKNOWN"
    STARTING = "STARTING"
    STOPPED = "STOPPED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    UPDATED = "UPDATED"
    DRAINING = "DRAINING"
    DRAINED = "DRAINED"
    PENDING = "PENDING"
    CANCELLING = "CANCELLING"
    RESOURCE_CLEANING_UP = "RESOURCE_CLEANING_UP"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    UNRECOGNIZED = "UNRECOGNIZED"

    @classmethod
    def is_terminal(cls, state: str | None) -> bool:
        """Whether this state is final."""
        return state in (cls.DONE, cls.FAILED, cls.CANCELLED, cls.UPDATED, cls.DRAINED)


class PipelineResult:
    """A run of a pipeline (Beam's ``PipelineResult``); a runner gives a subclass.

    >>> PipelineResult(PipelineState.DONE).wait_until_finish()
    'DONE'
    """

    def __init__(self, state: str) -> None:
        self._state = state

    @property
    def state(self) -> str:
        """The state the run is in now."""
        return self._state

    def wait_until_finish(self, duration: int | None = None) -> str | None:
        """Waits for the run to end.

        Args:
            duration: How long at most, in milliseconds; None waits for ever.

        Returns:
            The state at the end; None if the time was up before.

        Raises:
            NotImplementedError: If the run has not ended and the runner cannot wait.
        """
        if PipelineState.is_terminal(self.state):
            return self.state
        raise self._cannot("wait for a run")

    def cancel(self) -> str:
        """Ends the run.

        Raises:
            NotImplementedError: If the run has not ended and the runner cannot end it.
        """
        if PipelineState.is_terminal(self.state):
            return self.state
        raise self._cannot("cancel a run")

    def metrics(self) -> MetricResults:
        """The metrics of the run, to query.

        Raises:
            NotImplementedError: If the runner has none.
        """
        raise self._cannot("tell metrics")

    def aggregated_values(self, aggregator_or_name: Any) -> dict[str, Any]:
        """Beam's old way to metrics: always empty, with a warning; use `metrics`."""
        _LOGGER.warning("%s has no aggregated values; query metrics() instead", type(self).__name__)
        return {}

    def _cannot(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            three_parts(f"{type(self).__name__} cannot {what}", where=f"in state {self.state}")
        )


class PipelineRunner:
    """The base of runners (Beam's ``PipelineRunner``).

    Attributes:
        local_only: Whether the runner must stay on this machine, since the program named one of Beam's local
            runners.
    """

    local_only: bool = False

    def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> PipelineResult:
        """Starts a pipeline.

        Raises:
            NotImplementedError: In this base class.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define run_pipeline")

    def explain(self, pipeline: Pipeline, options: PipelineOptions) -> str:
        """What the runner would do, as text, without running anything.

        Raises:
            NotImplementedError: In this base class.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define explain")

    def element_type_of(self, source: Source, options: PipelineOptions, where: str) -> Any:
        """The type of a source's elements, asked when a pipeline is written; None if that is not the time to know it.

        Args:
            source: A description from `penstock.io`, of elements with named fields.
            options: The pipeline's options.
            where: The step, for errors.
        """
        return None

    def run(self, transform: Any, options: PipelineOptions | None = None) -> PipelineResult:
        """Runs a transform at the start of a pipeline of its own and waits for the end.

        Args:
            transform: A PTransform, or a function of the pipeline's start.
            options: The pipeline's options.
        """
        result = self.run_async(transform, options)
        result.wait_until_finish()
        return result

    def run_async(self, transform: Any, options: PipelineOptions | None = None) -> PipelineResult:
        """As `run`, without waiting."""
        pipeline = Pipeline(runner=self, options=options)
        if isinstance(transform, PTransform):
            _ = pipeline | transform
        else:
            transform(PBegin(pipeline))
        result: PipelineResult = pipeline.run()
        return result
