"""The compiler: from a graph to a plan, by an ordered tuple of passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from penstock.graph import CombinePerKey, Graph, GroupByKey, Step, describe
from penstock_spark.formats.registry import table_before_opening
from penstock_spark.passes.choose import choose
from penstock_spark.passes.choose_folds import choose_folds, choose_shards
from penstock_spark.passes.columns import TableOf, columns
from penstock_spark.passes.driver_rows import driver_rows
from penstock_spark.passes.fuse import fuse
from penstock_spark.passes.kept_restrictions import kept_restrictions
from penstock_spark.passes.levels import levels
from penstock_spark.passes.lift_combiners import lift_combiners
from penstock_spark.passes.native_streams import native_streams, reasons_for_python
from penstock_spark.passes.one_operator import one_operator
from penstock_spark.passes.one_round import one_round
from penstock_spark.passes.prune import prune
from penstock_spark.passes.query_rows import query_rows, rows_of_queries
from penstock_spark.passes.record_groupings import record_groupings
from penstock_spark.passes.restrictions import restrictions
from penstock_spark.passes.side_views import side_views, without_side_views
from penstock_spark.passes.single_panes import single_panes
from penstock_spark.passes.spread_writes import spread_writes
from penstock_spark.passes.stream_views import stream_views
from penstock_spark.passes.windowed_writes import windowed_writes
from penstock_spark.plan.batch_plan import Plan, show_plan
from penstock_spark.plan.clock_waits import show_clock_waits
from penstock_spark.plan.stream_plan import StreamPlan, show_stream_plan


@dataclass(frozen=True)
class Target:
    mode: str = "batch"  # ``batch``, ``micro_batch`` or ``streaming``.
    # The optimisations that are switched off; see `penstock.options.optimisations.OPTIMISATIONS`.
    without: frozenset[str] = frozenset()
    # The most elements and panes of each grouping that a batch records; None turns recording off.
    record_events: int | None = None
    table_of: TableOf = table_before_opening  # Returns the columns of a source.
    shards: int | None = None  # The number of shards of a stream that the options ask for, if they do.

    @property
    def is_batch(self) -> bool:
        return self.mode == "batch"


@dataclass(frozen=True)
class Pass:
    name: str  # The name of its module and of its golden file.
    function: Callable[..., Graph]
    serves: Callable[[Target], bool] = lambda target: True  # Whether the pass applies to a target.
    switch: str | None = None  # The name of the option that switches the pass off, if one does.
    # The further arguments of the function, made of a target.
    arguments: Callable[[Target], tuple[object, ...]] = lambda target: ()

    def rewrite(self, graph: Graph, target: Target) -> Graph:
        return self.function(graph, *self.arguments(target))


PASSES = (
    # Later passes ask which edges may hold retractions.
    Pass("single_panes", single_panes, lambda target: target.mode != "micro_batch"),
    # Other steps may read a sink's file names, so this comes before pruning.
    Pass("windowed_writes", windowed_writes, lambda target: not target.is_batch),
    Pass("prune", prune),
    # A query that something reads is a root for all later passes.
    Pass("query_rows", query_rows, lambda target: target.is_batch),
    # A stream keeps accumulators from one micro-batch to the next, so a fan-out is useful there.
    Pass("one_round", one_round, lambda target: target.is_batch, "one_round"),
    Pass("lift_combiners", lift_combiners, switch="lifted_combiners"),
    Pass("restrictions", restrictions),
    # The sinks of a stream spread their elements on their own.
    Pass("spread_writes", spread_writes, lambda target: target.is_batch),
    Pass(
        "record_groupings",
        record_groupings,
        lambda target: target.is_batch and target.record_events is not None,
        arguments=lambda target: (target.record_events,),
    ),
    # A grouping that Spark computes without Python cannot be recorded.
    Pass(
        "columns",
        columns,
        lambda target: target.is_batch and target.record_events is None,
        "native_columns",
        lambda target: (target.table_of,),
    ),
)
"""The passes over the whole graph, in order. Each keeps the meaning of the graph."""

STREAM_PASSES = (
    Pass("side_views", without_side_views),
    # A batch processes the restrictions of side inputs to their ends.
    Pass("kept_restrictions", kept_restrictions),
    Pass("stream_views", stream_views),
    # Whatever has state by now is not Spark's.
    Pass(
        "native_streams",
        native_streams,
        # A grouping that Spark computes without Python cannot be recorded.
        lambda target: target.record_events is None,
        "native_streams",
        lambda target: (target.table_of, target.mode, target.without),
    ),
)
"""The passes over a query's own graph, after a batch has taken over the bounded side inputs."""


@dataclass(frozen=True)
class Compiled:
    plan: Plan | StreamPlan
    graph: Graph  # What was compiled,
    target: Target  # and for what.

    @property
    def changes(self) -> tuple[str, ...]:
        """A line for each pass that changed something; only people ask, so the passes run again for that."""
        optimised, lines = rewrite_graph(self.graph, PASSES, self.target)
        more = () if self.target.is_batch else rewrite_graph(optimised, STREAM_PASSES, self.target)[1]
        return (*lines, *more)

    def show(self) -> str:
        if isinstance(self.plan, StreamPlan):
            return show_stream_plan(self.plan) + show_clock_waits(self.plan)
        return show_plan(self.plan)


def compile_graph(graph: Graph, target: Target) -> Compiled:
    """The plan of a graph that `penstock_spark.supported.check` has accepted."""
    optimised = optimise(graph, target)
    if target.is_batch:
        return Compiled(batch_plan(optimised, target), graph, target)
    main = optimise(optimised, target, STREAM_PASSES)
    by_python = replace(target, without=target.without | {"native_streams"})
    whole = optimise(optimised, by_python, STREAM_PASSES)
    aside = side_views(optimised)
    views = None if aside is None else batch_plan(aside, target)
    reasons = reasons_for_python(main, target.mode)
    plan = choose_shards(levels(main, target.mode), reasons, target.without)
    plan = one_operator(plan, target.shards, target.without)
    return Compiled(replace(plan, views=views, whole=whole), graph, target)


def rewrite_graph(graph: Graph, passes: Iterable[Pass], target: Target) -> tuple[Graph, tuple[str, ...]]:
    """The graph after the passes that apply to a target, and a line for each pass that changed something."""
    lines = []
    for each in _serving(passes, target):
        after = each.rewrite(graph, target)
        if changes := _changes(graph, after):
            lines.append(f"{each.name}: {'; '.join(changes)}")
        graph = after
    return graph, tuple(lines)


def optimise(graph: Graph, target: Target = Target(), passes: Iterable[Pass] = PASSES) -> Graph:
    for each in _serving(passes, target):
        graph = each.rewrite(graph, target)
    return graph


def _serving(passes: Iterable[Pass], target: Target) -> Iterator[Pass]:
    return (each for each in passes if each.switch not in target.without and each.serves(target))


def batch_plan(graph: Graph, target: Target = Target()) -> Plan:
    """The plan of an optimised graph: which steps run together, and which Spark operators run them."""
    units = fuse(graph)
    plan = choose(graph, units, choose_folds(graph, units, target.without))
    plan = plan if "driver_rows" in target.without else driver_rows(plan)
    tables = {rows.table: batch_plan(optimise(rows.graph, target), target) for rows in rows_of_queries(graph)}
    return replace(plan, tables=tables) if tables else plan


def _changes(before: Graph, after: Graph) -> list[str]:
    was, now = (
        {step.label: _describe_step(graph, step) for step in graph.steps} for graph in (before, after)
    )
    kinds = {
        "drops": [label for label in was if label not in now],
        "adds": [label for label in now if label not in was],
        "changes": [label for label in now if label in was and now[label] != was[label]],
    }
    return [f"{kind} {', '.join(labels)}" for kind, labels in kinds.items() if labels]


def _describe_step(graph: Graph, step: Step) -> tuple[object, ...]:
    grouped = isinstance(step.primitive, GroupByKey | CombinePerKey)
    windowings = [graph.edge(edge).windowing for edge in step.inputs] if grouped else []
    return describe(step.primitive), step.inputs, step.side_inputs, step.outputs, windowings
