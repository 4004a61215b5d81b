"""Which columns of a relation are the bounds of windows, or keys of groupings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from penstock.scalars import functions
from penstock.scalars.tree import Column, Scalar, UserCall, columns_of, replace_scalars
from penstock.scalars.types import SqlType
from penstock.sql.plan.relations import (
    Aggregate,
    ColumnDef,
    Emitted,
    Expand,
    Filter,
    Generate,
    Join,
    Over,
    Period,
    Project,
    Relation,
    Top,
    Valid,
    ValidityJoin,
    Windowed,
    columns_as_scalars,
)


def _start(window: Any) -> Any:
    return None if window is None else window[0]


def _end(window: Any) -> Any:
    return None if window is None else window[1]


_BOUNDS = (_start, _end)


class Origin(NamedTuple):
    """The role for which a column of a relation was made.

    Attributes:
        kind: ``window start``, ``window end``, ``window`` or ``key``.
        windows: The relation whose windows they are.
        is_below: Whether these are the windows of rows of which a grouping, or other windows, made the rows that the
            relation has.
    """

    kind: str
    windows: Windowed | Valid | None = None
    is_below: bool = False


def emission_keys(relation: Relation) -> tuple[int, ...]:
    """Returns the columns by which emissions are delayed: windows, else keys of groupings; none means all columns."""
    kinds = [_kind_of(relation, at) for at in range(len(relation.columns))]
    for wanted in ("window", "key"):
        if found := tuple(at for at, kind in enumerate(kinds) if kind.startswith(wanted)):
            if wanted == "window":
                # All keys of the grouping belong to the key of a row.
                found = tuple(at for at, kind in enumerate(kinds) if kind)
            return found
    return ()


def add_change_keys(relation: Relation) -> tuple[Relation, tuple[Scalar, ...]]:
    """Returns a relation with columns at its end for the keys that all rows of one change share; and these keys.

    They are the keys of the grouping or the join that makes the changes, without windows, since windows merge. There
    are none if no key is known.
    """
    match relation:
        case Project():
            inner, keys = add_change_keys(relation.input)
            width = len(relation.scalars)
            hidden = tuple(ColumnDef(f"key{at}", key.type) for at, key in enumerate(keys))
            columns = columns_as_scalars(hidden, width)
            return Project(inner, (*relation.scalars, *keys), (*relation.columns, *hidden)), columns
        case Filter() | Emitted():
            inner, keys = add_change_keys(relation.input)
            return replace(relation, input=inner), keys
        case Aggregate():
            columns = columns_as_scalars(relation.columns[: len(relation.keys)])
            return relation, tuple(each for each in columns if _kind_of(relation, each.index) == "key")
        case Join() | ValidityJoin():
            return relation, _keys_of_join(relation)
        case Valid() | Over():
            return relation, relation.keys
    return relation, ()


def _keys_of_join(relation: Join | ValidityJoin) -> tuple[Scalar, ...]:
    """Returns the columns that are equal on both sides, for a row of which one side may be missing."""
    columns = columns_as_scalars(relation.columns)
    if relation.kind in ("semi", "left_anti"):
        return relation.left_keys
    width = len(relation.left.columns)
    rights = columns[width:]
    return tuple(
        functions.call("COALESCE", [replace_scalars(left, columns), replace_scalars(right, rights)])
        for left, right in zip(relation.left_keys, relation.right_keys, strict=True)
        if columns_of(left) and columns_of(right)
    )


def window_ends(relation: Relation) -> list[int]:
    """Returns the columns that are the ends of windows; of columns that are the same by a projection, the first."""
    ends = [at for at in range(len(relation.columns)) if _kind_of(relation, at) == "window end"]
    if not isinstance(relation, Project):
        return ends
    scalars = relation.scalars
    return [at for at in ends if scalars.index(scalars[at]) == at]


def window_bounds(relation: Relation) -> tuple[int | None, int | None]:
    """Returns the columns that are the start and the end of the window that the rows of a relation are in.

    A row may also have the bounds of windows in which a query below made it. Those count only if there are no others.
    """
    origins = [origin_of(relation, at) for at in range(len(relation.columns))]
    bounds = [(at, each) for at, each in enumerate(origins) if each is not None and each.windows is not None]
    of_rows = [(at, each) for at, each in bounds if not each.is_below]
    wanted = of_rows or bounds
    ends = [(at, each) for at, each in wanted if each.kind == "window end"]
    if len(ends) != 1:
        return None, None
    [(end, of_end)] = ends
    starts = [at for at, each in wanted if each.kind == "window start" and each.windows is of_end.windows]
    return starts[0] if starts else None, end


def _kind_of(relation: Relation, at: int) -> str:
    origin = origin_of(relation, at)
    return "" if origin is None else origin.kind


def origin_of(relation: Relation, at: int) -> Origin | None:
    """Returns the role of a column; None if it is neither of a window, nor a key of a grouping."""
    match relation:
        case Project():
            scalar = relation.scalars[at]
            if is_window(scalar):
                return Origin("window")
            return origin_of(relation.input, scalar.index) if isinstance(scalar, Column) else None
        case Filter() | Emitted() | Top() | Over():
            return origin_of(relation.input, at) if at < len(relation.input.columns) else None
        case Expand() | Generate():
            return origin_of(relation.input, at) if at < len(relation.input.columns) else None
        case Windowed() | Valid():
            width = len(relation.input.columns)
            if at >= width:
                return Origin(("window start", "window end")[at - width], relation)
            return _below(origin_of(relation.input, at))
        case Aggregate():
            if at >= len(relation.keys):
                return None
            key = relation.keys[at]
            inner = origin_of(relation.input, key.index) if isinstance(key, Column) else None
            return _below(inner) if inner and inner.kind.startswith("window") else Origin("key")
        case Join():
            width = len(relation.left.columns)
            return origin_of(relation.left, at) if at < width else origin_of(relation.right, at - width)
    return None


def _below(origin: Origin | None) -> Origin | None:
    return None if origin is None else origin._replace(is_below=True)


def make_period(start: Scalar, end: Scalar) -> Scalar:
    """Returns a window as one value."""
    return UserCall("WINDOW", _period, (start, end), SqlType("WINDOW", start.type.nullable))


def is_window(scalar: Scalar) -> bool:
    """True if a value is a window that is made there."""
    return isinstance(scalar, UserCall) and scalar.fn is _period


def _period(start: Any, end: Any) -> Period | None:
    return None if start is None else Period(start, end)


def bound_of(window: Scalar, place: int) -> Scalar:
    """Returns the start (0) or the end (1) of a window that is one value."""
    if isinstance(window, UserCall) and is_window(window):
        return window.arguments[place]
    name = ("WINDOW_START", "WINDOW_END")[place]
    return UserCall(name, _BOUNDS[place], (window,), SqlType("TIMESTAMP", window.type.nullable))


def simplify_bound(scalar: Scalar) -> Scalar:
    """Returns a bound of a window that is made at the same place, as the bound itself."""
    if isinstance(scalar, UserCall) and scalar.fn in _BOUNDS:
        return bound_of(scalar.arguments[0], _BOUNDS.index(scalar.fn))
    return scalar
