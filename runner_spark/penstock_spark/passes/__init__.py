"""The compiler's passes, one to a file; `GRAPH_PASSES` is their order.

Each takes a graph and gives a graph that means the same; `fuse` and `choose` then make the plan.
"""

from __future__ import annotations

from collections.abc import Set

from penstock.graph import Graph, Step
from penstock_spark.passes.lift_combiners import lift_combiners
from penstock_spark.passes.one_round import one_round
from penstock_spark.passes.prune import prune
from penstock_spark.passes.spread_writes import spread_writes

GRAPH_PASSES = (prune, one_round, lift_combiners, spread_writes)
_SWITCHES = {one_round: "one_round", lift_combiners: "lifted_combiners"}
_FOR_BATCH = (one_round, spread_writes)


def leading_to(graph: Graph, last: Step) -> Graph:
    """The graph of one more step and of the steps that it depends on."""
    needed = {*last.inputs, *(side.edge for side in last.side_inputs)}
    kept = [last]
    for step in reversed(graph.steps):
        if any(output.edge in needed for output in step.outputs):
            kept.append(step)
            needed.update(step.inputs)
            needed.update(side.edge for side in step.side_inputs)
    return Graph(tuple(reversed(kept)), graph.edges)


def optimise(graph: Graph, is_stream: bool = False, without: Set[str] = frozenset()) -> Graph:
    """The graph after all passes that are for it.

    The sinks of a stream spread what they write by themselves, and what it combines is kept from micro-batch to
    micro-batch, where a fan-out has its use.

    Args:
        graph: The graph.
        is_stream: Whether it becomes a streaming query.
        without: The optimisations that are switched off.
    """
    for run_pass in GRAPH_PASSES:
        if not (_SWITCHES.get(run_pass) in without or (is_stream and run_pass in _FOR_BATCH)):
            graph = run_pass(graph)
    return graph
