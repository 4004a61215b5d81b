"""Lets the driver make the rows of a few values of the program, if no user function sees the values first.

A Python task costs more than everything else that a small pipeline does. Groupings with a marker that is always
present, as in ``CombineGlobally`` and ``assert_that``, and side inputs of a few values need no such task.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from penstock.functions.combinefn import without_marker
from penstock.functions.folds import fold_of
from penstock.graph import AssignWindows, CombinePerKey, Flatten, Graph, Step, Write
from penstock.windows.window_fn import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from penstock_spark.plan.batch_plan import Inline, Node, Plan, Stage, Writing
from penstock_spark.plan.hosts import ByMachine
from penstock_spark.plan.windowing import windowing_of

MOST_VALUES = 100
MOST_BYTES = 10_000

_REASON = "a few values of the program: the driver makes the rows"
_WINDOW_FNS = (GlobalWindows, FixedWindows, SlidingWindows, Sessions)


def driver_rows(plan: Plan) -> Plan:
    """Marks each stage of the plan whose rows the driver can make."""
    return Plan(tuple(_on_driver(plan.graph, node) for node in plan.nodes), plan.graph)


def _on_driver(graph: Graph, node: Node) -> Node:
    if not isinstance(node, Stage) or not isinstance(node.root, Inline) or not node.outputs:
        return node
    writings = (writing for output in node.outputs for writing in output.writings)
    # It examines no more values than it would accept.
    values = tuple(islice(chain.from_iterable(node.root.values), MOST_VALUES + 1))
    suits = (
        all(_is_ours(graph, step) for step in node.steps)
        and not any(map(_asks_user, writings))
        and are_few_and_plain(values)
    )
    return replace(node, root=replace(node.root, by_driver=True), reason=_REASON) if suits else node


def _is_ours(graph: Graph, step: Step) -> bool:
    if isinstance(step.primitive, AssignWindows):
        return type(windowing_of(graph, step.outputs[0].edge).windowfn) in _WINDOW_FNS
    return isinstance(step.primitive, Flatten)


def _asks_user(writing: Writing) -> bool:
    """True if the rows are a sink's, or accumulators of a CombineFn that the runner does not know."""
    primitive = None if writing.step is None else writing.step.primitive
    if not isinstance(primitive, CombinePerKey) or isinstance(writing.host, ByMachine):
        return isinstance(primitive, Write)
    return not fold_of(without_marker(primitive.fn)).is_known


class _NotPlain(Exception):
    """A value contains an object whose type is neither Python's own nor the SDK's."""


class _PlainPickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        """Pickle calls it for every object that is not a built-in string, number or container."""
        kind = value if isinstance(value, type) else type(value)
        if kind.__module__.partition(".")[0] != "penstock":
            raise _NotPlain
        return NotImplemented


def are_few_and_plain(values: tuple[Any, ...]) -> bool:
    """True if there are few values, all small, whose types are built in or the SDK's.

    >>> are_few_and_plain(((None, ()), ("a", [1.5]))), are_few_and_plain((1 + 0j,))
    (True, False)
    >>> are_few_and_plain(()), are_few_and_plain(("x" * 10_000,))
    (False, False)
    """
    if not 0 < len(values) <= MOST_VALUES:
        return False
    pickled = io.BytesIO()
    try:
        _PlainPickler(pickled, 5).dump(values)
    except Exception:
        return False
    return pickled.tell() < MOST_BYTES
