"""GROUP BY: the keys of a query, the windows among them, and the relation with a row for each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from penstock.scalars.tree import Column, Scalar, columns_of
from penstock.sql.binding.expressions import ExpressionBinder
from penstock.sql.binding.grouping_sets import KeySets, read_key_sets
from penstock.sql.binding.scopes import GROUPING_ID, SET_PLACE, Grouping, Scope, scope_of, window_columns
from penstock.sql.binding.statement import Statement
from penstock.sql.binding.time_windows import SPELLINGS, add_window_columns, bind_windows, is_window_call
from penstock.sql.plan.relations import (
    Aggregate,
    ColumnDef,
    Columns,
    Expand,
    Project,
    Relation,
    Valid,
    Windowed,
    columns_as_scalars,
    distinct,
    skip_projections,
)


@dataclass(frozen=True)
class GroupingBinder:
    """Binds what a query groups by.

    Attributes:
        statement: The query.
        expressions: Makes what binds expressions of the rows of a scope.
    """

    statement: Statement
    expressions: Callable[[Scope], ExpressionBinder]

    def grouping(
        self, tree: exp.Expression, scope: Scope, aliases: Mapping[str, Any]
    ) -> tuple[Grouping | None, bool]:
        """Returns what a SELECT groups by, or None; and whether GROUP BY itself puts the rows into windows."""
        group, having = tree.args.get("group"), tree.args.get("having")
        if group is None:
            clauses = having, tree.args.get("qualify"), tree.args.get("order")
            parts = [each for each in [*tree.expressions, *clauses] if each]
            has_aggregates = any(map(self.statement.aggregate_in, parts))
            return (Grouping(scope, []) if has_aggregates else None), False
        if group.args.get("all"):
            named = KeySets(tuple(self._keys_of_all(tree)), None)
        else:
            named = read_key_sets(self.statement, group)
        nodes = [self._item(each, tree, scope, aliases) for each in named.nodes]
        for each in nodes:
            if found := self.statement.aggregate_in(each):
                what = f"the aggregate {found.name.upper()} is in GROUP BY"
                self.statement.refuse(found, what, "group by what it aggregates")
        has_window = False
        keys: list[Scalar] = []
        places: dict[Any, list[int]] = {}
        for each, as_named in zip(nodes, named.nodes, strict=True):
            own: tuple[Scalar, ...]
            if is_window_call(each):
                if has_window:
                    self.statement.refuse(each, "GROUP BY has two windows", "join two groupings")
                has_window = True
                self._refuse_window_in_sets(each, as_named, named)
                own = self._window(each, scope)
            else:
                own = (self.expressions(scope).scalar(each),)
            keys += (key for key in own if key not in keys)
            places[as_named] = [keys.index(key) for key in own]
        grouping = Grouping(scope, keys)
        if named.sets is not None:
            sets = [frozenset(at for key in one for at in places[key]) for one in named.sets]
            if sets != [frozenset(range(len(keys)))]:
                grouping.sets = sets
        _complete_window(grouping, scope)
        if grouping.sets:
            self._tell_sets_apart(grouping)
        return grouping, has_window

    def _keys_of_all(self, tree: exp.Expression) -> list[Any]:
        """Returns the keys of GROUP BY ALL: what is selected and has no aggregate in it."""
        items = [each.unalias() for each in tree.expressions]
        for each in items:
            if isinstance(each, exp.Star) or isinstance(each.this, exp.Star):
                self.statement.refuse(each, "* is in a query that groups", "name the keys and the aggregates")
        return [
            each
            for each in items
            if not self.statement.aggregate_in(each) and not isinstance(each, (exp.Literal, exp.Window))
        ]

    def _refuse_window_in_sets(self, node: object, as_named: object, named: KeySets) -> None:
        assert isinstance(node, exp.Expression)
        name = node.name.upper()
        if named.sets is not None and (
            name in ("SESSION", "VALIDITY_WINDOW") or not all(as_named in one for one in named.sets)
        ):
            what = f"{name} is in a grouping with several sets of keys"
            if name in ("SESSION", "VALIDITY_WINDOW"):
                self.statement.refuse(node, what, "UNION ALL the groupings")
            self.statement.refuse(node, what, f"write GROUP BY {name}(…), ROLLUP (a, b)")

    def _tell_sets_apart(self, grouping: Grouping) -> None:
        """Adds the keys that no query names, behind all others."""
        grouping.shown = len(grouping.keys)
        grouping.keys.append(grouping.grouping_id())
        if len(set(grouping.sets)) < len(grouping.sets):
            grouping.keys.append(Column(len(grouping.keys), SET_PLACE.name, SET_PLACE.type))

    def _item(
        self, node: exp.Expression, tree: exp.Expression, scope: Scope, aliases: Mapping[str, Any]
    ) -> object:
        """Returns the expression that an item of GROUP BY names, by a number or an alias, or is."""
        if isinstance(node, exp.Alias):
            node = node.this
        if isinstance(node, exp.Literal) and not node.is_string:
            items = tree.expressions
            at = int(node.name) if node.name.isdigit() else 0
            if not 1 <= at <= len(items):
                what = f"GROUP BY {node.name} names no column of the result"
                self.statement.refuse(tree, what, f"there are {len(items)}")
            return items[at - 1].unalias()
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases:
            known = {each.name.lower() for each in scope.visible}
            if node.name.lower() not in known:
                return aliases[node.name.lower()]
        return node

    def _window(self, node: Any, scope: Scope) -> tuple[Scalar, Scalar]:
        """Puts the rows of a scope into windows, and returns the start and the end."""
        name = node.name.upper()
        if not node.expressions:
            self.statement.refuse(node, f"{name} takes the column of the time", SPELLINGS[name])
        time = self.expressions(scope).time(node.expressions[0])
        inner = scope.relation
        if name == "VALIDITY_WINDOW":
            added = add_window_columns(scope, lambda columns: Valid(inner, (), time, columns), time.type)
        else:
            micros = [self.statement.interval(each) for each in node.expressions[1:]]
            added = add_window_columns(
                scope, bind_windows(self.statement, node, inner, time, micros, {}), time.type
            )
        width = len(inner.columns)
        scope.relation = added.relation
        # The bounds have names in the rest of the query, unless the rows have columns of these names.
        known = {each.name.lower() for each in scope.visible}
        scope.visible += [
            replace(each, in_star=False) for each in added.visible[-4:] if each.name.lower() not in known
        ]
        start, end = columns_as_scalars(added.relation.columns[width:], width)
        return start, end

    def grouped(self, relation: Relation, grouping: Grouping, has_window: bool) -> Relation:
        """Returns the rows of a grouping, once all its aggregates are known."""
        if isinstance(relation, Valid) and has_window:
            return _valid_groups(relation, grouping)
        return self._aggregate(relation, grouping)

    def _aggregate(self, relation: Relation, grouping: Grouping) -> Relation:
        keys = tuple(grouping.keys[: grouping.shown])
        start, end = window_columns(grouping.inner)
        places = [keys.index(each) if each in keys else None for each in (start, end)]
        below = window_below(relation)
        if None in places or below is None:
            places = [None, None]
        if below is not None and below.kind == "session" and below.partition is not None:
            others = {str(key) for at, key in enumerate(keys) if at not in places}
            if others != set(map(str, below.partition)):
                hint = "name the other keys of GROUP BY in PARTITION BY, and no more"
                self.statement.refuse(None, "the sessions are of different rows than the groups", hint)
        if grouping.sets:
            relation, keys = _expanded(relation, grouping)
        return Aggregate(relation, keys, tuple(grouping.calls), _columns_of(grouping), *places)

    def distinct_rows(self, rows: Project) -> Relation:
        """Returns rows, each once: of rows in windows that they show, as of a grouping by these windows."""
        below = window_below(rows)
        bounds = [each for each in window_columns(scope_of(rows.input, None)) if each is not None]
        shown = [each for each in bounds if each in rows.scalars]
        if below is None or below.kind == "session" or not shown:
            return distinct(rows)
        hidden = tuple(each for each in bounds if each not in rows.scalars)
        named = tuple(ColumnDef(each.name, each.type) for each in hidden)
        scope = scope_of(Project(rows.input, rows.scalars + hidden, rows.columns + named), None)
        grouping = Grouping(scope, [*columns_as_scalars(rows.columns)])
        _complete_window(grouping, scope)
        grouped = self._aggregate(scope.relation, grouping)
        return Project(grouped, columns_as_scalars(rows.columns), rows.columns)


def _complete_window(grouping: Grouping, scope: Scope) -> None:
    """Adds the other end of a window by which rows are grouped: one end determines the other."""
    below = window_below(scope.relation)
    start, end = window_columns(scope)
    if below is None or start is None or end is None:
        return
    has_start, has_end = start in grouping.keys, end in grouping.keys
    if has_end and not has_start:
        grouping.keys.append(start)
    elif has_start and not has_end and below.kind != "cumulate":
        grouping.keys.append(end)
    else:
        return
    # It is in the sets that have the other end.
    added, known = len(grouping.keys) - 1, grouping.keys.index(end if has_end else start)
    grouping.sets = [each | {added} if known in each else each for each in grouping.sets]


def _expanded(relation: Relation, grouping: Grouping) -> tuple[Expand, tuple[Scalar, ...]]:
    """Returns rows once for each grouping set, and the keys by which these rows are grouped."""
    count = grouping.shown or 0
    partial = [at for at in range(count) if at not in grouping.in_all_sets]
    keys = tuple(grouping.keys[at] for at in partial)
    sets = tuple(tuple(at for at, place in enumerate(partial) if place in each) for each in grouping.sets)
    ids = [sum(1 << (count - 1 - at) for at in range(count) if at not in each) for each in grouping.sets]
    has_places = len(grouping.keys) > count + 1
    tails = tuple((each, at) if has_places else (each,) for at, each in enumerate(ids))
    added = (
        *(ColumnDef(f"key{at}", grouping.keys[at].type.or_null()) for at in partial),
        *(GROUPING_ID, SET_PLACE)[: len(tails[0])],
    )
    width = len(relation.columns)
    made = Expand(relation, keys, sets, tails, (*relation.columns, *added))
    columns = columns_as_scalars(added, width)
    found = list(grouping.keys[:count])
    for at, place in enumerate(partial):
        found[place] = columns[at]
    return made, (*found, *columns[len(partial) :])


def _valid_groups(relation: Valid, grouping: Grouping) -> Relation:
    """A grouping by validity: one row for each key and time, valid until the key's next one."""
    columns = _columns_of(grouping)
    width = len(relation.input.columns)
    others = [key for key in grouping.keys if not columns_of(key) & {width, width + 1}]
    keys = (*others, relation.time)
    names = [ColumnDef(f"key{at}", key.type) for at, key in enumerate(keys)]
    names += [ColumnDef(f"{call.name}{at}", call.type) for at, call in enumerate(grouping.calls)]
    rows = Aggregate(relation.input, keys, tuple(grouping.calls), tuple(names))
    outer = columns_as_scalars(rows.columns)
    window = tuple(ColumnDef(name, relation.time.type) for name in ("window_start", "window_end"))
    valid = Valid(rows, outer[: len(others)], outer[len(others)], (*rows.columns, *window))
    places = columns_as_scalars(valid.columns)
    wanted: list[Scalar] = []
    for key in grouping.keys:
        if key in others:
            wanted.append(places[others.index(key)])
        else:
            wanted.append(places[len(rows.columns) + (0 if columns_of(key) == {width} else 1)])
    wanted += places[len(keys) : len(rows.columns)]
    return Project(valid, tuple(wanted), columns)


def _columns_of(grouping: Grouping) -> Columns:
    """The columns of a grouping: its keys and its aggregates."""
    in_all = grouping.in_all_sets
    keys = (
        ColumnDef(f"key{at}", key.type if at in in_all or at >= (grouping.shown or 0) else key.type.or_null())
        for at, key in enumerate(grouping.keys)
    )
    return *keys, *(ColumnDef(f"{call.name}{at}", call.type) for at, call in enumerate(grouping.calls))


def window_below(relation: Relation) -> Windowed | None:
    """Returns the windows of a relation whose rows are in some, through filters and projections."""
    _, inner = skip_projections(relation)
    return inner if isinstance(inner, Windowed) else None
