"""Lowers what Spark does to columns by itself: operation after operation on a source's frame.

The columns of elements are called ``c0``, ``c1`` and so on, so that no name can clash; ``t`` is the timestamp in
microseconds, and ``w`` the start of the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from penstock.error import three_parts
from penstock.transforms.expressions import Expression
from penstock_spark.column_kinds import WINDOW_BOUNDS, kind
from penstock_spark.column_plan import (
    ColumnsSource,
    Combined,
    Kept,
    Operation,
    Projected,
    Spread,
    Stamped,
    Table,
    Windowed,
    after,
)
from penstock_spark.lowering.column_expressions import ColumnMaker, failing, too_many_bits
from penstock_spark.operators.column_read import ColumnReader
from penstock_spark.operators.failure import marked

_LOW_BITS = 31
_MICROS_PER_SECOND = 1_000_000


@dataclass(frozen=True, eq=False)
class _Lowered:
    """A frame, and the table that it holds."""

    frame: DataFrame
    table: Table

    def maker(self, where: str) -> ColumnMaker:
        names = [name for name, _ in self.table.fields]
        inputs = {name: F.col(f"c{place}") for place, name in enumerate(names)}
        if self.table.windowfn is not None:
            size = F.lit(self.table.windowfn.size_micros).cast("bigint")
            inputs[WINDOW_BOUNDS["start"]] = F.timestamp_micros(F.col("w"))
            inputs[WINDOW_BOUNDS["end"]] = F.timestamp_micros(F.col("w") + size)
        return ColumnMaker(self.table.readable, inputs, where)

    @property
    def beside(self) -> list[str]:
        """The columns that are no fields."""
        return [*(["t"] * (self.table.time == "column")), *(["w"] * (self.table.windowfn is not None))]

    @property
    def names(self) -> list[str]:
        return [f"c{place}" for place in range(len(self.table.fields))]

    def columns(self, names: list[str]) -> list[Column]:
        return [F.col(name) for name in names]


def lower_columns(source: ColumnsSource, frame: DataFrame) -> tuple[DataFrame, ColumnReader]:
    """The frame after all operations, and how Python reads it.

    Args:
        source: What is to be done.
        frame: The open source's.
    """
    lowered = _lowered(source, frame)
    table = lowered.table
    reader = ColumnReader(
        names=tuple(name for name, _ in table.fields),
        records=table.records,
        time=table.time,
        windowfn=table.windowfn,
        is_combined=any(isinstance(operation, Combined) for operation in source.operations),
    )
    return lowered.frame, reader


def columns_for(source: ColumnsSource, frame: DataFrame, schema: StructType, where: str) -> DataFrame:
    """The frame after all operations, in the schema of a sink.

    Args:
        source: What is to be done.
        frame: The open source's.
        schema: The sink's; a field that is not there is null.
        where: The step that writes, for errors.
    """
    lowered = _lowered(source, frame)
    places = {name: place for place, (name, _) in enumerate(lowered.table.fields)}
    wanted = []
    for field in schema:
        if field.name not in places:
            column = F.lit(None).cast(field.dataType)
        else:
            column = F.col(f"c{places[field.name]}").cast(field.dataType)
        if not field.nullable:
            column = _never_null(column, field.name, field.dataType, where)
        wanted.append(column.alias(field.name))
    return lowered.frame.select(wanted)


def _lowered(source: ColumnsSource, frame: DataFrame) -> _Lowered:
    assert source.table is not None
    inputs = [F.col(_quoted(name)).alias(f"c{place}") for place, (name, _) in enumerate(source.table.fields)]
    lowered = _Lowered(frame.select(inputs), source.table)
    for operation in source.operations:
        lowered = _Lowered(_applied(operation, lowered), after(operation, lowered.table))
    return lowered


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _never_null(column: Column, name: str, kind: DataType, where: str) -> Column:
    error = TypeError(
        three_parts(
            f"a value of the field {name} is None, which its type does not allow",
            where=where,
            hint="correct the declared type or the schema, or filter such elements out before",
        )
    )
    # The last value is never reached: it tells Spark that the column has no nulls.
    filler: Any = {"string": "", "binary": b"", "boolean": False}.get(kind.simpleString(), 0)
    if kind.simpleString() in ("date", "timestamp", "timestamp_ntz"):
        filler = "1970-01-01"
    return F.coalesce(column, failing(error, where, kind.simpleString()), F.lit(filler).cast(kind))


def _applied(operation: Operation, before: _Lowered) -> DataFrame:
    """The frame after one operation."""
    frame, make = before.frame, before.maker(operation.step.where)
    match operation:
        case Kept(_, condition):
            return frame.where(make.column(condition))
        case Projected(_, fields):
            made = [make.passed_on(each).alias(f"c{place}") for place, (_, each) in enumerate(fields)]
            return frame.select(made + before.columns(before.beside))
        case Stamped(step, moment):
            stamp = _micros(make, moment, before.table, step.where).alias("t")
            others = before.names + [name for name in before.beside if name != "t"]
            return frame.select([*before.columns(others), stamp])
        case Windowed(_, windowfn):
            return _windowed(before, windowfn, after(operation, before.table))
        case Combined():
            return _combined(operation, before, make)
        case Spread(_, partitions):
            return frame.repartition(partitions)


def _micros(make: ColumnMaker, moment: Expression, table: Table, where: str) -> Column:
    """An element's time in microseconds; an element without one is refused, as in Python."""
    error = ValueError(
        three_parts(
            "an element has no time: the function of WithTimestamps gave None",
            where=where,
            hint="filter such elements out before, e.g. with Filter(~field('at').is_null())",
        )
    )
    column = make.column(moment)
    if kind(moment, table.fields) == "instant":
        micros = F.unix_micros(column)
        return F.coalesce(micros, failing(error, where, "bigint"))
    micros = F.try_multiply(column, F.lit(_MICROS_PER_SECOND).cast("bigint"))
    missing = F.when(column.isNull(), failing(error, where, "bigint"))
    return F.coalesce(micros, missing.otherwise(failing(too_many_bits(), where, "bigint")))


def _windowed(before: _Lowered, windowfn: Any, table: Table) -> DataFrame:
    time = F.col("t")
    if before.table.time == "end" and before.table.windowfn is not None:
        time = F.col("w") + F.lit(before.table.windowfn.size_micros - 1)
    made = before.columns(before.names)
    if table.time == "column":
        made.append(time.alias("t"))
    if windowfn is not None:
        size, offset = (F.lit(each).cast("bigint") for each in (windowfn.size_micros, windowfn.offset_micros))
        made.append((time - F.pmod(time - offset, size)).alias("w"))
    return before.frame.select(made)


def _combined(operation: Combined, before: _Lowered, make: ColumnMaker) -> DataFrame:
    """Groups by the key's parts and the window, and puts the results behind them."""
    names = [f"k{place}" for place in range(len(operation.keys))]
    keys = [make.column(each).alias(name) for name, (_, each) in zip(names, operation.keys, strict=True)]
    window = before.columns(["w"]) if before.table.windowfn is not None else []
    partial: list[Column] = []
    results: list[Column] = []
    for place, (_, combiner, each) in enumerate(operation.combines):
        made = _PARTS[combiner](f"a{place}", make.column(each), operation.step.where)
        partial += made[0]
        results.append(made[1].alias(f"c{len(keys) + place}"))
    grouped = before.frame.groupBy([*keys, *window]).agg(*partial)
    renamed = [F.col(name).alias(f"c{place}") for place, name in enumerate(names)]
    return grouped.select([*renamed, *results, *window])


def _sum(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    """High and low parts are added up apart, so that only a total of more than 64 bits is too large."""
    error = TypeError("unsupported operand type(s) for +: 'int' and 'NoneType'")
    number = F.coalesce(value, failing(error, where, "bigint"))
    high = F.sum(F.shiftright(number, _LOW_BITS)).alias(f"{name}h")
    low = F.sum(number.bitwiseAND(F.lit((1 << _LOW_BITS) - 1).cast("bigint"))).alias(f"{name}l")
    carried = F.col(f"{name}h") + F.shiftright(F.col(f"{name}l"), _LOW_BITS)
    rest = F.col(f"{name}l").bitwiseAND(F.lit((1 << _LOW_BITS) - 1).cast("bigint"))
    total = F.try_add(F.try_multiply(carried, F.lit(1 << _LOW_BITS).cast("bigint")), rest)
    return [high, low], F.coalesce(total, failing(too_many_bits(), where, "bigint"))


def _count(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    return [F.count(F.lit(1)).alias(name)], F.col(name)


def _least(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    return _extreme(name, F.min(value), value, "'<' not supported between instances of {} and {}", where)


def _greatest(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    return _extreme(name, F.max(value), value, "'>' not supported between instances of {} and {}", where)


def _extreme(name: str, found: Column, value: Column, text: str, where: str) -> tuple[list[Column], Column]:
    """None compares with nothing, but where it is the only value of its group nothing has to be compared."""
    error = TypeError(text.format("'NoneType'", "another value"))
    parts = [
        found.alias(name),
        F.count(value).alias(f"{name}n"),
        F.count(F.lit(1)).alias(f"{name}m"),
    ]
    is_mixed = (F.col(f"{name}n") < F.col(f"{name}m")) & (F.col(f"{name}m") > 1)
    return parts, F.when(is_mixed, F.raise_error(F.lit(marked(error, where)))).otherwise(F.col(name))


_PARTS = {"sum": _sum, "count": _count, "min": _least, "max": _greatest}
