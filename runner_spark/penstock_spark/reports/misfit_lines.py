"""Finds the line of a text file that does not fit its columns: Spark names only the file."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice

from pyspark.sql import types as T

from penstock.io.rejects import Unreadable
from penstock.io.sparkio import SparkSource
from penstock_spark.plan.schema_text import schema_of_text

_LINES_MAX = 1_000_000
_BITS: Mapping[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}


def find_misfit_line(path: str, source: SparkSource) -> str | None:
    """Returns the number of the first line that does not fit, and why; None if none of the first million is found.

    Values are not shown: errors are seen by people other than those who see the data.

    Args:
        path: The path of the file, on a disk.
        source: What describes its columns.
    """
    schema = schema_of_text(source.schema) if isinstance(source.schema, str) else source.schema
    if not isinstance(schema, T.StructType):
        return None
    options = {name.lower(): str(value) for name, value in source.options}
    find = {"csv": _in_csv, "json": _in_json}.get(source.format.lower())
    try:
        with open(path, encoding=options.get("encoding", "utf-8"), newline="") as lines:
            if find is None:
                return None
            number, why = next(find(islice(lines, _LINES_MAX), schema, options))
            return f"line {number} does not fit the columns: {why}"
    except (OSError, ValueError, LookupError, csv.Error, StopIteration):
        return None


def find_misfit(
    text: str, format: str, schema: T.StructType, options: Mapping[str, str]
) -> Unreadable | None:
    """Returns why a record does not fit its columns; None if Python does not see it.

    Args:
        text: The record, without a header.
        format: ``"csv"`` or ``"json"``.
        schema: The columns.
        options: The options of the reader, with names in lower case.
    """
    find = {"csv": _in_csv, "json": _in_json}[format]
    try:
        return next((why for _, why in find([text], schema, {**options, "header": "false"})), None)
    except (ValueError, csv.Error):
        return None


def _in_csv(
    lines: Iterable[str], schema: T.StructType, options: Mapping[str, str]
) -> Iterator[tuple[int, Unreadable]]:
    rows = csv.reader(
        lines,
        delimiter=options.get("sep", options.get("delimiter", ",")),
        quotechar=options.get("quote", '"'),
        escapechar=options.get("escape", "\\"),
    )
    null = options.get("nullvalue", "")
    is_first = True
    for row in rows:
        comment = options.get("comment")
        if not row or (comment and row[0].startswith(comment)):
            continue
        if is_first and options.get("header", "").lower() == "true":
            is_first = False
            continue
        is_first = False
        if len(row) != len(schema):
            fields = f"it has {len(row)} field{'s' * (len(row) != 1)}, and there are {len(schema)} columns"
            yield rows.line_num, Unreadable(fields)
            continue
        for text, column in zip(row, schema, strict=True):
            if text in (null, ""):
                if not column.nullable:
                    yield rows.line_num, make_null(column.name)
            elif not _reads(text, column.dataType):
                yield rows.line_num, _other_type(column)


def _in_json(
    lines: Iterable[str], schema: T.StructType, options: Mapping[str, str]
) -> Iterator[tuple[int, Unreadable]]:
    if options.get("multiline", "").lower() == "true":
        return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError:
            yield number, Unreadable("it is not a JSON object")
            continue
        if not isinstance(found, dict):
            yield number, Unreadable("it is not a JSON object")
            continue
        for column in schema:
            if found.get(column.name) is None and not column.nullable:
                yield number, make_null(column.name)
        for name, column in _columns_in(found, schema):
            value = found[name]
            if isinstance(value, str) != _is_text(column.dataType) or not _reads(str(value), column.dataType):
                yield number, _other_type(column)


def _columns_in(found: Mapping[str, object], schema: T.StructType) -> Iterator[tuple[str, T.StructField]]:
    """Yields the plain columns of which an object has a value."""
    for column in schema:
        if found.get(column.name) is not None and type(column.dataType) in _READERS:
            yield column.name, column


def make_null(name: str) -> Unreadable:
    """Why a record without a value in a column that needs one does not fit."""
    return Unreadable(f"the field {name!r} has no value, and is NOT NULL", name)


def _other_type(column: T.StructField) -> Unreadable:
    kind = column.dataType.simpleString().upper()
    return Unreadable(f"the field {column.name!r} is not of type {kind}", column.name)


def _is_text(kind: T.DataType) -> bool:
    return isinstance(kind, T.StringType | T.DateType | T.TimestampType | T.TimestampNTZType)


def _whole(text: str, kind: T.DataType) -> bool:
    limit = 1 << (_BITS[type(kind)] - 1)
    return -limit <= int(text) < limit


def _read(make: Callable[[str], object]) -> Callable[[str, T.DataType], bool]:
    def reads(text: str, kind: T.DataType) -> bool:
        make(text)
        return True

    return reads


def _truth(text: str, kind: T.DataType) -> bool:
    return text.lower() in ("true", "false")


_READERS: Mapping[type[T.DataType], Callable[[str, T.DataType], bool]] = {
    **dict.fromkeys(_BITS, _whole),
    T.DoubleType: _read(float),
    T.FloatType: _read(float),
    T.DecimalType: _read(Decimal),
    T.BooleanType: _truth,
    T.DateType: _read(datetime.date.fromisoformat),
    T.TimestampType: _read(datetime.datetime.fromisoformat),
    T.TimestampNTZType: _read(datetime.datetime.fromisoformat),
    T.StringType: _read(str),
}


def _reads(text: str, kind: T.DataType) -> bool:
    """True if a text may be a value of a type; a type that is not known may have any."""
    reads = _READERS.get(type(kind))
    try:
        return reads is None or reads(text.strip(), kind)
    except (ValueError, ArithmeticError):
        return False
