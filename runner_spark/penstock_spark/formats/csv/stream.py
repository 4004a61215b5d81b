"""CSV files as a stream: Spark's parser, and the types that the files have which are there when it is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.csvio import CsvSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.scalars.spark_forms import quote_name
from penstock.typehints.unions import without_none
from penstock_spark.columns.types import arrow_schema_of, in_spark
from penstock_spark.formats.csv import records, scan
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import TaskRows
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.sources.contents import CONTENTS, NOT_IN_COLUMNS
from penstock_spark.sources.decoding import ByFile, runs_of_files, text_or_bytes
from penstock_spark.sources.headers import Headers, make_head_column
from penstock_spark.sources.partition_values import PartitionValues, partition_values
from penstock_spark.sources.scan import Rejected, StreamScan, prune_schema
from penstock_spark.sources.spark_refusals import translate_spark_errors
from penstock_spark.sources.stream_files import (
    FILE,
    PLACE,
    Naming,
    StreamFiles,
    make_schema_error,
    place_columns,
    stream_files,
)

# Columns beside the data: what is wrong with a record (null if nothing is, empty for a malformed line, otherwise the
# column whose value has another kind), its text, the file as long as it may be a header, and whether it is a header.
_WRONG, _RAW, _HEAD, _IS_HEADER = "__wrong", "__raw", "__head", "__header_column"
# Which pattern a value must match; whole numbers of a stream may become longer than what Spark's own type holds.
_PATTERNS = {"long int": scan.INT, "float": scan.FLOAT, "bool": scan.BOOL}
_TOO_LONG = "\0"
"""The prefix of a column's name if its value fits the pattern, but not into Spark's type."""

_TYPES = {kind: in_spark(value)[-1] for kind, value in scan.VALUES.items()}


def open_csv_stream(source: CsvSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Rows; malformed lines and values of another type may be rejected.

    The user chooses the types, or the present files show them.
    """
    options = dict(source.options)
    values = partition_values(source.partition_by, source.schema, where)
    files = stream_files(stream, source.file_pattern, where)
    with translate_spark_errors(source.describe(), where):
        kinds = _kinds(spark, source, options, files)
        scan.check_found(source, {name: kinds[name] for name in values.others(kinds)}, where)
        by_lines = source.splittable and scan.shows_quotes(options)
        read = _lines if by_lines else _records
        strings = read(spark, files, options, list(kinds), place_columns(stream))
        wanted = {name: kinds[name] for name in values.others(options.get("usecols") or kinds)}
        columns = [_value(name, kind, options).alias(name) for name, kind in wanted.items()]
        if source.filename_column is not None:
            columns.append(F.col(FILE).alias(source.filename_column))
        beside = [name for name in (_HEAD, _IS_HEADER, *PLACE) if name in strings.columns]
        frame = strings.select(*columns, *_with_reason(_wrong(wanted, options)), *beside)
    naming, has_rejects = files.naming(), stream.has_rejects
    decoder = scan.decoder_of(source, wanted, naming.namer)

    def make_decoder() -> ByFile:
        return ByFile(_Records(decoder, values, kinds, options, has_rejects, where), naming)

    def make_columns(names: Collection[str] | None) -> DataFrame:
        schema = prune_schema(_schema(source, wanted, values), names)
        own = {name: kind for name, kind in wanted.items() if name in schema.names}
        # PySpark passes Python no column with a dot in its name.
        plain = [
            _in_spark(name, kind, options).alias(f"c{place}")
            for place, (name, kind) in enumerate(own.items())
        ]
        exact = strings.select(*plain, *_with_reason(_wrong(wanted, options, is_exact=own)), *beside)
        of_files = _Records(decoder, values, kinds, options, False, where)
        rows: DataFrame = map_in_arrow(exact, _RowsOfFiles(of_files, naming, tuple(own), schema), schema)
        return rows

    return StreamScan(frame, make_decoder, make_columns=make_columns)


def schema_before_opening(source: CsvSource) -> T.StructType | None:
    """The columns of the rows, by the types that were found when the pipeline was built; None if unknown."""
    if source.found is None:
        return None
    folders = {
        name: kind for name, _, kind in partition_values(source.partition_by, source.schema, "").fields
    }
    own = {value.hint: in_spark(value)[-1] for value in scan.VALUES.values()}
    fields: list[T.StructField] = []
    for name, hint in source.found.fields:
        kind = folders.get(name) or own.get(without_none(hint))
        if kind is None:
            return None
        fields.append(T.StructField(name, kind))
    return T.StructType(fields)


def _schema(source: CsvSource, kinds: dict[str, str], values: PartitionValues) -> T.StructType:
    """The columns of the rows, in the order of a `scan.CsvDecoder`."""
    added = [] if source.filename_column is None else [T.StructField(source.filename_column, T.StringType())]
    own = [T.StructField(name, _TYPES[kind]) for name, kind in kinds.items()]
    asked = dict(source.options).get("usecols") or values.names
    folders = [T.StructField(name, kind) for name, _, kind in values.fields if name in asked]
    return T.StructType([*own, *added, *folders])


def _with_reason(wrong: Column) -> list[Column]:
    return [wrong.alias(_WRONG), F.when(wrong.isNotNull(), F.col(_RAW)).alias(_RAW)]


def _kinds(
    spark: SparkSession, source: CsvSource, options: dict[str, Any], files: StreamFiles
) -> dict[str, str]:
    names = list(options.get("names") or ())
    asked = scan.asked_kinds(names, options, files.where)
    if not names or None in asked.values():
        present = files.present(spark)
        names = scan.names_of(spark, present, source, options) if present.paths else []
        if any(scan.REPLACEMENT in name for name in names):
            raise scan.not_decoded(options.get("encoding") or "utf-8", present.paths[0], files.where)
        if not names:
            hint = "pass names=[...] and dtype={...}, or put a file there before the pipeline starts"
            raise make_schema_error("columns", files, hint)
        scan.check_names(names, options, source, files.where)
        asked = scan.asked_kinds(names, options, files.where)
        found = scan.found_kinds(spark, present, source, options, names)
        asked = {name: kind or found[name] for name, kind in asked.items()}
    return {name: "long int" if kind == "int" else str(kind) for name, kind in asked.items()}


def _lines(
    spark: SparkSession, files: StreamFiles, options: dict[str, Any], names: list[str], place: list[Column]
) -> DataFrame:
    """The columns as text, parsed line by line, so that an open quote is visible."""
    lines = files.load(spark.readStream, "text").withColumn(
        "value", scan.without_comment(F.col("value"), options)
    )
    # Spark's reader of CSV leaves out lines of nothing but blanks.
    lines = lines.where(F.col("value").rlike(r"[^\x00-\x20]"))
    schema = ", ".join(f"{quote_name(name)} string" for name in scan.text_schema(names).names)
    parsed = lines.select(
        F.from_csv("value", schema, scan.parser_options(options, False)).alias("parsed"),
        F.when(scan.open_quote_column(options) | ~F.is_valid_utf8("value"), F.col("value")).alias("wrong"),
        F.col("value").alias(_RAW),
        make_head_column().alias(_HEAD),
        *place,
    )
    strings = [F.col("parsed").getField(name).alias(name) for name in names]
    malformed = F.coalesce(F.col("parsed").getField(scan.MALFORMED), F.col("wrong"))
    beside = [malformed.alias(scan.MALFORMED), F.col(_RAW)]
    beside += [F.col(name) for name in PLACE if name in parsed.columns]
    if scan.has_header(options):
        # Names from the user replace the header.
        is_header = F.lit(True) if options.get("names") else _header_column(strings, names)
        beside += [F.col(_HEAD), F.when(F.col(_HEAD).isNotNull(), is_header).alias(_IS_HEADER)]
    return parsed.select(*strings, *beside)


def _header_column(strings: list[Column], names: list[str]) -> Column:
    same = [F.lower(text).eqNullSafe(name.lower()) for text, name in zip(strings, names, strict=True)]
    return reduce(and_, same)


def _records(
    spark: SparkSession, files: StreamFiles, options: dict[str, Any], names: list[str], place: list[Column]
) -> DataFrame:
    """The columns as text, of whole files that tasks cut into records."""
    contents = files.load(spark.readStream.schema(CONTENTS), "binaryFile").select("content", *place)
    header = None if options.get("names") else tuple(names)
    found = records.arriving_records(contents, files, options, header, scan.has_header(options))
    schema = ", ".join(f"{quote_name(name)} string" for name in scan.text_schema(names).names)
    value = F.col("value")
    strings = found.withColumn("parsed", F.from_csv("value", schema, scan.parser_options(options, True)))
    # Only whole records are there, without the bytes that they were made of.
    is_replaced = F.when(F.contains(value, F.lit(scan.REPLACEMENT)), value)
    return strings.select(
        *(F.col("parsed").getField(name).alias(name) for name in names),
        F.coalesce(F.col("parsed").getField(scan.MALFORMED), is_replaced).alias(scan.MALFORMED),
        value.alias(_RAW),
        *(name for name in PLACE if name in strings.columns),
    )


def _value(name: str, kind: str, options: dict[str, Any]) -> Column:
    value = scan.missing_as_null(name, options)
    return scan.typed(F.when(_fits(name, kind, options), value), kind) if kind in _PATTERNS else value


def _in_spark(name: str, kind: str, options: dict[str, Any]) -> Column:
    """The value of a column in Spark's own type; null for whole numbers of more than 64 bits."""
    if kind != "long int":
        return _value(name, kind, options)
    value = scan.missing_as_null(name, options)
    return F.trim(F.when(_fits(name, kind, options), value)).try_cast("bigint")


def _fits(name: str, kind: str, options: dict[str, Any]) -> Column:
    return scan.missing_as_null(name, options).rlike(_PATTERNS[kind])


def _wrong(kinds: dict[str, str], options: dict[str, Any], is_exact: Collection[str] = ()) -> Column:
    """Why a record is wrong; in the columns `is_exact`, also whole numbers that Spark's type does not hold."""
    misfits = [
        F.when(~_fits(name, kind, options), F.lit(name)) for name, kind in kinds.items() if kind in _PATTERNS
    ]
    for name in [name for name, kind in kinds.items() if kind == "long int" and name in is_exact]:
        is_lost = _in_spark(name, "long int", options).isNull()
        has_value = scan.missing_as_null(name, options).isNotNull()
        misfits.append(F.when(is_lost & has_value, F.lit(_TOO_LONG + name)))
    return F.coalesce(F.when(F.col(scan.MALFORMED).isNotNull(), F.lit("")), *misfits)


class _Records:
    """Decodes the records of one file after the other."""

    def __init__(
        self,
        decoder: scan.CsvDecoder,
        values: PartitionValues,
        kinds: dict[str, str],
        options: dict[str, Any],
        has_rejects: bool,
        where: str,
    ) -> None:
        self._decoder = decoder
        self._values = values
        self._kinds = kinds
        self._options = options
        self._has_rejects = has_rejects
        self._where = where
        self._headers = Headers(1)

    def columns(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        """The records of a batch without headers; the first one that is wrong is an error of the step."""
        if _HEAD in batch.schema.names:
            batch = self._without_headers(batch, file)
        wrong = batch.column(_WRONG).drop_null()
        if len(wrong):
            raw = batch.column(_RAW).drop_null().cast(pa.binary())
            fail_step(self._error(wrong[0].as_py(), file, raw[0].as_py()), self._where)
        return self._values.added(batch, file) if self._values.names else batch

    def __call__(self, batch: pa.RecordBatch, file: str) -> list[Any]:
        if _HEAD in batch.schema.names:
            batch = self._without_headers(batch, file)
        whole = self._values.added(batch, file) if self._values.names else batch
        rows: list[Any] = list(self._decoder(whole.select(self._decoder.names)))
        wrong = batch.column(_WRONG)
        if wrong.null_count == len(wrong):
            return rows
        raws = batch.column(_RAW).cast(pa.binary()).to_pylist()
        for place, (what, raw) in enumerate(zip(wrong.to_pylist(), raws, strict=True)):
            if what is not None:
                error = self._error(what, file, raw)
                if not self._has_rejects:
                    fail_step(error, self._where)
                rows[place] = Rejected(text_or_bytes(raw), error)
        return rows

    def _error(self, wrong: str, file: str, raw: bytes) -> ValueError:
        if not wrong:
            if scan.REPLACEMENT in raw.decode("utf-8", "replace"):
                encoding = self._options.get("encoding") or "utf-8"
                return scan.not_decoded(encoding, file, self._where)
            more = "; rejects=True puts such lines aside"
            return scan.malformed_lines(1, file, self._where, more=more)
        if wrong.startswith(_TOO_LONG):
            name = wrong.removeprefix(_TOO_LONG)
            what = f"the column {name} of {file} has a whole number of more than 64 bits, which Spark cannot hold"
            hint = f"pass dtype={{{name!r}: str}}, or {NOT_IN_COLUMNS}"
            return refusal(ValueError, what, where=self._where, hint=hint)
        kind = self._kinds[wrong].rpartition(" ")[2]
        hint = f"pass dtype={{{wrong!r}: str}}, or put such lines aside with rejects=True"
        what = f"the column {wrong} of {file} has a value that is not of type {kind}"
        return refusal(ValueError, what, where=self._where, hint=hint)

    def _without_headers(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        """The records; a header with other columns is an error, since its whole file would be wrong."""
        rest = self._headers.rest(batch.column(_HEAD))
        if rest is None:
            return batch
        are_headers = zip(rest.to_pylist(), batch.column(_IS_HEADER).to_pylist(), strict=True)
        if not all(is_rest or is_header for is_rest, is_header in are_headers):
            what = f"the header of {file} has different columns than earlier files"
            hint = "read such files with a separate pattern, or name the columns with names= and header=0"
            fail_step(refusal(ValueError, what, where=self._where, hint=hint), self._where)
        return batch.filter(rest)


@dataclass(frozen=True)
class _RowsOfFiles(TaskRows):
    """Gives the columns of records in a task, without Python's objects."""

    records: _Records
    naming: Naming
    names: tuple[str, ...]  # The first columns that arrive.
    schema: T.StructType

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self.schema)
        named = batch.rename_columns([*self.names, *batch.schema.names[len(self.names) :]])
        first = batch.schema.names.index(FILE)
        for file, _, start, end in runs_of_files(named.columns[first:], self.naming):
            yield self._columns(named.slice(start, end - start), file, schema)

    def _columns(self, batch: pa.RecordBatch, file: str, schema: pa.Schema) -> pa.RecordBatch:
        rows = self.records.columns(batch, file)
        columns = [
            rows.column(each.name)
            if each.name in rows.schema.names
            else pa.repeat(pa.scalar(file, each.type), rows.num_rows)
            for each in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
