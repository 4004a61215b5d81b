"""Runners, their results, and how a name becomes a runner (Beam's ``apache_beam.runners.runner``)."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.base.engine import create_runner, make_spark_runner
from penstock.base.shown import render_facts
from penstock.construction.pipeline import Pipeline
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.error import refusal
from penstock.options.pipeline_options import PipelineOptions

if TYPE_CHECKING:
    from penstock.graph import Source
    from penstock.metrics.metric import MetricResults

__all__ = ["PipelineResult", "PipelineRunner", "PipelineState", "create_runner", "make_spark_runner"]

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
        """True if this state is final."""
        return state in (cls.DONE, cls.FAILED, cls.CANCELLED, cls.UPDATED, cls.DRAINED)


class PipelineResult:
    """A run of a pipeline (Beam's ``PipelineResult``); a runner returns a subclass.

    >>> PipelineResult(PipelineState.DONE).wait_until_finish()
    'DONE'
    """

    def __init__(self, state: str) -> None:
        self._state = state

    @property
    def state(self) -> str:
        """The current state of the run."""
        return self._state

    def wait_until_finish(self, duration: int | None = None) -> str | None:
        """Waits until the run ends, at most `duration` milliseconds; None waits forever.

        Returns:
            The final state; None if the run has not ended in this time.
        """
        if PipelineState.is_terminal(self.state):
            return self.state
        raise self._cannot("wait for a run")

    def cancel(self) -> str:
        """Ends the run, and returns its state."""
        if PipelineState.is_terminal(self.state):
            return self.state
        raise self._cannot("cancel a run")

    def metrics(self) -> MetricResults:
        """Returns the metrics of the run, for queries."""
        raise self._cannot("give metrics")

    def aggregated_values(self, aggregator_or_name: object) -> dict[str, Any]:
        """Beam's old name for metrics: always empty, with a warning; use `metrics`."""
        _LOGGER.warning("%s has no aggregated values; query metrics() instead", type(self).__name__)
        return {}

    def _repr_html_(self) -> str:
        """Returns the HTML that a notebook shows: the state, and each metric so far by its step."""
        return render_facts("Run", {"state": self.state} | self._metric_texts())

    def _metric_texts(self) -> dict[str, str]:
        """Returns each metric so far, by its step and name."""
        shown = {}
        with suppress(NotImplementedError):
            for kind in self.metrics().query().values():
                for found in kind:
                    shown[f"{found.key.step}: {found.key.metric.name}"] = str(found.result)
        return shown

    def _cannot(self, what: str) -> NotImplementedError:
        what = f"{type(self).__name__} cannot {what}"
        return refusal(NotImplementedError, what, where=f"in state {self.state}")


class PipelineRunner:
    """The base of runners (Beam's ``PipelineRunner``)."""

    local_only: bool = False
    """True if the runner must stay on this machine, because the program named one of the local runners in Beam."""

    def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> PipelineResult:
        """Starts a pipeline."""
        raise NotImplementedError(f"{type(self).__name__} does not define run_pipeline")

    def explain(self, pipeline: Pipeline, options: PipelineOptions) -> str:
        """Returns, as a string, what the runner would do, without running anything."""
        raise NotImplementedError(f"{type(self).__name__} does not define explain")

    def element_type_of(self, source: Source, options: PipelineOptions, where: str) -> Any:
        """Returns the type of a source's elements while the pipeline is built; None if it is not known so early.

        The source is a description from `penstock.io` of elements with named fields; `where` names the step in errors.
        """
        return None

    def reads_this_disk(self, options: PipelineOptions) -> bool:
        """Returns True if the engine certainly reads a path without a scheme on this machine's disk; starts nothing."""
        return False

    def start_engine(self, options: PipelineOptions) -> None:
        """Starts the engine, so that `element_type_of` may ask it; by default it does nothing."""

    def columns_of_query(self, source: Source, options: PipelineOptions, where: str) -> object:
        """Returns a `penstock.io.query_source.ResultColumns` for a query; None if the runner has no own SQL.

        Starts the engine, since only it knows.

        Raises:
            QueryError: The query has no meaning over its tables.
        """
        return None

    def elements_of(self, pcoll: PCollection[Any], first: int | None) -> list[Any]:
        """Returns the elements of a bounded PCollection, or the `first` ones found; runs the steps that lead to it."""
        raise NotImplementedError(f"{type(self).__name__} does not define elements_of")

    def run(self, transform: object, options: PipelineOptions | None = None) -> PipelineResult:
        """Runs a PTransform, or a function of a PBegin, as a pipeline, and waits for the end."""
        result = self.run_async(transform, options)
        result.wait_until_finish()
        return result

    def run_async(self, transform: Any, options: PipelineOptions | None = None) -> PipelineResult:
        """Runs a pipeline as `run` does, without waiting."""
        pipeline = Pipeline(runner=self, options=options)
        if isinstance(transform, PTransform):
            _ = pipeline | transform
        else:
            transform(PBegin(pipeline))
        result: PipelineResult = pipeline.run()
        return result
