"""Turns expressions into Spark columns with exactly the results that Python has."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.error import refusal
from penstock.scalars.expressions import Expression
from penstock.scalars.spark_forms import write_literal
from penstock.scalars.spark_writer import write_field_expression
from penstock.scalars.types import STRING
from penstock_spark.plan.column_kinds import type_expression
from penstock_spark.plan.column_plan import Table
from penstock_spark.reports.failure import mark


class ColumnMaker:
    def __init__(self, table: Table, text_of: Callable[[str], str], where: str) -> None:
        self._table = table
        self._text_of = text_of
        self._where = where

    def pass_on(self, expression: Expression) -> Column:
        """A field unchanged, or the column of another expression."""
        name = expression.field_name
        return self.column(expression) if name is None else F.col(self._text_of(name))

    def column(self, expression: Expression) -> Column:
        """The column of an expression; all numbers have 64 bits."""
        scalar = type_expression(expression, self._table.readable, self._table.bounds)
        message = write_literal(mark(too_many_bits(), self._where), STRING)
        return F.expr(
            write_field_expression(scalar, self._text_of, f"CAST(raise_error({message}) AS BIGINT)")
        )


def raise_in_column(error: Exception, where: str, kind: str) -> Column:
    """A column that raises a step's error when Spark computes it."""
    return F.raise_error(F.lit(mark(error, where))).cast(kind)


def too_many_bits() -> OverflowError:
    return refusal(
        OverflowError,
        "an integer in a column has more than 64 bits",
        where="",
        hint="pass --without=native_columns, or for a stream --without=native_streams and another "
        "checkpoint_location, so that Python computes it with as many bits as it needs",
    )
