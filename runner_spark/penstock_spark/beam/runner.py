"""The runner of unchanged Beam pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import TypeOptions
from apache_beam.runners.pipeline_utils import group_by_key_input_visitor
from apache_beam.runners.runner import PipelineRunner

from penstock.options.spark import SparkOptions
from penstock_spark.beam.coders import register_beam_coders
from penstock_spark.beam.graph_of import graph_of
from penstock_spark.beam.options import (
    keep_beam_quiet_about_own_options,
    options_of,
    use_options,
    workers_options,
)
from penstock_spark.beam.quick_times import make_whole_seconds_quickly
from penstock_spark.beam.result import BeamResult
from penstock_spark.runner import SparkRunner
from penstock_spark.shipping.registrations import prepare_workers

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.pipeline import Pipeline

    from penstock.graph import Graph


class BeamRunner(PipelineRunner):  # type: ignore[misc]
    """Runs pipelines that are written with ``apache_beam`` on Spark.

    Name it on the command line, ``--runner=penstock_spark.beam.BeamRunner``, or pass an object to Beam's ``Pipeline``.

    Args:
        arguments: Penstock options by name, such as ``spark=session``; they override the pipeline's.

    Raises:
        TypeError: An option's name is unknown.
    """

    def __init__(self, **arguments: object) -> None:
        self._runner = SparkRunner(**arguments)
        # Beam looks at all options before it calls the runner.
        keep_beam_quiet_about_own_options()

    def run_pipeline(self, pipeline: Pipeline, options: PipelineOptions) -> BeamResult:
        """Runs a Beam pipeline: when this returns, a batch has ended, or a query has started."""
        allows_any_key = options.view_as(TypeOptions).allow_non_deterministic_key_coders
        pipeline.visit(group_by_key_input_visitor(not allows_any_key))
        register_beam_coders()
        own = options_of(options)
        mode = self._runner.arguments.get("mode", own.view_as(SparkOptions).mode)
        with (
            prepare_workers(use_options, workers_options(options)),
            prepare_workers(make_whole_seconds_quickly),
        ):
            return BeamResult(self._runner.run_pipeline(_Translated(pipeline, mode), own))


class _Translated:
    """A Beam pipeline as the Spark runner sees it."""

    def __init__(self, pipeline: Pipeline, mode: str | None) -> None:
        self._pipeline = pipeline
        self._mode = mode

    def to_graph(self) -> Graph:
        return graph_of(self._pipeline, self._mode)
