"""Turns a pipeline into finished Spark jobs, in the order of this file: construct, check, compile, run."""

from __future__ import annotations

from typing import Any

from penstock.construction.graph_of import graph_with_edge
from penstock.construction.pipeline import Pipeline
from penstock.construction.pvalue import PCollection
from penstock.error import UnsupportedByRunner, add_location, refusal
from penstock.graph import DriverList, Graph, Source, Step, Write, show
from penstock.io.query_source import QuerySource
from penstock.options.base import with_values
from penstock.options.checks import as_batch, check_arguments, check_given, warn_of_no_effect_in_batch
from penstock.options.pipeline_options import PipelineOptions, SparkOptions, TypeOptions
from penstock.options.pipeline_options_validator import PipelineOptionsValidator
from penstock.runners.runner import PipelineResult, PipelineRunner
from penstock.where import find_caller, here
from penstock_spark.compiler import Compiled, Target, compile_graph
from penstock_spark.formats.registry import check_packages, table_before_opening
from penstock_spark.passes.columns import TableOf
from penstock_spark.plan.stream_plan import StreamPlan
from penstock_spark.supported import check, default_mode, mode_of, warn_of_hints


class SparkRunner(PipelineRunner):
    """Runs pipelines on Spark.

    Args:
        arguments: Options by name, such as ``spark=session`` or ``master="local[2]"``; they override the pipeline's.

    Raises:
        TypeError: An option's name is unknown.
    """

    def __init__(self, **arguments: object) -> None:
        self.arguments = check_arguments(arguments, "SparkRunner")

    def run_pipeline(self, pipeline: Any, options: PipelineOptions) -> PipelineResult:
        """Runs a pipeline: when this returns, a batch has ended, or a query has started."""
        from penstock_spark.live.views import views_of
        from penstock_spark.process.interrupts import report_after_signal
        from penstock_spark.reports.spark_errors import ErrorContext, translate_errors
        from penstock_spark.runs.execute import execute
        from penstock_spark.runs.execute_stream import start
        from penstock_spark.runs.open_session import OpenSession, uses_session
        from penstock_spark.session.backends import leave_connection

        settings = self._settings(options)
        graph = pipeline.to_graph()
        is_batch = mode_of(graph, settings.mode, settings.available_now) == "batch"
        opened = OpenSession(settings, self.local_only, not is_batch, uses_session(graph))
        views = views_of(settings, is_batch)
        is_stoppable = report_after_signal(lambda: "the run was cancelled before it began", leave_connection)
        with is_stoppable, translate_errors(ErrorContext(graph=graph)):
            try:
                check_packages(graph)
                plan = self.compiled(graph, settings, opened.table_of).plan
                if isinstance(plan, StreamPlan):
                    started = start(plan, settings, opened, views)
                    if settings.mode == "batch":
                        started.wait_until_finish()
                    return started
                return execute(plan, settings, opened, views)
            except BaseException:
                views.close()
                raise

    def compiled(
        self, graph: Graph, settings: SparkOptions, table_of: TableOf = table_before_opening
    ) -> Compiled:
        """The plan of a graph, for one pass over bounded input or for a streaming query."""
        mode = mode_of(graph, settings.mode, settings.available_now)
        check(graph, mode, settings.view_as(TypeOptions).allow_unsafe_triggers)
        if mode == "batch":
            warn_of_no_effect_in_batch(settings)
        warn_of_hints(graph.steps)
        target = Target(
            mode, settings.switched_off(), settings.record_events, table_of, settings.shuffle_partitions
        )
        return compile_graph(graph, target)

    def explain(self, pipeline: Pipeline, options: PipelineOptions) -> str:
        """The graph, what each pass changed, the optimised graph and the plan, as text; starts nothing."""
        graph = pipeline.to_graph()
        made = self.compiled(graph, self._without_views(options, "explain()"))
        parts = {
            "graph": show(graph),
            "passes": "\n".join(made.changes),
            "optimised graph": show(made.plan.graph),
            "plan": made.show(),
        }
        return "\n\n".join(f"# {title}\n{text}" for title, text in parts.items() if text or title != "passes")

    def element_type_of(self, source: Source, options: PipelineOptions, where: str) -> object:
        """The type of a source's elements, from its files or from an existing session; starts nothing."""
        from penstock_spark.formats.registry import element_type_of
        from penstock_spark.session.session import existing_session

        given = self.arguments.get("spark", options.view_as(SparkOptions).session())
        return element_type_of(source, existing_session() if given is None else given, where)

    def reads_this_disk(self, options: PipelineOptions) -> bool:
        """True if Spark certainly reads a path without a scheme on a disk of this machine; starts nothing."""
        from penstock_spark.runs.open_session import session_options
        from penstock_spark.session.session import reads_this_disk

        return reads_this_disk(session_options(self._settings(options), self.local_only))

    def start_engine(self, options: PipelineOptions) -> None:
        """Starts the session that a run with these options takes."""
        from penstock_spark.runs.open_session import OpenSession

        _ = OpenSession(self._settings(options), self.local_only).spark

    def columns_of_query(self, source: Source, options: PipelineOptions, where: str) -> object:
        """The columns of a query's result, by Spark's analysis of its text; starts the session that a run takes."""
        from penstock_spark.formats.registry import columns_of_query
        from penstock_spark.runs.open_session import OpenSession

        assert isinstance(source, QuerySource)
        opened = OpenSession(self._settings(options), self.local_only)
        return columns_of_query(source, opened.session, where)

    def check_update(self, pipeline: Pipeline, options: PipelineOptions, location: str) -> tuple[str, ...]:
        """Returns what a changed pipeline would change for a checkpoint, a sentence each; starts and changes nothing.

        Raises:
            ValueError: The pipeline does not fit the checkpoint, or is a batch.
        """
        from penstock_spark.checkpoints.contract.signature import signature_of
        from penstock_spark.checkpoints.custody.folder import check_fit, find_at
        from penstock_spark.files.disk_place import open_place
        from penstock_spark.lowering.query import heartbeat_of
        from penstock_spark.passes.one_operator import one_operator

        settings = self._settings(options)
        plan = self.compiled(pipeline.to_graph(), settings).plan
        if not isinstance(plan, StreamPlan):
            what = "the pipeline of the program is a batch, which has no checkpoint"
            raise refusal(ValueError, what, hint="pass --mode=streaming or --mode=micro_batch")
        place = open_place(location)
        heartbeat = heartbeat_of(plan, settings.trigger_interval is not None)
        shards = find_at(place).plan["shards"]
        signature = signature_of(one_operator(plan, shards, settings.switched_off()), shards, heartbeat)
        return check_fit(place, signature, tuple(settings.drop_state or ()))

    def to_dataframe(self, pcoll: PCollection[Any], schema: object = None) -> object:
        """See `penstock.io.to_dataframe`."""
        from penstock.io.sparkio import FrameSink
        from penstock_spark.runs.execute import lower_only
        from penstock_spark.runs.open_session import OpenSession
        from penstock_spark.session.backends import backend_of

        pipeline = pcoll.pipeline
        graph, edge = graph_with_edge(pcoll)
        into: list[Any] = []
        sink = Write(FrameSink(into, pcoll.element_type, schema))
        step = Step("to_dataframe", sink, inputs=(edge,), location=find_caller())
        settings = self._without_views(pipeline.options, "to_dataframe()")
        opened = OpenSession(settings, self.local_only)
        if isinstance(schema, str):
            # Only Spark itself can parse it.
            _ = opened.session
        plan = self.compiled(graph.leading_to(step), settings, opened.table_of).plan
        if isinstance(plan, StreamPlan):
            what = "a PCollection of a streaming pipeline cannot become a DataFrame"
            raise UnsupportedByRunner(what, where=step.where, hint="use mode='batch'")
        spark = lower_only(plan, settings, opened)
        return backend_of(spark).moved(into[0])

    def to_streaming_dataframe(
        self, pcoll: PCollection[Any], schema: object = None, sequence: str | None = None
    ) -> object:
        """See `penstock.io.to_streaming_dataframe`."""
        from penstock.io.sparkio import FrameSink
        from penstock_spark.runs.streaming_frame import (
            ProgramSession,
            check_options,
            streaming_frame,
            without_spark_state,
        )

        graph, edge = graph_with_edge(pcoll)
        sink = Write(FrameSink([], pcoll.element_type, schema, sequence))
        step = Step("to_streaming_dataframe", sink, inputs=(edge,), location=find_caller())
        settings = self._without_views(pcoll.pipeline.options, "to_streaming_dataframe()")
        graph = graph.leading_to(step)
        if mode_of(graph, settings.mode, available_now=False) == "batch":
            what = "the PCollection is bounded, and so it cannot become a streaming DataFrame"
            hint = "use to_dataframe(), or read the source of the pipeline with as_stream(...)"
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
        check_options(settings, step.where)
        opened = ProgramSession(settings, self.local_only, is_stream=True)

        def by_python() -> StreamPlan:
            # Nothing else is switched off by this name.
            own = with_values(settings, {"without": [*(settings.without or ()), "native_streams"]})
            plan = self.compiled(graph, own, opened.table_of).plan
            assert isinstance(plan, StreamPlan)
            return plan

        plan = self.compiled(graph, settings, opened.table_of).plan
        assert isinstance(plan, StreamPlan)
        return streaming_frame(without_spark_state(plan, opened, by_python), settings, opened, step.where)

    def _without_views(self, options: PipelineOptions, taker: str) -> SparkOptions:
        """The settings for something that is not a run, and so has no view."""
        settings = self._settings(options)
        if asked := settings.views():
            what = f"{taker} does not start a run, so {asked[0]} would show nothing"
            raise refusal(ValueError, what, hint=f"leave out {' and '.join(asked)}")
        return settings

    def elements_of(self, pcoll: PCollection[Any], first: int | None) -> list[Any]:
        """The elements of a PCollection, or the first ones found; runs the steps that lead to it, as a batch."""
        from penstock_spark.live.views import views_of
        from penstock_spark.runs.execute import execute
        from penstock_spark.runs.open_session import OpenSession, uses_session

        graph, edge = graph_with_edge(pcoll)
        into: list[Any] = []
        step = Step("show", Write(DriverList(into, first)), inputs=(edge,), location=find_caller())
        settings = self._settings(pcoll.pipeline.options)
        opened = OpenSession(settings, self.local_only, is_fresh=uses_session(graph))
        graph = graph.leading_to(step)
        if "batch" not in (default_mode(graph), settings.mode):
            what = "the elements of a stream cannot be collected: it does not end"
            hint = "write them to a sink, or pass mode='batch' if the input ends"
            raise UnsupportedByRunner(what, where=step.where, hint=hint)
        settings = as_batch(settings)
        plan = self.compiled(graph, settings, opened.table_of).plan
        assert not isinstance(plan, StreamPlan)
        views = views_of(settings, True)
        try:
            execute(plan, settings, opened, views)
        finally:
            views.close()
        return into

    def _settings(self, options: PipelineOptions) -> SparkOptions:
        """The pipeline's options, overridden by the runner's arguments and checked."""
        settings = with_values(options.view_as(SparkOptions), self.arguments)
        check_given(settings)
        errors = PipelineOptionsValidator(settings, self).validate()
        if errors:
            raise ValueError("\n".join(add_location(error, here()) for error in errors))
        return settings
