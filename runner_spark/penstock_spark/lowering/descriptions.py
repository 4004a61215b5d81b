"""The descriptions of a plan's jobs in Spark's user interface: the labels of the steps that run in them."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.graph import Graph, Grouping, Read, Step
from penstock_spark.plan import batch_plan

_LETTERS_MAX = 300


def describe_node(node: batch_plan.Node, plan: batch_plan.Plan) -> str:
    match node:
        case batch_plan.Stage():
            labels = _labels(node, plan)
        case batch_plan.ViewNode():
            labels = [
                *_labels_before(node.sources, plan),
                f"side input {plan.graph.producer(node.edge.id).label}",
            ]
        case batch_plan.WriteNode():
            labels = [*_labels_before(node.sources, plan), node.step.label]
    return shorten(" > ".join(dict.fromkeys(labels)))


def of_stream(graph: Graph | None, sinks: Iterable[Step]) -> str:
    """Describes the one job of a micro-batch that computes all levels: it reads, groups, and writes to sinks."""
    steps = () if graph is None else graph.steps
    labels = [step.label for step in steps if isinstance(step.primitive, Read | Grouping)]
    return " > ".join(dict.fromkeys([*labels, *(sink.label for sink in sinks)]))


def shorten(text: str) -> str:
    """Shortens a text to fit a table; its end matters most.

    >>> shorten("a" * 400).startswith("... aaa"), shorten("Read > Sum")
    (True, 'Read > Sum')
    """
    return text if len(text) <= _LETTERS_MAX else f"... {text[-_LETTERS_MAX:]}"


def _labels_before(sources: tuple[batch_plan.OutputReference, ...], plan: batch_plan.Plan) -> list[str]:
    """Returns the labels of the stages that run with their reader; a stage with several readers has run before."""
    stages = {stage.number: stage for stage in plan.stages}
    lazy = [stages[one.stage] for one in sources if len(stages[one.stage].outputs) == 1]
    return [label for stage in lazy for label in _labels(stage, plan)]


def _labels(stage: batch_plan.Stage, plan: batch_plan.Plan) -> list[str]:
    """Returns the labels of a stage in order, after the labels of the stages that run with it."""
    before = _labels_before(getattr(stage.root, "sources", ()), plan)
    return [*before, *(step.label for step in (*stage.first_steps, *stage.steps))]
