"""Turns expressions into Spark columns that give exactly the results of Python's own evaluation."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.error import refusal
from penstock.functions.expressions import (
    Arithmetic,
    Comparison,
    Connective,
    Expression,
    Field,
    IsNull,
    Literal,
    Not,
)
from penstock.functions.field_functions import WindowBound
from penstock_spark.plan.column_kinds import WINDOW_BOUNDS, is_float_and_small_int, kind
from penstock_spark.plan.column_plan import Table
from penstock_spark.reports.failure import marked

_EXACT: dict[str, Callable[[Column, Column], Column]] = {
    "+": F.try_add,
    "-": F.try_subtract,
    "*": F.try_multiply,
}
_PLAIN: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_TYPES = {"int": "bigint", "float": "double"}


class ColumnMaker:
    def __init__(self, table: Table, column_of: Callable[[str], Column], where: str) -> None:
        self._fields = table.readable
        self._bounds = table.bounds
        self._column_of = column_of
        self._where = where

    def passed_on(self, expression: Expression) -> Column:
        """A field unchanged, or the column of another expression."""
        return self._column_of(expression.name) if isinstance(expression, Field) else self.column(expression)

    def column(self, expression: Expression) -> Column:
        """The column of an expression; all numbers have 64 bits."""
        match expression:
            case Field(name):
                own = _TYPES.get(kind(expression, self._fields))
                return self._column_of(name).cast(own) if own else self._column_of(name)
            case Literal(value):
                own = _TYPES.get(kind(expression, self._fields))
                return F.lit(value).cast(own) if own else F.lit(value)
            case WindowBound():
                return self._column_of(WINDOW_BOUNDS[expression.bound])
            case IsNull(operand):
                return self.passed_on(operand).isNull()
            case Not(operand):
                return ~self.column(operand)
            case Connective(symbol, left, right):
                both = self.column(left), self.column(right)
                return both[0] & both[1] if symbol == "&" else both[0] | both[1]
            case Arithmetic():
                return self._arithmetic(expression)
            case Comparison():
                return self._comparison(expression)
        raise AssertionError(f"{expression} has no equivalent in Spark")

    def _arithmetic(self, expression: Arithmetic) -> Column:
        left, right = self.column(expression.left), self.column(expression.right)
        if kind(expression, self._fields) == "float":
            return _PLAIN[expression.symbol](left.cast("double"), right.cast("double"))
        if expression.symbol == "%":
            return F.pmod(left, right)
        if expression.symbol == "//":
            # It rounds towards zero, so subtract one where that rounded up.
            return F.call_function("div", left, right) - F.when(left % right < 0, 1).otherwise(0)
        if self._bounds.range_of(expression) is not None:
            return _PLAIN[expression.symbol](left, right)
        found = _EXACT[expression.symbol](left, right)
        is_lost = left.isNotNull() & right.isNotNull()
        return F.coalesce(found, F.when(is_lost, failing(too_many_bits(), self._where, "bigint")))

    def _comparison(self, expression: Comparison) -> Column:
        left, right = self.column(expression.left), self.column(expression.right)
        kinds = kind(expression.left, self._fields), kind(expression.right, self._fields)
        if is_float_and_small_int(expression, *kinds):
            left, right = left.cast("double"), right.cast("double")
        found: Any = {
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            "<=": left <= right,
            ">": left > right,
            ">=": left >= right,
        }[expression.symbol]
        if "float" not in kinds:
            return found  # type: ignore[no-any-return]
        # In Spark, NaN equals itself and is greater than everything else; in Python, every comparison with it is false.
        has_nan = (F.isnan(left) | F.isnan(right)) & left.isNotNull() & right.isNotNull()
        return F.when(has_nan, expression.symbol == "!=").otherwise(found)


def failing(error: Exception, where: str, kind: str) -> Column:
    """A column that raises a step's error when Spark computes it."""
    return F.raise_error(F.lit(marked(error, where))).cast(kind)


def too_many_bits() -> OverflowError:
    return refusal(
        OverflowError,
        "an integer in a column has more than 64 bits",
        where="",
        hint="pass --without=native_columns, or for a stream --without=native_streams and another "
        "checkpoint_location, so that Python computes it with as many bits as it needs",
    )
