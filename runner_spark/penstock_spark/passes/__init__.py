"""The compiler's passes, one to a file; `GRAPH_PASSES` is their order.

Each takes a graph and gives a graph that means the same; `fuse` and `choose` then make the plan.
"""

from __future__ import annotations

from penstock.graph import Graph
from penstock_spark.passes.lift_combiners import lift_combiners
from penstock_spark.passes.prune import prune
from penstock_spark.passes.spread_writes import spread_writes

GRAPH_PASSES = (prune, lift_combiners, spread_writes)


def optimise(graph: Graph) -> Graph:
    """The graph after all passes."""
    for run_pass in GRAPH_PASSES:
        graph = run_pass(graph)
    return graph
