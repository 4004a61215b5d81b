"""Times in columns as microseconds since 1970: those that `MicrosOf` finds in the elements."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.values.types import FLOAT, INSTANT, INTEGER, LOCAL_TIME, UNSIGNED_INTEGER
from penstock_spark.arrow.types import as_read, value_of
from penstock_spark.arrow.values import cast_column

_MICROS_PER_SECOND = 1_000_000


def micros_of(columns: pa.RecordBatch, name: str) -> list[int] | None:
    """Returns the times in a column of instants, local times or seconds; None if the elements have to be asked.

    They say which value is not a time: a null, NaN, a time beyond the ends of time, or a value of another type. And
    only they know attributes that are not columns. Python must have all values of the columns, as elements show.

    >>> micros_of(pa.record_batch({"at": [1.5, -0.5]}), "at")
    [1500000, -500000]
    >>> micros_of(pa.record_batch({"at": [1.5, None]}), "at")
    """
    # Names of Python's own attributes mean these.
    if name not in columns.schema.names or name.startswith("__"):
        return None
    column = columns.column(name)
    if column.null_count or not len(column):
        return None
    micros = _micros(column, columns.schema.field(name))
    return None if micros is None else micros.to_pylist()


def _micros(column: pa.Array, field: pa.Field) -> pa.Array | None:
    kind = column.type
    value = value_of(kind)
    if value in (INSTANT, LOCAL_TIME):
        return cast_column(column, field.with_type(as_read(kind))).cast(pa.int64())
    if value in (INTEGER, UNSIGNED_INTEGER):
        least, greatest = _bounds(column)
        fits = _are_times(least * _MICROS_PER_SECOND, greatest * _MICROS_PER_SECOND)
        return pc.multiply(column.cast(pa.int64()), _MICROS_PER_SECOND) if fits else None
    if value is FLOAT and kind != pa.float16():
        micros = pc.multiply(column, float(_MICROS_PER_SECOND))
        # The bounds of numbers leave NaN out.
        fits = pc.all(pc.is_finite(micros)).as_py() and _are_times(*map(math.trunc, _bounds(micros)))
        return pc.trunc(micros).cast(pa.int64()) if fits else None
    return None


def _bounds(column: pa.Array) -> tuple[int, int]:
    found = pc.min_max(column).as_py()
    return found["min"], found["max"]


def _are_times(least_micros: int, greatest_micros: int) -> bool:
    """True if all times between these are between the ends of time."""
    return MIN_TIMESTAMP.micros <= least_micros and greatest_micros < MAX_TIMESTAMP.micros
