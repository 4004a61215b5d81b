"""The expressions of a query: what each one means for the rows of a scope, and of which type its values are."""

from __future__ import annotations

import datetime
import decimal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sqlglot import exp

from penstock.sql import digits, functions, types
from penstock.sql.dialect import SPARK_FUNCTIONS, micros_of, micros_of_span, position_of
from penstock.sql.errors import sql_error
from penstock.sql.functions import SqlTypeError
from penstock.sql.origins import bound_of, period, window_bounds
from penstock.sql.relations import (
    Aggregate,
    AggregateCall,
    Columns,
    Join,
    Named,
    Project,
    Relation,
    Values,
    columns_as_scalars,
)
from penstock.sql.scalars import (
    Call,
    Column,
    Literal,
    Projection,
    Scalar,
    UserCall,
    columns_of,
    replaced,
    shifted,
)
from penstock.sql.scopes import Grouping, Scope, Visible
from penstock.sql.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, SqlType

AGGREGATES = frozenset(
    ["SUM", "COUNT", "MIN", "MAX", "AVG", "MEAN", "ARRAY_AGG", "COLLECT_LIST", "COUNT_IF", "ANY_VALUE"]
)
WINDOWS = frozenset(["TUMBLE", "HOP", "CUMULATE", "SESSION", "VALIDITY_WINDOW"])
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
}


@dataclass(frozen=True)
class UserFunction:
    """A function in Python that queries may call.

    Attributes:
        fn: The function of one row's values, or a CombineFn.
        type: The type of its result.
        aggregates: Whether it is a CombineFn.
    """

    fn: Any
    type: SqlType
    aggregates: bool = False


@dataclass(frozen=True)
class Tables:
    """What queries may read.

    Attributes:
        inputs: The columns of each input, by its name.
        views: The query of each view, by its name.
        functions: The user's functions, by their names in capitals.
    """

    inputs: Mapping[str, Columns]
    views: Mapping[str, str]
    functions: Mapping[str, UserFunction]


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
_TYPES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT"), BIGINT),
    "DOUBLE": DOUBLE,
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NVARCHAR"), types.STRING),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), TIMESTAMP),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ"), types.TIMESTAMP_NTZ),
    "BOOLEAN": BOOLEAN,
    "DATE": types.DATE,
    "BINARY": types.BINARY,
    "VARBINARY": types.BINARY,
}


_WITH_UNIT = {
    **dict.fromkeys(
        ("DATEADD", "DATE_ADD", "TIMESTAMPADD"), "write time + INTERVAL '1' DAY, or DATE_ADD(day, 1)"
    ),
    **dict.fromkeys(
        ("DATEDIFF", "DATE_DIFF", "TIMESTAMPDIFF"), "write DATEDIFF(end, start) for days, or end - start"
    ),
}
_BOUNDS = ("WINDOW_START", "WINDOW_END")


class Expressions(ABC):
    """Binds the expressions of one query.

    Args:
        query: The text of the query.
        tables: What it may read, and the user's functions.
    """

    def __init__(self, query: str, tables: Tables) -> None:
        self._query = query
        self._tables = tables
        self._row_number: Scalar | None = None
        self._around: list[Scope] = []

    @abstractmethod
    def _query_of(self, tree: Any, ctes: Mapping[str, Scope], shown: Any) -> Scope:
        """A query inside an expression, as a scope."""

    @abstractmethod
    def _is_grouped_by(self, call: Any, scope: Scope, ctes: Mapping[str, Scope]) -> bool:
        """True if the call names the windows that the rows of a scope are in."""

    def refuse(self, node: Any, what: str, hint: str = "") -> NoReturn:
        """Raises the error of a part of the query."""
        position = position_of(node) if node is not None else None
        raise sql_error(what, self._query, position, hint)

    def at(self, node: Any) -> Callable[..., NoReturn]:
        """What refuses a part of the tree."""

        def refuse(what: str, hint: str = "") -> NoReturn:
            self.refuse(node, what, hint)

        return refuse

    def call(self, node: Any, name: str, arguments: Sequence[Scalar]) -> Scalar:
        """A call of a function, with checked types."""
        try:
            return functions.call(name, arguments)
        except SqlTypeError as error:
            raise sql_error(error.what, self._query, position_of(node), error.hint) from None

    def _fitting(self, node: Any, left: Scalar, right: Scalar) -> tuple[Scalar, Scalar]:
        common = functions.common_type([left, right])
        if common is None:
            self.refuse(node, f"{left} is {left.type}, and the query gives {right.type}", "CAST one of them")
        return functions.cast(left, common), functions.cast(right, common)

    def _condition(
        self,
        node: Any,
        env: Scope | Grouping,
        ctes: Mapping[str, Scope],
        aliases: Mapping[str, Any],
        clause: str,
    ) -> Scalar:
        condition = self.scalar(node, env, ctes, aliases)
        if condition.type.name not in ("BOOLEAN", "NULL", "ANY"):
            self.refuse(node, f"the condition of {clause} is {condition.type}", "compare it with something")
        return condition

    def _aggregate_in(self, node: Any) -> Any:
        for each in own_parts(node):
            if self._is_aggregate(each) and not isinstance(each.parent, exp.Window):
                return each
        return None

    def _is_aggregate(self, node: Any) -> bool:
        if not isinstance(node, exp.Anonymous):
            return False
        own = self._tables.functions.get(node.name.upper())
        return own.aggregates if own else node.name.upper() in AGGREGATES

    def _constant(self, node: Any) -> Literal:
        scalar = self.scalar(node, scope_of(Values(((),), ()), None), {})
        if isinstance(scalar, Literal):
            return scalar
        if columns_of(scalar):
            self.refuse(node, "a constant belongs here", "write a literal")

        [value] = Projection((scalar,))(())
        return Literal(value, scalar.type)

    def _interval(self, node: Any) -> int:
        """The microseconds of a length of time."""
        if isinstance(node, exp.Interval):
            unit = node.args.get("unit")
            if isinstance(unit, exp.IntervalSpan):
                micros = micros_of_span(
                    text_of(node.this), unit.this.name.upper(), unit.expression.name.upper()
                )
            else:
                micros = micros_of([*text_of(node.this).split(), *([unit.name] if unit else [])])
            if micros is not None:
                return micros
        return self.refuse(
            node, "a length of time belongs here", "write INTERVAL '10' MINUTES; months have no fixed length"
        )

    def scalar(
        self,
        node: Any,
        env: Scope | Grouping,
        ctes: Mapping[str, Scope],
        aliases: Mapping[str, Any] = {},
    ) -> Scalar:
        """The value that an expression means for each row of a scope, or for each row of a grouped result."""
        if isinstance(env, Grouping):
            found = self._key_or_aggregate(node, env, ctes)
            if found is not None:
                return found
        if isinstance(node, exp.Window) and self._row_number is not None:
            return self._row_number
        if isinstance(node, exp.Paren):
            return self.scalar(node.this, env, ctes, aliases)
        if isinstance(node, exp.Alias):
            return self.scalar(node.this, env, ctes, aliases)
        if isinstance(node, exp.Column):
            return self._column(node, env, ctes, aliases)
        if (literal := _literal(node)) is not None:
            return self._checked(node, literal)
        if isinstance(node, exp.Interval):
            return Literal(
                datetime.timedelta(microseconds=self._interval(node)), types.INTERVAL.or_null(False)
            )
        if isinstance(node, exp.Subquery):
            return self._scalar_subquery(node, env, ctes)
        if isinstance(node, exp.Exists):
            return self._exists(node, env, ctes)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self._in_query(node, env, ctes, aliases)
        if self._is_aggregate(node):
            self.refuse(
                node, f"the aggregate {node.name.upper()} cannot be used here", "aggregate in a subquery"
            )
        return self._composed(node, lambda each: self.scalar(each, env, ctes, aliases))

    def _checked(self, node: Any, literal: Literal) -> Literal:
        """A literal whose number has no more digits than its type has."""
        if (literal.type.precision or 0) > types.DIGITS_MAX:
            self.refuse(node, "a number has more than 38 digits", "write 1e40 for a DOUBLE")
        if literal.suffixed and not functions.fits(literal.value, literal.suffixed):
            what = f"{literal} is not a {literal.suffixed}, as its suffix says"
            self.refuse(node, what, "leave out the suffix")
        return literal

    def _column(
        self, node: Any, env: Scope | Grouping, ctes: Mapping[str, Scope], aliases: Mapping[str, Any]
    ) -> Scalar:
        if node.args.get("db"):
            self.refuse(node, f"{node.sql()} has too many parts", "write TABLE.COLUMN")
        qualifier, name = node.table or None, node.name
        scope = env.inner if isinstance(env, Grouping) else env
        if (qualifier or "").lower() == "sys":
            if name.lower() != "mtime":
                self.refuse(
                    node,
                    f"Sys.{name} can only be selected, by the outermost SELECT",
                    "select it with an alias",
                )
            if scope.arrival is None:
                self.refuse(
                    node,
                    "rows of this query have no Sys.MTime of their own",
                    "use it where the table is read",
                )
            return scope.arrival
        if isinstance(env, Grouping):
            if qualifier is None and name.lower() in aliases:
                return self.scalar(aliases[name.lower()], env, ctes)
            self._found(node, scope)
            what = f"the column {name!r} is neither a key of the grouping nor aggregated"
            self.refuse(node, what, f"add it to GROUP BY, or write MAX({name})")
        if aliases and qualifier is None and name.lower() in aliases:
            known = {each.name.lower() for each in scope.visible}
            if name.lower() not in known:
                return self.scalar(aliases[name.lower()], env, ctes)
        return self._found(node, scope)

    def _found(self, node: Any, scope: Scope) -> Scalar:
        """The value of a column by its name, which a query around this one may not give."""
        qualifier, name = node.table or None, node.name
        if not scope.has(qualifier, name) and any(each.has(qualifier, name) for each in self._around):
            self.refuse(
                node,
                f"the subquery reads {node.sql()}, a column of the query around it, which is not supported",
                "write a join: LEFT SEMI JOIN for EXISTS and IN, LEFT ANTI JOIN for NOT EXISTS, "
                "LEFT JOIN with a grouped query for a value",
            )
        return scope.find(qualifier, name, self.at(node))

    def _key_or_aggregate(self, node: Any, env: Grouping, ctes: Mapping[str, Scope]) -> Scalar | None:
        """The column of a grouped result that an expression is: a key, or an aggregate."""
        condition = None
        if isinstance(node, exp.Filter):
            condition = self._condition(node.expression.this, env.inner, ctes, {}, "FILTER")
            node = node.this
        if self._is_aggregate(node):
            return self._aggregate_call(node, env, ctes, condition)
        if (call := _window_call_in(node)) is not None:
            start, end = window_columns(env.inner)
            keys = [env.key(each) if each is not None else None for each in (start, end)]
            first, last = keys
            if first is None or last is None:
                self.refuse(
                    node,
                    f"{node.name.upper()} needs a window among the keys of the grouping",
                    "GROUP BY TUMBLE(…)",
                )
            if call.expressions and not self._is_grouped_by(call, env.inner, ctes):
                what = f"{call.sql()} is not the window that the query groups by"
                self.refuse(call, what, "write the window as in GROUP BY")
            if window_call(node):
                return period(first, last)
            return last if node.name.upper().endswith("_END") else first
        if isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
            return None
        if self._aggregate_in(node) or node.find(exp.Subquery, exp.Exists) or node.find(exp.Window):
            return None
        if _mentions_window(node):
            return None
        try:
            scalar = self.scalar(node, env.inner, ctes)
        except ValueError:
            # It may be an alias of something that is aggregated.
            return None
        return env.key(scalar) if columns_of(scalar) else None

    def _aggregate_call(
        self, node: Any, env: Grouping, ctes: Mapping[str, Scope], condition: Scalar | None
    ) -> Scalar:
        name = node.name.upper()
        arguments = list(node.expressions)
        distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
        for each in arguments:
            if inner := self._aggregate_in(each):
                self.refuse(
                    inner,
                    f"the aggregate {inner.name.upper()} is inside another one",
                    "aggregate in a subquery",
                )
        own = self._tables.functions.get(name)
        if name == "COUNT" and (not arguments or isinstance(arguments[0], exp.Star)):
            if distinct:
                self.refuse(node, "COUNT(DISTINCT *) is not supported", "count the rows of SELECT DISTINCT *")
            return env.call(AggregateCall("count", None, BIGINT.or_null(False), False, condition))
        if len(arguments) != 1:
            hint = f"write {name}(points)"
            if name == "COUNT":
                hint = "write COUNT(*) over SELECT DISTINCT a, b … WHERE a IS NOT NULL AND b IS NOT NULL"
            self.refuse(node, f"{name} takes one argument, not {len(arguments)}", hint)
        value = self.scalar(arguments[0], env.inner, ctes)
        if own is not None:
            return env.call(AggregateCall(name.lower(), value, own.type, distinct, condition, own.fn))
        kind = value.type
        if name in ("SUM", "AVG", "MEAN") and kind.name not in ("BIGINT", "DOUBLE", "DECIMAL", "NULL", "ANY"):
            self.refuse(node, f"{name} takes numbers, and {value} is {kind}", "CAST it to a number")
        match name:
            case "COUNT":
                call = AggregateCall("count", value, BIGINT.or_null(False), distinct, condition)
            case "COUNT_IF":
                true = functions.call("IS TRUE", [value])
                call = AggregateCall("count", None, BIGINT.or_null(False), False, _both(condition, true))
            case "AVG" | "MEAN":
                call = AggregateCall(
                    "avg",
                    value,
                    digits.mean_type(kind) if kind.name == "DECIMAL" else DOUBLE.or_null(),
                    distinct,
                    condition,
                )
            case "ARRAY_AGG" | "COLLECT_LIST":
                call = AggregateCall(
                    "array_agg", value, SqlType("ARRAY", False, kind.or_null(False)), distinct, condition
                )
            case "SUM":
                total = digits.sum_type(kind) if kind.name == "DECIMAL" else kind.or_null()
                call = AggregateCall("sum", value, total, distinct, condition)
            case _:
                call = AggregateCall(
                    "max" if name == "MAX" else "min", value, kind.or_null(), False, condition
                )
        return env.call(call)

    def _composed(self, node: Any, part: Callable[[Any], Scalar]) -> Scalar:
        """An expression of operators and functions."""
        operator = _OPERATORS.get(type(node))
        if operator is not None:
            found = self.call(node, operator, [part(node.this), part(node.expression)])
            return self._negated(node, found)
        match node:
            case exp.Not(this=inner):
                negated = part(inner)
                if isinstance(negated, Call) and negated.name == "IS NULL":
                    return self.call(node, "IS NOT NULL", negated.arguments)
                return self.call(node, "NOT", [negated])
            case exp.Neg(this=exp.Literal(is_string=False) as number):
                return self._checked(node, _number(f"-{number.this}"))
            case exp.Neg(this=inner):
                return self.call(node, "NEGATIVE", [part(inner)])
            case exp.Is():
                return self._is(node, part)
            case exp.Between():
                value = part(node.this)
                low = self.call(node, ">=", [value, part(node.args["low"])])
                return self.call(node, "AND", [low, self.call(node, "<=", [value, part(node.args["high"])])])
            case exp.In():
                return self.call(node, "IN", [part(node.this), *map(part, node.expressions)])
            case exp.Escape(this=like):
                name = "ILIKE" if isinstance(like, exp.ILike) else "LIKE"
                found = self.call(node, name, [part(like.this), part(like.expression), part(node.expression)])
                return self._negated(like, found)
            case exp.Case():
                return self._case(node, part)
            case exp.If():
                no = part(node.args["false"]) if node.args.get("false") else Literal(None, types.NULL)
                return self.call(node, "CASE", [part(node.this), part(node.args["true"]), no])
            case exp.TryCast() | exp.Cast():
                return self._cast(node, part(node.this))
            case exp.StrToDate() | exp.StrToTime():
                self.refuse(node, "CAST with FORMAT is not supported", functions.IN_PYTHON)
            case exp.Extract():
                return self.call(node, "EXTRACT", [_text_literal(node.this.name), part(node.expression)])
            case exp.Trim():
                name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(node.args.get("position") or "", "TRIM")
                extra = [part(node.expression)] if node.expression else []
                return self.call(node, name, [part(node.this), *extra])
            case exp.RawString():
                return _text_literal(node.this)
            case exp.Substring():
                parts = [node.this, node.args.get("start"), node.args.get("length")]
                return self.call(node, "SUBSTRING", [part(each) for each in parts if each is not None])
            case exp.StrPosition():
                parts = [node.args["substr"], node.this, node.args.get("position")]
                return self.call(node, "LOCATE", [part(each) for each in parts if each is not None])
            case exp.Floor(this=exp.Div(expression=exp.Interval() as length) as division):
                return self.call(node, "DATE_BIN", [part(length), part(division.this)])
            case exp.Bracket(expressions=[index]):
                return self.call(node, "ITEM", [part(node.this), part(index)])
            case exp.Anonymous():
                self._check_known(node)
                if node.name.upper() in _WITH_UNIT and len(node.expressions) == 3:
                    what = f"{node.name.upper()} with a unit of time is not supported"
                    self.refuse(node, what, _WITH_UNIT[node.name.upper()])
                return self._function(node, [part(each) for each in node.expressions])
            case exp.Func():
                arguments = [each for key in node.arg_types for each in _listed(node.args.get(key))]
                return self.call(node, node.sql_name(), [part(each) for each in arguments])
        return self.refuse(node, f"{node.sql()!r} is not supported", "see the page about SQL for what is")

    def _check_known(self, node: Any) -> None:
        """Refuses an unknown function before its arguments, which may be right in an aggregate only."""
        name = node.name.upper()
        if (
            name not in self._tables.functions
            and name not in _WITH_UNIT
            and name not in (*WINDOWS, *_BOUNDS, *functions.FUNCTIONS)
        ):
            unknown = functions.unknown(name)
            self.refuse(node, unknown.what, functions.IN_PYTHON if name in SPARK_FUNCTIONS else unknown.hint)

    def _negated(self, node: Any, found: Scalar) -> Scalar:
        """A value, or its opposite: newer parsers give NOT LIKE as a LIKE with a mark, and not inside a NOT."""
        return self.call(node, "NOT", [found]) if node.args.get("negate") else found

    def _function(self, node: Any, arguments: list[Scalar]) -> Scalar:
        name = node.name.upper()
        own = self._tables.functions.get(name)
        if own is not None:
            return UserCall(node.name, own.fn, tuple(arguments), own.type)
        if name in _BOUNDS and len(arguments) == 1 and arguments[0].type.name == "WINDOW":
            return bound_of(arguments[0], _BOUNDS.index(name))
        if name in WINDOWS:
            self.refuse(node, f"{name} belongs into GROUP BY or FROM", SPELLINGS[name])
        return self.call(node, name, arguments)

    def _is(self, node: Any, part: Callable[[Any], Scalar]) -> Scalar:
        operand, test = part(node.this), node.expression
        if isinstance(test, exp.Null):
            return self.call(node, "IS NULL", [operand])
        if isinstance(test, exp.Boolean):
            return self.call(node, "IS TRUE" if test.this else "IS FALSE", [operand])
        return self.call(node, "<=>", [operand, part(test)])

    def _case(self, node: Any, part: Callable[[Any], Scalar]) -> Scalar:
        subject = part(node.this) if node.this is not None else None
        arguments = []
        for branch in node.args["ifs"]:
            test = part(branch.this)
            arguments.append(test if subject is None else self.call(branch, "=", [subject, test]))
            arguments.append(part(branch.args["true"]))
        default = node.args.get("default")
        arguments.append(part(default) if default is not None else Literal(None, types.NULL))
        return self.call(node, "CASE", arguments)

    def _cast(self, node: Any, operand: Scalar) -> Scalar:
        kind = node.to.this.name
        is_try = isinstance(node, exp.TryCast)
        target = self._decimal_type(node) if kind == "DECIMAL" else _TYPES.get(kind)
        if kind == "FLOAT":
            self.refuse(node, "CAST to FLOAT is not supported: numbers have 64 bits", "write DOUBLE")
        if target is None:
            self.refuse(
                node,
                f"CAST to {node.to.sql()} is not supported",
                f"there are {', '.join(sorted({'DECIMAL', *(each.name for each in _TYPES.values())}))}",
            )
        try:
            found = (functions.try_cast if is_try else functions.cast)(operand, target)
            found = functions.narrowed(found, kind, is_try)
            if isinstance(operand, Literal) and isinstance(operand.value, str) and not is_try:
                return self._read(node, operand, found)
        except SqlTypeError as error:
            raise sql_error(error.what, self._query, position_of(node), error.hint) from None
        return found

    def _read(self, node: Any, text: Literal, cast: Scalar) -> Scalar:
        """A text of the query that is cast, as the value that it reads as."""
        try:
            [value] = Projection((cast,))(())
        except ArithmeticError:
            self.refuse(node, f"{text} is not a {cast.type.or_null()}", "correct the literal")
        # A whole number stays a call, which knows how many bits it has.
        return cast if cast.type.name == "BIGINT" else Literal(value, cast.type.or_null(False))

    def _decimal_type(self, node: Any) -> SqlType:
        """The type DECIMAL with the digits that a query names; ten without any."""
        precision, scale = (
            *(int(each.name) for each in node.to.expressions),
            *(10, 0)[len(node.to.expressions) :],
        )
        if not 1 <= precision <= types.DIGITS_MAX or not 0 <= scale <= precision:
            what = f"DECIMAL({precision}, {scale}) has other digits than a DECIMAL may have"
            self.refuse(node, what, "write at most 38 digits, and not more of them behind the point")
        return types.decimal_type(precision, scale)

    def _subquery(self, tree: Any, env: Scope | Grouping, ctes: Mapping[str, Scope]) -> Scope:
        """The query in an expression of another query."""
        self._around.append(env.inner if isinstance(env, Grouping) else env)
        scope = self._query_of(tree, ctes, None)
        self._around.pop()
        return scope

    def _single_column(self, tree: Any, env: Scope | Grouping, ctes: Mapping[str, Scope]) -> Scope:
        scope = self._subquery(tree, env, ctes)
        width = len(list(scope.star(None)))
        if width != 1:
            self.refuse(tree, f"a subquery in an expression gives {width} columns, not one", "select one")
        return scope

    def _widened(self, env: Scope | Grouping, relation: Relation) -> tuple[Column, ...]:
        """Adds the columns of a relation with one row to each row of a scope, or of a grouped result; gives them."""
        if isinstance(env, Grouping):
            return env.beside(relation)
        first = len(env.relation.columns)
        env.relation = Join(env.relation, relation, "inner", (), ())
        return columns_as_scalars(relation.columns, first)

    def _scalar_subquery(self, node: Any, env: Scope | Grouping, ctes: Mapping[str, Scope]) -> Scalar:
        inner = self._single_column(node, env, ctes)
        [visible] = inner.star(None)
        call = AggregateCall("single", visible.scalar, visible.scalar.type.or_null())
        single = Aggregate(inner.relation, (), (call,), (Named("single", call.type),))
        return self._widened(env, single)[0]

    def _exists(self, node: Any, env: Scope | Grouping, ctes: Mapping[str, Scope]) -> Scalar:
        inner = self._subquery(node.this, env, ctes)
        count = AggregateCall("count", None, BIGINT.or_null(False))
        counted = Aggregate(inner.relation, (), (count,), (Named("count", count.type),))
        found = self._widened(env, counted)[0]
        return self.call(node, ">", [found, Literal(0, BIGINT.or_null(False))])

    def _in_query(
        self, node: Any, env: Scope | Grouping, ctes: Mapping[str, Scope], aliases: Mapping[str, Any]
    ) -> Scalar:
        """Whether a value is among the rows of a query, with the three truth values of SQL."""
        if isinstance(env, Grouping):
            self.refuse(
                node, "IN with a query is not supported after grouping", "write it in a query around this one"
            )
        inner = self._single_column(node.args["query"], env, ctes)
        [visible] = inner.star(None)
        value = self.scalar(node.this, env, ctes, aliases)
        mine, other = self._fitting(node, value, visible.scalar)
        rows = Project(inner.relation, (other,), (Named("value", other.type),))
        counts = Aggregate(
            rows,
            (),
            (
                AggregateCall("count", None, BIGINT.or_null(False)),
                AggregateCall("count", Column(0, "value", other.type), BIGINT.or_null(False)),
            ),
            (Named("rows", BIGINT.or_null(False)), Named("values", BIGINT.or_null(False))),
        )
        all_rows, with_values = self._widened(env, counts)
        first = len(env.relation.columns)
        matched = Project(
            distinct(rows),
            (Column(0, "value", other.type), Literal(True, BOOLEAN.or_null(False))),
            (Named("value", other.type), Named("found", BOOLEAN)),
        )
        env.relation = Join(env.relation, matched, "left", (mine,), (Column(0, "value", other.type),))
        found = Column(first + 1, "found", BOOLEAN)
        zero = Literal(0, BIGINT.or_null(False))
        call = functions.call
        empty = call("=", [all_rows, zero])
        unknown = call("OR", [call("IS NULL", [mine]), call("<>", [all_rows, with_values])])
        true, false = (Literal(each, BOOLEAN.or_null(False)) for each in (True, False))
        return call(
            "CASE", [call("IS TRUE", [found]), true, empty, false, unknown, Literal(None, BOOLEAN), false]
        )


def scope_of(relation: Relation, qualifier: str | None) -> Scope:
    """A relation with the names of its columns."""
    scalars = columns_as_scalars(relation.columns)
    return Scope(relation, [Visible(qualifier, each.name, each) for each in scalars])


def distinct(relation: Relation) -> Relation:
    """The rows of a relation, each once."""
    return Aggregate(relation, columns_as_scalars(relation.columns), (), relation.columns)


def moved(scalar: Scalar, width: int) -> Scalar:
    """A value of the right rows of a join, as a value of joined rows."""
    return shifted(scalar, {at: at + width for at in columns_of(scalar)})


def retyped(scalar: Any, columns: Columns) -> Scalar:
    """A value with the types that columns have after a join, where they may be NULL."""
    return replaced(scalar, columns_as_scalars(columns))


def window_columns(scope: Scope) -> tuple[Column | None, Column | None]:
    """The start and the end of the window of a scope's rows, if there is one."""
    scalars = columns_as_scalars(scope.relation.columns)
    start, end = (None if at is None else scalars[at] for at in window_bounds(scope.relation))
    return start, end


def own_parts(node: Any) -> Iterator[Any]:
    """The parts of a tree without what is in queries inside it."""
    if node is not None:
        yield from node.walk(prune=lambda each: isinstance(each, (exp.Select, exp.SetOperation)))


def window_call(node: Any) -> bool:
    """Whether a part of a tree puts rows into windows."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in WINDOWS


_OF_WINDOWS = frozenset(
    ["WINDOW_START", "WINDOW_END"]
    + [f"{name}_{bound}" for name in ("TUMBLE", "HOP", "SESSION") for bound in ("START", "END")]
)
"""The names of the functions that return a bound of the window of a grouped query."""


def _window_call_in(node: Any) -> Any:
    """The call that a part of a tree names the window of a grouped query by; None if it names none."""
    if window_call(node):
        return node
    if not isinstance(node, exp.Anonymous) or node.name.upper() not in _OF_WINDOWS:
        return None
    if node.name.upper() not in _BOUNDS or not node.expressions:
        return node
    [inner, *_] = node.expressions
    # The bound of a window that is a value of the rows is like any other function of it.
    return inner if window_call(inner) else None


def _mentions_window(node: Any) -> bool:
    return any(
        each.name.upper() in WINDOWS or each.name.upper().endswith(("_START", "_END"))
        for each in node.find_all(exp.Anonymous)
    )


def is_descriptor(node: Any) -> bool:
    """Whether an argument is ``DESCRIPTOR(…)``."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "DESCRIPTOR"


def _literal(node: Any) -> Literal | None:
    match node:
        case exp.Null():
            return Literal(None, types.NULL)
        case exp.Boolean():
            return Literal(bool(node.this), BOOLEAN.or_null(False))
        case exp.Literal() if node.is_string:
            return _text_literal(node.this)
        case exp.Literal():
            return _number(node.this)
        case exp.HexString():
            return Literal(bytes.fromhex(node.this), types.BINARY.or_null(False))
    return None


def _text_literal(text: str) -> Literal:
    return Literal(text, types.STRING.or_null(False))


_SUFFIXES = {"Y": "TINYINT", "S": "SMALLINT", "L": "BIGINT"}
"""The types that suffixes of numbers name."""


def _number(text: str) -> Literal:
    if suffixed := _SUFFIXES.get(text[-1].upper()):
        return replace(_number(text[:-1]), suffixed=suffixed)
    if text.lstrip("-").isdigit():
        value = int(text)
        is_whole = -(1 << 63) <= value < 1 << 63
        return Literal(value, BIGINT.or_null(False)) if is_whole else _decimal(decimal.Decimal(value))
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


def _both(one: Scalar | None, other: Scalar) -> Scalar:
    return other if one is None else functions.call("AND", [one, other])


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, exp.Expression) else []


def text_of(node: Any) -> str:
    """The name that a part of a tree is, or has."""
    return node.name if isinstance(node, exp.Expression) else str(node or "")
