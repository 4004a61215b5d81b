"""Lowers the filters and selections that Spark does before Python sees the elements of a stream.

A filter makes a mask ``m``, and leaves out no rows, because the watermark sees all of them. ``t`` is the event time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.graph import Step
from penstock.scalars.expressions import Expression
from penstock_spark.lowering.column_expressions import ColumnMaker
from penstock_spark.lowering.columns import find_read_fields
from penstock_spark.lowering.stream_times import StreamTimes, make_event_time_column
from penstock_spark.plan.column_plan import Filter, Select, Table, apply_to_table, event_time_field
from penstock_spark.plan.masked_stream import MaskedStream
from penstock_spark.sources.scan import StreamScan
from penstock_spark.stream.masked_rows import MaskedRows


def mask_rows(stream: MaskedStream, scan: StreamScan, read: Step) -> tuple[DataFrame, Callable[[], Any]]:
    """The rows of a source after its first filters and selections, and what makes their decoder."""
    assert scan.make_placed is not None
    columns, stamp = stream.columns, event_time_field(stream)
    table = columns.table
    assert table is not None
    assert stamp is not None
    wanted = find_read_fields(columns, StreamTimes(read.where, stamp, None))
    source = scan.make_placed(wanted)
    fields = [_column(name) if name in wanted else F.lit(None).cast(own) for name, own in table.fields]
    beside = [F.lit(True).alias("m")]
    beside += [_column(name).alias(f"p{place}") for place, name in enumerate(scan.placing.columns)]
    frame = source.select(*_number(fields), *beside)
    others = [*frame.columns[len(fields) :], "t"]
    frame = frame.withColumn("t", make_event_time_column(_maker(table, read.where), stamp, table, read.where))
    for operation in columns.operations:
        make = _maker(table, operation.step.where)
        match operation:
            case Filter(_, condition):
                # Python sees what a filter has left out no more, so it raises no errors either.
                passes = F.when(F.col("m"), F.coalesce(make.column(condition), F.lit(False))).otherwise(False)
                frame = frame.withColumn("m", passes)
            case Select(_, chosen):
                made = [_mask(make, each) for _, each in chosen]
                frame = frame.select(*_number(made), *others)
        table = apply_to_table(operation, table)
    names = tuple(name for name, _ in table.fields)
    return frame, partial(MaskedRows, names, table.records, scan.placing)


def _mask(make: ColumnMaker, each: Expression) -> Column:
    column = make.pass_on(each)
    return column if each.field_name is not None else F.when(F.col("m"), column)


def _maker(table: Table, where: str) -> ColumnMaker:
    places = {name: f"c{place}" for place, (name, _) in enumerate(table.fields)}
    return ColumnMaker(table, lambda name: places[name], where)


def _number(columns: Sequence[Column]) -> list[Column]:
    return [column.alias(f"c{place}") for place, column in enumerate(columns)]


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
