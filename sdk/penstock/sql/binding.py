"""From the tree of a query to its logical plan: what every name means, and of which type every value is."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from penstock.sql import functions
from penstock.sql.casting import whole_micros
from penstock.sql.dialect import EmitClause, outermost_select, parsed, rendering_of
from penstock.sql.errors import SqlError
from penstock.sql.expressions import (
    SPELLINGS,
    WINDOWS,
    Expressions,
    Tables,
    distinct,
    is_descriptor,
    moved,
    own_parts,
    retyped,
    scope_of,
    text_of,
    window_call,
    window_columns,
)
from penstock.sql.joining import joined, pushed
from penstock.sql.origins import bound_of, emission_keys, window_ends
from penstock.sql.relations import (
    Aggregate,
    Columns,
    Counted,
    Emitted,
    Filter,
    Join,
    Named,
    Order,
    Project,
    Query,
    Relation,
    Scan,
    Top,
    Union_,
    Valid,
    Values,
    Windowed,
    below_projections,
    columns_as_scalars,
    inputs_of,
    origin_of,
)
from penstock.sql.scalars import (
    Column,
    Projection,
    Scalar,
    columns_of,
)
from penstock.sql.scopes import Grouping, Scope, Visible, suggest
from penstock.sql.types import BIGINT, TIMESTAMP, SqlType
from penstock.sql.unread import refuse_unread

SYSTEM = {"undo": "Undo", "emittime": "EmitTime", "emittiming": "EmitTiming", "emitindex": "EmitIndex"}
_SET_KINDS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}
_REFUSED = {
    "MATCH_RECOGNIZE": "match",
    "LATERAL": "laterals",
    "CLUSTER BY": "cluster",
    "DISTRIBUTE BY": "distribute",
    "SORT BY": "sort",
    "TABLESAMPLE": "sample",
    "a named WINDOW": "windows",
    "PIVOT": "pivots",
    "CONNECT BY": "connect",
}


def bound(query: str, tables: Tables) -> Query:
    """The plan of a query.

    Raises:
        SqlError: The query breaks the grammar, names what is not there, or mixes types that do not fit.

    >>> from penstock.sql import types
    >>> columns = (Named("team", types.STRING), Named("points", types.BIGINT))
    >>> plan = bound("SELECT team, SUM(points) AS total FROM goals GROUP BY team", Tables({"goals": columns}, {}, {}))
    >>> plan.shown
    (('team', 0), ('total', 1))
    """
    tree = parsed(query)
    return _Binder(query, tables, tree).top(tree)


class _Binder(Expressions):
    """Binds one text; a view inside it has a binder of its own."""

    def __init__(self, query: str, tables: Tables, tree: Any, views: tuple[str, ...] = ()) -> None:
        super().__init__(query, tables)
        self._views = views
        self._until_micros: int | None = None
        self._rendered: Any = None
        self._arrival = any(
            text_of(column.args.get("table")).lower() == "sys" and column.name.lower() == "mtime"
            for column in tree.find_all(exp.Column)
        )

    # Queries

    def top(self, tree: Any) -> Query:
        """The plan of the whole query, with its rendering."""
        if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
            self.refuse(tree, f"this is {tree.key.upper()}, not a query", "write SELECT")
        refuse_unread(tree, self._query)
        self._rendered = outermost_select(tree)
        rendering = rendering_of(self._rendered)
        if as_of := tree.args.get("as_of"):
            self._until_micros = whole_micros(self._constant_time(as_of))
            self._arrival = True
            if rendering == "STREAM":
                self.refuse(
                    as_of, "AS OF SYSTEM TIME is the time of a table, and a STREAM has none", "write TABLE"
                )
            rendering = rendering or "TABLE"
        shown: list[tuple[str, int | str]] = []
        scope = self._query_of(tree, {}, shown)
        self._check_sessions(scope.relation)
        ordered = self._table_order(tree, scope)
        if not shown:
            shown = [(each.name, at) for at, each in enumerate(scope.visible)]
        names = [name.lower() for name, _ in shown]
        for name in names:
            if names.count(name) > 1:
                self.refuse(
                    tree,
                    f"two columns of the result have the name {name!r}",
                    "give one of them an alias with AS",
                )
        emit = tree.args.get("emit")
        if emit is not None and emit.args["clause"].as_stream:
            rendering = "STREAM"
            shown += [("undo", "Undo"), ("ptime", "EmitTime"), ("ver", "Ver")]
        if rendering != "STREAM":
            self._refuse_system_columns(rendering)
        return Query(scope.relation, rendering, tuple(shown), ordered)

    def _refuse_system_columns(self, rendering: str | None) -> None:
        """Refuses what only a stream of changes has a value for."""
        for item in self._rendered.expressions:
            if system := _system_column(item.unalias()):
                shown = f"a {rendering} shows none" if rendering else "a query without STREAM shows none"
                self.refuse(item.unalias(), f"{system} tells of changes, and {shown}", "write SELECT STREAM")

    def _check_sessions(self, relation: Relation) -> None:
        """Refuses sessions that no grouping makes: only the rows of a group tell where one ends."""
        for each in inputs_of(relation):
            grouped = isinstance(relation, Aggregate) and relation.start is not None
            below = _window_below(each) if grouped else None
            if isinstance(each, Windowed) and each.kind == "session" and below is not each:
                hint = "GROUP BY window_start, window_end right above SESSION(…)"
                self.refuse(None, "sessions are only there in a grouping by their window", hint)
            if below is None or below.kind != "session":
                self._check_sessions(each)

    def _table_order(self, tree: Any, scope: Scope) -> tuple[Order, ...]:
        order = tree.args.get("order")
        if order is None:
            return ()
        try:
            return self._orders(order, lambda node: self._output(node, scope))
        except SqlError:
            if tree.args.get("limit") or tree.args.get("offset"):
                # Which rows there are depends on something that is not among their columns.
                return ()
            raise

    def _output(self, node: Any, scope: Scope) -> Scalar:
        """A value of the result, for ORDER BY after a set operation or of a table."""
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node, [each.scalar for each in scope.visible])
        return self.scalar(node, scope, {})

    def _query_of(
        self, tree: Any, ctes: Mapping[str, Scope], shown: list[tuple[str, int | str]] | None
    ) -> Scope:
        """A query as a scope whose names are the columns of its result.

        Args:
            tree: The query.
            ctes: The queries that WITH has named.
            shown: Takes the columns of the result, those of the system among them; None where those are refused.
        """
        ctes = self._with(tree, ctes)
        if isinstance(tree, exp.Subquery):
            scope = self._query_of(tree.this, ctes, shown)
            return self._tail(tree, scope)
        if isinstance(tree, exp.SetOperation):
            return self._tail(tree, self._set_operation(tree, ctes))
        if isinstance(tree, exp.Values):
            return self._values(tree)
        if not isinstance(tree, exp.Select):
            self.refuse(tree, f"{tree.key.upper()} is not a query", "write SELECT")
        return self._select(tree, ctes, shown)

    def _with(self, tree: Any, ctes: Mapping[str, Scope]) -> Mapping[str, Scope]:
        named = tree.args.get("with_")
        if named is None:
            return ctes
        if named.args.get("recursive"):
            self.refuse(named, "WITH RECURSIVE is not supported", "compute the steps that there are by joins")
        found = dict(ctes)
        for cte in named.expressions:
            scope = self._query_of(cte.this, found, None)
            found[cte.alias.lower()] = self._renamed(cte, scope, cte.alias, cte.args["alias"].columns)
        return found

    def _renamed(self, node: Any, scope: Scope, qualifier: str | None, names: Sequence[Any] = ()) -> Scope:
        """A scope under the name of a table, perhaps with other names for its columns."""
        shown = [each for each in scope.visible if each.in_star]
        if names and len(names) != len(shown):
            self.refuse(
                node, f"there are {len(shown)} columns, and {len(names)} names for them", "name each column"
            )
        renamed = [text_of(name) for name in names] or [each.name for each in shown]
        hidden = [each for each in scope.visible if not each.in_star]
        visible = [
            replace(each, qualifier=qualifier, name=name) for each, name in zip(shown, renamed, strict=True)
        ] + [replace(each, qualifier=qualifier) for each in hidden]
        return Scope(scope.relation, visible, scope.arrival)

    def _tail(self, tree: Any, scope: Scope) -> Scope:
        """What may follow a set operation or a query in parentheses: ORDER BY, LIMIT and EMIT."""
        if tree.args.get("limit") or tree.args.get("offset"):
            orders = self._orders(tree.args.get("order"), lambda node: self._output(node, scope))
            scope = Scope(self._limited(tree, scope.relation, orders), scope.visible, scope.arrival)
        return self._emitted(tree, scope)

    def _values(self, tree: Any) -> Scope:
        rows = [[self._constant(each) for each in row.expressions] for row in tree.expressions]
        widths = {len(row) for row in rows}
        if len(widths) != 1:
            self.refuse(
                tree, "the rows of VALUES have different numbers of columns", "give each row the same columns"
            )
        columns = []
        for at, values in enumerate(zip(*rows, strict=True)):
            kinds = [each.type for each in values]
            kind = functions.common_type(values)
            if kind is None:
                what = f"column {at + 1} of VALUES has values of types that do not fit: {_list(kinds)}"
                self.refuse(tree, what, "CAST them to one type")
            columns.append(Named(f"col{at + 1}", kind))
        relation = Values(tuple(tuple(each.value for each in row) for row in rows), tuple(columns))
        alias = tree.args.get("alias")
        scope = scope_of(relation, None)
        return scope if alias is None else self._renamed(tree, scope, alias.name, alias.columns)

    def _set_operation(self, tree: Any, ctes: Mapping[str, Scope]) -> Scope:
        kind = next(name for each, name in _SET_KINDS.items() if isinstance(tree, each))
        left, right = (self._query_of(each, ctes, None) for each in (tree.this, tree.expression))
        widths = [len([each for each in side.visible if each.in_star]) for side in (left, right)]
        if widths[0] != widths[1]:
            what = f"{kind.upper()} combines {widths[0]} columns with {widths[1]}"
            self.refuse(tree, what, "select the same number of columns on both sides")
        columns = []
        for mine, other in zip(left.star(None), right.star(None), strict=True):
            common = functions.common_type([mine.scalar, other.scalar])
            if common is None:
                mine_type, other_type = mine.scalar.type, other.scalar.type
                what = f"the column {mine.name!r} is {mine_type} on the left and {other_type} on the right"
                self.refuse(tree, what, "CAST one of them")
            columns.append(Named(mine.name, common))
        sides = tuple(
            Project(
                side.relation,
                tuple(
                    functions.cast(each.scalar, to.type)
                    for each, to in zip(side.star(None), columns, strict=True)
                ),
                tuple(columns),
            )
            for side in (left, right)
        )
        is_all = not tree.args.get("distinct")
        if kind == "union":
            union = Union_(sides, tuple(columns))
            return scope_of(union if is_all else distinct(union), None)
        return scope_of(Counted(sides[0], sides[1], kind, is_all), None)

    def _select(
        self, tree: Any, ctes: Mapping[str, Scope], shown: list[tuple[str, int | str]] | None
    ) -> Scope:
        rendering = rendering_of(tree)
        if rendering is not None and tree is not self._rendered:
            self.refuse(tree, f"SELECT {rendering} stands inside another query", "write it outermost")
        for name, key in _REFUSED.items():
            if tree.args.get(key):
                self.refuse(tree, f"{name} is not supported", "see the page about SQL for what is")
        scope = self._from(tree, ctes)
        if where := tree.args.get("where"):
            self._where(where.this, scope, ctes)
        aliases = {each.alias.lower(): each.this for each in tree.expressions if isinstance(each, exp.Alias)}
        grouping, window = self._grouping(tree, scope, aliases, ctes)
        env: Scope | Grouping = grouping or scope
        items = self._items(tree, env, ctes, shown)
        having = tree.args.get("having")
        condition = None
        if having is not None:
            if grouping is None:
                self.refuse(having, "HAVING needs GROUP BY or an aggregate", "write WHERE")
            condition = self._condition(having.this, env, ctes, aliases, "HAVING")
        qualify = tree.args.get("qualify")
        numbers = self._row_numbers(tree)
        orders: tuple[tuple[Any, Scalar], ...] = ()
        if (order := tree.args.get("order")) and (tree.args.get("limit") or tree.args.get("offset")):
            orders = tuple(
                (each, self._order_scalar(each.this, items, env, ctes, aliases)) for each in order.expressions
            )
        number_parts = self._number_parts(numbers, env, ctes, aliases)
        relation = scope.relation
        if grouping is not None:
            if isinstance(relation, Valid) and window is not None:
                relation = self._valid(relation, grouping)
            else:
                relation = self._aggregate(relation, grouping)
            for one in grouping.ones:
                relation = Join(relation, one, "inner", (), ())
            placed = grouping.placed
            items = [
                (name, value if value is None or isinstance(value, str) else placed(value))
                for name, value in items
            ]
            orders = tuple((node, placed(scalar)) for node, scalar in orders)
            condition = None if condition is None else placed(condition)
            if number_parts is not None:
                keys, sorting = number_parts
                sorting = tuple(replace(each, scalar=placed(each.scalar)) for each in sorting)
                number_parts = tuple(map(placed, keys)), sorting
        if condition is not None:
            relation = Filter(relation, condition)
        if number_parts is not None:
            relation, items = self._numbered(
                relation, items, number_parts, qualify, aliases, scope, grouping is not None
            )
        elif qualify is not None:
            self.refuse(qualify, "QUALIFY needs ROW_NUMBER() OVER (…)", "write WHERE or HAVING")
        return self._projected(tree, relation, items, orders, shown)

    # FROM

    def _from(self, tree: Any, ctes: Mapping[str, Scope]) -> Scope:
        source = tree.args.get("from_")
        if source is None:
            return scope_of(Values(((),), ()), None)
        if version := source.this.args.get("version"):
            hint = "write it in a JOIN, with a time of the other table"
            self.refuse(
                source.this, f"{text_of(version.this) or 'SYSTEM_TIME'} AS OF is not supported here", hint
            )
        scope = self._table(source.this, ctes)
        for join in tree.args.get("joins") or ():
            scope = self._join(join, scope, self._table(join.this, ctes), ctes)
        return scope

    def _table(self, node: Any, ctes: Mapping[str, Scope]) -> Scope:
        alias = node.args.get("alias")
        names = alias.columns if alias is not None else ()
        if isinstance(node, exp.Values):
            return self._values(node)
        if isinstance(node, exp.Subquery):
            scope = self._query_of(node, ctes, None)
            return self._renamed(node, scope, node.alias or None, names)
        if not isinstance(node, exp.Table):
            self.refuse(
                node,
                f"{node.key.upper()} cannot be read as a table",
                "name a table or a query in parentheses",
            )
        joins = node.args.get("joins")
        if isinstance(node.this, exp.Anonymous):
            scope = self._table_function(node.this, ctes)
            scope = self._renamed(node, scope, node.alias or node.this.name, names)
        else:
            scope = self._named_table(node, ctes)
            scope = self._renamed(node, scope, node.alias or node.name, names)
        for join in joins or ():
            scope = self._join(join, scope, self._table(join.this, ctes), ctes)
        return scope

    def _named_table(self, node: Any, ctes: Mapping[str, Scope]) -> Scope:
        name = node.name
        if node.args.get("db"):
            self.refuse(node, f"the table {node.sql()!r} has a schema", "name the input alone")
        if name.lower() in ctes:
            return ctes[name.lower()]
        if view := _by_name(self._tables.views, name):
            if name.lower() in self._views:
                self.refuse(node, f"the view {name!r} reads itself", "define it by other tables")
            text = self._tables.views[view]
            tree = parsed(text)
            refuse_unread(tree, text)
            inner = _Binder(text, self._tables, tree, (*self._views, name.lower()))
            inner._until_micros = self._until_micros
            inner._arrival = inner._arrival or self._until_micros is not None
            return inner._query_of(tree, {}, None)
        found = _by_name(self._tables.inputs, name)
        if found is None:
            self.refuse(
                node,
                f"there is no table {name!r}",
                suggest(name, [*self._tables.inputs, *self._tables.views, *ctes]),
            )
        relation = Scan(found, self._tables.inputs[found], self._arrival, self._until_micros)
        if not self._arrival:
            return scope_of(relation, name)
        arrival = Column(len(relation.columns), "Sys.MTime", TIMESTAMP.or_null(False))
        relation = replace(relation, columns=(*relation.columns, Named("Sys.MTime", arrival.type)))
        scope = scope_of(relation, name)
        scope.visible.pop()
        scope.arrival = arrival
        return scope

    def _join(self, join: Any, left: Scope, right: Scope, ctes: Mapping[str, Scope]) -> Scope:
        width = len(left.relation.columns)
        own = [replace(each, scalar=moved(each.scalar, width)) for each in right.visible]
        both = Scope(left.relation, [*left.visible, *own])
        kind = self._join_kind(join)
        condition: Scalar | None = None
        if using := join.args.get("using"):
            condition = self._using(using, left, right, own, both, kind)
        elif on := join.args.get("on"):
            condition = self._condition(on, both, ctes, {}, "ON")
            if both.relation is not left.relation:
                self.refuse(on, "a subquery in ON is not supported", "join it in FROM, or write it in WHERE")
        elif kind not in ("cross", "inner"):
            self.refuse(join, f"a {kind.upper()} JOIN needs ON or USING", "say which columns are equal")
        version = join.this.args.get("version")
        refuse = self.at(join.this)
        as_of = None
        if version is not None:
            as_of = self._condition_time(version, own, both, ctes)
        is_asof = join.args.get("method") == "ASOF"
        relation = joined(left.relation, right.relation, kind, condition, as_of, is_asof, refuse)
        visible = both.visible
        if kind in ("semi", "left_anti"):
            visible = left.visible
        else:
            visible = [replace(each, scalar=retyped(each.scalar, relation.columns)) for each in visible]
        arrival = left.arrival
        if arrival is not None and right.arrival is not None and kind not in ("semi", "left_anti"):
            both_arrivals = (arrival, moved(right.arrival, width))
            arrival = functions.call("GREATEST", [retyped(each, relation.columns) for each in both_arrivals])
        return Scope(relation, visible, arrival)

    def _join_kind(self, join: Any) -> str:
        side, kind = (join.args.get(key) or "" for key in ("side", "kind"))
        if kind in ("SEMI", "ANTI"):
            if side == "RIGHT":
                self.refuse(
                    join.this,
                    f"RIGHT {kind} JOIN is not supported",
                    f"swap the tables and write LEFT {kind} JOIN",
                )
            return "semi" if kind == "SEMI" else "left_anti" if side else "anti"
        if join.args.get("method") not in (None, "", "ASOF"):
            self.refuse(
                join.this, f"{join.args['method']} JOIN is not supported", "name the equal columns with ON"
            )
        return (
            {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}[side]
            if kind != "CROSS"
            else "cross"
        )

    def _using(
        self, using: Any, left: Scope, right: Scope, own: list[Visible], both: Scope, kind: str
    ) -> Scalar:
        condition: Scalar | None = None
        for name in using:
            text = text_of(name)
            mine = left.find(None, text, self.at(name))
            right.find(None, text, self.at(name))
            other = next(each for each in own if each.name.lower() == text.lower())
            equal = self.call(name, "=", [mine, other.scalar])
            condition = equal if condition is None else self.call(name, "AND", [condition, equal])
            # The column is there once: as the right one in a RIGHT JOIN, otherwise as the left one.
            merged = other.scalar if kind == "right" else mine
            if kind in ("full", "anti"):
                merged = functions.call(
                    "COALESCE", [replace(each, type=each.type.or_null()) for each in (mine, other.scalar)]
                )
            both.visible = [
                each if each.name.lower() != text.lower() else replace(each, in_star=False)
                for each in both.visible
            ]
            both.visible.insert(0, Visible(None, text, merged))
            both.visible = [
                each
                for each in both.visible
                if each.qualifier is not None or each.name.lower() != text.lower() or each.scalar is merged
            ]
        assert condition is not None
        return condition

    def _condition_time(
        self,
        version: Any,
        own: list[Visible],
        both: Scope,
        ctes: Mapping[str, Scope],
    ) -> tuple[Scalar, Scalar]:
        """The two times of a temporal join: of a left row, and of a right row."""
        at = self.scalar(version.expression, both, ctes)
        times = [
            each.scalar for each in own if each.in_star and each.scalar.type.name.startswith("TIMESTAMP")
        ]
        if len(times) != 1:
            what = f"the table of FOR SYSTEM_TIME AS OF has {len(times)} columns with a time, not one"
            self.refuse(version.expression, what, "write ASOF JOIN … ON … AND right.time <= left.time")
        return at, times[0]

    def _table_function(self, node: Any, ctes: Mapping[str, Scope]) -> Scope:
        name = node.name.upper()
        if name == "TABLE" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Anonymous):
            return self._table_function(node.expressions[0], ctes)
        if name not in WINDOWS:
            self.refuse(node, f"there is no table function {node.name!r}", suggest(name, WINDOWS))
        named = {
            each.this.name.lower(): each.expression
            for each in node.expressions
            if isinstance(each, exp.Kwarg)
        }
        given = [each for each in node.expressions if not isinstance(each, exp.Kwarg)]
        table = named.pop("data", None) or named.pop("table", None) or (given.pop(0) if given else None)
        column = named.pop("timecol", None) or (given.pop(0) if given else None)
        if table is None or column is None:
            self.refuse(node, f"{name} takes a table, the column of its time, and lengths", SPELLINGS[name])
        scope = self._argument_table(table, ctes)
        time = self._time(column, scope, ctes)
        partition = named.pop("partition_by", None)
        if partition is None and given and is_descriptor(given[0]):
            partition = given.pop(0)
        keys = (
            tuple(self.scalar(each, scope, ctes) for each in partition.expressions)
            if partition is not None
            else ()
        )
        lengths = {key: self._interval(each) for key, each in named.items()}
        micros = [self._interval(each) for each in given]
        if name == "VALIDITY_WINDOW":
            if lengths or micros:
                self.refuse(node, "VALIDITY_WINDOW takes no length", SPELLINGS[name])
            return self._with_window(
                scope, lambda columns: Valid(scope.relation, keys, time, columns), time.type
            )
        make = self._windowed(node, name, scope.relation, time, micros, lengths)
        return self._with_window(scope, lambda columns: replace(make(columns), partition=keys), time.type)

    def _argument_table(self, node: Any, ctes: Mapping[str, Scope]) -> Scope:
        if isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE":
            node = node.expressions[0]
        if isinstance(node, (exp.Subquery, exp.Select)):
            return self._query_of(node, ctes, None)
        if isinstance(node, exp.Anonymous):
            return self._table_function(node, ctes)
        if isinstance(node, exp.Column):
            return self._named_table(exp.Table(this=node.this, db=node.args.get("table")), ctes)
        return self.refuse(node, "the first argument of a window function is a table", "write TABLE name")

    def _time(self, node: Any, scope: Scope, ctes: Mapping[str, Scope]) -> Scalar:
        if is_descriptor(node):
            node = node.expressions[0]
        time = self.scalar(node, scope, ctes)
        if time.type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            what = f"{time} is {time.type}, and windows are of timestamps"
            self.refuse(node, what, "CAST it to a TIMESTAMP, or use TIMESTAMP_SECONDS")
        return time

    def _windowed(
        self, node: Any, name: str, relation: Relation, time: Scalar, micros: list[int], named: dict[str, int]
    ) -> Callable[[Columns], Windowed]:
        """The relation with windows, once its columns are known."""
        order = _LENGTHS[name]
        lengths = dict(zip(order, micros, strict=False))
        for key, value in named.items():
            if key not in _SYNONYMS:
                self.refuse(node, f"{name} has no argument {key!r}", SPELLINGS[name])
            lengths[_SYNONYMS[key]] = value
        missing = [each for each in order if each not in lengths and each != "offset"]
        if missing or len(micros) > len(order):
            self.refuse(
                node, f"{name} takes {_list(order[: len(order) - ('offset' in order)])}", SPELLINGS[name]
            )
        if min(value for key, value in lengths.items() if key != "offset") <= 0:
            self.refuse(node, f"the lengths of {name} must be positive", SPELLINGS[name])
        size = lengths["size"]
        step = lengths.get("step", size)
        if name == "CUMULATE" and size % step:
            self.refuse(
                node,
                "the size of CUMULATE is not a multiple of its step",
                "choose a step that divides the size",
            )
        return lambda columns: Windowed(
            relation, name.lower(), time, size, step, lengths.get("offset", 0), columns
        )

    def _with_window(self, scope: Scope, make: Callable[[Columns], Relation], kind: SqlType) -> Scope:
        """A scope with the two columns of windows, under the names of the paper, too."""
        width = len(scope.relation.columns)
        added = tuple(Named(name, kind.or_null(False)) for name in ("window_start", "window_end"))
        relation = make((*scope.relation.columns, *added))
        visible = [*scope.visible]
        for each, other_name in zip(columns_as_scalars(added, width), ("wstart", "wend"), strict=True):
            visible.append(Visible(None, each.name, each))
            visible.append(Visible(None, other_name, each, in_star=False))
        return Scope(relation, visible, scope.arrival)

    # WHERE, GROUP BY, HAVING

    def _where(self, node: Any, scope: Scope, ctes: Mapping[str, Scope]) -> None:
        """Filters the relation of a scope."""
        if found := self._aggregate_in(node):
            self.refuse(found, f"the aggregate {found.name.upper()} is in WHERE", "write it in HAVING")
        for part in _conjuncts(node):
            if isinstance(part, exp.In) and part.args.get("query") is not None:
                # Of a condition that must be true, NULL and FALSE are the same: a join answers it.
                value = self.scalar(part.this, scope, ctes)
                inner = self._single_column(part.args["query"], scope, ctes)
                [other] = inner.star(None)
                left, right = self._fitting(part, value, other.scalar)
                scope.relation = Join(scope.relation, inner.relation, "semi", (left,), (right,))
                continue
            condition = self._condition(part, scope, ctes, {}, "WHERE")
            scope.relation = pushed(Filter(scope.relation, condition))

    def _grouping(
        self, tree: Any, scope: Scope, aliases: Mapping[str, Any], ctes: Mapping[str, Scope]
    ) -> tuple[Grouping | None, tuple[Scalar, Scalar] | None]:
        """What the query groups by; None if it does not. Also the start and the end of its window, as keys."""
        group, having = tree.args.get("group"), tree.args.get("having")
        aggregates = [
            self._aggregate_in(each) for each in [*tree.expressions, having, tree.args.get("order")] if each
        ]
        if group is None:
            if not any(aggregates):
                return None, None
            return Grouping(scope, []), None
        several = next(iter([*group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets)]), None)
        if several is not None or group.args.get("totals"):
            name = "WITH TOTALS" if several is None else several.key.upper().replace("GSETS", "G SETS")
            self.refuse(group, f"GROUP BY {name} is not supported", "UNION ALL the groupings")
        if group.args.get("all"):
            self.refuse(group, "GROUP BY ALL is not supported", "name the keys")
        nodes = [self._group_node(each, tree, scope, aliases) for each in group.expressions]
        for each in nodes:
            if found := self._aggregate_in(each):
                self.refuse(
                    found, f"the aggregate {found.name.upper()} is in GROUP BY", "group by what it aggregates"
                )
        window: tuple[Scalar, Scalar] | None = None
        keys: list[Scalar] = []
        for each in nodes:
            if window_call(each):
                if window is not None:
                    self.refuse(each, "GROUP BY has two windows", "join two groupings")
                window = self._group_window(each, scope, ctes)
                keys += window
            else:
                keys.append(self.scalar(each, scope, ctes))
        grouping = Grouping(scope, [key for at, key in enumerate(keys) if key not in keys[:at]])
        self._complete_window(grouping, scope)
        return grouping, window

    def _group_node(self, node: Any, tree: Any, scope: Scope, aliases: Mapping[str, Any]) -> Any:
        """What an item of GROUP BY stands for: the number or the alias of a selected expression, or an expression."""
        if isinstance(node, exp.Alias):
            node = node.this
        if isinstance(node, exp.Literal) and not node.is_string:
            items = tree.expressions
            at = int(node.name) if node.name.isdigit() else 0
            if not 1 <= at <= len(items):
                self.refuse(
                    tree, f"GROUP BY {node.name} names no column of the result", f"there are {len(items)}"
                )
            return items[at - 1].unalias()
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in aliases:
            known = {each.name.lower() for each in scope.visible}
            if node.name.lower() not in known:
                return aliases[node.name.lower()]
        return node

    def _group_window(self, node: Any, scope: Scope, ctes: Mapping[str, Scope]) -> tuple[Scalar, Scalar]:
        """Puts the rows of a scope into windows; gives the start and the end."""
        name = node.name.upper()
        if not node.expressions:
            self.refuse(node, f"{name} takes the column of the time", SPELLINGS[name])
        time = self._time(node.expressions[0], scope, ctes)
        inner = scope.relation
        if name == "VALIDITY_WINDOW":
            added = self._with_window(scope, lambda columns: Valid(inner, (), time, columns), time.type)
        else:
            micros = [self._interval(each) for each in node.expressions[1:]]
            added = self._with_window(scope, self._windowed(node, name, inner, time, micros, {}), time.type)
        width = len(inner.columns)
        scope.relation = added.relation
        # The bounds have names in the rest of the query, unless the rows have columns of these names.
        known = {each.name.lower() for each in scope.visible}
        scope.visible += [
            replace(each, in_star=False) for each in added.visible[-4:] if each.name.lower() not in known
        ]
        start, end = columns_as_scalars(added.relation.columns[width:], width)
        return start, end

    def _is_grouped_by(self, call: Any, scope: Scope, ctes: Mapping[str, Scope]) -> bool:
        _, below = below_projections(scope.relation)
        name = call.name.upper().removesuffix("_START").removesuffix("_END")
        time = self._time(call.expressions[0], scope, ctes)
        if isinstance(below, Valid):
            return name == "VALIDITY_WINDOW" and origin_of(scope.relation, time) == (below, below.time)
        if not isinstance(below, Windowed) or name == "VALIDITY_WINDOW":
            return False
        micros = [self._interval(each) for each in call.expressions[1:]]
        named = self._windowed(call, name, below.input, below.time, micros, {})(below.columns)
        return named == replace(below, partition=None) and origin_of(scope.relation, time) == (
            below,
            below.time,
        )

    def _complete_window(self, grouping: Grouping, scope: Scope) -> None:
        """Adds the other end of a window by which rows are grouped: one end tells the other."""
        windowed = _window_below(scope.relation)
        if windowed is None:
            return
        start, end = window_columns(scope)
        if start is None or end is None:
            return
        has_start, has_end = start in grouping.keys, end in grouping.keys
        if has_end and not has_start:
            grouping.keys.append(start)
        elif has_start and not has_end and windowed.kind != "cumulate":
            grouping.keys.append(end)

    def _aggregate(self, relation: Relation, grouping: Grouping) -> Relation:
        keys = tuple(grouping.keys)
        start, end = window_columns(grouping.inner)
        places = [keys.index(each) if each in keys else None for each in (start, end)]
        below = _window_below(relation)
        if None in places or below is None:
            places = [None, None]
        if below is not None and below.kind == "session" and below.partition is not None:
            others = {str(key) for at, key in enumerate(keys) if at not in places}
            if others != set(map(str, below.partition)):
                hint = "name the other keys of GROUP BY in PARTITION BY, and no more"
                self.refuse(None, "sessions are of other rows than the groups", hint)
        return Aggregate(relation, keys, tuple(grouping.calls), _columns_of(grouping), *places)

    def _valid(self, relation: Valid, grouping: Grouping) -> Relation:
        """A grouping by validity: one row for each key and time, valid until the key's next one."""
        columns = _columns_of(grouping)
        width = len(relation.input.columns)
        others = [key for key in grouping.keys if not columns_of(key) & {width, width + 1}]
        keys = (*others, relation.time)
        names = [Named(f"key{at}", key.type) for at, key in enumerate(keys)]
        names += [Named(f"{call.name}{at}", call.type) for at, call in enumerate(grouping.calls)]
        rows = Aggregate(relation.input, keys, tuple(grouping.calls), tuple(names))
        outer = columns_as_scalars(rows.columns)
        window = tuple(Named(name, relation.time.type) for name in ("window_start", "window_end"))
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

    # SELECT

    def _items(
        self,
        tree: Any,
        env: Scope | Grouping,
        ctes: Mapping[str, Scope],
        shown: list[tuple[str, int | str]] | None,
    ) -> list[tuple[str, Scalar | str | None]]:
        """The selected columns: names and values; a value is the name of a column of the system, if it is one."""
        items: list[tuple[str, Scalar | str | None]] = []
        for node in tree.expressions:
            inner = node.unalias()
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                items += self._star(inner, env)
                continue
            alias = node.alias if isinstance(node, exp.Alias) else ""
            if system := _system_column(inner):
                if shown is None:
                    self.refuse(inner, f"{system} belongs to the outermost SELECT STREAM", "select it there")
                items.append((alias or system.removeprefix("Sys."), system.removeprefix("Sys.")))
                continue
            name = alias or (inner.name if isinstance(inner, exp.Column) else f"column_{len(items) + 1}")
            if isinstance(inner, exp.Window):
                items.append((name, None))
                continue
            items.append((name, self.scalar(inner, env, ctes)))
        if not items:
            self.refuse(tree, "SELECT names no column", "write SELECT * or the names of columns")
        return items

    def _star(self, node: Any, env: Scope | Grouping) -> list[tuple[str, Scalar | str | None]]:
        if isinstance(env, Grouping):
            self.refuse(node, "* is in a query that groups", "name the keys and the aggregates")
        star = node.this if isinstance(node, exp.Column) else node
        qualifier = text_of(node.args.get("table")) or None if isinstance(node, exp.Column) else None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        found = list(env.star(qualifier))
        if qualifier is not None and not found:
            self.refuse(
                node,
                f"there is no table {qualifier!r} here",
                suggest(qualifier, [str(each.qualifier) for each in env.visible]),
            )
        return [(each.name, each.scalar) for each in found if each.name.lower() not in left_out]

    def _row_numbers(self, tree: Any) -> list[Any]:
        found = [
            each
            for item in [*tree.expressions, tree.args.get("qualify")]
            if item
            for each in own_parts(item)
            if isinstance(each, exp.Window)
        ]
        for each in found:
            name = each.this.name.upper() if isinstance(each.this, exp.Anonymous) else each.this.key.upper()
            if name != "ROW_NUMBER" or each.args.get("spec"):
                self.refuse(
                    each,
                    f"{name}() OVER is not supported",
                    "use ROW_NUMBER() OVER (...) with QUALIFY, or join with a grouped query",
                )
        if len({each.sql() for each in found}) > 1:
            self.refuse(found[1], "a query has two kinds of ROW_NUMBER()", "number the rows of a subquery")
        return found

    def _number_parts(
        self, numbers: list[Any], env: Scope | Grouping, ctes: Mapping[str, Scope], aliases: Mapping[str, Any]
    ) -> tuple[tuple[Scalar, ...], tuple[Order, ...]] | None:
        if not numbers:
            return None
        node = numbers[0]
        keys = tuple(self.scalar(each, env, ctes, aliases) for each in node.args.get("partition_by") or ())
        orders = self._orders(node.args.get("order"), lambda each: self.scalar(each, env, ctes, aliases))
        return keys, orders

    def _numbered(
        self,
        relation: Relation,
        items: list[tuple[str, Scalar | str | None]],
        parts: tuple[tuple[Scalar, ...], tuple[Order, ...]],
        qualify: Any,
        aliases: Mapping[str, Any],
        scope: Scope,
        grouped: bool,
    ) -> tuple[Relation, list[tuple[str, Scalar | str | None]]]:
        """Numbers the rows of each partition, and keeps those that QUALIFY wants."""
        keys, orders = parts
        width = len(relation.columns)
        number = Column(width, "row_number", BIGINT.or_null(False))
        columns = (*relation.columns, Named("row_number", number.type))
        top: Relation = Top(relation, keys, orders, None, 0, columns, numbered=True)
        shown: list[tuple[str, Scalar | str | None]] = [
            (name, number if value is None else value) for name, value in items
        ]
        if qualify is not None:
            names = [
                Visible(None, name, value)
                for name, value in shown
                if not isinstance(value, str) and value is not None
            ]
            known = {each.name.lower() for each in names}
            others = [] if grouped else [each for each in scope.visible if each.name.lower() not in known]
            self._row_number = number
            condition = self._condition(qualify.this, Scope(top, names + others), {}, {}, "QUALIFY")
            self._row_number = None
            top = pushed(Filter(top, condition))
        return top, shown

    def _projected(
        self,
        tree: Any,
        relation: Relation,
        items: list[tuple[str, Scalar | str | None]],
        orders: tuple[tuple[Any, Scalar], ...],
        shown: list[tuple[str, int | str]] | None,
    ) -> Scope:
        """The selected columns, then DISTINCT, LIMIT and EMIT."""
        values = [(name, value) for name, value in items if not isinstance(value, str)]
        scalars: list[Scalar] = [value for _, value in values]  # type: ignore[misc]
        columns = tuple(Named(name, value.type) for (name, _), value in zip(values, scalars, strict=True))
        hidden = [value for _, value in orders if value not in scalars]
        if hidden and tree.args.get("distinct"):
            self.refuse(
                tree, "ORDER BY with DISTINCT takes selected columns only", "select what orders the rows"
            )
        extra = tuple(Named(f"order{at}", each.type) for at, each in enumerate(hidden))
        selected = Project(relation, (*scalars, *hidden), (*columns, *extra))
        result: Relation = selected
        if tree.args.get("distinct"):
            if tree.args["distinct"].args.get("on"):
                self.refuse(tree, "DISTINCT ON is not supported", "write QUALIFY ROW_NUMBER() OVER (…) = 1")
            result = self._distinct(selected)
        if tree.args.get("limit") or tree.args.get("offset"):
            every = [*scalars, *hidden]
            resolved = tuple(
                _order(node, Column(every.index(value), "order", value.type)) for node, value in orders
            )
            result = self._limited(tree, result, resolved)
        if hidden:
            result = Project(result, columns_as_scalars(columns), columns)
        if shown is not None:
            places = iter(range(len(columns)))
            shown += [(name, value if isinstance(value, str) else next(places)) for name, value in items]
        return self._emitted(tree, scope_of(result, None))

    def _distinct(self, rows: Project) -> Relation:
        """The rows, each once: of rows in windows that they show, as of a grouping by these windows."""
        below = _window_below(rows)
        bounds = [each for each in window_columns(scope_of(rows.input, None)) if each is not None]
        shown = [each for each in bounds if each in rows.scalars]
        if below is None or below.kind == "session" or not shown:
            return distinct(rows)
        hidden = tuple(each for each in bounds if each not in rows.scalars)
        named = tuple(Named(each.name, each.type) for each in hidden)
        scope = scope_of(Project(rows.input, rows.scalars + hidden, rows.columns + named), None)
        grouping = Grouping(scope, [*columns_as_scalars(rows.columns)])
        self._complete_window(grouping, scope)
        grouped = self._aggregate(scope.relation, grouping)
        return Project(grouped, columns_as_scalars(rows.columns), rows.columns)

    def _limited(self, tree: Any, relation: Relation, orders: tuple[Order, ...]) -> Relation:
        limit, offset = (tree.args.get(key) for key in ("limit", "offset"))
        count = (
            None
            if limit is None
            else self._whole(limit.args.get("expression") or limit.args.get("count"), "LIMIT")
        )
        skipped = 0 if offset is None else self._whole(offset.expression, "OFFSET")
        return Top(relation, (), orders, count, skipped, relation.columns)

    def _whole(self, node: Any, clause: str) -> int:
        value = self._constant(node).value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.refuse(node, f"{clause} takes a whole number from 0 on", f"write {clause} 10")
        return value

    def _orders(self, order: Any, scalar_of: Callable[[Any], Scalar]) -> tuple[Order, ...]:
        if order is None:
            return ()
        return tuple(_order(each, scalar_of(each.this)) for each in order.expressions)

    def _order_scalar(
        self,
        node: Any,
        items: list[tuple[str, Scalar | str | None]],
        env: Scope | Grouping,
        ctes: Mapping[str, Scope],
        aliases: Mapping[str, Any],
    ) -> Scalar:
        selected = [
            (name, value) for name, value in items if value is not None and not isinstance(value, str)
        ]
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._ordinal(node, [value for _, value in selected])
        if isinstance(node, exp.Column) and not node.table:
            for name, value in selected:
                if name.lower() == node.name.lower():
                    return value
        return self.scalar(node, env, ctes, aliases)

    def _ordinal(self, node: Any, values: Sequence[Scalar]) -> Scalar:
        at = int(node.name) if node.name.isdigit() else 0
        if not 1 <= at <= len(values):
            self.refuse(
                node, f"ORDER BY {node.name} names no column of the result", f"there are {len(values)}"
            )
        return values[at - 1]

    # EMIT

    def _emitted(self, tree: Any, scope: Scope) -> Scope:
        node = tree.args.get("emit")
        if node is None:
            return scope
        clause = node.args["clause"]
        past: Scalar | None = None
        if clause.watermark:
            scope = _with_window_end(scope)
            past = self._past(node, clause.past, scope)
        keys = emission_keys(scope.relation)
        if past is not None:
            keys = tuple(sorted({*keys, *columns_of(past)})) if keys else tuple(sorted(columns_of(past)))
        clause = replace(clause, past=None)
        return Scope(Emitted(scope.relation, clause, keys, past), scope.visible, scope.arrival)

    def _past(self, node: EmitClause, past: Any, scope: Scope) -> Scalar:
        """What the watermark must pass: what the clause names, or the end of the window in the result."""
        if past is None:
            for name in ("window_end", "wend"):
                for each in scope.visible:
                    if each.name.lower() == name:
                        return each.scalar
            for each in scope.visible:
                if each.scalar.type.name == "WINDOW":
                    return bound_of(each.scalar, 1)
            ends = window_ends(scope.relation)
            if len(ends) == 1:
                return columns_as_scalars(scope.relation.columns)[ends[0]]
            what = "EMIT AFTER WATERMARK needs rows that have the end of a window"
            self.refuse(
                node, what, "GROUP BY a window, or select a time and write EMIT WHEN WATERMARK PAST it"
            )
        found = self.scalar(past, scope, {})
        if found.type.name == "WINDOW":
            found = bound_of(found, 1)
        if found.type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            self.refuse(past, f"the watermark is a time, and {found} is {found.type}", "name a TIMESTAMP")
        return found

    # Values

    def _constant_time(self, node: Any) -> Any:
        literal = self._constant(node)
        value = literal.value
        if isinstance(value, str):
            [value] = Projection((functions.cast(literal, TIMESTAMP),))(())
        if not isinstance(value, datetime.datetime):
            self.refuse(
                node, "AS OF SYSTEM TIME takes a time", "write AS OF SYSTEM TIME '2026-01-31 12:03:00'"
            )
        return value


def _with_window_end(scope: Scope) -> Scope:
    """A scope whose rows have the end of their window, hidden, where it is known and not selected."""
    relation = scope.relation
    if not isinstance(relation, Project) or window_ends(relation):
        return scope
    ends = window_ends(relation.input)
    if len(ends) != 1:
        return scope
    end = columns_as_scalars(relation.input.columns)[ends[0]]
    hidden = Named("window_end", end.type)
    made = Project(relation.input, (*relation.scalars, end), (*relation.columns, hidden))
    return Scope(made, scope.visible, scope.arrival)


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


def _columns_of(grouping: Grouping) -> Columns:
    """The columns of a grouping: its keys and its aggregates."""
    keys = (Named(f"key{at}", key.type) for at, key in enumerate(grouping.keys))
    return *keys, *(Named(f"{call.name}{at}", call.type) for at, call in enumerate(grouping.calls))


def _window_below(relation: Relation) -> Windowed | None:
    """The windows of a relation whose rows are in some, through filters and projections."""
    _, inner = below_projections(relation)
    return inner if isinstance(inner, Windowed) else None


def _system_column(node: Any) -> str | None:
    """The column of the system that a selected expression is."""
    if isinstance(node, exp.Column) and node.table.lower() == "sys" and node.name.lower() in SYSTEM:
        return f"Sys.{SYSTEM[node.name.lower()]}"
    if isinstance(node, exp.CurrentTimestamp) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "CURRENT_TIMESTAMP"
    ):
        return "Sys.EmitTime"
    return None


def _conjuncts(node: Any) -> Iterable[Any]:
    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _order(node: Any, scalar: Scalar) -> Order:
    descending = bool(node.args.get("desc"))
    nulls_first = node.args.get("nulls_first")
    return Order(scalar, descending, (not descending) if nulls_first is None else bool(nulls_first))


def _by_name(named: Mapping[str, Any], name: str) -> str | None:
    return next((each for each in named if each.lower() == name.lower()), None)


def _list(items: Iterable[Any]) -> str:
    return ", ".join(map(str, items))
