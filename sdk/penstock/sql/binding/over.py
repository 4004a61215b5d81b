"""Window functions with OVER: what a call of one means, and the relation that has its results."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

from sqlglot import exp

from penstock.checks.similar_names import hint_at_name
from penstock.scalars import resolving
from penstock.scalars.tree import Column, Literal, Scalar, columns_of, shift_columns
from penstock.scalars.types import BOOLEAN, INT
from penstock.sql.binding.aggregates import bind_aggregate, called_aggregate
from penstock.sql.binding.orders import order_of
from penstock.sql.binding.statement import Statement
from penstock.sql.binding.window_functions import FUNCTIONS, NEIGHBOURS, RANKS, VALUES, call_of, name_of
from penstock.sql.execution.row_order import has_order
from penstock.sql.plan.frames import Comparable, Frame, Offset
from penstock.sql.plan.relations import ColumnDef, Order, Over, OverCall, Relation, map_scalars

_DAY = datetime.timedelta(days=1)
_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
_WHOLE, _TO_CURRENT = Frame("RANGE", None, None), Frame("RANGE", None, 0)


class Expressions(Protocol):
    """Binds expressions of the rows that functions are over."""

    def scalar(self, node: object) -> Scalar:
        """Returns the value of an expression."""

    def condition(self, node: exp.Expression, clause: str) -> Scalar:
        """Returns a condition."""

    def constant(self, node: exp.Expression) -> Literal:
        """Returns a value that depends on no row."""


@dataclass(frozen=True)
class _Window:
    """The keys of partitions, and the order in each."""

    keys: tuple[Scalar, ...]
    orders: tuple[Order, ...]


@dataclass
class OverBinder:
    """Binds the window functions of one SELECT, and collects them.

    A call is a column whose number is below zero, until `compute` knows the relation that has it.

    Attributes:
        statement: The query.
        expressions: Binds expressions of the rows, or of the groups.
        named: The windows that WINDOW names, by their names in small letters.
        calls: The calls that were found so far, each with its window.
    """

    statement: Statement
    expressions: Expressions
    named: Mapping[str, Any]
    calls: list[tuple[_Window, OverCall]] = field(default_factory=list)

    def __call__(self, node: exp.Expression) -> Column:
        """Returns the column of a call of a window function."""
        keys, order, spec = self._parts(node, node)
        orders = tuple(order_of(each, self.expressions.scalar(each.this)) for each in order)
        for part, scalar in zip(order, (each.scalar for each in orders), strict=True):
            if not has_order(scalar.type) and scalar.type.name not in ("ANY", "NULL"):
                self.statement.refuse(
                    part, f"{scalar} is {scalar.type}, which has no order", "order by a part of it"
                )
        window = _Window(tuple(map(self.expressions.scalar, keys)), orders)
        found = window, self._call(node, window, spec)
        if found not in self.calls:
            self.calls.append(found)
        at = self.calls.index(found)
        call = found[1]
        return Column(-1 - at, str(call), call.type)

    def _parts(
        self, node: exp.Expression, user: exp.Expression, names: tuple[str, ...] = ()
    ) -> tuple[list[Any], list[Any], exp.Expression | None]:
        """Returns what PARTITION BY and ORDER BY of a window name, and its frame."""
        keys, order, spec = (
            list(node.args.get("partition_by") or ()),
            node.args.get("order"),
            node.args.get("spec"),
        )
        orders = [] if order is None else list(order.expressions)
        alias = node.args.get("alias")
        if alias is None:
            return keys, orders, spec
        name, refuse = alias.name.lower(), self.statement.at(user)
        if name not in self.named or name in names:
            known = f"name it with WINDOW; there are: {', '.join(sorted(self.named)) or 'none'}"
            refuse(f"there is no window {alias.name!r}", hint_at_name(alias.name, self.named, known))
        of_name = self._parts(self.named[name], user, (*names, name))
        for own, inherited, clause in zip(
            (keys, orders), of_name, ("PARTITION BY", "ORDER BY"), strict=False
        ):
            if (own and inherited) or (clause == "PARTITION BY" and own):
                refuse(f"the window {alias.name!r} has its own {clause}", "write the window without its name")
        return of_name[0], orders or of_name[1], spec or of_name[2]

    # Functions

    def _call(self, node: exp.Expression, window: _Window, spec: exp.Expression | None) -> OverCall:
        call = call_of(node)
        name, arguments = name_of(call), list(getattr(call, "expressions", ()))
        ignores, arguments = self._nulls(node, name, arguments)
        if self.statement.is_aggregate(call) and name not in VALUES:
            if ignores is not None:
                self.statement.refuse(
                    node, f"{name} does not take IGNORE or RESPECT NULLS", "aggregates ignore NULLs"
                )
            return self._aggregate(node, name, arguments, self._frame(node, name, window, spec))
        if name not in FUNCTIONS:
            known = f"use one of {', '.join(FUNCTIONS)}, or an aggregate"
            hint = hint_at_name(name, FUNCTIONS, known)
            self.statement.refuse(node, f"{name}() OVER is not supported", hint)
        if any(isinstance(each, exp.Distinct) for each in arguments):
            self._refuse_distinct(node, name)
        if isinstance(node.this, exp.Filter) or isinstance(getattr(node.this, "this", None), exp.Filter):
            self.statement.refuse(node, f"{name} does not take FILTER", "write a CASE in its argument")
        if name in VALUES:
            return self._value(node, name, arguments, self._frame(node, name, window, spec), bool(ignores))
        if not window.orders:
            self.statement.refuse(node, f"{name}() OVER needs an order", "write OVER (… ORDER BY …)")
        if spec is not None:
            self.statement.refuse(node, f"{name}() OVER does not take a frame", "leave out ROWS or RANGE")
        if ignores is not None and name not in NEIGHBOURS:
            self.statement.refuse(node, f"{name} does not take IGNORE or RESPECT NULLS", "leave it out")
        if name in NEIGHBOURS:
            return self._neighbour(node, name, arguments, bool(ignores))
        if name == "NTILE":
            self._check_count(node, name, arguments, 1, 1)
            return OverCall("ntile", INT.or_null(False), count=self._whole(node, name, arguments[0], 1))
        self._check_count(node, name, arguments, 0, 0)
        return OverCall(name.lower(), RANKS[name])

    def _nulls(self, node: exp.Expression, name: str, arguments: list[Any]) -> tuple[bool | None, list[Any]]:
        """Returns whether NULLs are ignored, None if the query does not say it; and the arguments without this."""
        marks = [
            each for each in (node.this, *arguments) if isinstance(each, (exp.IgnoreNulls, exp.RespectNulls))
        ]
        arguments = [each.this if each in marks else each for each in arguments]
        if marks:
            return isinstance(marks[0], exp.IgnoreNulls), arguments
        if name in ("FIRST_VALUE", "FIRST", "LAST_VALUE", "LAST") and len(arguments) == 2:
            # As in Spark: FIRST_VALUE(x, TRUE).
            flag = self.expressions.constant(arguments[1])
            if flag.type.name != BOOLEAN.name or flag.value is None:
                self.statement.refuse(
                    arguments[1], f"the second argument of {name} is TRUE or FALSE", "write IGNORE NULLS"
                )
            return flag.value, arguments[:1]
        return None, arguments

    def _value(
        self, node: exp.Expression, name: str, arguments: list[Any], frame: Frame, ignores: bool
    ) -> OverCall:
        kind = VALUES[name]
        count = 0
        if kind == "nth_value":
            self._check_count(node, name, arguments, 2, 2)
            count = self._whole(node, name, arguments[1], 1)
        else:
            self._check_count(node, name, arguments, 1, 1)
        value = self.expressions.scalar(arguments[0])
        return OverCall(kind, value.type.or_null(), (value,), frame, count, ignores)

    def _neighbour(self, node: exp.Expression, name: str, arguments: list[Any], ignores: bool) -> OverCall:
        self._check_count(node, name, arguments, 1, 3)
        value = self.expressions.scalar(arguments[0])
        count = 1
        if len(arguments) > 1:
            other = "LEAD" if name == "LAG" else "LAG"
            count = self._whole(node, name, arguments[1], 0, f"write {other} for the other direction")
        if len(arguments) < 3:
            return OverCall(name.lower(), value.type.or_null(), (value,), None, count, ignores)
        default = self.expressions.scalar(arguments[2])
        common = resolving.common_type([value, default])
        if common is None:
            what = f"the default of {name} is {default.type}, and {value} is {value.type}"
            self.statement.refuse(arguments[2], what, "CAST one of them")
        values = resolving.cast(value, common), resolving.cast(default, common)
        kind = common.or_null(value.type.nullable or default.type.nullable)
        return OverCall(name.lower(), kind, values, None, count, ignores)

    def _aggregate(self, node: exp.Expression, name: str, arguments: list[Any], frame: Frame) -> OverCall:
        if arguments and isinstance(arguments[0], exp.Distinct):
            self._refuse_distinct(node, name)
        called = called_aggregate(self.statement, node.this)
        assert called is not None
        found = bind_aggregate(self.statement, called, self.expressions)
        # An array has the order of the rows, unless it has one of its own.
        is_listed = found.name == "array_agg" and not called.orders
        return OverCall("list" if is_listed else "aggregate", found.type, (), frame, aggregate=found)

    def _refuse_distinct(self, node: exp.Expression, name: str) -> None:
        hint = "aggregate the rows of SELECT DISTINCT, or count those with ROW_NUMBER() = 1 of each value"
        self.statement.refuse(node, f"{name}(DISTINCT …) OVER is not supported", hint)

    def _check_count(
        self, node: exp.Expression, name: str, arguments: Sequence[Any], least: int, most: int
    ) -> None:
        if not least <= len(arguments) <= most:
            takes = str(least) if least == most else f"{least} to {most}"
            what = f"{name} takes {takes} argument{'s' * (takes != '1')}, not {len(arguments)}"
            self.statement.refuse(node, what, "correct the call")

    def _whole(
        self, node: exp.Expression, name: str, part: exp.Expression, least: int, hint: str = ""
    ) -> int:
        if any(True for _ in part.find_all(exp.Column)):
            self.statement.refuse(part, f"the number of {name} is the same for all rows", "write a literal")
        value = self.expressions.constant(part).value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            what = f"{name} takes an integer, {least} or more"
            self.statement.refuse(part, what, hint or f"write {least}, or more")
        return value

    # Frames

    def _frame(self, node: exp.Expression, name: str, window: _Window, spec: exp.Expression | None) -> Frame:
        if spec is None:
            return _TO_CURRENT if window.orders else _WHOLE
        unit = str(spec.args.get("kind") or "").upper()
        if unit not in ("ROWS", "RANGE"):
            self.statement.refuse(node, f"frames of {unit} are not supported", "write ROWS or RANGE")
        if spec.args.get("exclude"):
            self.statement.refuse(
                node, "EXCLUDE is not supported", "subtract the row itself, such as SUM(x) OVER (…) - x"
            )
        start = self._bound(node, window, unit, spec.args.get("start"), spec.args.get("start_side"), "start")
        end = spec.args.get("end")
        limit = 0 if end is None else self._bound(node, window, unit, end, spec.args.get("end_side"), "end")
        if start is not None and limit is not None and _is_less(limit, start):
            self.statement.refuse(
                node, f"the frame of {name} starts after its end", "write the earlier bound first"
            )
        if unit == "RANGE" and not window.orders and (start is not None or limit is not None):
            self.statement.refuse(node, f"the frame of {name} needs an order", "write ORDER BY before RANGE")
        return Frame(unit, start, limit)

    def _bound(
        self, node: exp.Expression, window: _Window, unit: str, bound: object, side: object, which: str
    ) -> Offset | None:
        # The parser keeps the letters of the query.
        side = str(side or "").upper()
        if bound == "CURRENT ROW":
            return 0
        if bound == "UNBOUNDED":
            if (side == "PRECEDING") != (which == "start"):
                what = f"a frame cannot {which} with UNBOUNDED {side}"
                self.statement.refuse(node, what, "write BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
            return None
        if not isinstance(bound, exp.Expression):
            self.statement.refuse(
                node, f"{bound} is not the bound of a frame", "write CURRENT ROW or 3 PRECEDING"
            )
        offset = self._rows(node, bound) if unit == "ROWS" else self._distance(node, window, bound)
        return -offset if side == "PRECEDING" and offset else offset

    def _rows(self, node: exp.Expression, bound: exp.Expression) -> Offset:
        if isinstance(bound, exp.Interval):
            self.statement.refuse(bound, "ROWS counts rows", "write RANGE for an interval")
        return self._whole(node, "ROWS", bound, 0, "write 3 PRECEDING or 3 FOLLOWING")

    def _distance(self, node: exp.Expression, window: _Window, bound: exp.Expression) -> Offset:
        """Returns the distance of a bound of RANGE, for the type of what ORDER BY names."""
        if len(window.orders) != 1:
            what = (
                f"a distance of RANGE is between values of one ORDER BY, and there are {len(window.orders)}"
            )
            self.statement.refuse(node, what, "order by one value, or write ROWS")
        [order] = window.orders
        kind = order.scalar.type.name
        if isinstance(bound, exp.Interval):
            length = datetime.timedelta(microseconds=self.statement.interval(bound))
            if kind not in _TIMES or (kind == "DATE" and length % _DAY):
                what = f"{order.scalar} is {order.scalar.type}, and the distance of RANGE is {bound.sql()}"
                self.statement.refuse(bound, what, "order by a TIMESTAMP, or a DATE and whole days")
            offset: Any = length
        else:
            offset = self.expressions.constant(bound).value
            fits = {
                "BIGINT": (int,),
                "DATE": (int,),
                "DECIMAL": (int, Decimal),
                "DOUBLE": (int, float, Decimal),
            }
            if isinstance(offset, bool) or not isinstance(offset, fits.get(kind, ())):
                what = f"{order.scalar} is {order.scalar.type}, and {bound.sql()} is not a distance between such values"
                hint = (
                    "write INTERVAL '1' HOUR"
                    if kind in _TIMES
                    else "write a number of the same type, or ROWS"
                )
                self.statement.refuse(bound, what, hint)
            if kind == "DATE":
                offset = datetime.timedelta(days=min(int(offset), datetime.timedelta.max.days))
            offset = float(offset) if kind == "DOUBLE" else offset
        if _is_less(offset, 0):
            self.statement.refuse(
                bound, "a distance of a frame is below zero", "write PRECEDING or FOLLOWING"
            )
        return offset  # type: ignore[no-any-return]

    # The relation

    def compute(
        self, relation: Relation, place: Callable[[Scalar], Scalar]
    ) -> tuple[Relation, Callable[[Scalar], Scalar]]:
        """Returns the rows with the results, and what replaces calls by their columns.

        Args:
            relation: The rows.
            place: Makes of a value of the rows, or of the groups, a value of the relation.
        """
        calls = [(_placed_window(window, place), map_scalars(call, place)) for window, call in self.calls]
        moved: dict[int, int] = {}
        for window in dict.fromkeys(window for window, _ in calls):
            own = [(at, call) for at, (other, call) in enumerate(calls) if other == window]
            width = len(relation.columns)
            results = tuple(ColumnDef(str(call), call.type) for _, call in own)
            relation = Over(
                relation,
                window.keys,
                window.orders,
                tuple(call for _, call in own),
                (*relation.columns, *results),
            )
            moved |= {-1 - at: width + number for number, (at, _) in enumerate(own)}

        def replaced(scalar: Scalar) -> Scalar:
            scalar = place(scalar)
            return shift_columns(scalar, {at: moved.get(at, at) for at in columns_of(scalar)})

        return relation, replaced


def _is_less(one: Comparable, other: Comparable) -> bool:
    """True if a bound comes before another; 0 is one of any type."""
    if isinstance(one, datetime.timedelta) or isinstance(other, datetime.timedelta):
        return _as_length(one) < _as_length(other)
    return one < other


def _as_length(bound: object) -> datetime.timedelta:
    return bound if isinstance(bound, datetime.timedelta) else datetime.timedelta()


def _placed_window(window: _Window, place: Callable[[Scalar], Scalar]) -> _Window:
    orders = tuple(replace(each, scalar=place(each.scalar)) for each in window.orders)
    return _Window(tuple(map(place, window.keys)), orders)
