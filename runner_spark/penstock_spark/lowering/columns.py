"""Lowers the operations that Spark does on columns, one after another, on a source's frame.

The columns of elements have the names ``c0``, ``c1`` and up, so that no names can clash; ``t`` is the timestamp in
microseconds, and ``w`` the start of the window. In a stream whose watermark Spark keeps, ``e`` is the time that moves
it, until the grouping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from penstock.error import refusal
from penstock.scalars.expressions import Expression
from penstock.scalars.spark_forms import quote_name
from penstock.windows.window_fn import SlidingWindows
from penstock_spark.columns.losses import make_none_loss
from penstock_spark.lowering.column_expressions import ColumnMaker, raise_in_column, too_many_bits
from penstock_spark.lowering.query_texts import group_by_texts, keep_by_text, select_texts
from penstock_spark.lowering.stream_times import StreamTimes, Watermark, make_event_time_column, pin_condition
from penstock_spark.plan.column_kinds import WINDOW_BOUNDS, name_kind
from penstock_spark.plan.column_plan import (
    Columns,
    Combined,
    CombinedTexts,
    FieldsAsTuple,
    Filter,
    FilterByText,
    Grouped,
    Operation,
    Select,
    SelectTexts,
    Spread,
    Table,
    Windowed,
    WithTimestamps,
    apply_to_table,
)
from penstock_spark.reports.failure import mark
from penstock_spark.worker.column_read import ColumnReader

_UNIT = 1 << 62
_FLOATS = 1 << 53
"""Floats represent every integer up to this one exactly."""

_LOW_BITS = 31
_LOW = (1 << _LOW_BITS) - 1
_MICROS_PER_SECOND = 1_000_000
_SECONDS_MAX = ((1 << 63) - 1) // _MICROS_PER_SECOND


@dataclass(frozen=True, eq=False)
class _Lowered:
    """A frame, and the table that it holds.

    Each Spark column is made once, when it is first needed, because it takes several calls to Java.
    """

    frame: DataFrame
    table: Table
    watermark: Watermark | None = None  # The watermark on which groupings depend, in a stream.
    has_watermark: bool = False  # Whether Spark keeps a watermark.
    is_grouped: bool = False  # Whether a grouping has left the column ``e`` behind.
    made: dict[str, Column] = dataclass_field(default_factory=dict)

    def column(self, name: str) -> Column:
        if name not in self.made:
            self.made[name] = F.col(name)
        return self.made[name]

    def columns(self, names: Iterable[str]) -> list[Column]:
        return [self.column(name) for name in names]

    def maker(self, where: str) -> ColumnMaker:
        return ColumnMaker(self.table, self._input, where)

    def _input(self, name: str) -> str:
        """The text of a field, or of a bound of the window."""
        if name == WINDOW_BOUNDS["start"]:
            return "timestamp_micros(w)"
        if name == WINDOW_BOUNDS["end"]:
            assert self.table.windowfn is not None
            return f"timestamp_micros(w + {self.table.windowfn.size_micros}L)"
        return f"c{[each for each, _ in self.table.fields].index(name)}"

    @property
    def beside(self) -> list[str]:
        """The columns that are not fields."""
        return [
            *(["t"] * (self.table.time == "column")),
            *(["w"] * (self.table.windowfn is not None)),
            *(["e"] * self.has_moving_time),
        ]

    @property
    def has_moving_time(self) -> bool:
        """True if the column ``e`` is there."""
        return self.watermark is not None and not self.is_grouped

    @property
    def names(self) -> list[str]:
        return [f"c{place}" for place in range(len(self.table.fields))]


def lower_columns(
    source: Columns, frame: DataFrame, in_order: bool, times: StreamTimes | None = None
) -> tuple[DataFrame, ColumnReader]:
    """The frame after all operations on the source's frame, and how Python reads it.

    With `in_order`, the groups of a last grouping are sorted; otherwise, they come as their rows have arrived.
    """
    lowered = _lower(source, frame, in_order, times)
    table = lowered.table
    reader = ColumnReader(
        names=tuple(name for name, _ in table.fields),
        records=table.records,
        time=table.time,
        windowfn=table.windowfn,
        is_combined=bool(source.groupings),
    )
    return lowered.frame, reader


def lower_to_schema(
    source: Columns, frame: DataFrame, schema: StructType, where: str, times: StreamTimes | None = None
) -> DataFrame:
    """The frame after all operations, in the schema of a sink; a missing field becomes null."""
    lowered = _lower(source, frame, in_order=False, times=times)
    places = {name: place for place, (name, _) in enumerate(lowered.table.fields)}
    wanted = []
    for field in schema:
        if field.name not in places:
            column = F.lit(None).cast(field.dataType)
        else:
            column = lowered.column(f"c{places[field.name]}").cast(field.dataType)
        if not field.nullable:
            column = _never_null(column, field.name, field.dataType, where)
        wanted.append(column.alias(field.name))
    return lowered.frame.select(wanted)


def find_read_fields(source: Columns, times: StreamTimes) -> frozenset[str]:
    """The fields of a stream's elements that are needed."""
    return source.read_fields.union(_fields_of(times.stamp))


def _lower(source: Columns, frame: DataFrame, in_order: bool, times: StreamTimes | None) -> _Lowered:
    assert source.table is not None
    groupings = source.groupings
    watermark = times.watermark if times is not None and source.has_windows else None
    read = None if times is None else find_read_fields(source, times)
    lowered = _Lowered(frame.select(_inputs(source.table, read)), source.table)
    if times is not None and times.stamp is not None:
        lowered = _add_times(lowered, times, watermark)
    for operation in source.operations:
        applied = _apply(operation, lowered)
        if in_order and groupings and operation is groupings[-1]:
            keys = [f"c{place}" for place in range(len(groupings[-1].keys))]
            applied = applied.sortWithinPartitions(*keys, *(["w"] if "w" in lowered.beside else []))
        lowered = replace(
            lowered,
            frame=applied,
            table=apply_to_table(operation, lowered.table),
            is_grouped=lowered.is_grouped or isinstance(operation, Grouped),
        )
    return lowered


def _inputs(table: Table, read: Set[str] | None) -> list[Column]:
    """The columns of a source, with nulls for those that are not read; with None, Spark finds out which these are.

    It does not look behind a column that it counts.
    """
    return [
        (F.col(quote_name(name)) if read is None or name in read else F.lit(None).cast(own)).alias(
            f"c{place}"
        )
        for place, (name, own) in enumerate(table.fields)
    ]


def _fields_of(expression: Expression | None) -> tuple[str, ...]:
    return () if expression is None else tuple(expression.fields())


def _add_times(before: _Lowered, times: StreamTimes, watermark: Watermark | None) -> _Lowered:
    """Adds the times of a stream's elements, and lets Spark keep their watermark.

    An element too far ahead of the clock has no ``e``, and so does not move the watermark.
    """
    assert times.stamp is not None
    stamp = make_event_time_column(before.maker(times.where), times.stamp, before.table, times.where)
    frame = before.frame.select([*before.columns(before.names), stamp.alias("t")])
    if watermark is None:
        # Without a reader of the times, Spark would not look for elements that have none.
        return _Lowered(frame.where("t is not null"), before.table)
    return _Lowered(watermark.kept_over(frame, before.names, times.where), before.table, watermark, True)


def _never_null(column: Column, name: str, kind: DataType, where: str) -> Column:
    error = make_none_loss(name).refused(where)
    # Spark never reaches the last value, which only declares that the column has no nulls.
    filler = {"string": "", "binary": b"", "boolean": False}.get(kind.simpleString(), 0)
    if kind.simpleString() in ("date", "timestamp", "timestamp_ntz"):
        filler = "1970-01-01"
    return F.coalesce(column, raise_in_column(error, where, kind.simpleString()), F.lit(filler).cast(kind))


def _apply(operation: Operation, before: _Lowered) -> DataFrame:
    frame, make = before.frame, before.maker(operation.step.where)
    match operation:
        case Filter(_, condition):
            wanted = make.column(condition)
            return frame.where(pin_condition(wanted) if before.has_watermark else wanted)
        case Select(_, fields):
            made = [make.pass_on(each).alias(f"c{place}") for place, (_, each) in enumerate(fields)]
            return frame.select(made + before.columns(before.beside))
        case WithTimestamps(step, moment):
            stamp = _micros(make, moment, before.table, step.where).alias("t")
            others = before.names + [name for name in before.beside if name != "t"]
            return frame.select([*before.columns(others), stamp])
        case Windowed(_, windowfn):
            return _assign_windows(before, windowfn, apply_to_table(operation, before.table))
        case Combined():
            return _combine(operation, before, make)
        case FieldsAsTuple(columns=columns) | SelectTexts(columns=columns):
            return select_texts(frame, columns, before.columns(before.beside))
        case FilterByText(condition=text):
            return keep_by_text(frame, text, pin_condition if before.has_watermark else _unchanged)
        case CombinedTexts():
            return _combine_texts(operation, before)
        case Spread(_, partitions):
            return frame.repartition(partitions)


def _micros(make: ColumnMaker, moment: Expression, table: Table, where: str) -> Column:
    """An element's time in microseconds; an element without a time is an error, as in Python."""
    error = refusal(
        ValueError,
        "an element has no time: the function of WithTimestamps returned None",
        where=where,
        hint="filter out such elements first, e.g. with Filter(~field('at').is_null())",
    )
    column = make.column(moment)
    missing = raise_in_column(error, where, "bigint")
    if name_kind(moment, table.fields) == "instant":
        return F.coalesce(F.unix_micros(column), missing)
    if table.bounds.range_of(moment * _MICROS_PER_SECOND) is not None:
        return F.coalesce(column * _MICROS_PER_SECOND, missing)
    # It compares with the bounds, which is cheaper than a multiplication that may fail.
    is_small = column.between(-_SECONDS_MAX, _SECONDS_MAX)
    known = F.when(is_small, column * _MICROS_PER_SECOND).when(column.isNull(), missing)
    return known.otherwise(raise_in_column(too_many_bits(), where, "bigint"))


def _assign_windows(before: _Lowered, windowfn: object, table: Table) -> DataFrame:
    time = "t"
    if before.table.time == "end" and before.table.windowfn is not None:
        time = f"w + {before.table.windowfn.size_micros - 1}L"
    made = list(before.names)
    if table.time == "column":
        made.append(f"{time} as t")
    if before.has_moving_time:
        made.append("e")
    if windowfn is not None:
        made.append(f"{_starts(windowfn, time)} as w")
    return before.frame.selectExpr(*made)


def _starts(windowfn: Any, time: str) -> str:
    """The start of an element's window; for sliding windows, a row for each of its windows."""
    size, offset = f"{windowfn.size_micros}L", f"{windowfn.offset_micros}L"
    if not isinstance(windowfn, SlidingWindows):
        return f"{time} - pmod({time} - {offset}, {size})"
    period = f"{windowfn.period_micros}L"
    latest = f"{time} - pmod({time} - {offset}, {period})"
    all_starts = f"sequence({latest}, {time} - {size} + 1L, -{period})"
    # An element between two windows is in none.
    return f"explode(if({latest} > {time} - {size}, {all_starts}, cast(array() as array<bigint>)))"


def _combine(operation: Combined, before: _Lowered, make: ColumnMaker) -> DataFrame:
    """Groups by the key's parts and the window, and appends the results."""
    keys = [make.column(each).alias(f"c{place}") for place, (_, each) in enumerate(operation.keys)]
    frame, grouped_by, window = _by_window(operation, before)
    partial: list[Column] = []
    results: list[Column] = []
    for place, (_, combiner, each) in enumerate(operation.combines):
        parts = _SMALL_PARTS if before.table.bounds.has_sums(each) else _PARTS
        made = parts[combiner](f"a{place}", make.column(each), operation.step.where)
        partial += made[0]
        results.append(made[1].alias(f"c{len(keys) + place}"))
    grouped = frame.groupBy([*keys, *grouped_by]).agg(*partial)
    return grouped.select([*before.columns(f"c{place}" for place in range(len(keys))), *results, *window])


def _by_window(operation: Grouped, before: _Lowered) -> tuple[DataFrame, list[Column], list[Column]]:
    """The frame before a grouping, what stands for the window among its keys, and the window's start of that."""
    window = before.columns(["w"]) if before.table.windowfn is not None else []
    if before.watermark is None:
        return before.frame, window, window
    watermark = before.watermark.of_windows(operation.windowing)
    # Spark forgets what it knows of a column that is made in the grouping itself, or by withColumn on a Connect server.
    return before.frame.select("*", watermark.over()), [F.col("x")], [watermark.start()]


def _combine_texts(operation: CombinedTexts, before: _Lowered) -> DataFrame:
    """Groups the rows of a query by their keys and the window."""
    frame, grouped_by, window = _by_window(operation, before)
    grouped = group_by_texts(frame, operation.keys, grouped_by, operation.aggregates)
    made = [
        f"{letter}{at}"
        for letter, each in (("k", operation.keys), ("a", operation.aggregates))
        for at in range(len(each))
    ]
    rows = grouped.select([*before.columns(made), *window])
    return select_texts(rows, operation.columns, before.columns(["w"] if window else []))


def _unchanged(condition: Column) -> Column:
    return condition


def _sum(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    """Adds up high and low parts separately, so that only a total of more than 64 bits is too large."""
    carried = f"{name}h + shiftright({name}l, {_LOW_BITS})"
    total = F.expr(f"try_add(try_multiply({carried}, {_LOW + 1}L), {name}l & {_LOW}L)")
    return _high_and_low(name, value, where), F.coalesce(
        total, raise_in_column(too_many_bits(), where, "bigint")
    )


def _high_and_low(name: str, value: Column, where: str) -> list[Column]:
    number = _number(value, where)
    high = F.sum(F.shiftright(number, _LOW_BITS)).alias(f"{name}h")
    return [high, F.sum(number.bitwiseAND(_LOW)).alias(f"{name}l")]


def _small_sum(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    """One part is enough if no sum of some of the values exceeds 64 bits."""
    return [F.sum(_number(value, where)).alias(name)], F.col(name)


def _number(value: Column, where: str) -> Column:
    error = TypeError("unsupported operand type(s) for +: 'int' and 'NoneType'")
    return F.coalesce(value, raise_in_column(error, where, "bigint"))


def _mean(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    partial = _high_and_low(name, value, where) + _count(f"{name}n", value, where)[0]
    total = f"(cast({name}h as decimal(20, 0)) * {_LOW + 1}L + {name}l)"
    return partial, F.expr(write_quotient(total, f"{name}n"))


def _small_mean(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    partial = _small_sum(name, value, where)[0] + _count(f"{name}n", value, where)[0]
    return partial, F.expr(write_quotient(f"cast({name} as decimal(20, 0))", f"{name}n"))


def _count(name: str, value: Column, where: str) -> tuple[list[Column], Column]:
    return [F.count(F.lit(1)).alias(name)], F.col(name)


def _extreme(
    of: Callable[[Column], Column], symbol: str, name: str, value: Column, where: str
) -> tuple[list[Column], Column]:
    """None compares with nothing; but if it is the only value of its group, there is nothing to compare."""
    error = TypeError(f"'{symbol}' not supported between instances of 'NoneType' and another value")
    parts = [
        of(value).alias(name),
        F.count(value).alias(f"{name}n"),
        F.count(F.lit(1)).alias(f"{name}m"),
    ]
    is_mixed = (F.col(f"{name}n") < F.col(f"{name}m")) & (F.col(f"{name}m") > 1)
    return parts, F.when(is_mixed, F.raise_error(F.lit(mark(error, where)))).otherwise(F.col(name))


_PARTS: dict[str, Callable[..., tuple[list[Column], Column]]] = {
    "sum": _sum,
    "count": _count,
    "mean": _mean,
    "min": partial(_extreme, F.min, "<"),
    "max": partial(_extreme, F.max, ">"),
}
_SMALL_PARTS = {**_PARTS, "sum": _small_sum, "mean": _small_mean}
"""For columns in which no sum of some of the values exceeds 64 bits."""


def write_quotient(total: str, count: str) -> str:
    """Returns the SQL of a quotient as Python has it: the float that is nearest to it.

    The count is at most 2^53, and the quotient must fit into 64 bits.

    If floats represent both numbers exactly, float division rounds correctly. If the total is too large for
    that, the quotient is at least 1: with 62 bits of its fraction, and a last bit that says whether a
    remainder is left, it has more bits than a float, so the cast to a float rounds it, once.
    """
    whole = f"cast({total} div {count} as decimal(19, 0))"
    rest = f"cast({total} - {whole} * {count} as decimal(19, 0))"
    fraction = f"cast(({rest} * {_UNIT}BD) div {count} as decimal(19, 0))"
    more = f"cast(sign({rest} * {_UNIT}BD - {fraction} * {count}) as int)"
    bits = f"cast({whole} * {2 * _UNIT}BD + 2 * {fraction} + {more} as decimal(38, 0))"
    return (
        f"if(abs({total}) <= {_FLOATS}BD, cast({total} as double) / cast({count} as double), "
        f"cast({bits} as double) / {2 * _UNIT}D)"
    )
