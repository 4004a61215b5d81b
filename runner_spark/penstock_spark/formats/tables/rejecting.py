"""CSV and JSON that Spark parses by a schema: a record that does not fit it is kept, with its line and the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.rejects import Position, Rejected, Unreadable, reject
from penstock.io.sparkio import SparkSource
from penstock_spark.columns.values import to_rows
from penstock_spark.files.finding import namer_of
from penstock_spark.reports.misfit_lines import find_misfit, make_null
from penstock_spark.sources.decoding import ByFile, Decoded
from penstock_spark.sources.headers import Headers, make_head_column
from penstock_spark.sources.line_numbers import Lines
from penstock_spark.sources.scan import StreamScan
from penstock_spark.sources.stream_files import Naming

_MALFORMED, _RAW, _IS_RECORD, _HEAD = "__malformed", "__raw", "__record", "__head"
_OF_PARSER = frozenset({"mode", "columnnameofcorruptrecord"})
_UTF8 = frozenset({"utf-8", "utf8"})

ReadFrame = Callable[[str, dict[str, Any], T.StructType | None], DataFrame]
"""Reads files with a format, options and a schema of Spark, at once or as a stream."""


def has_records(source: SparkSource) -> bool:
    """True if the format has records of text, which a schema can refuse."""
    return source.format.lower() in ("csv", "json")


def scan_of_records(
    source: SparkSource,
    schema: T.StructType | None,
    options: dict[str, Any],
    read: ReadFrame,
    place: Sequence[Column],
    check: Callable[[str], None],
    where: str,
) -> StreamScan:
    """Rows of the schema, and a `Rejected` for each record that does not fit it.

    Args:
        source: What is read.
        schema: The columns; without them, no record is wrong.
        options: The options of the reader.
        read: Reads the files.
        place: The columns that say which file a row is from, and where it begins there.
        check: Looks at the name of each file.
        where: The step.
    """
    if schema is None:
        what = f"{source.describe()} has no schema, by which records could be rejected"
        hint = "pass schema=, such as schema='name string, points int'"
        raise refusal(ValueError, what, where=where, hint=hint)
    own = {name: value for name, value in options.items() if name.lower() not in _OF_PARSER}
    lowered = {name.lower(): str(value) for name, value in own.items()}
    by_lines = lowered.get("multiline", "").lower() != "true"
    by_lines = by_lines and (lowered.get("encoding") or lowered.get("charset") or "utf-8").lower() in _UTF8
    parser = {**own, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MALFORMED, "columnPruning": False}
    if by_lines:
        frame = _lines(source, schema, own, lowered, parser, read)
    else:
        whole = T.StructType([*schema.fields, T.StructField(_MALFORMED, T.StringType())])
        frame = read(source.format, parser, whole).withColumn(_RAW, F.col(_MALFORMED))
        is_null = [_quoted(field.name).isNull() for field in schema if not field.nullable]
        if is_null:
            # Such a record has no text here, only its values.
            malformed = F.when(reduce(or_, is_null), F.lit(""))
            frame = frame.withColumn(_MALFORMED, F.coalesce(F.col(_MALFORMED), malformed))
    beside = [name for name in (_IS_RECORD, _HEAD) if name in frame.columns]
    rows = frame.select(*(_quoted(name) for name in schema.names), _MALFORMED, _RAW, *beside, *place)
    end = lowered.get("linesep")
    naming = Naming(namer_of(source.path)) if isinstance(source.path, str) else Naming()

    def make_decoder() -> ByFile:
        records = _Records(source.format.lower(), schema, lowered, by_lines, check)
        return ByFile(records, naming, delimiter=None if end is None else end.encode())

    return StreamScan(rows, make_decoder)


def _lines(
    source: SparkSource,
    schema: T.StructType,
    own: dict[str, Any],
    lowered: dict[str, str],
    parser: dict[str, Any],
    read: ReadFrame,
) -> DataFrame:
    """The lines of files, parsed one by one, so that Python sees all of them and can count."""
    lines = read("text", own, None)
    # Columns of folders, such as day=7, follow the text.
    folders = [name for name in lines.columns if name != "value"]
    fields = [field for field in schema if field.name not in folders]
    parsed_as = T.StructType([*fields, T.StructField(_MALFORMED, T.StringType())])
    value = F.col("value")
    is_csv = source.format.lower() == "csv"
    # Only files have a header, and not lines.
    of_line = {
        name: str(option).lower() if isinstance(option, bool) else str(option)
        for name, option in parser.items()
        if name.lower() != "header"
    }
    if is_csv:
        parsed = F.from_csv(value, ", ".join(_as_text(field) for field in parsed_as), of_line)
    else:
        parsed = F.from_json(value, parsed_as, of_line)
    parsed_lines = lines.select("*", parsed.alias("__parsed"))
    malformed = F.col("__parsed").getField(_MALFORMED)
    wrong = [malformed.isNotNull(), ~F.is_valid_utf8(value)]
    if not is_csv:
        # A list may have several objects, of which a line would have only the first.
        wrong += [F.col("__parsed").isNull(), value.rlike(r"^\s*\[")]
    wrong += [F.col("__parsed").getField(field.name).isNull() for field in fields if not field.nullable]
    is_record = value.rlike(r"[^\x00-\x20]")
    if is_csv and lowered.get("comment"):
        is_record = is_record & ~F.startswith(value, F.lit(lowered["comment"]))
    columns = [
        F.col("__parsed").getField(field.name).alias(field.name)
        if field.name not in folders
        else _quoted(field.name).cast(field.dataType).alias(field.name)
        for field in schema
    ]
    columns += [
        F.when(reduce(or_, wrong), value).alias(_MALFORMED),
        value.alias(_RAW),
        is_record.alias(_IS_RECORD),
    ]
    if is_csv and lowered.get("header", "").lower() == "true":
        columns.append(make_head_column().alias(_HEAD))
    return parsed_lines.select(*columns, "_metadata")


def _as_text(field: T.StructField) -> str:
    return f"{_quote(field.name)} {field.dataType.simpleString()}"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _quoted(name: str) -> Column:
    return F.col(_quote(name))


@dataclass
class _Records:
    """Decodes the records of one file after the other."""

    format: str
    schema: T.StructType
    options: dict[str, str]
    by_lines: bool
    check: Callable[[str], None]

    def __post_init__(self) -> None:
        self._headers = Headers(1)

    def __call__(self, batch: pa.RecordBatch, file: str, lines: Lines) -> Decoded:
        self.check(file)
        rows = pa.array(range(batch.num_rows), pa.int64())
        for name in (_IS_RECORD, _HEAD):
            if name not in batch.schema.names:
                continue
            kept = batch.column(name) if name == _IS_RECORD else self._headers.rest(batch.column(name))
            if kept is not None:
                batch, rows = batch.filter(kept), rows.filter(kept)
        values: list[Any] = list(to_rows(batch.select(self.schema.names)))

        def number(place: int) -> int | None:
            return lines.number(rows[place].as_py()) if self.by_lines else None

        for place in pc.indices_nonzero(pc.is_valid(batch.column(_MALFORMED))).to_pylist():
            [raw] = batch.column(_RAW).slice(place, 1).cast(pa.binary()).to_pylist()
            found = values[place]
            why = self._why(raw) if raw is not None else self._explained(self._null_in(found))
            values[place] = Rejected(
                reject(file, Position(number(place)), found if raw is None else raw, why)
            )
        return Decoded(values, number)

    def _null_in(self, found: Row) -> Unreadable:
        needed = (field.name for field in self.schema if not field.nullable)
        return make_null(next(name for name in needed if getattr(found, name) is None))

    def _why(self, raw: bytes) -> Unreadable:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return Unreadable(f"the record is not utf-8 (byte {error.start + 1})")
        return self._explained(find_misfit(text, self.format, self.schema, self.options))

    def _explained(self, found: Unreadable | None) -> Unreadable:
        what = "the record does not fit the columns"
        return Unreadable(what) if found is None else Unreadable(f"{what}: {found}", found.field)
