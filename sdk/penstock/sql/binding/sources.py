"""The FROM of a query: its tables, the functions of windows over them, and joins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from penstock.checks.similar_names import hint_at_name
from penstock.scalars import functions
from penstock.scalars.tree import Column, Scalar
from penstock.scalars.types import TIMESTAMP
from penstock.sql.binding import generators
from penstock.sql.binding.expressions import ExpressionBinder
from penstock.sql.binding.joining import make_join
from penstock.sql.binding.on_queries import bind_on_with_queries
from penstock.sql.binding.scopes import Scope, Visible, move_to_right, retype, scope_of
from penstock.sql.binding.statement import Statement, text_of
from penstock.sql.binding.subqueries import refused
from penstock.sql.binding.time_windows import (
    SPELLINGS,
    WINDOWS,
    add_window_columns,
    bind_windows,
    is_descriptor,
)
from penstock.sql.plan.relations import ColumnDef, Join, Project, Scan, Valid, Values


@dataclass(frozen=True)
class SourceBinder:
    """Binds what a query reads.

    Attributes:
        statement: The query.
        ctes: The queries that WITH has named.
        expressions: Makes what binds expressions of the rows of a scope.
        query_of: Binds a query in FROM.
        view_of: Binds the query of a view, by the view's name.
        values_of: Binds VALUES.
        filter_rows: Filters the rows of a scope by a condition.
    """

    statement: Statement
    ctes: Mapping[str, Scope]
    expressions: Callable[[Scope], ExpressionBinder]
    query_of: Callable[[Any], Scope]
    view_of: Callable[[str], Scope]
    values_of: Callable[[Any], Scope]
    filter_rows: Callable[[Any, Scope], None]

    def source(self, tree: exp.Expression) -> Scope:
        """Returns the rows of a SELECT, before its conditions."""
        source = tree.args.get("from_")
        if source is None:
            return scope_of(Values(((),), ()), None)
        if version := source.this.args.get("version"):
            what = f"{text_of(version.this) or 'SYSTEM_TIME'} AS OF is not supported here"
            self.statement.refuse(source.this, what, "write it in a JOIN, with a time of the other table")
        scope = self._with_joins(self._table(source.this), tree.args.get("joins"))
        for view in tree.args.get("laterals") or ():
            scope = generators.view_of(self.statement, view, scope, self.expressions(scope))
        return scope

    def _with_joins(self, scope: Scope, joins: Iterable[Any] | None) -> Scope:
        for join in joins or ():
            if (called := self._generator_for(join.this, scope)) is not None:
                scope = self._generated(join, scope, called)
            elif isinstance(join.this, exp.Lateral):
                scope = self._lateral(join, scope)
            else:
                scope = self._join(join, scope, self._table(join.this))
        return scope

    def _generator_for(self, node: exp.Expression, left: Scope) -> generators.Called | None:
        """The generator in a join that is called for each row of the tables before it; None if there is none."""
        if isinstance(node, exp.Lateral):
            return generators.called_generator(self.statement, node.this)
        called = generators.called_generator(self.statement, node)
        if called is not None or not (isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous)):
            return called
        called = generators.called_generator(self.statement, node.this)
        reads = [] if called is None else [*node.this.find_all(exp.Column)]
        if called is not None and any(left.has(each.table or None, each.name) for each in reads):
            what = f"{called.name} reads columns of the tables before it"
            self.statement.refuse(called.node, what, f"write LATERAL {called.name}(…)")
        return None

    def _generated(self, join: exp.Expression, left: Scope, called: generators.Called) -> Scope:
        """The rows of a table with those that a generator makes of each of them."""
        kind, on = self._lateral_kind(join), join.args.get("on")
        bound = generators.bind_generator(self.statement, called, self.expressions(left))
        alias = join.this.args.get("alias")
        if on is None:
            return generators.joined(self.statement, left, bound, alias, kind)

        def condition_of(both: Scope) -> Scalar:
            return self.expressions(both).condition(on, "ON")

        return generators.joined(self.statement, left, bound, alias, kind, condition_of)

    def _lateral_kind(self, join: exp.Expression) -> str:
        kind = self._join_kind(join)
        kind = "inner" if kind == "cross" else kind
        if kind not in ("inner", "left") or join.args.get("using"):
            what = "LATERAL belongs in CROSS JOIN, JOIN … ON or LEFT JOIN … ON"
            if isinstance(join.this, exp.Unnest):
                what = what.replace("LATERAL", "UNNEST")
            self.statement.refuse(join.this, what, "write JOIN LATERAL (SELECT …) AS t ON …")
        on = join.args.get("on")
        if on is not None and on.find(exp.Query) is not None:
            self.statement.refuse(on, "a subquery in ON of LATERAL is not supported", "write it in WHERE")
        return kind

    def _lateral(self, join: exp.Expression, left: Scope) -> Scope:
        """The rows of a table with those that a query has for each of them."""
        node = join.this
        if not isinstance(node.this, exp.Subquery) or node.args.get("view"):
            what = "LATERAL needs a query in parentheses, or a generator such as EXPLODE"
            self.statement.refuse(node, what, "write LATERAL (SELECT …) AS t")
        kind = self._lateral_kind(join)
        alias = node.args.get("alias")
        inner = self.expressions(left).query(node.this)
        names = alias.columns if alias is not None else ()
        inner = rename_scope(self.statement, node, inner, node.alias or None, names)
        width = len(left.relation.columns)
        own = [replace(each, scalar=move_to_right(each.scalar, width)) for each in inner.visible]
        both = Scope(left.relation, [*left.visible, *own])
        condition = None
        if (on := join.args.get("on")) is not None:
            condition = self.expressions(both).condition(on, "ON")
        with refused(self.statement, node):
            relation = self.expressions(left).join_rows(inner.relation, kind, condition)
        visible = [replace(each, scalar=retype(each.scalar, relation.columns)) for each in both.visible]
        return Scope(relation, visible, left.arrival)

    def _table(self, node: exp.Expression) -> Scope:
        alias = node.args.get("alias")
        names = alias.columns if alias is not None else ()
        if isinstance(node, exp.Values):
            return self.values_of(node)
        if (scope := self._generator(node)) is not None:
            return self._with_joins(scope, node.args.get("joins"))
        if isinstance(node, exp.Subquery):
            if _is_in_parentheses(node.this):
                scope = self._table(node.this)
            else:
                scope = rename_scope(self.statement, node, self.query_of(node), None, ())
            if node.alias:
                scope = rename_scope(self.statement, node, scope, node.alias, names)
            return self._with_joins(scope, node.args.get("joins"))
        if not isinstance(node, exp.Table):
            what = f"{node.key.upper()} cannot be read as a table"
            self.statement.refuse(node, what, "name a table or a query in parentheses")
        if isinstance(node.this, exp.Anonymous):
            scope, own_name = self._table_function(node.this), node.this.name
        else:
            scope, own_name = self._named_table(node), node.name
        scope = rename_scope(self.statement, node, scope, node.alias or own_name, names)
        return self._with_joins(scope, node.args.get("joins"))

    def _generator(self, node: exp.Expression) -> Scope | None:
        """The rows of a generator that reads no table before it; None if this is another table."""
        inner = node.this if isinstance(node, (exp.Lateral, exp.Table)) else node
        called = generators.called_generator(self.statement, inner)
        if called is None:
            return None
        nothing = scope_of(Values(((),), ()), None)
        bound = generators.bind_generator(self.statement, called, self.expressions(nothing))
        return generators.joined(self.statement, nothing, bound, node.args.get("alias"))

    def _named_table(self, node: exp.Expression) -> Scope:
        name, tables = node.name, self.statement.tables
        if node.args.get("db"):
            self.statement.refuse(node, f"the table {node.sql()!r} has a schema", "name the input alone")
        if name.lower() in self.ctes:
            return self.ctes[name.lower()]
        if view := _by_name(tables.views, name):
            if name.lower() in self.statement.views:
                self.statement.refuse(node, f"the view {name!r} reads itself", "define it by other tables")
            return self.view_of(view)
        found = _by_name(tables.inputs, name)
        if found is None:
            known = [*tables.inputs, *tables.views, *self.ctes]
            hint = hint_at_name(name, known)
            self.statement.refuse(node, f"there is no table {name!r}", hint, missing_table=name)
        relation = Scan(found, tables.inputs[found], self.statement.has_arrival, self.statement.until_micros)
        if not self.statement.has_arrival:
            return scope_of(relation, name)
        arrival = Column(len(relation.columns), "Sys.MTime", TIMESTAMP.or_null(False))
        relation = replace(relation, columns=(*relation.columns, ColumnDef("Sys.MTime", arrival.type)))
        scope = scope_of(relation, name)
        scope.visible.pop()
        scope.arrival = arrival
        return scope

    # Joins

    def _join(self, join: exp.Expression, left: Scope, right: Scope) -> Scope:
        width = len(left.relation.columns)
        own = [replace(each, scalar=move_to_right(each.scalar, width)) for each in right.visible]
        both = Scope(left.relation, [*left.visible, *own])
        kind = self._join_kind(join)
        condition: Scalar | None = None
        using, on = join.args.get("using"), join.args.get("on")
        if is_natural := join.args.get("method") == "NATURAL":
            using = self._common_names(join, left, right)
        if using:
            condition = self._using(using, left, right, own, both, kind)
        elif on is not None and kind == "inner" and on.find(exp.Query) is not None:
            # A condition of an inner join is one of its result.
            both.relation = Join(left.relation, right.relation, "inner", (), ())
            self.filter_rows(on, both)
            return both
        elif on is not None:
            if on.find(exp.Query) is not None:
                return self._join_by_queries(join, on, kind, left, right, both)
            condition = self.expressions(both).condition(on, "ON")
        elif kind not in ("cross", "inner") and not is_natural:
            what = f"a {kind.upper()} JOIN needs ON or USING"
            self.statement.refuse(join, what, "say which columns are equal")
        version = join.this.args.get("version")
        as_of = None if version is None else self._times_of_versions(version, own, both)
        is_asof = join.args.get("method") == "ASOF"
        refuse = self.statement.at(join.this)
        relation = make_join(left.relation, right.relation, kind, condition, as_of, is_asof, refuse)
        arrival = left.arrival
        if kind in ("semi", "left_anti"):
            return Scope(relation, left.visible, arrival)
        visible = [replace(each, scalar=retype(each.scalar, relation.columns)) for each in both.visible]
        if arrival is not None and right.arrival is not None:
            both_arrivals = (arrival, move_to_right(right.arrival, width))
            arrival = functions.call("GREATEST", [retype(each, relation.columns) for each in both_arrivals])
        return Scope(relation, visible, arrival)

    def _join_by_queries(
        self, join: exp.Expression, on: exp.Expression, kind: str, left: Scope, right: Scope, both: Scope
    ) -> Scope:
        """An outer join by a condition with queries."""
        found = bind_on_with_queries(self.statement, self.expressions, on, left, right)
        is_asof, refuse = join.args.get("method") == "ASOF", self.statement.at(join.this)
        if is_asof or join.this.args.get("version") is not None or kind == "anti":
            refuse("a subquery in ON of such a join is not supported", "write it in WHERE")
        relation = make_join(found.left, found.right, kind, found.condition, None, False, refuse)
        plain = Join(left.relation, right.relation, kind, (), ()).columns
        relation = Project(relation, found.own[: len(plain)], plain)
        if kind in ("semi", "left_anti"):
            return Scope(relation, left.visible, left.arrival)
        visible = [replace(each, scalar=retype(each.scalar, relation.columns)) for each in both.visible]
        return Scope(relation, visible, left.arrival)

    def _join_kind(self, join: exp.Expression) -> str:
        side, kind = (join.args.get(key) or "" for key in ("side", "kind"))
        if kind in ("SEMI", "ANTI"):
            if side == "RIGHT":
                what = f"RIGHT {kind} JOIN is not supported"
                self.statement.refuse(join.this, what, f"swap the tables and write LEFT {kind} JOIN")
            return "semi" if kind == "SEMI" else "left_anti" if side else "anti"
        if join.args.get("method") not in (None, "", "ASOF", "NATURAL"):
            what = f"{join.args['method']} JOIN is not supported"
            self.statement.refuse(join.this, what, "name the equal columns with ON")
        if kind == "CROSS":
            return "cross"
        return {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}[side]

    def _common_names(self, join: exp.Expression, left: Scope, right: Scope) -> list[exp.Expression]:
        """The columns of one name that a NATURAL JOIN compares, as USING names them."""
        names = {each.name.lower() for each in right.star(None)}
        common = dict.fromkeys(each.name for each in left.star(None) if each.name.lower() in names)
        if join.args.get("on") or join.args.get("using"):
            what = "a NATURAL JOIN compares all columns of one name"
            self.statement.refuse(join.this, what, "leave out NATURAL, or ON and USING")
        return [exp.to_identifier(name).update_positions(join.this) for name in common]

    def _using(
        self,
        using: Iterable[exp.Expression],
        left: Scope,
        right: Scope,
        own: list[Visible],
        both: Scope,
        kind: str,
    ) -> Scalar:
        condition: Scalar | None = None
        for place, name in enumerate(using):
            text = text_of(name)
            mine = left.find(None, text, self.statement.at(name))
            right.find(None, text, self.statement.at(name))
            other = next(each for each in own if each.name.lower() == text.lower())
            equal = self.statement.call(name, "=", [mine, other.scalar])
            condition = equal if condition is None else self.statement.call(name, "AND", [condition, equal])
            # The column is there once: as the right one in a RIGHT JOIN, otherwise as the left one.
            merged = other.scalar if kind == "right" else mine
            if kind in ("full", "anti"):
                sides = [replace(each, type=each.type.or_null()) for each in (mine, other.scalar)]
                merged = functions.call("COALESCE", sides)
            both.visible = [
                each if each.name.lower() != text.lower() else replace(each, in_star=False)
                for each in both.visible
            ]
            both.visible.insert(place, Visible(None, text, merged))
            both.visible = [
                each
                for each in both.visible
                if each.qualifier is not None or each.name.lower() != text.lower() or each.scalar is merged
            ]
        assert condition is not None
        return condition

    def _times_of_versions(
        self, version: exp.Expression, own: list[Visible], both: Scope
    ) -> tuple[Scalar, Scalar]:
        """The two times of a temporal join: of a left row, and of a right row."""
        at = self.expressions(both).scalar(version.expression)
        times = [
            each.scalar for each in own if each.in_star and each.scalar.type.name.startswith("TIMESTAMP")
        ]
        if len(times) != 1:
            what = f"the table of FOR SYSTEM_TIME AS OF has {len(times)} columns with a time, not one"
            hint = "write ASOF JOIN … ON … AND right.time <= left.time"
            self.statement.refuse(version.expression, what, hint)
        return at, times[0]

    # Functions of windows

    def _table_function(self, node: exp.Expression) -> Scope:
        name = node.name.upper()
        if name == "TABLE" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Anonymous):
            return self._table_function(node.expressions[0])
        if name not in WINDOWS:
            what = f"there is no table function {node.name!r}"
            self.statement.refuse(node, what, hint_at_name(name, (*WINDOWS, *generators.IN_FROM)))
        named = {
            each.this.name.lower(): each.expression
            for each in node.expressions
            if isinstance(each, exp.Kwarg)
        }
        given = [each for each in node.expressions if not isinstance(each, exp.Kwarg)]
        table = named.pop("data", None) or named.pop("table", None) or (given.pop(0) if given else None)
        column = named.pop("timecol", None) or (given.pop(0) if given else None)
        if table is None or column is None:
            what = f"{name} takes a table, the column of its time, and lengths"
            self.statement.refuse(node, what, SPELLINGS[name])
        scope = self._argument_table(table)
        expressions = self.expressions(scope)
        time = expressions.time(column)
        partition = named.pop("partition_by", None)
        if partition is None and given and is_descriptor(given[0]):
            partition = given.pop(0)
        keys = tuple(map(expressions.scalar, partition.expressions)) if partition is not None else ()
        lengths = {key: self.statement.interval(each) for key, each in named.items()}
        micros = [self.statement.interval(each) for each in given]
        if name == "VALIDITY_WINDOW":
            if lengths or micros:
                self.statement.refuse(node, "VALIDITY_WINDOW does not take a length", SPELLINGS[name])
            return add_window_columns(
                scope, lambda columns: Valid(scope.relation, keys, time, columns), time.type
            )
        make = bind_windows(self.statement, node, scope.relation, time, micros, lengths)
        return add_window_columns(scope, lambda columns: replace(make(columns), partition=keys), time.type)

    def _argument_table(self, node: exp.Expression) -> Scope:
        if isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE":
            node = node.expressions[0]
        if isinstance(node, (exp.Subquery, exp.Select)):
            return self.query_of(node)
        if isinstance(node, exp.Anonymous):
            return self._table_function(node)
        if isinstance(node, exp.Column):
            return self._named_table(exp.Table(this=node.this, db=node.args.get("table")))
        what = "the first argument of a window function is a table"
        return self.statement.refuse(node, what, "write TABLE name")


def rename_scope(
    statement: Statement, node: exp.Expression, scope: Scope, qualifier: str | None, names: Sequence[Any] = ()
) -> Scope:
    """Returns a scope under the name of a table, perhaps with other names for its columns."""
    shown = [each for each in scope.visible if each.in_star]
    if names and len(names) != len(shown):
        what = f"there are {len(shown)} columns, and {len(names)} names for them"
        statement.refuse(node, what, "name each column")
    own_names = [text_of(name) for name in names] or [each.name for each in shown]
    hidden = [each for each in scope.visible if not each.in_star]
    visible = [
        replace(each, qualifier=qualifier, name=name) for each, name in zip(shown, own_names, strict=True)
    ] + [replace(each, qualifier=qualifier) for each in hidden]
    return Scope(scope.relation, visible, scope.arrival)


def _is_in_parentheses(node: exp.Expression) -> bool:
    """True if what parentheses hold are tables, and not a query."""
    if isinstance(node, exp.Subquery):
        return bool(node.alias or node.args.get("joins")) or _is_in_parentheses(node.this)
    return isinstance(node, (exp.Table, exp.Values))


def _by_name(named: Mapping[str, Any], name: str) -> str | None:
    return next((each for each in named if each.lower() == name.lower()), None)
