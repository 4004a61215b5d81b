"""Sinks that take the columns of a frame unchanged: whether they fit, and the frame in the sink's own schema."""

from __future__ import annotations

from pyspark.sql import types as T

from penstock.graph import Step
from penstock_spark.columns.common_types import is_wider
from penstock_spark.plan.column_kinds import Fields, NotInColumns, is_flat
from penstock_spark.plan.schema_text import schema_of_text
from penstock_spark.sinks.plan import SinkPlan


def check_fit(plan: SinkPlan | None, step: Step, fields: Fields) -> None:
    """Raises NotInColumns unless a sink takes these columns unchanged, and Python would write the same.

    `plan` is the sink's plan for columns; None if it has none.
    """
    if plan is None:
        raise NotInColumns(f"{step.label!r} is encoded in Python")
    wanted = parse_spark_schema(plan.schema)
    columns = dict(fields)
    if len({name.lower() for name in wanted.names}) < len(wanted.names):
        raise NotInColumns(f"{step.label!r} has columns whose names differ only in case")
    if not columns.keys() <= set(wanted.names):
        raise NotInColumns(f"{step.label!r} lacks a column, which Python refuses")
    for field in wanted:
        if field.name not in columns and not field.nullable:
            raise NotInColumns(f"{step.label!r} needs a column {field.name}")
        if field.name in columns and not _fits(columns[field.name], field.dataType):
            kinds = f"{field.dataType.simpleString()}, not {columns[field.name].simpleString()}"
            raise NotInColumns(f"{step.label!r} needs {field.name} as {kinds}")


def parse_spark_schema(schema: T.StructType | str) -> T.StructType:
    if isinstance(schema, T.StructType):
        return schema
    parsed = schema_of_text(schema) or T.StructType.fromDDL(schema)
    assert isinstance(parsed, T.StructType)
    return parsed


def _fits(column: T.DataType, wanted: T.DataType) -> bool:
    """True if every value of a column fits into another column, and Python would store it in the same way."""
    return is_wider(wanted, column) and is_flat(column)
