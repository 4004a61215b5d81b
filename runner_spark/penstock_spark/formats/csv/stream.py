"""CSV files as a stream: Spark's parser, and the types that the files have which are there when it is opened."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.csvio import CsvSource
from penstock.io.formats.declared_fields import KEEPS_APART, make_misfit, needed_fields
from penstock.io.rejects import Position, Rejected, Unreadable, reject
from penstock.io.streaming.stream_sources import StreamSource
from penstock.scalars.spark_forms import quote_name
from penstock.typehints.unions import without_none
from penstock_spark.columns.types import arrow_schema_of
from penstock_spark.formats.csv import records, scan
from penstock_spark.formats.csv.kinds import (
    asked_kinds,
    fits,
    hint_of,
    in_spark,
    is_checked,
    kind_of_hint,
    to_decode,
    typed,
)
from penstock_spark.formats.csv.quotes import comment_remover, ends_in_quote
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import TaskRows
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.sources.contents import CONTENTS, NOT_IN_COLUMNS
from penstock_spark.sources.decoding import ByFile, Decoded, explain, runs_of_files
from penstock_spark.sources.headers import Headers, make_head_column
from penstock_spark.sources.line_numbers import LineCounter, Lines
from penstock_spark.sources.partition_values import PartitionValues, partition_values
from penstock_spark.sources.scan import Scan, StreamScan, prune_schema
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
from penstock_spark.sources.whole_read import scan_with_rejects

# Columns beside the data: what is wrong with a record (null if nothing is, empty for a malformed line, otherwise the
# column whose value has another kind), its text, the file as long as it may be a header, whether it is a header, and
# whether it is a record at all, and not an empty line.
_WRONG, _RAW, _HEAD, _IS_HEADER, _IS_RECORD = "__wrong", "__raw", "__head", "__header_column", "__record"
_TOO_LONG, _MISSING = "\0", "\1"
"""The prefix of a column's name if its value fits the pattern, but not into Spark's type; and if it has none."""


def open_csv_with_rejects(source: CsvSource, spark: SparkSession, where: str) -> Scan:
    """Rows, by the types that were found when the pipeline was built."""
    return scan_with_rejects(open_csv_stream, source, spark, where)


def open_csv_stream(source: CsvSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Rows; malformed lines and values of another type may be rejected.

    The user chooses the types, or the present files show them.
    """
    options = dict(source.options)
    values = partition_values(source.partition_by, source.schema, where)
    files = stream_files(stream, source.file_pattern, where)
    with translate_spark_errors(source.describe(), where):
        kinds = _kinds(spark, source, options, files, stream.is_bounded)
        scan.check_found(source, {name: kinds[name] for name in values.others(kinds)}, where)
        by_lines = source.splittable and scan.shows_quotes(options)
        read = _lines if by_lines else _records
        strings = read(spark, files, options, list(kinds), place_columns(stream))
        wanted = {name: kinds[name] for name in values.others(options.get("usecols") or kinds)}
        columns = [to_decode(_text(name, kind, options), kind).alias(name) for name, kind in wanted.items()]
        needed = [name for name in needed_fields(source.declared) if name in wanted]
        if source.filename_column is not None:
            columns.append(F.col(FILE).alias(source.filename_column))
        beside = [
            name for name in (_HEAD, _IS_HEADER, _IS_RECORD, records.LINE, *PLACE) if name in strings.columns
        ]
        frame = strings.select(*columns, *_with_reason(_wrong(wanted, options, needed)), *beside)
    naming, has_rejects = files.naming(), stream.has_rejects
    decoder = scan.decoder_of(source, wanted, naming.namer)

    def make_decoder() -> ByFile:
        return ByFile(_Records(source, decoder, values, kinds, has_rejects, where), naming)

    def make_columns(names: Collection[str] | None) -> DataFrame:
        schema = prune_schema(_schema(source, wanted, values), names)
        own = {name: kind for name, kind in wanted.items() if name in schema.names}
        # PySpark passes Python no column with a dot in its name.
        plain = [
            _in_spark(name, kind, options).alias(f"c{place}")
            for place, (name, kind) in enumerate(own.items())
        ]
        exact = strings.select(*plain, *_with_reason(_wrong(wanted, options, needed, own)), *beside)
        of_files = _Records(source, decoder, values, kinds, False, where)
        rows: DataFrame = map_in_arrow(exact, _RowsOfFiles(of_files, naming, tuple(own), schema), schema)
        return rows

    return StreamScan(frame, make_decoder, make_columns=make_columns, reads_more=True)


def schema_before_opening(source: CsvSource) -> T.StructType | None:
    """The columns of the rows, by the types that were found when the pipeline was built; None if unknown."""
    if source.found is None:
        return None
    folders = {
        name: kind for name, _, kind in partition_values(source.partition_by, source.schema, "").fields
    }
    fields: list[T.StructField] = []
    for name, hint in source.found.fields:
        own = kind_of_hint(without_none(hint))
        kind = folders.get(name) or (None if own is None else in_spark(own))
        if kind is None:
            return None
        fields.append(T.StructField(name, kind))
    return T.StructType(fields)


def _schema(source: CsvSource, kinds: dict[str, str], values: PartitionValues) -> T.StructType:
    """The columns of the rows, in the order of a `scan.CsvDecoder`."""
    added = [] if source.filename_column is None else [T.StructField(source.filename_column, T.StringType())]
    own = [T.StructField(name, in_spark(kind)) for name, kind in kinds.items()]
    asked = dict(source.options).get("usecols") or values.names
    folders = [T.StructField(name, kind) for name, _, kind in values.fields if name in asked]
    return T.StructType([*own, *added, *folders])


def _with_reason(wrong: Column) -> list[Column]:
    return [wrong.alias(_WRONG), F.when(wrong.isNotNull(), F.col(_RAW)).alias(_RAW)]


def _kinds(
    spark: SparkSession, source: CsvSource, options: dict[str, Any], files: StreamFiles, is_bounded: bool
) -> dict[str, str]:
    names = list(options.get("names") or ())
    if is_bounded and not names and source.found is not None:
        own = [name for name, _ in source.found.fields]
        added = {source.filename_column, *source.partition_by}
        is_whole = options.get("usecols") is None
        names = [name for name in own if name not in added] if is_whole else names
    asked = asked_kinds(names, options, files.where)
    if is_bounded:
        asked = {name: kind or _found_kind(source, name) for name, kind in asked.items()}
        if names:
            scan.check_names(names, options, source, files.where)
    if not names or None in asked.values():
        present = files.present(spark)
        names = scan.names_of(spark, present, source, options) if present.paths else []
        if any(scan.REPLACEMENT in name for name in names):
            raise scan.not_decoded(options.get("encoding") or "utf-8", present.paths[0], files.where)
        if not names:
            hint = "pass names=[...] and dtype={...}, or put a file there before the pipeline starts"
            raise make_schema_error("columns", files, hint)
        scan.check_names(names, options, source, files.where)
        asked = asked_kinds(names, options, files.where)
        if is_bounded:
            asked = {name: kind or _found_kind(source, name) for name, kind in asked.items()}
        if None in asked.values():
            found = scan.found_kinds(spark, present, source, options, names)
            asked = {name: kind or found[name] for name, kind in asked.items()}
    return {name: "long int" if kind == "int" else str(kind) for name, kind in asked.items()}


def _found_kind(source: CsvSource, name: str) -> str | None:
    """The kind that a column had when the pipeline was built, to which its values must keep; None if unknown."""
    usecols = dict(source.options).get("usecols")
    if usecols is not None and name not in usecols:
        return "str"
    hints = {} if source.found is None else dict(source.found.fields)
    wanted = without_none(hints.get(name))
    return kind_of_hint(wanted)


def _lines(
    spark: SparkSession, files: StreamFiles, options: dict[str, Any], names: list[str], place: list[Column]
) -> DataFrame:
    """The columns as text, parsed line by line, so that an open quote is visible."""
    lines = files.load(files.reader(spark), "text").withColumn(_RAW, F.col("value"))
    lines = lines.withColumn("value", scan.without_comment(F.col("value"), options))
    schema = ", ".join(f"{quote_name(name)} string" for name in scan.text_schema(names).names)
    parsed = lines.select(
        F.from_csv("value", schema, scan.parser_options(options, False)).alias("parsed"),
        F.when(scan.open_quote_column(options) | ~F.is_valid_utf8("value"), F.col("value")).alias("wrong"),
        F.col(_RAW),
        # Spark's reader of CSV leaves out lines of nothing but blanks. Here they count as lines.
        F.col("value").rlike(r"[^\x00-\x20]").alias(_IS_RECORD),
        make_head_column().alias(_HEAD),
        *place,
    )
    strings = [F.col("parsed").getField(name).alias(name) for name in names]
    malformed = F.coalesce(F.col("parsed").getField(scan.MALFORMED), F.col("wrong"))
    beside = [malformed.alias(scan.MALFORMED), F.col(_RAW), F.col(_IS_RECORD)]
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
    contents = files.load(files.reader(spark).schema(CONTENTS), "binaryFile").select("content", *place)
    header = None if options.get("names") else tuple(names)
    found = records.arriving_records(contents, files, options, header, scan.has_header(options))
    schema = ", ".join(f"{quote_name(name)} string" for name in scan.text_schema(names).names)
    value = F.col("value")
    strings = found.withColumn("parsed", F.from_csv("value", schema, scan.parser_options(options, True)))
    is_undecoded = F.when(F.col(records.BYTES).isNotNull(), value)
    return strings.select(
        *(F.col("parsed").getField(name).alias(name) for name in names),
        F.coalesce(F.col("parsed").getField(scan.MALFORMED), is_undecoded).alias(scan.MALFORMED),
        F.coalesce(F.col(records.BYTES), value.cast("binary")).alias(_RAW),
        records.LINE,
        *(name for name in PLACE if name in strings.columns),
    )


def _text(name: str, kind: str, options: dict[str, Any]) -> Column:
    """The text of a value of a column; null if it is missing, or not a value of the column's kind."""
    value = scan.missing_as_null(name, options)
    return F.when(_fits(name, kind, options), value) if is_checked(kind) else value


def _in_spark(name: str, kind: str, options: dict[str, Any]) -> Column:
    """The value of a column in Spark's own type; null for integers of more than 64 bits."""
    text = _text(name, kind, options)
    return F.trim(text).try_cast("bigint") if kind == "long int" else typed(text, kind)


def _fits(name: str, kind: str, options: dict[str, Any]) -> Column:
    return fits(scan.missing_as_null(name, options), kind)


def _wrong(
    kinds: dict[str, str], options: dict[str, Any], needed: Collection[str], is_exact: Collection[str] = ()
) -> Column:
    """Why a record is wrong: a value has another kind, or is missing in one of the `needed` columns.

    In the columns `is_exact`, an integer that Spark's type does not hold is also wrong.
    """
    misfits = []
    for name, kind in kinds.items():
        if is_checked(kind):
            misfits.append(F.when(~_fits(name, kind, options), F.lit(name)))
        if name in needed:
            is_missing = scan.missing_as_null(name, options).isNull()
            misfits.append(F.when(is_missing, F.lit(_MISSING + name)))
    for name in [name for name, kind in kinds.items() if kind == "long int" and name in is_exact]:
        is_lost = _in_spark(name, "long int", options).isNull()
        has_value = scan.missing_as_null(name, options).isNotNull()
        misfits.append(F.when(is_lost & has_value, F.lit(_TOO_LONG + name)))
    return F.coalesce(F.when(F.col(scan.MALFORMED).isNotNull(), F.lit("")), *misfits)


class _Records:
    """Decodes the records of one file after the other."""

    def __init__(
        self,
        source: CsvSource,
        decoder: scan.CsvDecoder,
        values: PartitionValues,
        kinds: dict[str, str],
        has_rejects: bool,
        where: str,
    ) -> None:
        self._source = source
        self._options = options = dict(source.options)
        self._decoder = decoder
        self._values = values
        self._kinds = kinds
        self._has_rejects = has_rejects
        self._where = where
        self._headers = Headers(1)
        self._names = list(options.get("names") or kinds)

    def columns(self, batch: pa.RecordBatch, file: str, lines: Lines) -> pa.RecordBatch:
        """The records of a batch without headers; the first one that is wrong is an error of the step."""
        batch, rows = self._records(batch, file)
        wrong = pc.indices_nonzero(pc.is_valid(batch.column(_WRONG)))
        if len(wrong):
            self._fail(batch, wrong[0].as_py(), file, rows, lines)
        return self._values.added(batch, file) if self._values.names else batch

    def __call__(self, batch: pa.RecordBatch, file: str, lines: Lines) -> Decoded:
        batch, rows = self._records(batch, file)
        whole = self._values.added(batch, file) if self._values.names else batch
        values: list[Any] = list(self._decoder(whole.select(self._decoder.names)))

        def number(place: int) -> int | None:
            return self._line(batch, place, rows, lines)

        for place in pc.indices_nonzero(pc.is_valid(batch.column(_WRONG))).to_pylist():
            if not self._has_rejects:
                self._fail(batch, place, file, rows, lines)
            raw, why = self._what_is_wrong(batch, place)
            values[place] = Rejected(reject(file, Position(number(place)), raw, why))
        return Decoded(values, number)

    def _fail(
        self, batch: pa.RecordBatch, place: int, file: str, rows: pa.Array | None, lines: Lines
    ) -> NoReturn:
        _, why = self._what_is_wrong(batch, place)
        hint = "correct the line, or pass rejects=True, which keeps such lines apart"
        if why.hint is not None:
            hint = why.hint
        elif "encoding" in str(why):
            hint = "pass encoding='latin-1', for example, or rejects=True, which keeps such lines apart"
        elif isinstance(why, _TooLong):
            hint = f"pass dtype={{{why.column!r}: str}}, or {NOT_IN_COLUMNS}"
        line = self._line(batch, place, rows, lines)
        fail_step(explain(why, file, line, self._where, hint), self._where)

    def _line(self, batch: pa.RecordBatch, place: int, rows: pa.Array | None, lines: Lines) -> int | None:
        """The number of the line at which a record begins."""
        if records.LINE in batch.schema.names:
            found: int = batch.column(records.LINE)[place].as_py()
            return found
        return lines.number(place if rows is None else rows[place].as_py())

    def _what_is_wrong(self, batch: pa.RecordBatch, place: int) -> tuple[bytes, Unreadable]:
        """The bytes of a record, and why it is wrong."""
        wrong = batch.column(_WRONG)[place].as_py()
        [raw] = batch.column(_RAW).slice(place, 1).cast(pa.binary()).to_pylist()
        if wrong.startswith(_TOO_LONG):
            return raw, _TooLong(wrong.removeprefix(_TOO_LONG))
        if wrong.startswith(_MISSING):
            return raw, scan.make_missing_in(self._source, wrong.removeprefix(_MISSING))
        if wrong:
            why = make_misfit(wrong, hint_of(self._kinds[wrong]))
            if not self._source.declared:
                why.hint = f"pass dtype={{{wrong!r}: str}}, or {KEEPS_APART}"
            return raw, why
        encoding = self._options.get("encoding") or "utf-8"
        try:
            text = comment_remover(self._options)(raw.decode(encoding))
        except (UnicodeDecodeError, LookupError):
            return raw, Unreadable(f"the record has bytes that are not valid in the encoding {encoding}")
        if re.fullmatch(ends_in_quote(self._options), text):
            return raw, Unreadable(
                "the record leaves a quote open; splittable=False allows line ends in quotes"
            )
        found, wanted = len(records.fields_of(text, self._options)), len(self._names)
        if found != wanted:
            return raw, Unreadable(f"the record has {found} field{'s' * (found != 1)} instead of {wanted}")
        return raw, Unreadable("the record is not CSV")

    def _records(self, batch: pa.RecordBatch, file: str) -> tuple[pa.RecordBatch, pa.Array | None]:
        """The rows that are records, and their places in the batch if these are not all."""
        rows: pa.Array | None = None
        if _IS_RECORD in batch.schema.names and not pc.all(batch.column(_IS_RECORD)).as_py():
            rows = pc.indices_nonzero(batch.column(_IS_RECORD))
            batch = batch.filter(batch.column(_IS_RECORD))
        if _HEAD in batch.schema.names:
            rest = self._without_headers(batch, file)
            if rest is not None:
                places = pc.indices_nonzero(rest)
                rows = places if rows is None else rows.take(places)
                batch = batch.filter(rest)
        return batch, rows

    def _without_headers(self, batch: pa.RecordBatch, file: str) -> pa.Array | None:
        """Finds the rows that are not headers; a header with other columns is an error of its whole file."""
        rest = self._headers.rest(batch.column(_HEAD))
        if rest is None:
            return None
        are_headers = zip(rest.to_pylist(), batch.column(_IS_HEADER).to_pylist(), strict=True)
        if not all(is_rest or is_header for is_rest, is_header in are_headers):
            what = f"the header of {file} has different columns than earlier files"
            hint = "read such files with a separate pattern, or name the columns with names= and header=0"
            fail_step(refusal(ValueError, what, where=self._where, hint=hint), self._where)
        return rest


class _TooLong(Unreadable):
    """An integer that Spark's own type does not hold."""

    def __init__(self, column: str) -> None:
        super().__init__(f"the value of {column} is an integer of more than 64 bits, which Spark cannot hold")
        self.column = column


@dataclass(frozen=True)
class _RowsOfFiles(TaskRows):
    """Gives the columns of records in a task, without Python's objects."""

    records: _Records
    naming: Naming
    names: tuple[str, ...]  # The first columns that arrive.
    schema: T.StructType
    counter: LineCounter = field(default_factory=LineCounter)

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self.schema)
        named = batch.rename_columns([*self.names, *batch.schema.names[len(self.names) :]])
        first = batch.schema.names.index(FILE)
        for file, (name, offset, *_), start, end in runs_of_files(named.columns[first:], self.naming):
            lines = self.counter.rows(name, offset, end - start)
            yield self._columns(named.slice(start, end - start), file, lines, schema)

    def _columns(self, batch: pa.RecordBatch, file: str, lines: Lines, schema: pa.Schema) -> pa.RecordBatch:
        rows = self.records.columns(batch, file, lines)
        columns = [
            rows.column(each.name)
            if each.name in rows.schema.names
            else pa.repeat(pa.scalar(file, each.type), rows.num_rows)
            for each in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
