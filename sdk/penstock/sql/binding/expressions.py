"""The expressions of a query: what each one means for the rows of a scope, and of which type its values are."""

from __future__ import annotations

import datetime
import decimal
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sqlglot import exp

from penstock.scalars import casts, functions, resolving, types
from penstock.scalars.nested_values import ResultOfUser, value_maker_of
from penstock.scalars.refused_functions import REFUSED
from penstock.scalars.row_functions import Projection
from penstock.scalars.time_units import WITH_UNITS
from penstock.scalars.tree import Call, Lambda, Literal, Parameter, Scalar, UserCall, columns_of, make_lambda
from penstock.scalars.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, SqlType
from penstock.scalars.widths import fits_width
from penstock.sql.binding import subqueries
from penstock.sql.binding.aggregates import bind_aggregate, called_aggregate, refuse_aggregates_inside
from penstock.sql.binding.generators import called_generator, refuse_inside
from penstock.sql.binding.grouping_sets import bind_grouping_function
from penstock.sql.binding.nested_arguments import bind_arguments
from penstock.sql.binding.nested_types import nested_type, schema_of
from penstock.sql.binding.scopes import Env, Grouping, Scope, make_outer, scope_of, window_columns
from penstock.sql.binding.statement import Statement, walk_own_parts
from penstock.sql.binding.time_windows import (
    BOUNDS,
    SPELLINGS,
    WINDOWS,
    is_descriptor,
    is_grouped_by,
    is_window_call,
    mentions_window,
    window_call_in,
)
from penstock.sql.binding.tuples import compare_tuples, parts_of_tuple
from penstock.sql.binding.window_functions import FUNCTIONS as WINDOW_FUNCTIONS
from penstock.sql.binding.window_functions import refuse_over
from penstock.sql.errors import place
from penstock.sql.language.dialect import SPARK_FUNCTIONS, position_of
from penstock.sql.language.month_intervals import months_of_interval
from penstock.sql.plan.decorrelation import Correlation
from penstock.sql.plan.lineage import bound_of, make_period
from penstock.sql.plan.relations import Relation, Values
from penstock.sql.user_functions import GuardedFunction, UserFunction, why_not_called_with

_TYPES = {
    **{str(kind): kind for kind in (BIGINT, types.INT, types.SMALLINT, types.TINYINT, DOUBLE, types.REAL)},
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR"), types.STRING),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ"), types.TIMESTAMP_NTZ),
    "BOOLEAN": BOOLEAN,
    "DATE": types.DATE,
    "BINARY": types.BINARY,
    "VARBINARY": types.BINARY,
}
_Entry = TypeVar("_Entry")
_SEE_PAGE = "see the page about SQL for what is"


class ExpressionBinder:
    """Binds expressions at one place of a query.

    Args:
        statement: The query.
        env: What names mean there.
        query_of: Binds a query inside of an expression.
    """

    def __init__(self, statement: Statement, env: Env, query_of: Callable[[Any, Env], Scope]) -> None:
        self._statement = statement
        self._env = env
        self._query_of = query_of

    def scalar(self, node: object) -> Scalar:
        """Returns the value of an expression for each row of the scope, or for each row of a grouped result."""
        if isinstance(self._env.scope, Grouping):
            found = self._key_or_aggregate(node, self._env.scope)
            if found is not None:
                return found
        bind = _by_kind(_BINDINGS, node)
        return self._unsupported(node) if bind is None else bind(self, node)

    def column(self, node: exp.Expression) -> Scalar:
        """Returns a value that can be a column."""
        value = self.scalar(node)
        if value.type.has("MONTHS"):
            what = "an interval of months cannot be a column"
            self._statement.refuse(node, what, "add it to a time, or select EXTRACT(MONTH FROM interval)")
        return value

    def condition(self, node: exp.Expression, clause: str) -> Scalar:
        """Returns a condition; `clause` is the word before it."""
        condition = self.scalar(node)
        if condition.type.name not in ("BOOLEAN", "NULL", "ANY"):
            what = f"the condition of {clause} is {condition.type}"
            self._statement.refuse(node, what, "compare it with something")
        return condition

    def constant(self, node: exp.Expression) -> Literal:
        """Returns a value that depends on no row."""
        scalar = self._in(Env(scope_of(Values(((),), ()), None), {})).column(node)
        if isinstance(scalar, Literal):
            return scalar
        if columns_of(scalar):
            self._statement.refuse(node, "expected a constant here", "write a literal")
        [value] = Projection((scalar,))(())
        return Literal(value, scalar.type)

    def time(self, node: exp.Expression) -> Scalar:
        """Returns the time of rows that are put into windows."""
        if is_descriptor(node):
            node = node.expressions[0]
        time = self.scalar(node)
        if time.type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            what = f"{time} is {time.type}, and windows are of timestamps"
            self._statement.refuse(node, what, "CAST it to a TIMESTAMP, or use TIMESTAMP_SECONDS")
        return time

    def _in(self, env: Env) -> ExpressionBinder:
        return ExpressionBinder(self._statement, env, self._query_of)

    def _of_rows(self) -> ExpressionBinder:
        """Returns the binder of expressions of the rows that are grouped."""
        return self._in(replace(self._env, scope=self._env.rows, aliases={}, over=None, parameters={}))

    def _call(self, node: object, name: str, *parts: object) -> Scalar:
        """A call of parts of the tree; those that are not there are left out."""
        arguments = [self.scalar(each) for each in parts if each is not None]
        return self._statement.call(node, name, arguments)

    def _unsupported(self, node: Any) -> Scalar:
        return self._statement.refuse(node, f"{node.sql()!r} is not supported", _SEE_PAGE)

    # Names

    def _inner(self, node: exp.Expression) -> Scalar:
        return self.scalar(node.this)

    def _parameter(self, node: exp.Identifier) -> Scalar:
        """The value that a lambda is called with."""
        found = self._env.parameters.get(node.name.lower())
        if found is None:
            hint = "aggregate the array first, in a subquery"
            self._statement.refuse(node, f"{node.name!r} is a parameter of a lambda around this", hint)
        return found

    def _dot(self, node: exp.Dot) -> Scalar:
        return self._field(node, self.scalar(node.this), node.expression)

    def _field(self, node: exp.Expression, value: Scalar, name: exp.Expr) -> Scalar:
        """The value of a field of a struct."""
        return self._statement.call(node, "FIELD", [value, _text_literal(name.name)])

    def _of_path(self, node: exp.Column) -> Scalar | None:
        """The value of a field of a column or a parameter, by the names between dots; None if it is a column."""
        first, *others = node.parts
        env = self._env
        if first.name.lower() in env.parameters:
            base: Scalar = env.parameters[first.name.lower()]
        else:
            scopes = [env.rows, *(each.rows for each in env.around)]
            if any(each.has(first.name, others[0].name) for each in scopes if others):
                width = 2
            elif others and (
                first.name.lower() in env.aliases or any(each.has(None, first.name) for each in scopes)
            ):
                width = 1
            else:
                return None
            if width > len(others):
                return None
            column = exp.Column(**dict(zip(("this", "table"), node.parts[width - 1 :: -1], strict=False)))
            others = others[width - 1 :]
            base = self.scalar(column)
        for name in others:
            base = self._field(node, base, name)
        return base

    def _refuse_in_lambda(self, node: exp.Expression | exp.Query, what: str) -> None:
        if self._env.parameters:
            self._statement.refuse(node, f"{what} cannot be inside a lambda", "select it in FROM first")

    def _lambda_outside(self, node: exp.Expression) -> Scalar:
        hint = "write it as an argument of TRANSFORM, FILTER, AGGREGATE or another of their kind"
        return self._statement.refuse(node, "a lambda is not an argument of a function", hint)

    def _column(self, node: exp.Column) -> Scalar:
        refuse, rows = self._statement.refuse, self._env.rows
        qualifier, name = node.table or None, node.name
        if (qualifier or "").lower() == "sys":
            return self._system_column(node)
        if (found := self._of_path(node)) is not None:
            return found
        if node.args.get("db"):
            refuse(node, f"{node.sql()} has too many parts", "write TABLE.COLUMN, or TABLE.COLUMN.FIELD")
        selected = self._env.aliases.get(name.lower()) if qualifier is None else None
        without_aliases = self._in(replace(self._env, aliases={}))
        if isinstance(self._env.scope, Grouping):
            if selected is not None:
                return without_aliases.scalar(selected)
            if (outer := self._outer_column(node)) is not None:
                return outer
            self._found(node, rows)
            what = f"the column {name!r} is neither a key of the grouping nor aggregated"
            refuse(node, what, f"add it to GROUP BY, or write MAX({name})")
        if selected is not None and name.lower() not in {each.name.lower() for each in rows.visible}:
            return without_aliases.scalar(selected)
        return self._found(node, rows)

    def _system_column(self, node: exp.Expression) -> Scalar:
        if node.name.lower() != "mtime":
            what = f"Sys.{node.name} can only be selected, by the outermost SELECT"
            self._statement.refuse(node, what, "select it with an alias")
        arrival = self._env.rows.arrival
        if arrival is None:
            what = "rows of this query do not have their own Sys.MTime"
            self._statement.refuse(node, what, "use it where the table is read")
        return arrival

    def _found(self, node: exp.Column, scope: Scope) -> Scalar:
        """The value of a column by its name: of these rows, or else of the nearest query around that has it."""
        if (outer := self._outer_column(node)) is not None:
            return outer
        # A table that this query does not have may be one of a query around it, where it lacks the column.
        scopes = [scope, *(each.rows for each in reversed(self._env.around))]
        named = (each for each in scopes if node.table and each.has_table(node.table))
        return next(named, scope).find(node.table or None, node.name, self._statement.at(node))

    def _outer_column(self, node: exp.Column) -> Scalar | None:
        """The value of a column of a query around this one; None if it is not one."""
        found = self._env_of(node)
        return None if found is None else make_outer(self._in(found[1]).scalar(node), found[0])

    def _env_of(self, node: exp.Column) -> tuple[int, Env] | None:
        """The nearest query around this one that has a column, and how many are around that; None if this one has."""
        qualifier, name = node.table or None, node.name
        if self._env.rows.has(qualifier, name):
            return None
        around = reversed(list(enumerate(self._env.around)))
        return next((each for each in around if each[1].rows.has(qualifier, name)), None)

    def _over(self, node: exp.Expression) -> Scalar:
        """The result of a window function, or of an aggregate with OVER."""
        self._refuse_in_lambda(node, "a window function")
        return refuse_over(self._statement, node) if self._env.over is None else self._env.over(node)

    # Groupings

    def _key_or_aggregate(self, node: Any, grouping: Grouping) -> Scalar | None:
        """The column of a grouped result that an expression is: a key, or an aggregate."""
        found = bind_grouping_function(self._statement, node, grouping, self._of_rows())
        if found is not None:
            return found
        if (called := called_aggregate(self._statement, node)) is not None:
            refuse_aggregates_inside(self._statement, called)
            call = bind_aggregate(self._statement, called, self._of_rows())
            if self.reads_around_only(called.node):
                what = f"{called.node.sql()} aggregates only columns of the outer query"
                hint = "select it in a subquery of that query's FROM, and name its column here"
                self._statement.refuse(called.node, what, hint)
            return grouping.call(call)
        if (call := window_call_in(node)) is not None:
            return self._window_of(node, call, grouping)
        if isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
            return None
        has_others = node.find(exp.Query, exp.Window)
        if self._statement.aggregate_in(node) or has_others or mentions_window(node):
            return None
        try:
            scalar = self._of_rows().scalar(node)
        except ValueError:
            # It may be an alias of something that is aggregated.
            return None
        return grouping.key(scalar) if columns_of(scalar) else None

    def _window_of(self, node: exp.Expression, call: exp.Expression, grouping: Grouping) -> Scalar:
        """The window that the query groups by, or a bound of it."""
        first, last = (
            None if each is None else grouping.key(each) for each in window_columns(grouping.inner)
        )
        if first is None or last is None:
            what = f"{node.name.upper()} needs a window among the keys of the grouping"
            self._statement.refuse(node, what, "GROUP BY TUMBLE(…)")
        if call.expressions:
            time = self._of_rows().time(call.expressions[0])
            if not is_grouped_by(self._statement, call, grouping.inner, time):
                what = f"{call.sql()} is not the window that the query groups by"
                self._statement.refuse(call, what, "write the window as in GROUP BY")
        if is_window_call(node):
            return make_period(first, last)
        return last if node.name.upper().endswith("_END") else first

    def _misplaced_or_function(self, node: exp.Expression) -> Scalar:
        """A call of a function, since an aggregate has no meaning for one row."""
        name = node.name.upper()
        if self._statement.is_aggregate(node):
            what = f"the aggregate {name} cannot be used here"
            self._statement.refuse(node, what, "aggregate in a subquery")
        if (generator := called_generator(self._statement, node)) is not None:
            refuse_inside(self._statement, generator)
        own = self._statement.tables.functions.get(name)
        if own is None and name in WINDOW_FUNCTIONS:
            self._statement.refuse(
                node, f"{name} needs OVER", f"write {name}(…) OVER (PARTITION BY … ORDER BY …)"
            )
        if own is None and name not in (*WITH_UNITS, *WINDOWS, *BOUNDS, *functions.FUNCTIONS):
            # It is refused before its arguments, which may be right in an aggregate only.
            unknown = functions.make_unknown_function_error(name)
            is_known = name in SPARK_FUNCTIONS and name not in REFUSED
            self._statement.refuse(node, unknown.what, functions.IN_PYTHON if is_known else unknown.hint)
        if own is None and name in WITH_UNITS and len(node.expressions) == 3:
            unit, *rest = node.expressions
            word = unit.sql() if isinstance(unit, exp.Literal) else unit.name
            times = [_text_literal(word), *map(self.scalar, rest)]
            return self._statement.typed(node, lambda: WITH_UNITS[name](*times))
        if own is None and name in functions.FUNCTIONS:
            return self._function_with_parts(node, name, node.expressions)
        arguments = list(map(self.scalar, node.expressions))
        if own is not None:
            return self._user_call(node, own, arguments)
        if name in BOUNDS and len(arguments) == 1 and arguments[0].type.name == "WINDOW":
            return bound_of(arguments[0], BOUNDS.index(name))
        if name in WINDOWS:
            self._statement.refuse(node, f"{name} belongs in GROUP BY or FROM", SPELLINGS[name])
        return self._statement.call(node, name, arguments)

    def _function_with_parts(self, node: exp.Expression, name: str, parts: list[Any]) -> Scalar:
        """A call whose arguments may be lambdas, or have names."""
        star = functools.partial(_star_of, self._statement, self._env)
        schema = functools.partial(schema_of, self._statement, plain_type=self._plain_type)
        arguments = bind_arguments(
            self._statement, name, parts, self.scalar, self._with_parameters, star, schema
        )
        return self._statement.call(node, name, arguments)

    def _with_parameters(
        self, names: tuple[str, ...], kinds: tuple[SqlType, ...], body: exp.Expression
    ) -> Lambda:
        """A lambda whose parameters have these names and types."""
        first = 1 + max((each.number for each in self._env.parameters.values()), default=-1)
        found = tuple(
            Parameter(number, name, kind)
            for number, (name, kind) in enumerate(zip(names, kinds, strict=True), first)
        )
        known = {**self._env.parameters, **{each.name.lower(): each for each in found}}
        return make_lambda(found, self._in(replace(self._env, parameters=known)).scalar(body))

    def _transform(self, node: exp.Transform) -> Scalar:
        return self._function_with_parts(node, "TRANSFORM", [node.this, node.expression])

    def _user_call(self, node: exp.Expression, own: UserFunction, arguments: list[Scalar]) -> Scalar:
        """The call of a function in Python, whose exceptions name its place."""
        reason = why_not_called_with(own.fn, len(arguments))
        if reason is not None:
            self._statement.refuse(
                node, f"the function {node.name.upper()} {reason}", "correct the call, or the function"
            )
        position = position_of(node)
        where = "" if position is None else place(self._statement.text, position, own.caller)
        guarded = GuardedFunction(own.fn, node.name.upper(), where)
        made = ResultOfUser(guarded, own.type) if value_maker_of(own.type) else guarded
        return UserCall(node.name, made, tuple(arguments), own.type)

    # Values

    def _literal(self, node: exp.Expression) -> Scalar:
        """A literal whose number has no more digits than its type has."""
        literal = _literal_of(node)
        if (literal.type.precision or 0) > types.DIGITS_MAX:
            self._statement.refuse(node, "a number has more than 38 digits", "write 1e40 for a DOUBLE")
        if literal.type.name == "BIGINT" and not fits_width(literal.value, literal.type.bits):
            what = f"{literal} is not a {literal.type.or_null()}, as its suffix says"
            self._statement.refuse(node, what, "leave out the suffix")
        return literal

    def _interval(self, node: exp.Expression) -> Scalar:
        months = months_of_interval(node)
        if months is not None:
            return Literal(months, types.MONTHS.or_null(False))
        length = datetime.timedelta(microseconds=self._statement.interval(node))
        return Literal(length, types.INTERVAL.or_null(False))

    # Queries

    def reads_around_only(self, node: exp.Expression) -> bool:
        """True if all columns in a part of the tree are of queries around this one."""
        columns = [each for each in walk_own_parts(node) if isinstance(each, exp.Column)]
        return bool(columns) and all(self._env_of(each) is not None for each in columns)

    def join_rows(self, right: Relation, kind: str, condition: Scalar | None) -> Relation:
        """Returns the join of these rows with those that a query has for each of them."""
        correlation = Correlation(len(self._env.around))
        return correlation.join(self._env.rows.relation, right, kind, condition=condition)

    def query(self, node: exp.Expression | exp.Query) -> Scope:
        """Returns a query that may read columns of these rows."""
        self._refuse_in_lambda(node, "a subquery")
        return self._query_of(node, self._env)

    def _query(self, node: exp.Expression) -> Scalar:
        return subqueries.value_of(self._statement, node, self._env, self.query(node))

    def _exists(self, node: exp.Expression) -> Scalar:
        return subqueries.has_rows(self._statement, node, self._env, self.query(node.this))

    def _in_list(self, node: exp.Expression) -> Scalar:
        tree = node.args.get("query")
        if tree is None:
            if parts_of_tuple(node.this) is not None:
                return self._in_tuples(node)
            return self._call(node, "IN", node.this, *node.expressions)
        return self._among(node, tree)

    def _in_tuples(self, node: exp.Expression) -> Scalar:
        mine = self.tuple_of(node.this)
        found = [
            compare_tuples(self._statement, node, "=", mine, self.tuple_of(each)) for each in node.expressions
        ]
        return functools.reduce(lambda left, right: self._statement.call(node, "OR", [left, right]), found)

    def tuple_of(self, node: exp.Expression) -> list[Scalar]:
        """Returns the parts of a tuple; one part for a single value."""
        parts = parts_of_tuple(node)
        return [self.scalar(each) for each in ([node] if parts is None else parts)]

    def _among(self, node: exp.Expression, tree: exp.Expression | exp.Query) -> Scalar:
        if parts_of_tuple(node.this) is not None:
            values, inner = self.tuple_of(node.this), self.query(tree)
            return subqueries.is_tuple_among(self._statement, node, self._env, inner, values, tree)
        value, inner = self.scalar(node.this), self.query(tree)
        return subqueries.is_among(self._statement, node, self._env, inner, value, tree)

    def _quantified(self, node: exp.Expression, name: str, quantified: exp.Expression) -> Scalar:
        """A comparison with ANY or ALL of the rows of a query."""
        is_all, tree = isinstance(quantified, exp.All), quantified.this
        if name not in _DECIDING or not isinstance(tree, exp.Query):
            what = f"{'ALL' if is_all else 'ANY'} needs a comparison with a query"
            self._statement.refuse(node, what, "write points > ALL (SELECT …)")
        if name == ("<>" if is_all else "="):
            among = self._among(node, tree)
            return self._statement.call(node, "NOT", [among]) if is_all else among
        value, inner = self.scalar(node.this), self.query(tree)

        def compare(mine: Scalar, other: Scalar) -> Scalar:
            return self._statement.call(node, name, [mine, other])

        bounds = _DECIDING[name][::-1] if is_all else _DECIDING[name]
        return subqueries.is_comparable(
            self._statement, node, self._env, inner, value, tree, is_all, compare, bounds[: len(bounds) // 2]
        )

    # Operators and functions with words of their own

    def _operator(self, node: exp.Expression) -> Scalar:
        name = _by_kind(_OPERATORS, node)
        assert name is not None
        if isinstance(node.expression, (exp.Any, exp.All)):
            if name in ("LIKE", "ILIKE"):
                return self._any_or_all(node, name)
            return self._quantified(node, name, node.expression)
        if parts_of_tuple(node.this) is not None and parts_of_tuple(node.expression) is not None:
            lefts, rights = self.tuple_of(node.this), self.tuple_of(node.expression)
            return compare_tuples(self._statement, node, name, lefts, rights)
        found = self._call(node, name, node.this, node.expression)
        return self._negated(node, found)

    def _any_or_all(self, node: exp.Expression, name: str) -> Scalar:
        """A comparison with some strings of a list, such as LIKE ANY, or with all of them."""
        listed = node.expression.this
        if not isinstance(listed, (exp.Tuple, exp.Paren)):
            return self._unsupported(node)
        patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed.this]
        tests = [self._negated(node, self._call(node, name, node.this, each)) for each in patterns]
        word = "OR" if isinstance(node.expression, exp.Any) else "AND"
        return functools.reduce(lambda left, right: self._statement.call(node, word, [left, right]), tests)

    def _negated(self, node: exp.Expression, found: Scalar) -> Scalar:
        """A value, or its opposite: newer parsers write NOT LIKE as a LIKE with a mark, and not inside a NOT."""
        return self._statement.call(node, "NOT", [found]) if node.args.get("negate") else found

    def _not(self, node: exp.Expression) -> Scalar:
        negated = self.scalar(node.this)
        if isinstance(negated, Call) and negated.name == "IS NULL":
            return self._statement.call(node, "IS NOT NULL", negated.arguments)
        return self._statement.call(node, "NOT", [negated])

    def _negative(self, node: exp.Expression) -> Scalar:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self._literal(node)
        return self._call(node, "NEGATIVE", inner)

    def _complement(self, node: exp.Expression) -> Scalar:
        return self._call(node, "~", node.this)

    def _is(self, node: exp.Expression) -> Scalar:
        test = node.expression
        if isinstance(test, exp.Null):
            return self._call(node, "IS NULL", node.this)
        if isinstance(test, exp.Boolean):
            return self._call(node, "IS TRUE" if test.this else "IS FALSE", node.this)
        return self._call(node, "<=>", node.this, test)

    def _between(self, node: exp.Expression) -> Scalar:
        value, call = self.scalar(node.this), self._statement.call
        low = call(node, ">=", [value, self.scalar(node.args["low"])])
        return call(node, "AND", [low, call(node, "<=", [value, self.scalar(node.args["high"])])])

    def _escape(self, node: exp.Expression) -> Scalar:
        like = node.this
        name = "ILIKE" if isinstance(like, exp.ILike) else "LIKE"
        return self._negated(like, self._call(node, name, like.this, like.expression, node.expression))

    def _case(self, node: exp.Expression) -> Scalar:
        subject = None if node.this is None else self.scalar(node.this)
        arguments = []
        for branch in node.args["ifs"]:
            test = self.scalar(branch.this)
            arguments.append(test if subject is None else self._statement.call(branch, "=", [subject, test]))
            arguments.append(self.scalar(branch.args["true"]))
        default = node.args.get("default")
        arguments.append(Literal(None, types.NULL) if default is None else self.scalar(default))
        return self._statement.call(node, "CASE", arguments)

    def _if(self, node: exp.Expression) -> Scalar:
        default = node.args.get("false")
        no = self.scalar(default) if default else Literal(None, types.NULL)
        return self._statement.call(
            node, "CASE", [self.scalar(node.this), self.scalar(node.args["true"]), no]
        )

    def _extract(self, node: exp.Expression) -> Scalar:
        part = _text_literal(node.this.name)
        return self._statement.call(node, "EXTRACT", [part, self.scalar(node.expression)])

    def _trim(self, node: exp.Expression) -> Scalar:
        name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(node.args.get("position") or "", "TRIM")
        return self._call(node, name, node.this, node.expression or None)

    def _substring(self, node: exp.Expression) -> Scalar:
        return self._call(node, "SUBSTRING", node.this, node.args.get("start"), node.args.get("length"))

    def _position(self, node: exp.Expression) -> Scalar:
        return self._call(node, "LOCATE", node.args["substr"], node.this, node.args.get("position"))

    def _floor(self, node: exp.Expression) -> Scalar:
        match node.this:
            case exp.Div(expression=exp.Interval() as length) as division:
                return self._call(node, "DATE_BIN", length, division.this)
        return self._named_function(node)

    def _item(self, node: exp.Expression) -> Scalar:
        if len(node.expressions) != 1:
            return self._unsupported(node)
        return self._call(node, "ITEM", node.this, node.expressions[0])

    def _named_function(self, node: Any) -> Scalar:
        """A function for which the parser has a class: its arguments are in their order."""
        arguments = [each for key in node.arg_types for each in _listed(node.args.get(key))]
        return self._call(node, node.sql_name(), *arguments)

    def _named_without_parentheses(self, node: exp.Func) -> Scalar:
        unknown = functions.make_unknown_function_error(node.sql_name())
        return self._statement.refuse(node, unknown.what, unknown.hint)

    # Casts

    def _cast(self, node: exp.Cast) -> Scalar:
        operand = self.scalar(node.this)
        is_try = isinstance(node, exp.TryCast)
        target = nested_type(self._statement, node.to, self._plain_type)

        make = resolving.try_cast if is_try else casts.cast_as_written
        found = self._statement.typed(node, lambda: make(operand, target))
        if isinstance(operand, Literal) and isinstance(operand.value, str) and not is_try:
            return self._read(node, operand, found)
        return found

    def _read(self, node: exp.Expression, text: Literal, cast: Scalar) -> Scalar:
        """A text of the query that is cast, as the value that it reads as."""
        try:
            [value] = Projection((cast,))(())
        except ArithmeticError:
            self._statement.refuse(node, f"{text} is not a {cast.type.or_null()}", "correct the literal")
        # An integer stays a call: of a literal, only the digits that it shows count.
        return cast if cast.type.name == "BIGINT" else Literal(value, cast.type.or_null(False))

    def _plain_type(self, node: exp.DataType) -> SqlType:
        """A type that holds no others."""
        kind = node.this.name
        target = self._decimal_type(node) if kind == "DECIMAL" else _TYPES.get(kind)
        if target is None:
            names = sorted({"DECIMAL", *map(str, _TYPES.values())})
            what = f"CAST to {node.sql()} is not supported"
            self._statement.refuse(node, what, f"use one of {', '.join(names)}")
        return target

    def _decimal_type(self, node: exp.DataType) -> SqlType:
        """The type DECIMAL with the digits that a query names; ten without any."""
        precision, scale = (
            *(int(each.name) for each in node.expressions),
            *(10, 0)[len(node.expressions) :],
        )
        if not 1 <= precision <= types.DIGITS_MAX or not 0 <= scale <= precision:
            what = f"DECIMAL({precision}, {scale}) is not a valid DECIMAL"
            self._statement.refuse(
                node, what, "write at most 38 digits, and not more of them after the point"
            )
        return types.decimal_type(precision, scale)

    def _date_with_format(self, node: exp.Expression) -> Scalar:
        return self._statement.refuse(node, "CAST with FORMAT is not supported", functions.IN_PYTHON)


def _star_of(statement: Statement, env: Env, node: exp.Expression) -> list[tuple[str, Scalar]]:
    """The names and the values of the columns that ``*`` stands for in a struct."""
    if isinstance(env.scope, Grouping):
        statement.refuse(node, "* is in a query that groups", "name the keys and the aggregates")
    qualifier = node.table if isinstance(node, exp.Column) else ""
    return [(each.name, each.scalar) for each in env.scope.star(qualifier or None)]


# Literals


def _literal_of(node: exp.Expression) -> Literal:
    match node:
        case exp.Null():
            return Literal(None, types.NULL)
        case exp.Boolean():
            return Literal(bool(node.this), BOOLEAN.or_null(False))
        case exp.HexString():
            return Literal(bytes.fromhex(node.this), types.BINARY.or_null(False))
        case exp.Neg(this=number):
            return _number(f"-{number.this}")
        case exp.Literal(is_string=False):
            return _number(node.this)
    return _text_literal(node.this)


def _text_literal(text: str) -> Literal:
    return Literal(text, types.STRING.or_null(False))


_SUFFIXES = {"Y": types.TINYINT, "S": types.SMALLINT, "L": BIGINT}
"""The types that suffixes of numbers name."""


def _number(text: str) -> Literal:
    if suffixed := _SUFFIXES.get(text[-1].upper()):
        return Literal(_number(text[:-1]).value, suffixed.or_null(False))
    if text.lstrip("-").isdigit():
        value = int(text)
        fitting = [kind for kind in (types.INT, BIGINT) if fits_width(value, kind.bits)]
        return Literal(value, fitting[0].or_null(False)) if fitting else _decimal(decimal.Decimal(value))
    if "e" in text.lower():
        return Literal(float(text), DOUBLE.or_null(False))
    return _decimal(decimal.Decimal(text))


def _decimal(value: decimal.Decimal) -> Literal:
    """A decimal with the digits that its text has."""
    _, figures, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    # Spark's zero has no sign.
    value = value if value else value.copy_abs()
    return Literal(value, types.decimal_type(max(len(figures), scale), scale, nullable=False))


def _by_kind(table: Mapping[type, _Entry], node: object) -> _Entry | None:
    """Returns the entry of a table for the class of a node, or for the nearest class that it is derived from."""
    return next((table[kind] for kind in type(node).__mro__ if kind in table), None)


def _listed(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, exp.Expression) else []


# Kinds of nodes

_OPERATORS: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.RegexpLike: "RLIKE",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
"""The functions that operators are."""

_DECIDING = {
    "=": ("min", "max") * 2,
    "<>": ("min", "max") * 2,
    **dict.fromkeys(("<", "<="), ("max", "min")),
    **dict.fromkeys((">", ">="), ("min", "max")),
}
"""The aggregates of a query that decide a comparison with ANY of its rows, then, in reverse, with ALL."""

_BINDINGS: Mapping[type, Callable[[ExpressionBinder, Any], Scalar]] = {
    **dict.fromkeys(_OPERATORS, ExpressionBinder._operator),
    **dict.fromkeys((exp.Paren, exp.Alias), ExpressionBinder._inner),
    exp.Column: ExpressionBinder._column,
    exp.Window: ExpressionBinder._over,
    **dict.fromkeys(
        (exp.Null, exp.Boolean, exp.Literal, exp.HexString, exp.RawString), ExpressionBinder._literal
    ),
    exp.Interval: ExpressionBinder._interval,
    exp.Subquery: ExpressionBinder._query,
    exp.Exists: ExpressionBinder._exists,
    exp.In: ExpressionBinder._in_list,
    exp.Not: ExpressionBinder._not,
    exp.Neg: ExpressionBinder._negative,
    exp.BitwiseNot: ExpressionBinder._complement,
    exp.Is: ExpressionBinder._is,
    exp.Between: ExpressionBinder._between,
    exp.Escape: ExpressionBinder._escape,
    exp.Case: ExpressionBinder._case,
    exp.If: ExpressionBinder._if,
    exp.Cast: ExpressionBinder._cast,
    **dict.fromkeys((exp.StrToDate, exp.StrToTime), ExpressionBinder._date_with_format),
    exp.Extract: ExpressionBinder._extract,
    **dict.fromkeys(
        (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser), ExpressionBinder._named_without_parentheses
    ),
    exp.Trim: ExpressionBinder._trim,
    exp.Substring: ExpressionBinder._substring,
    exp.StrPosition: ExpressionBinder._position,
    exp.Floor: ExpressionBinder._floor,
    exp.Bracket: ExpressionBinder._item,
    exp.Identifier: ExpressionBinder._parameter,
    exp.Dot: ExpressionBinder._dot,
    exp.Lambda: ExpressionBinder._lambda_outside,
    exp.Transform: ExpressionBinder._transform,
    exp.Anonymous: ExpressionBinder._misplaced_or_function,
    exp.Func: ExpressionBinder._named_function,
}
"""The method for each kind of node; a class also stands for those that are derived from it."""
