"""The functions that put rows into windows: how they are written, and the relations that they mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from penstock.checks.similar_names import hint_at_name
from penstock.scalars.tree import Scalar
from penstock.scalars.types import SqlType
from penstock.sql.binding.scopes import Scope, Visible
from penstock.sql.binding.statement import Statement
from penstock.sql.plan.relations import (
    ColumnDef,
    Columns,
    Relation,
    Valid,
    Windowed,
    columns_as_scalars,
    origin_of,
    skip_projections,
)

SPELLINGS = {
    "TUMBLE": "write TUMBLE(TABLE bids, DESCRIPTOR(bid_time), INTERVAL '10' MINUTES) in FROM, "
    "or TUMBLE(bid_time, INTERVAL '10' MINUTES) in GROUP BY",
    "HOP": "write HOP(TABLE bids, DESCRIPTOR(bid_time), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES): "
    "the slide, then the size",
    "CUMULATE": "write CUMULATE(TABLE bids, DESCRIPTOR(bid_time), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES): "
    "the step, then the size",
    "SESSION": "write SESSION(TABLE bids, DESCRIPTOR(bid_time), INTERVAL '5' MINUTES) in FROM, "
    "or SESSION(bid_time, INTERVAL '5' MINUTES) in GROUP BY",
    "VALIDITY_WINDOW": "write VALIDITY_WINDOW(rate_time) in GROUP BY",
}
"""The spelling of each function."""
WINDOWS = frozenset(SPELLINGS)
"""The names of the functions."""
BOUNDS = ("WINDOW_START", "WINDOW_END")
"""The functions of a window that is a value."""
_LENGTHS = {
    "TUMBLE": ("size", "offset"),
    "HOP": ("step", "size", "offset"),
    "CUMULATE": ("step", "size", "offset"),
    "SESSION": ("size",),
}
_SYNONYMS = {
    **dict.fromkeys(("dur", "size", "gap", "windowsize"), "size"),
    **dict.fromkeys(("hopsize", "slide", "step"), "step"),
    "offset": "offset",
}
_OF_WINDOWS = frozenset(
    [*BOUNDS, *(f"{name}_{bound}" for name in ("TUMBLE", "HOP", "SESSION") for bound in ("START", "END"))]
)
"""The names of the functions that return a bound of the window of a grouped query."""


def is_window_call(node: object) -> bool:
    """True if a part of a tree puts rows into windows."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in WINDOWS


def window_call_in(node: object) -> Any:
    """Returns the call by which a part of a tree names the window of a grouped query; None if it names none."""
    if is_window_call(node):
        return node
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in _OF_WINDOWS:
        return None
    if node.name.upper() not in BOUNDS or not node.expressions:
        return node
    [inner, *_] = node.expressions
    # If the window is a value of the rows, its bound is a function of a value, like any other.
    return inner if is_window_call(inner) else None


def mentions_window(node: exp.Expression) -> bool:
    """True if a call in a part of a tree names a window, or a bound of one."""
    return any(
        each.name.upper() in WINDOWS or each.name.upper().endswith(("_START", "_END"))
        for each in node.find_all(exp.Anonymous)
    )


def is_descriptor(node: exp.Expression) -> bool:
    """True if an argument is ``DESCRIPTOR(…)``."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "DESCRIPTOR"


def _name_of(call: Any) -> str:
    """The name of the windows that a call puts rows into, or of which it is a bound."""
    return str(call.name.upper().removesuffix("_START").removesuffix("_END"))


def bind_windows(
    statement: Statement,
    node: object,
    relation: Relation,
    time: Scalar,
    micros: list[int],
    named: dict[str, int],
) -> Callable[[Columns], Windowed]:
    """Returns what makes the relation with windows that a call means, once its columns are known.

    Args:
        statement: The query.
        node: The call.
        relation: The rows.
        time: Their time.
        micros: The lengths in their order.
        named: The lengths by their names.
    """
    name = _name_of(node)
    order = _LENGTHS[name]
    lengths = dict(zip(order, micros, strict=False))
    for key, value in named.items():
        if key not in _SYNONYMS:
            hint = hint_at_name(key, _SYNONYMS, SPELLINGS[name])
            statement.refuse(node, f"{name} has no argument {key!r}", hint)
        lengths[_SYNONYMS[key]] = value
    missing = [each for each in order if each not in lengths and each != "offset"]
    if missing or len(micros) > len(order):
        takes = ", ".join(order[: len(order) - ("offset" in order)])
        statement.refuse(node, f"{name} takes {takes}", SPELLINGS[name])
    if min(value for key, value in lengths.items() if key != "offset") <= 0:
        statement.refuse(node, f"the lengths of {name} must be positive", SPELLINGS[name])
    size = lengths["size"]
    step = lengths.get("step", size)
    if name == "CUMULATE" and size % step:
        what = "the size of CUMULATE is not a multiple of its step"
        statement.refuse(node, what, "choose a step that divides the size")
    return lambda columns: Windowed(
        relation, name.lower(), time, size, step, lengths.get("offset", 0), columns
    )


def add_window_columns(scope: Scope, make: Callable[[Columns], Relation], kind: SqlType) -> Scope:
    """Returns a scope with the two columns of windows, which also have the names of the paper."""
    width = len(scope.relation.columns)
    added = tuple(ColumnDef(name, kind.or_null(False)) for name in ("window_start", "window_end"))
    relation = make((*scope.relation.columns, *added))
    visible = [*scope.visible]
    for each, other_name in zip(columns_as_scalars(added, width), ("wstart", "wend"), strict=True):
        visible.append(Visible(None, each.name, each))
        visible.append(Visible(None, other_name, each, in_star=False))
    return Scope(relation, visible, scope.arrival)


def is_grouped_by(statement: Statement, call: exp.Expression, scope: Scope, time: Scalar) -> bool:
    """True if a call names the windows that the rows of a scope are in; `time` is the time that it names."""
    _, below = skip_projections(scope.relation)
    name = _name_of(call)
    if isinstance(below, Valid):
        return name == "VALIDITY_WINDOW" and origin_of(scope.relation, time) == (below, below.time)
    if not isinstance(below, Windowed) or name == "VALIDITY_WINDOW":
        return False
    micros = [statement.interval(each) for each in call.expressions[1:]]
    named = bind_windows(statement, call, below.input, below.time, micros, {})(below.columns)
    return named == replace(below, partition=None) and origin_of(scope.relation, time) == (below, below.time)
