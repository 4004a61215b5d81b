"""ROLLUP, CUBE and GROUPING SETS: which keys each row is grouped by, and the functions that distinguish them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from penstock.scalars import functions, resolving
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import BIGINT, TINYINT
from penstock.sql.binding.scopes import Grouping
from penstock.sql.binding.statement import GROUPING_FUNCTIONS, Statement

_SETS_MAX = 4096
"""The maximum number of sets, as many as a CUBE of twelve keys has: each row becomes as many rows."""
Set = tuple[Any, ...]


@dataclass(frozen=True)
class KeySets:
    """The keys of GROUP BY as parts of the tree.

    Attributes:
        nodes: All keys, each once, in their order.
        sets: The keys of each set; None if GROUP BY names keys only.
    """

    nodes: tuple[Any, ...]
    sets: tuple[Set, ...] | None


def read_key_sets(statement: Statement, group: exp.Expression) -> KeySets:
    """Returns the keys that GROUP BY names, and the sets of them."""
    items = list(group.expressions)
    if group.args.get("totals"):
        statement.refuse(group, "GROUP BY WITH TOTALS is not supported", "write GROUP BY ROLLUP (a, b)")
    for name in ("rollup", "cube", "grouping_sets"):
        for found in group.args.get(name) or ():
            # WITH ROLLUP, WITH CUBE and GROUPING SETS behind the keys are about these keys.
            keys = [each for item in items for each in _keys_of(item)]
            of_keys = found.copy() if found.expressions else type(found)(expressions=keys)
            sets = _limited(statement, group, _sets_of(of_keys))
            named = [key for one in sets for key in one if key not in keys]
            if named:
                statement.refuse(named[0], f"{named[0].sql()} is not among the keys of GROUP BY", "add it")
            return KeySets(tuple(_once(keys)), sets)
    if not any(isinstance(each, _SEVERAL) for each in items):
        return KeySets(tuple(key for each in items for key in _keys_of(each)), None)
    products = itertools.product(*(_sets_of(each) for each in items))
    sets = _limited(statement, group, (tuple(_once(itertools.chain(*each))) for each in products))
    return KeySets(tuple(_once(key for each in items for one in _sets_of(each) for key in one)), sets)


_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _limited(statement: Statement, group: exp.Expression, sets: Iterable[Set]) -> tuple[Set, ...]:
    found = tuple(itertools.islice(sets, _SETS_MAX + 1))
    if len(found) > _SETS_MAX:
        what = f"GROUP BY has more than {_SETS_MAX:,} grouping sets"
        statement.refuse(group, what, "name the sets that you need: GROUPING SETS ((a, b), (a))")
    return found


def _sets_of(node: exp.Expression) -> Iterator[Set]:
    """Yields the sets of one item of GROUP BY; the first one of ROLLUP and CUBE has all keys."""
    parts = [_keys_of(each) for each in node.expressions] if isinstance(node, _SEVERAL) else []
    match node:
        case exp.Rollup():
            for count in range(len(parts), -1, -1):
                yield tuple(itertools.chain(*parts[:count]))
        case exp.Cube():
            for chosen in itertools.product((True, False), repeat=len(parts)):
                yield tuple(itertools.chain(*itertools.compress(parts, chosen)))
        case exp.GroupingSets():
            for each in node.expressions:
                yield from _sets_of(each)
        case _:
            yield _keys_of(node)


def _keys_of(node: exp.Expression) -> Set:
    """Returns the keys of one item: the parts of a tuple, or itself."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    return (node.this,) if isinstance(node, exp.Paren) else (node,)


def _once(nodes: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(nodes))


# GROUPING and GROUPING_ID


class RowBinder(Protocol):
    """The part of the binder of expressions that the functions use: it binds expressions of the rows."""

    def scalar(self, node: object) -> Scalar:
        """Returns the value of an expression."""


def bind_grouping_function(
    statement: Statement, node: object, grouping: Grouping, rows: RowBinder
) -> Scalar | None:
    """Returns the value of GROUPING(key), GROUPING_ID(…) or grouping__id; None for any other part of the tree."""
    if isinstance(node, exp.Column) and not node.table and node.name.lower() == "grouping__id":
        return None if not grouping.sets else grouping.grouping_id()
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in GROUPING_FUNCTIONS:
        return None
    name = node.name.upper()
    if not grouping.sets:
        hint = "write GROUP BY ROLLUP (a, b), CUBE or GROUPING SETS"
        statement.refuse(node, f"{name} distinguishes grouping sets, and the query has none", hint)
    keys = grouping.keys[: grouping.shown]
    if name == "GROUPING_ID" and not node.expressions:
        return grouping.grouping_id()
    if name == "GROUPING" and len(node.expressions) != 1:
        statement.refuse(
            node, f"GROUPING takes one key, not {len(node.expressions)}", "write GROUPING_ID(a, b)"
        )
    places = []
    for each in node.expressions:
        value = rows.scalar(each)
        if value not in keys:
            statement.refuse(each, f"{name} takes keys of the grouping, and {value} is not one", "name a key")
        places.append(keys.index(value))
    found: Scalar | None = None
    for place in places:
        # The first key is the highest bit.
        bit = _bit(grouping.grouping_id(), len(keys) - 1 - place)
        found = bit if found is None else functions.call("+", [functions.call("*", [found, _whole(2)]), bit])
    return found if found is None or name != "GROUPING" else resolving.cast(found, TINYINT)


def _bit(number: Scalar, place: int) -> Scalar:
    return functions.call("%", [functions.call("DIV", [number, _whole(1 << place)]), _whole(2)])


def _whole(value: int) -> Literal:
    return Literal(value, BIGINT.or_null(False))
