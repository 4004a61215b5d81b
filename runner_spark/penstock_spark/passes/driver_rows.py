"""Which values of the program the driver makes into rows by itself: a few, that no function of the user's sees first.

A task of Python costs more than all else that a small pipeline does. Groupings with a marker that is always there, as
``CombineGlobally`` and ``assert_that`` have, and side inputs of a few values need no such task.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from penstock.graph import AssignWindows, CombinePerKey, Flatten, Graph, Step, Write
from penstock.windows.window_fn import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from penstock_spark.plan.batch_plan import Inline, Plan, Stage, ViewNode, WriteNode, Writing
from penstock_spark.plan.windowing import windowing_of
from penstock_spark.worker.tables import known, without_default

MOST_VALUES = 100
MOST_BYTES = 10_000

_REASON = "a few values of the program: the driver makes the rows by itself"
_WINDOW_FNS = (GlobalWindows, FixedWindows, SlidingWindows, Sessions)


def driver_rows(plan: Plan) -> Plan:
    """The plan, in which each stage whose rows the driver can make says so."""
    return Plan(tuple(_on_driver(plan.graph, node) for node in plan.nodes), plan.graph)


def _on_driver(graph: Graph, node: Stage | ViewNode | WriteNode) -> Stage | ViewNode | WriteNode:
    if not isinstance(node, Stage) or not isinstance(node.root, Inline) or not node.outputs:
        return node
    writings = (writing for output in node.outputs for writing in output.writings)
    # The values of a large pipeline are not looked at.
    values = tuple(islice(chain.from_iterable(node.root.values), MOST_VALUES + 1))
    suits = (
        all(_is_ours(graph, step) for step in node.steps)
        and not any(map(_asks_user, writings))
        and are_few_and_plain(values)
    )
    return replace(node, root=replace(node.root, by_driver=True), reason=_REASON) if suits else node


def _is_ours(graph: Graph, step: Step) -> bool:
    """Whether a step calls nothing that the user has written."""
    if isinstance(step.primitive, AssignWindows):
        return type(windowing_of(graph, step.outputs[0].edge).windowfn) in _WINDOW_FNS
    return isinstance(step.primitive, Flatten)


def _asks_user(writing: Writing) -> bool:
    """Whether the rows are a sink's, or accumulators of a CombineFn that the runner does not know."""
    primitive = None if writing.step is None else writing.step.primitive
    if not isinstance(primitive, CombinePerKey) or (writing.strategy and writing.strategy.by_machine):
        return isinstance(primitive, Write)
    return known(without_default(primitive.fn)) is None


class _NotPlain(Exception):
    """A value has an object in it that is neither Python's own nor the SDK's."""


class _PlainPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Asked for everything that is no text, number or container of Python's own."""
        kind = value if isinstance(value, type) else type(value)
        if kind.__module__.partition(".")[0] != "penstock":
            raise _NotPlain
        return NotImplemented


def are_few_and_plain(values: tuple[Any, ...]) -> bool:
    """Whether there are few values, small ones, of Python's own types and the SDK's.

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
