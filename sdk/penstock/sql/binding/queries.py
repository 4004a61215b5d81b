"""Binds the tree of a query to its logical plan: to the meaning of every name and the type of every value.

`Binder` binds queries; it is composed of what binds their parts: `sources` (FROM), `groupings` (GROUP BY), `selections`
(SELECT) and `expressions`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from sqlglot import exp

from penstock.scalars import resolving
from penstock.scalars.casting import whole_micros
from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import Column, Scalar, columns_of
from penstock.scalars.types import TIMESTAMP
from penstock.sql.binding.expressions import ExpressionBinder
from penstock.sql.binding.generators import SelectedGenerators
from penstock.sql.binding.groupings import GroupingBinder, window_below
from penstock.sql.binding.join_order import arrange_joins
from penstock.sql.binding.joining import push_filter_down
from penstock.sql.binding.orders import list_orders, order_of
from penstock.sql.binding.over import OverBinder
from penstock.sql.binding.scopes import Env, Grouping, NamedScope, Scope, Visible, scope_of
from penstock.sql.binding.selections import (
    Item,
    SelectionBinder,
    ShownColumns,
    aliases_of,
    find_ordinal,
    orders_of,
    system_column,
)
from penstock.sql.binding.sources import SourceBinder, rename_scope
from penstock.sql.binding.statement import Statement, Tables, text_of
from penstock.sql.binding.subqueries import filter_by_query, query_test_of
from penstock.sql.errors import SqlError
from penstock.sql.language.dialect import EmitClause, find_outermost_select, parse_query, rendering_of
from penstock.sql.language.unsupported_clauses import refuse_unsupported_clauses
from penstock.sql.plan.decorrelation import has_one_row_at_most
from penstock.sql.plan.final_over import finish_over, list_calls_that_look_ahead, time_of_order
from penstock.sql.plan.lineage import bound_of, emission_keys, window_ends
from penstock.sql.plan.relations import (
    Aggregate,
    ColumnDef,
    Emitted,
    Filter,
    Order,
    Project,
    Query,
    Relation,
    SetOperation,
    Top,
    Union_,
    Values,
    Windowed,
    columns_as_scalars,
    distinct,
    inputs_of,
)

_SET_KINDS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}
_REFUSED = {
    "MATCH_RECOGNIZE": "match",
    "CLUSTER BY": "cluster",
    "DISTRIBUTE BY": "distribute",
    "SORT BY": "sort",
    "TABLESAMPLE": "sample",
    "PIVOT": "pivots",
    "CONNECT BY": "connect",
}


def bind(query: str, tables: Tables) -> Query:
    """Returns the plan of a query.

    Raises:
        SqlError: The query breaks the grammar, names what is not there, or mixes types that do not fit.

    >>> from penstock.scalars import types
    >>> columns = (ColumnDef("team", types.STRING), ColumnDef("points", types.BIGINT))
    >>> plan = bind("SELECT team, SUM(points) AS total FROM goals GROUP BY team", Tables({"goals": columns}, {}, {}))
    >>> plan.shown
    (('team', 0), ('total', 1))
    """
    tree = parse_query(query)
    statement = Statement(query, tables, has_arrival=_reads_arrival(tree))
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
        statement.refuse(tree, f"this is {tree.key.upper()}, not a query", "write SELECT")
    refuse_unsupported_clauses(tree, query)
    statement = replace(statement, rendered=find_outermost_select(tree))
    rendering = rendering_of(statement.rendered)
    if as_of := tree.args.get("as_of"):
        until_micros = whole_micros(_constant_time(statement, as_of))
        statement = replace(statement, until_micros=until_micros, has_arrival=True)
        if rendering == "STREAM":
            what = "AS OF SYSTEM TIME is the time of a table, and a STREAM has none"
            statement.refuse(as_of, what, "write TABLE")
        rendering = rendering or "TABLE"
    return _rendered(statement, tree, rendering)


def _rendered(statement: Statement, tree: exp.Expression, rendering: str | None) -> Query:
    """The plan of a query with its rendering."""
    shown: ShownColumns = []
    binder = Binder(statement)
    scope = binder.query(tree, shown)
    _check_sessions(statement, scope.relation)
    ordered = _table_order(binder, tree, scope)
    if not shown:
        shown = [(each.name, at) for at, each in enumerate(scope.visible)]
    names = [name.lower() for name, _ in shown]
    for name in names:
        if names.count(name) > 1:
            what = f"two columns of the result have the name {name!r}"
            statement.refuse(tree, what, "give one of them an alias with AS")
    emit = tree.args.get("emit")
    if emit is not None and emit.args["clause"].as_stream:
        rendering = "STREAM"
        shown += [("undo", "Undo"), ("ptime", "EmitTime"), ("ver", "Ver")]
    if rendering != "STREAM":
        _refuse_system_columns(statement, rendering)
    return Query(scope.relation, rendering, tuple(shown), ordered)


def _refuse_system_columns(statement: Statement, rendering: str | None) -> None:
    """Refuses what only a stream of changes has a value for."""
    for item in statement.rendered.expressions:
        if system := system_column(item.unalias()):
            shown = (
                f"a {rendering} does not show them"
                if rendering
                else "a query without STREAM does not show them"
            )
            what = f"{system} describes changes, and {shown}"
            statement.refuse(item.unalias(), what, "write SELECT STREAM")


def _check_sessions(statement: Statement, relation: Relation) -> None:
    """Refuses sessions that no grouping makes: only the rows of a group show where one ends."""
    waiting, seen = [relation], {id(relation)}
    while waiting:
        outer = waiting.pop()
        is_grouping = isinstance(outer, Aggregate) and outer.start is not None
        for each in inputs_of(outer):
            below = window_below(each) if is_grouping else None
            if isinstance(each, Windowed) and each.kind == "session" and below is not each:
                hint = "GROUP BY window_start, window_end right above SESSION(…)"
                statement.refuse(None, "sessions are only there in a grouping by their window", hint)
            if id(each) not in seen and (below is None or below.kind != "session"):
                seen.add(id(each))
                waiting.append(each)


def _table_order(binder: Binder, tree: exp.Expression, scope: Scope) -> tuple[Order, ...] | None:
    order = tree.args.get("order")
    if order is None:
        return ()
    try:
        return binder.output_orders(_by_place(order, tree), scope)
    except SqlError:
        if isinstance(tree, exp.Select):
            # The order is of something that is not among the columns of the rows.
            has_one_row = isinstance(scope.relation, Project) and has_one_row_at_most(scope.relation)
            return () if has_one_row else None
        raise


def _by_place(order: exp.Expression, tree: exp.Expression) -> exp.Expression:
    """An ORDER BY that names what is selected by its place, or after a star by its name alone."""
    items = [each.unalias() for each in tree.expressions] if isinstance(tree, exp.Select) else []
    has_star = any(each.is_star for each in items)
    made = order.copy()
    for each in made.expressions:
        if has_star and isinstance(each.this, exp.Column):
            each.this.set("table", None)
        elif each.this in items and not has_star:
            each.set("this", exp.Literal.number(items.index(each.this) + 1))
    return made


def _reads_arrival(tree: exp.Expression) -> bool:
    return any(
        text_of(column.args.get("table")).lower() == "sys" and column.name.lower() == "mtime"
        for column in tree.find_all(exp.Column)
    )


def _constant_time(statement: Statement, node: exp.Expression) -> datetime.datetime:
    literal = Binder(statement).expressions(scope_of(Values(((),), ()), None)).constant(node)
    value = literal.value
    if isinstance(value, str):
        [value] = Projection((resolving.cast(literal, TIMESTAMP),))(())
    if not isinstance(value, datetime.datetime):
        what = "AS OF SYSTEM TIME takes a time"
        statement.refuse(node, what, "write AS OF SYSTEM TIME '2026-01-31 12:03:00'")
    return value


@dataclass(frozen=True)
class Binder:
    """Binds queries of one text.

    Attributes:
        statement: The text, and the tables that it may read.
        ctes: The queries that WITH has named.
        around: What names mean in the queries around this one, the outermost first.
    """

    statement: Statement
    ctes: Mapping[str, Scope] = field(default_factory=dict)
    around: tuple[Env, ...] = ()

    def query(self, tree: exp.Expression | exp.Query, shown: ShownColumns | None = None) -> Scope:
        """Returns a query as a scope whose names are the columns of its result.

        Args:
            tree: The query.
            shown: Takes the columns of the result, also the system columns; None where those are refused.
        """
        binder = self._with(tree)
        match tree:
            case exp.Subquery():
                return binder._tail(tree, binder.query(tree.this, shown))
            case exp.SetOperation():
                return binder._tail(tree, binder._set_operation(tree))
            case exp.Values():
                return binder._tail(tree, binder._values(tree))
            case exp.Select():
                return binder._select(tree, shown)
        return self.statement.refuse(tree, f"{tree.key.upper()} is not a query", "write SELECT")

    def expressions(
        self,
        scope: Scope | Grouping,
        aliases: Mapping[str, Any] | None = None,
        over: OverBinder | None = None,
    ) -> ExpressionBinder:
        """Returns what binds expressions of a scope."""
        env = Env(scope, self.ctes, aliases or {}, self.around, over)
        return ExpressionBinder(self.statement, env, self._inner_query)

    def _inner_query(self, tree: exp.Expression | exp.Query, env: Env) -> Scope:
        own = replace(env, aliases={}, over=None)
        return Binder(self.statement, env.ctes, (*env.around, own)).query(tree)

    def _view(self, name: str) -> Scope:
        bound = self.statement.bound_views
        if name not in bound:
            bound[name] = self._bound_view(name)
        scope: Scope = bound[name]
        return scope

    def _bound_view(self, name: str) -> Scope:
        text, until_micros = self.statement.tables.views[name], self.statement.until_micros
        tree = parse_query(text)
        refuse_unsupported_clauses(tree, text)
        statement = Statement(
            text,
            self.statement.tables,
            (*self.statement.views, name.lower()),
            _reads_arrival(tree) or until_micros is not None,
            until_micros,
            bound_views=self.statement.bound_views,
        )
        return Binder(statement).query(tree)

    def _sources(self) -> SourceBinder:
        return SourceBinder(
            self.statement, self.ctes, self.expressions, self.query, self._view, self._values, self._where
        )

    def _with(self, tree: exp.Expression | exp.Query) -> Binder:
        named = tree.args.get("with_")
        if named is None:
            return self
        if named.args.get("recursive"):
            hint = "compute the steps that there are by joins"
            self.statement.refuse(named, "WITH RECURSIVE is not supported", hint)
        binder = self
        for cte in named.expressions:
            scope = binder.query(cte.this)
            scope = rename_scope(self.statement, cte, scope, cte.alias, cte.args["alias"].columns)
            binder = replace(binder, ctes={**binder.ctes, cte.alias.lower(): scope})
        return binder

    # Queries other than SELECT

    def _tail(self, tree: exp.Expression, scope: Scope) -> Scope:
        """Binds what may follow a set operation or a query in parentheses: ORDER BY, LIMIT and EMIT."""
        if tree.args.get("limit") or tree.args.get("offset"):
            orders = self.output_orders(tree.args.get("order"), scope)
            scope = Scope(self._limited(tree, scope.relation, orders), scope.visible, scope.arrival)
        return self._emitted(tree, scope)

    def output_orders(self, order: exp.Expression | None, scope: Scope) -> tuple[Order, ...]:
        """Returns the orders of rows by values of the result, after a set operation or of a table."""

        def value_of(node: exp.Expression) -> Scalar:
            if isinstance(node, exp.Literal) and not node.is_string:
                return find_ordinal(self.statement, node, [each.scalar for each in scope.visible])
            return replace(self, ctes={}).expressions(scope).scalar(node)

        if order is not None:
            order = order.copy()
            order.set("expressions", list_orders(order, len(scope.visible)))
        return orders_of(order, value_of)

    def _values(self, tree: exp.Expression) -> Scope:
        nothing = self.expressions(scope_of(Values(((),), ()), None))
        rows = [[nothing.constant(each) for each in row.expressions] for row in tree.expressions]
        if len({len(row) for row in rows}) != 1:
            what = "the rows of VALUES have different numbers of columns"
            self.statement.refuse(tree, what, "give each row the same columns")
        columns, typed = [], []
        for at, values in enumerate(zip(*rows, strict=True)):
            kind = resolving.common_type(values)
            if kind is None:
                kinds = ", ".join(str(each.type) for each in values)
                what = f"column {at + 1} of VALUES has values of types that do not fit: {kinds}"
                self.statement.refuse(tree, what, "CAST them to one type")
            columns.append(ColumnDef(f"col{at + 1}", kind))
            typed.append(Projection(tuple(resolving.cast(each, kind) for each in values))(()))
        relation = Values(tuple(zip(*typed, strict=True)), tuple(columns))
        alias = tree.args.get("alias")
        scope = scope_of(relation, None)
        return (
            scope if alias is None else rename_scope(self.statement, tree, scope, alias.name, alias.columns)
        )

    def _set_operation(self, tree: exp.Expression) -> Scope:
        kind = next(name for each, name in _SET_KINDS.items() if isinstance(tree, each))
        left, right = (self.query(each) for each in (tree.this, tree.expression))
        widths = [len([each for each in side.visible if each.in_star]) for side in (left, right)]
        if widths[0] != widths[1]:
            what = f"{kind.upper()} combines {widths[0]} columns with {widths[1]}"
            self.statement.refuse(tree, what, "select the same number of columns on both sides")
        columns = tuple(
            self._common_column(tree, mine, other)
            for mine, other in zip(left.star(None), right.star(None), strict=True)
        )
        sides = tuple(_cast_columns(side, columns) for side in (left, right))
        is_all = not tree.args.get("distinct")
        if kind == "union":
            union = Union_(sides, columns)
            return scope_of(union if is_all else distinct(union), None)
        return scope_of(SetOperation(sides[0], sides[1], kind, is_all), None)

    def _common_column(self, tree: exp.Expression, mine: Visible, other: Visible) -> ColumnDef:
        common = resolving.common_type([mine.scalar, other.scalar])
        if common is None:
            kinds = f"{mine.scalar.type} on the left and {other.scalar.type} on the right"
            self.statement.refuse(tree, f"the column {mine.name!r} is {kinds}", "CAST one of them")
        return ColumnDef(mine.name, common)

    # SELECT

    def _select(self, tree: exp.Select, shown: ShownColumns | None) -> Scope:
        self._refuse_misplaced(tree)
        scope = self._sources().source(tree)
        if where := tree.args.get("where"):
            self._where(where.this, scope)
        aliases = aliases_of(tree)
        groupings = GroupingBinder(self.statement, self.expressions)
        grouping, has_window = groupings.grouping(tree, scope, aliases)
        rows: Scope | Grouping = scope if grouping is None else grouping
        generated = SelectedGenerators(self.statement)
        generated.bind(tree, rows, self.expressions)
        over = self._over(tree, rows, aliases)
        selections = SelectionBinder(
            self.statement, self.expressions(rows, over=over), rows, generated.columns
        )
        items = selections.items(tree, shown is not None)
        condition = self._having(tree, grouping, aliases)
        named = SelectionBinder(self.statement, self.expressions(rows, aliases, over), rows)
        orders: tuple[tuple[Any, Scalar], ...] = ()
        if (order := tree.args.get("order")) and (tree.args.get("limit") or tree.args.get("offset")):
            every = list_orders(order, len(_shown_values(items)))
            orders = tuple((each, named.order_scalar(each.this, items)) for each in every)
        elif order:
            self._check_order(order, rows, items, aliases, over)
        qualified = self._qualify(tree, rows, items, named, over)
        relation = scope.relation
        place: Callable[[Scalar], Scalar] = _same
        if grouping is not None:
            relation = groupings.grouped(relation, grouping, has_window)
            for join in grouping.beside:
                relation = join(relation)
            place = grouping.placed
        if condition is not None:
            relation = Filter(relation, place(condition))
        generated.refuse_over(bool(over.calls))
        relation, place = over.compute(*generated.compute(relation, place))
        items = [(name, value if isinstance(value, str) else place(value)) for name, value in items]
        orders = tuple((node, place(scalar)) for node, scalar in orders)
        if qualified is not None:
            relation = push_filter_down(Filter(relation, place(qualified)))
        return self._projected(tree, relation, items, orders, shown)

    def _check_order(
        self,
        order: exp.Expression,
        rows: Scope | Grouping,
        items: list[Item],
        aliases: Mapping[str, Any],
        over: OverBinder,
    ) -> None:
        """Refuses an order that means nothing; nothing is computed for one without LIMIT, since no rows follow it."""
        if isinstance(rows, Grouping):
            rows = replace(rows, calls=[*rows.calls], beside=[*rows.beside])
        else:
            rows = replace(rows)
        over = replace(over, expressions=self.expressions(rows, aliases), calls=[*over.calls])
        named = SelectionBinder(self.statement, self.expressions(rows, aliases, over), rows)
        for each in list_orders(order, len(_shown_values(items))):
            named.order_scalar(each.this, items)

    def _refuse_misplaced(self, tree: exp.Expression) -> None:
        rendering = rendering_of(tree)
        if rendering is not None and tree is not self.statement.rendered:
            what = f"SELECT {rendering} is inside another query"
            self.statement.refuse(tree, what, "write it outermost")
        for name, key in _REFUSED.items():
            if tree.args.get(key):
                hint = "see the page about SQL for what is"
                self.statement.refuse(tree, f"{name} is not supported", hint)

    def _where(self, node: exp.Expression, scope: Scope) -> None:
        """Filters the relation of a scope."""
        if found := self.statement.aggregate_in(node):
            what, hint = f"the aggregate {found.name.upper()} is in WHERE", "write it in HAVING"
            if self.around and self.expressions(scope).reads_around_only(found):
                what = f"{found.sql()} aggregates only columns of the outer query"
                hint = "select it in a subquery of that query's FROM, and name its column here"
            self.statement.refuse(found, what, hint)
        plain, tests, others = [], [], []
        for part in _conjuncts(node):
            if (test := query_test_of(part)) is not None:
                tests.append(test)
            elif part.find(exp.Query) is not None:
                others.append(part)
            else:
                plain.append(self.expressions(scope).condition(part, "WHERE"))
        scope.relation = arrange_joins(scope.relation, plain)
        for test in tests:
            values = None if test.value is None else self.expressions(scope).tuple_of(test.value)
            env = Env(scope, self.ctes, around=self.around)
            filter_by_query(self.statement, test, env, self._inner_query(test.query, env), values)
        for part in others:
            condition = self.expressions(scope).condition(part, "WHERE")
            scope.relation = push_filter_down(Filter(scope.relation, condition))

    def _having(
        self, tree: exp.Expression, grouping: Grouping | None, aliases: Mapping[str, Any]
    ) -> Scalar | None:
        having = tree.args.get("having")
        if having is None:
            return None
        if grouping is None:
            self.statement.refuse(having, "HAVING needs GROUP BY or an aggregate", "write WHERE")
        return self.expressions(grouping, aliases).condition(having.this, "HAVING")

    def _over(self, tree: exp.Expression, rows: Scope | Grouping, aliases: Mapping[str, Any]) -> OverBinder:
        """Returns what binds and collects the window functions of a SELECT."""
        named = {each.name.lower(): each for each in tree.args.get("windows") or ()}
        expressions = self.expressions(rows, aliases)
        return OverBinder(self.statement, expressions, named)

    def _qualify(
        self,
        tree: exp.Expression,
        rows: Scope | Grouping,
        items: list[Item],
        named: SelectionBinder,
        over: OverBinder,
    ) -> Scalar | None:
        """Returns the condition of QUALIFY, in which names stand for selected columns first."""
        qualify = tree.args.get("qualify")
        if qualify is None:
            return None
        if isinstance(rows, Grouping):
            condition = named.expressions.condition(qualify.this, "QUALIFY")
        else:
            names = [Visible(None, name, value) for name, value in items if not isinstance(value, str)]
            known = {each.name.lower() for each in names}
            others = [each for each in rows.visible if each.name.lower() not in known]
            scope = NamedScope(rows, names + others)
            condition = self.expressions(scope, over=over).condition(qualify.this, "QUALIFY")
        if not over.calls:
            self.statement.refuse(qualify, "QUALIFY needs a window function", "write WHERE or HAVING")
        return condition

    def _projected(
        self,
        tree: exp.Expression,
        relation: Relation,
        items: list[Item],
        orders: tuple[tuple[Any, Scalar], ...],
        shown: ShownColumns | None,
    ) -> Scope:
        """The selected columns, then DISTINCT, LIMIT and EMIT."""
        values = _shown_values(items)
        scalars: list[Scalar] = [value for _, value in values]
        columns = tuple(ColumnDef(name, value.type) for (name, _), value in zip(values, scalars, strict=True))
        hidden = [value for _, value in orders if value not in scalars]
        if hidden and tree.args.get("distinct"):
            what = "ORDER BY with DISTINCT takes selected columns only"
            self.statement.refuse(tree, what, "select what orders the rows")
        extra = tuple(ColumnDef(f"order{at}", each.type) for at, each in enumerate(hidden))
        selected = Project(relation, (*scalars, *hidden), (*columns, *extra))
        result: Relation = selected
        if tree.args.get("distinct"):
            if tree.args["distinct"].args.get("on"):
                hint = "write QUALIFY ROW_NUMBER() OVER (…) = 1"
                self.statement.refuse(tree, "DISTINCT ON is not supported", hint)
            result = GroupingBinder(self.statement, self.expressions).distinct_rows(selected)
        if tree.args.get("limit") or tree.args.get("offset"):
            every = [*scalars, *hidden]
            resolved = tuple(
                order_of(node, Column(every.index(value), "order", value.type)) for node, value in orders
            )
            result = self._limited(tree, result, resolved)
        if hidden:
            result = Project(result, columns_as_scalars(columns), columns)
        if shown is not None:
            places = iter(range(len(columns)))
            shown += [(name, value if isinstance(value, str) else next(places)) for name, value in items]
        return self._emitted(tree, scope_of(result, None))

    def _limited(self, tree: exp.Expression, relation: Relation, orders: tuple[Order, ...]) -> Relation:
        limit, offset = (tree.args.get(key) for key in ("limit", "offset"))
        count = None
        if limit is not None:
            count = self._whole(limit.args.get("expression") or limit.args.get("count"), "LIMIT")
        skipped = 0 if offset is None else self._whole(offset.expression, "OFFSET")
        return Top(relation, (), orders, count, skipped, relation.columns)

    def _whole(self, node: exp.Expression, clause: str) -> int:
        value = self.expressions(scope_of(Values(((),), ()), None)).constant(node).value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            what = f"{clause} takes an integer, 0 or more"
            self.statement.refuse(node, what, f"write {clause} 10")
        return value

    # EMIT

    def _emitted(self, tree: exp.Expression, scope: Scope) -> Scope:
        node = tree.args.get("emit")
        if node is None:
            return scope
        clause = node.args["clause"]
        past: Scalar | None = None
        if clause.watermark:
            scope = _with_window_end(scope)
            is_over_time = clause.past is None and _window_end_of(scope) is None
            if not is_over_time or time_of_order(scope.relation) is None:
                past = self._past(node, clause.past, scope)
            final = finish_over(scope.relation, clause, past)
            if final is not None:
                return Scope(final, scope.visible, scope.arrival)
            if past is None:
                self._refuse_over_time(node, scope.relation)
        keys = emission_keys(scope.relation)
        if past is not None:
            keys = tuple(sorted({*keys, *columns_of(past)})) if keys else tuple(sorted(columns_of(past)))
        clause = replace(clause, past=None)
        return Scope(Emitted(scope.relation, clause, keys, past), scope.visible, scope.arrival)

    def _refuse_over_time(self, node: EmitClause, relation: Relation) -> NoReturn:
        """Refuses window functions over time whose rows cannot wait for the watermark alone."""
        if ahead := list_calls_that_look_ahead(relation):
            what = f"{ahead[0]} looks at rows that come later, so no watermark makes it final"
            hint = "leave EMIT out, for results that change; or end the frame at CURRENT ROW"
            self.statement.refuse(node, what, hint)
        what = "the rows of EMIT AFTER WATERMARK have no time in common"
        self.statement.refuse(
            node, what, "order each OVER by the same column, or leave out AND THEN and DELAY"
        )

    def _past(self, node: EmitClause, past: object, scope: Scope) -> Scalar:
        """Returns what the watermark must pass: what the clause names, or the end of the window in the result."""
        if past is None:
            found = _window_end_of(scope)
            if found is None:
                what = "EMIT AFTER WATERMARK needs rows that have the end of a window"
                times = [each.name for each in scope.visible if each.scalar.type.name == "TIMESTAMP"]
                then = f"write EMIT WHEN WATERMARK PAST {times[0]}" if times else "select a time"
                self.statement.refuse(node, what, f"GROUP BY a window; or {then}")
            return found
        found = replace(self, ctes={}).expressions(scope).scalar(past)
        if found.type.name == "WINDOW":
            found = bound_of(found, 1)
        if found.type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            what = f"the watermark is a time, and {found} is {found.type}"
            self.statement.refuse(past, what, "name a TIMESTAMP")
        return found


def _shown_values(items: list[Item]) -> list[tuple[str, Scalar]]:
    """The selected columns that are not columns of the system."""
    return [(name, value) for name, value in items if not isinstance(value, str)]


def _cast_columns(side: Scope, columns: tuple[ColumnDef, ...]) -> Project:
    """The rows of a side of a set operation, with the types of the result's columns."""
    values = zip(side.star(None), columns, strict=True)
    return Project(side.relation, tuple(resolving.cast(each.scalar, to.type) for each, to in values), columns)


def _window_end_of(scope: Scope) -> Scalar | None:
    """The end of the window in a result; None if it is not known."""
    for name in ("window_end", "wend"):
        for each in scope.visible:
            if each.name.lower() == name:
                return each.scalar
    for each in scope.visible:
        if each.scalar.type.name == "WINDOW":
            return bound_of(each.scalar, 1)
    ends = window_ends(scope.relation)
    return columns_as_scalars(scope.relation.columns)[ends[0]] if len(ends) == 1 else None


def _with_window_end(scope: Scope) -> Scope:
    """A scope whose rows have the end of their window, hidden, where it is known and not selected."""
    relation = scope.relation
    if not isinstance(relation, Project) or window_ends(relation):
        return scope
    ends = window_ends(relation.input)
    if len(ends) != 1:
        return scope
    end = columns_as_scalars(relation.input.columns)[ends[0]]
    hidden = ColumnDef("window_end", end.type)
    made = Project(relation.input, (*relation.scalars, end), (*relation.columns, hidden))
    return Scope(made, scope.visible, scope.arrival)


def _same(scalar: Scalar) -> Scalar:
    return scalar


def _conjuncts(node: object) -> Iterable[Any]:
    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node
