"""Beam's metrics: what user code counts through Beam is counted for the running step, and shown as Beam shows it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from apache_beam.metrics import cells as beam_cells
from apache_beam.metrics import execution as beam_execution
from apache_beam.metrics import metric as beam_metric
from apache_beam.metrics.metricbase import MetricName as BeamsMetricName
from apache_beam.runners.worker import statesampler

from penstock.metrics import execution
from penstock.metrics.cells import DistributionResult, GaugeResult
from penstock.metrics.execution import MetricResult, current_container
from penstock.metrics.metric import MetricResults

_KINDS: Mapping[Any, str] = {
    beam_cells.CounterCell: execution.COUNTERS,
    beam_cells.DistributionCell: execution.DISTRIBUTIONS,
    beam_cells.GaugeCell: execution.GAUGES,
    beam_cells.StringSetCell: execution.STRING_SETS,
    beam_cells.BoundedTrieCell: execution.BOUNDED_TRIES,
}


class _Tracker:
    """Stands in a thread where Beam's metrics look for the counts of the running step."""

    def update_metric(self, typed_name: object, value: Any) -> None:
        """Counts a value; the metrics of Beam call it."""
        container = current_container()
        kind, name = _kind_and_name(typed_name)
        if container is None or kind is None:
            return
        match kind:
            case execution.COUNTERS:
                container.inc(name, value)
            case execution.DISTRIBUTIONS:
                container.update_distribution(name, value)
            case execution.GAUGES:
                container.set_gauge(name, value)
            case _:
                container.add(kind, name, value)


@functools.lru_cache(4096)
def _kind_and_name(typed_name: Any) -> tuple[str | None, tuple[str, str]]:
    # Beam shows neither part of it otherwise.
    _, (cell, name) = typed_name.__reduce__()
    return _KINDS.get(cell), (name.namespace, name.name)


def count_here() -> None:
    """Makes this thread count the metrics of Beam."""
    statesampler.set_current_tracker(_Tracker())


def _distribution(result: DistributionResult) -> beam_cells.DistributionResult:
    data = beam_cells.DistributionData(result.sum, result.count, result.min, result.max)
    return beam_cells.DistributionResult(data)


def _gauge(result: GaugeResult) -> beam_cells.GaugeResult:
    timestamp = None if result.timestamp is None else float(result.timestamp)
    return beam_cells.GaugeResult(beam_cells.GaugeData(result.value, timestamp))


_RESULTS: Mapping[str, Callable[[Any], Any]] = {
    execution.DISTRIBUTIONS: _distribution,
    execution.GAUGES: _gauge,
}


class MetricResultsAdapter(beam_metric.MetricResults):  # type: ignore[misc]
    """The metrics of a run as Beam shows them."""

    def __init__(self, results: MetricResults) -> None:
        super().__init__()
        self._results = results

    def query(self, filter: object = None) -> dict[str, list[Any]]:
        """Returns the metrics that a filter asks for, or all, by kind."""
        return {
            kind: [
                found
                for found in (_result(kind, result) for result in results)
                if self.matches(filter, found.key)
            ]
            for kind, results in self._results.query().items()
        }


def _result(kind: str, result: MetricResult) -> beam_execution.MetricResult:
    metric = result.key.metric
    key = beam_execution.MetricKey(result.key.step, BeamsMetricName(metric.namespace, metric.name))
    change = _RESULTS.get(kind, lambda value: value)
    return beam_execution.MetricResult(key, change(result.committed), change(result.attempted))


# A worker imports this module just before it runs user code of a Beam pipeline, in its only thread.
count_here()
