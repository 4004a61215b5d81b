"""JSON files: Spark finds and splits them, Python's own parser makes the values."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.elements.row import Row, make_row_class
from penstock.error import refusal
from penstock.io.files.compression import CompressionTypes
from penstock.io.jsonio import JsonSink, JsonSource
from penstock.io.rejects import Unreadable, say_why
from penstock.io.streaming.stream_sources import StreamSource
from penstock.typehints import typehints
from penstock.typehints.column_types import RecordConstraint
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import column_of
from penstock_spark.files.compressed import decompress, open_for_reading
from penstock_spark.files.finding import Files, Namer, find_files
from penstock_spark.formats.format import Format
from penstock_spark.formats.json_text import JsonText, Unwritable
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.sinks.files import FileSink
from penstock_spark.sinks.record_text import RecordText, encode_rows, record_files
from penstock_spark.sources.decoding import ByFile, RejectingDecoder, explain, find_runs
from penstock_spark.sources.file_samples import all_content, infer_type_from_files
from penstock_spark.sources.partition_values import PartitionValues, add_folder_values, partition_values
from penstock_spark.sources.scan import Scan, StreamScan
from penstock_spark.sources.stream_files import make_schema_error, place_columns, stream_files
from penstock_spark.sources.whole_read import scan_with_rejects

_LINES = {"lineSep": "\n"}
"""Options with which Spark reads lines."""

_LINES_LOOKED_AT = 2_000_000
"""The maximum number of lines that the driver looks at to find the number of a wrong one."""

_FOUND = "number long, name string, file string, problem string, hint string"


def open_json(source: JsonSource, spark: SparkSession, where: str) -> Scan:
    """Rows that all have every field of the data; reads the data once to find the fields."""
    values = partition_values(source.partition_by, source.schema, where)
    files = find_files(spark, source.file_pattern, where)
    values.check(files.paths)
    check = files.make_size_check(where)
    frame = _texts(spark, files, source)
    found, problems = _survey(frame, source, files)
    fields = values.others(found)
    if problems:
        raise _make_malformed_error(spark, source, files, problems[0], where)
    _check_fields(source, fields, where)
    namer = files.namer()
    return Scan(frame, lambda: _JsonDecoder(source, fields, values, namer), check=check)


def _check_fields(source: JsonSource, fields: Sequence[str], where: str) -> None:
    """Refuses fields that no file had when the pipeline was built."""
    known = fields if source.found is None else [name for name, _ in source.found.fields]
    new = [name for name in fields if name not in known]
    if new:
        what = f"{source.describe()} has new fields since the pipeline was built: {', '.join(new)}"
        raise refusal(ValueError, what, where=where, hint="build the pipeline again")


def open_json_with_rejects(source: JsonSource, spark: SparkSession, where: str) -> Scan:
    """Rows that all have every field of the data."""
    return scan_with_rejects(open_json_stream, source, spark, where)


_HINT = "each line is one JSON object; with lines=False each file is a list of objects; or pass rejects=True, which "
_HINT += "keeps such records apart"


def _make_malformed_error(
    spark: SparkSession, source: JsonSource, files: Files, found: tuple[str, Unreadable], where: str
) -> Exception:
    """The error for a file and what is wrong in it; it names the first wrong line, if that is found soon."""
    file, problem = found
    line, first = _first_wrong_line(spark, source, file, files)
    return explain(first or problem, file, line, where, _HINT)


def _first_wrong_line(
    spark: SparkSession, source: JsonSource, file: str, files: Files
) -> tuple[int | None, ValueError | None]:
    """The number of the first wrong line of a file, and what is wrong; None if each file is one text."""
    if not source.lines:
        return None, None
    with files.store(spark).open(file) as stored:
        content = open_for_reading(stored, CompressionTypes.detect_compression_type(file))
        for number, line in enumerate(islice(content, _LINES_LOOKED_AT), 1):
            try:
                _check_names(_objects_in(line.removesuffix(b"\n"), source))
            except ValueError as error:
                return number, error
    return None, None


def _text_of(source: JsonSource) -> tuple[str, Column]:
    """The format whose rows are single strings (a line or a whole file each), and the column with its bytes."""
    if source.lines:
        return "text", F.col("value").cast("binary").alias("text")
    return "binaryFile", F.col("content").alias("text")


def _texts(spark: SparkSession, files: Files, source: JsonSource) -> DataFrame:
    format, text = _text_of(source)
    frame = files.load(spark.read.options(**_LINES), format)
    return frame.select(text, F.col("_metadata.file_path").alias("file"))


def _survey(
    frame: DataFrame, source: JsonSource, files: Files
) -> tuple[tuple[str, ...], list[tuple[str, Unreadable]]]:
    """The fields of all objects and the declared ones, and the problem of each wrong file."""
    found = map_in_arrow(frame, _Survey(source, files.namer()), _FOUND).collect()
    # The order in which the first file has them; a field that only other files have comes after.
    named = sorted((row for row in found if row.name), key=lambda row: (row.file, row.number))
    wrong = sorted((row for row in found if row.problem), key=lambda row: (row.file, row.problem))
    problems = [(row.file, Unreadable(row.problem, hint=row.hint)) for row in wrong]
    declared = (name for name, _ in source.declared)
    return tuple(dict.fromkeys([*(row.name for row in named), *declared])), problems


def _unpack(text: bytes, file: str, source: JsonSource) -> bytes:
    """A text as it was before its file was compressed; ValueError if the file is damaged."""
    kind = CompressionTypes.detect_compression_type(file)
    if source.lines or kind == CompressionTypes.UNCOMPRESSED:
        return text  # Spark's reader of lines has undone the compression.
    try:
        return decompress(text, kind, file, "")
    except ValueError:
        raise Unreadable(f"the content is not whole {kind}") from None


def _objects_in(text: bytes, source: JsonSource) -> list[dict[str, Any]]:
    """The objects of a text; ValueError if it holds anything else."""
    # A file may begin with a byte order mark, which Python's parser refuses.
    plain = text.decode(source.encoding).removeprefix("\ufeff")
    if source.lines and not plain.strip():
        return []
    objects = _parsed(plain, source)
    if not source.declared:
        return objects
    values = source.declared_values
    if values.exact:
        # A float would lose digits of a decimal, and other fields are floats.
        for each, exact in zip(objects, _parsed(plain, source, parse_float=Decimal), strict=True):
            each.update((name, exact[name]) for name in values.exact & exact.keys())
    return values.of_all(objects)


def _parsed(
    text: str, source: JsonSource, parse_float: Callable[[str], object] | None = None
) -> list[dict[str, Any]]:
    try:
        parsed = json.loads(text, parse_float=parse_float)
    except RecursionError:
        raise Unreadable("the record is nested too deeply") from None
    objects = parsed if isinstance(parsed, list) and not source.lines else [parsed]
    if not all(isinstance(each, dict) for each in objects):
        raise Unreadable("the record is not a JSON object")
    return objects


def _check_names(objects: Iterable[dict[str, Any]]) -> None:
    """Refuses names of fields that text cannot hold: half of a pair of surrogates cannot be encoded."""
    try:
        for each in objects:
            for name in each:
                name.encode()
    except UnicodeEncodeError:
        reason = "the name of a field has a lone surrogate, which is half of a character"
        raise Unreadable(reason) from None


@dataclass(frozen=True)
class _Survey:
    """Collects, in each task, the names of the fields, and the first wrong text of each file."""

    source: JsonSource
    namer: Namer

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names: dict[str, tuple[int, str]] = {}
        problems: dict[str, ValueError] = {}
        for batch in acknowledge_each(batches):
            strings, files = batch.column(0).to_pylist(), batch.column(1).to_pylist()
            for text, file in zip(strings, files, strict=True):
                try:
                    objects = _objects_in(_unpack(text, file, self.source), self.source)
                    if any(each.keys() - names.keys() for each in objects):
                        _check_names(objects)
                    for each in objects:
                        for name in each:
                            names.setdefault(name, (len(names), file))
                except ValueError as error:
                    problems.setdefault(file, error)
        found: list[tuple[int, str | None, str, str | None, str | None]]
        found = [(number, name, self.namer(file), None, None) for name, (number, file) in names.items()]
        found += [
            (0, None, self.namer(file), say_why(error), getattr(error, "hint", None))
            for file, error in problems.items()
        ]
        columns = list(zip(*found, strict=True)) or [(), (), (), (), ()]
        types = [pa.int64(), *[pa.string()] * 4]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)],
            names=["number", "name", "file", "problem", "hint"],
        )


@dataclass(frozen=True)
class _JsonDecoder:
    """Makes Rows of the strings in the first column, whose files are in the second one."""

    source: JsonSource
    fields: tuple[str, ...]
    values: PartitionValues
    namer: Namer

    @functools.cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.fields)

    def __call__(self, batch: pa.RecordBatch) -> list[Row]:
        strings = batch.column(0).to_pylist()
        if not self.source.lines:
            files = batch.column(1).to_pylist()
            strings = [_unpack(text, file, self.source) for text, file in zip(strings, files, strict=True)]
        if not self.values.names:
            return self.rows(strings, {})
        rows: list[Row] = []
        for (file,), start, end in find_runs([batch.column(1)]):
            rows += self.rows(strings[start:end], self.values.in_python(self.namer(file)))
        return rows

    def rows(self, strings: Iterable[bytes], known: Mapping[str, Any]) -> list[Row]:
        """The objects in strings with the values of the file at their ends, behind fields that no file had before."""
        objects = [each for text in strings for each in _objects_in(text, self.source)]
        if any(each.keys() - self.names for each in objects):
            _check_names(objects)
        absent = dict.fromkeys(self.fields)
        records = (add_folder_values({**absent, **each}, known) for each in objects)
        return [make_row_class(tuple(record))(**record) for record in records]


def type_of_json(source: JsonSource, paths: Sequence[str]) -> RowTypeConstraint | None:
    """The type of the rows; None if the files are large, because any object may have a field of its own."""
    contents = all_content(paths)
    if contents is None:
        return None
    found: list[dict[str, Any]] = []
    for content in contents:
        for text in content.split(b"\n") if source.lines else [content]:
            # A text that is not an object is an error or a reject of the run.
            with contextlib.suppress(ValueError):
                found += _objects_in(text, source)
    if not found:
        return None
    values = partition_values(source.partition_by, source.schema, "")
    own = [(name, hint) for name, hint in _fields(found) if name not in values.names]
    return RowTypeConstraint.from_fields([*own, *values.hints()])


def _fields(objects: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    values: dict[str, list[Any]] = {}
    for each in objects:
        for name, value in each.items():
            values.setdefault(name, []).append(value)
    return [(name, _type_of(of_name)) for name, of_name in values.items()]


def _type_of(values: Iterable[Any]) -> object:
    """The type of a field's values, which may also be absent; text if there are none."""
    some = [value for value in values if value is not None]
    objects = [value for value in some if isinstance(value, dict)]
    lists = [value for value in some if isinstance(value, list)]
    kinds = {type(value) for value in some} - {dict, list}
    hints: list[Any] = [*kinds]
    if objects:
        hints.append(RecordConstraint(_fields(objects)))
    if lists:
        hints.append(typehints.List[_type_of(value for each in lists for value in each)])
    return column_of(typehints.Union[tuple(hints or [str])])


def open_json_stream(source: JsonSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Rows that all have every field of the present files; a later field comes after them.

    Texts that are not JSON objects may be rejected.
    """
    values = partition_values(source.partition_by, source.schema, where)
    files = stream_files(stream, source.file_pattern, where)
    present = files.present(spark)
    # Texts that are not objects are rejects, or errors, when the stream reads them.
    named, problems = tuple(name for name, _ in source.declared), list[tuple[str, Unreadable]]()
    if present.paths:
        named, problems = _survey(_texts(spark, present, source), source, present)
    fields = values.others(named)
    if problems and not fields and not stream.is_bounded:
        raise _make_malformed_error(spark, source, present, problems[0], where)
    if not fields and not stream.is_bounded:
        hint = "put a file there before the pipeline starts, or read lines with ReadFromText and parse them"
        raise make_schema_error("fields", files, hint)
    if stream.is_bounded:
        _check_fields(source, fields, where)
    format, text = _text_of(source)
    frame = files.load(files.reader(spark).options(**_LINES), format).select(text, *place_columns(stream))
    naming = files.naming()
    of_texts = _JsonDecoder(source, fields, values, naming.namer)

    def decode(batch: pa.RecordBatch, file: str) -> list[Row]:
        plain = [_unpack(text, file, source) for text in batch.column(0).to_pylist()]
        return of_texts.rows(plain, values.in_python(file))

    raw = "text" if source.lines else None
    careful = RejectingDecoder(decode, raw, stream.has_rejects, where, _HINT)
    return StreamScan(frame, lambda: ByFile(careful, naming, delimiter=b"\n"))


def json_files(sink: JsonSink, where: str) -> FileSink:
    """An object in each line, or one list in each file."""
    text = JsonText.of_sink(sink)

    def write(names: Sequence[str], rows: Sequence[Sequence[Any]], first: bool) -> bytes:
        try:
            return encode_rows(text.of(names, rows), "utf-8", names, rows, text.of_value)
        except Unwritable as found:
            raise found.lost.refused(where) from None

    return record_files(sink, RecordText(write, sink.columns, where, is_list=text.is_list), 0, where)


JSON = Format(
    open_json,
    open_json_stream,
    infer_type_from_files(type_of_json),
    files=json_files,
    open_with_rejects=open_json_with_rejects,
)
