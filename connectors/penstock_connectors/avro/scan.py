"""Avro files: those on disks of the workers are read by the tasks block by block, others as whole files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO

from pyspark.sql import SparkSession

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.io.avroio import AvroSource
from penstock.io.rejects import Position, Rejected, Unreadable, reject
from penstock.io.streaming.stream_sources import StreamSource
from penstock_connectors.avro.parts import NotAvroError, blocks_of, open_part
from penstock_connectors.packages import FASTAVRO
from penstock_spark.connecting.files import (
    NOTHING_NEEDED,
    NeededColumns,
    PartitionValues,
    Split,
    add_folder_values,
    find_files,
    leaves_files_out,
    make_unreadable_error,
    partition_values,
    scan_of_contents,
    splits_of,
    stream_files,
    stream_of_contents,
)
from penstock_spark.connecting.reading import (
    PartsReader,
    Scan,
    StreamScan,
    make_empty_scan,
    scan_of_parts,
    scan_with_rejects,
)
from penstock_spark.connecting.running import fail_step

_BATCH_RECORDS = 2_000
_LACKS_CODEC = re.compile(
    r"(\w+) codec is supported but you need to install one of the following libraries: \((.*)\)"
)
"""The package's message about a codec that needs another package."""

Convert = Callable[[Any], Any]


def records_of_file(file: BinaryIO, name: str) -> Iterator[Any]:
    """Yields the records of an open file, for ``ReadAllFromAvro``."""
    records = AvroRecords(False, partition_values((), None, ""), "")
    yield from chain.from_iterable(records.all_of(file, name))


def open_avro(source: AvroSource, spark: SparkSession, where: str) -> Scan:
    """Dicts, Rows or plain values, by the schema of each file."""
    FASTAVRO.check(where)
    values = partition_values(source.partition_by, source.schema, where)
    files = find_files(spark, source.file_pattern, where, validate=source.validate)
    if not files.paths:
        return make_empty_scan(spark)
    values.check(files.paths)
    records = AvroRecords(source.as_rows, values, where, NeededColumns.of(source, where, has_rejects=False))
    if files.is_open_to_tasks and not leaves_files_out(spark):
        parts = splits_of(spark, files.paths, b"\n", sizes=files.sizes)
        read = {split.name for part in parts for split in part}
        for name in files.paths:
            if name not in read:
                # An empty file, which has no header, and no split either.
                raise _make_damaged_error(name, where)
        return scan_of_parts(spark, SplitReader(records, parts))
    return scan_of_contents(files, spark, records.of_content, where)


def open_avro_stream(source: AvroSource, stream: StreamSource, spark: SparkSession, where: str) -> StreamScan:
    """Opens a stream of the records of files, each of which must fit into memory. Other files are rejects."""
    FASTAVRO.check(where)
    values = partition_values(source.partition_by, source.schema, where)
    needed = NeededColumns.of(source, where, has_rejects=stream.has_rejects)
    records = AvroRecords(source.as_rows, values, where, needed)
    files = stream_files(stream, source.file_pattern, where)
    read = records.with_rejects if stream.has_rejects else records.of_content
    return stream_of_contents(files, stream, spark, read)


def open_avro_with_rejects(source: AvroSource, spark: SparkSession, where: str) -> Scan:
    """Opens the records of files, each of which must fit into memory."""
    return scan_with_rejects(open_avro_stream, source, spark, where)


@dataclass(frozen=True)
class SplitReader(PartsReader):
    records: AvroRecords
    parts: Sequence[Sequence[Split]]

    def read(self, split: Split) -> Iterator[list[Any]]:
        where = self.records.where
        try:
            with open_part(split) as file:
                for some in self.records.all_of(file, split.name):
                    yield self.records.checked(some, split.name)
        except NotAvroError:
            fail_step(_make_damaged_error(split.name, where), where)
        except OSError as error:
            fail_step(make_unreadable_error(error, split.name, where), where)


@dataclass(frozen=True)
class AvroRecords:
    """Reads the records of files."""

    as_rows: bool
    values: PartitionValues  # The columns that are in the names of folders.
    where: str
    needed: NeededColumns = NOTHING_NEEDED

    def of_content(self, content: bytes, name: str) -> Iterator[Any]:
        """Returns the records in the bytes of a file."""
        for records in self.all_of(io.BytesIO(content), name):
            yield from self.checked(records, name)

    def checked(self, records: list[Any], name: str) -> list[Any]:
        """Returns records, all of which have the values that they need; otherwise the step fails."""
        for record in records if self.needed.hints else ():
            lacking = self._lacking(record)
            if lacking is not None:
                self.needed.fail(lacking, name)
        return records

    def _lacking(self, record: object) -> str | None:
        """The first field in which a record lacks a value that it needs."""
        fields = vars(record) if isinstance(record, Row) else record if isinstance(record, dict) else {}
        return next((name for name in self.needed.hints if fields.get(name, 0) is None), None)

    def with_rejects(self, content: bytes, name: str) -> Iterator[Any]:
        """Returns the records in the bytes of a file, with a `Rejected` for each block that cannot be decoded.

        A file without a header is a ValueError.
        """
        try:
            records = list(chain.from_iterable(self.all_of(io.BytesIO(content), name)))
            if not any(map(self._lacking, records)):
                yield from records
                return
        except _MissingCodec as error:
            fail_step(error, self.where)
        except ValueError:
            pass  # Its blocks show where it is damaged.
        try:
            blocks = list(blocks_of(content))
        except NotAvroError:
            raise _make_damaged_error(name, self.where) from None
        for start, block in blocks:
            yield from self._block(block, start, name)

    def _block(self, block: bytes | None, start: int, name: str) -> list[Any]:
        """The records of a block, with a `Rejected` for each one that lacks a value, or for the whole block."""
        why = "the block does not end with the mark of the file"
        if block is not None:
            try:
                records = list(chain.from_iterable(self.all_of(io.BytesIO(block), name)))
            except ValueError:
                why = "the block cannot be decoded"
            else:
                return [self._divided(record, start, name) for record in records]
        return [Rejected(reject(name, Position(offset=start), "", Unreadable(why)))]

    def _divided(self, record: object, start: int, name: str) -> object:
        lacking = self._lacking(record)
        return (
            record if lacking is None else self.needed.rejected(lacking, record, name, Position(offset=start))
        )

    def all_of(self, file: BinaryIO, name: str) -> Iterator[list[Any]]:
        """Yields the records of a file, many at a time; the ValueError for a damaged file does not show its content."""
        package = FASTAVRO.load(self.where)
        try:
            reader = package.reader(file)
            schema = reader.writer_schema
            convert = _row_of(package.parse_schema(schema)) if self.as_rows else None
        except Exception:
            raise _make_damaged_error(name, self.where) from None
        if self.values.names:
            if convert is None and not _is_record(schema):
                what = f"{name} has values that are not records, so partition_by cannot add columns to them"
                raise refusal(ValueError, what, where=self.where, hint="pass as_rows=True")
            convert = _with_columns(convert, self.values.in_python(name))
        while True:
            try:
                records = list(islice(reader, _BATCH_RECORDS))
            except OSError:
                raise
            except Exception as error:
                raise _unreadable(name, error, self.where) from None
            if not records:
                return
            yield records if convert is None else [convert(record) for record in records]


def _with_columns(convert: Convert | None, known: dict[str, Any]) -> Convert:
    """Makes elements of records with the values of the folders at their ends."""
    if convert is None:
        return lambda record: add_folder_values(record, known)
    to_row = convert
    return lambda record: Row(**add_folder_values(dict(vars(to_row(record))), known))


def _is_record(schema: object) -> bool:
    return isinstance(schema, dict) and schema["type"] == "record"


def _make_damaged_error(name: str, where: str) -> ValueError:
    what = f"{name} is not an Avro file, or it is damaged"
    return refusal(
        ValueError, what, where=where, hint="delete it, write it again, or give a pattern without it"
    )


def _unreadable(name: str, error: Exception, where: str) -> ValueError:
    lacks = _LACKS_CODEC.match(str(error))
    if lacks is None:
        return _make_damaged_error(name, where)
    codec, packages = lacks.groups()
    what = f"{name} is compressed with {codec}, for which a package is not installed"
    return refusal(_MissingCodec, what, where=where, hint=f"install one of these: {packages.rstrip(',')}")


class _MissingCodec(ValueError):
    """A package that unpacks blocks is missing here, and the file may be right."""


def _row_of(schema: object) -> Convert:
    convert = _converter(schema, {})
    if _is_record(schema):
        return convert
    return lambda value: Row(record=convert(value))


@dataclass(frozen=True)
class _Record:
    """A record with a name, which other parts of a schema may use."""

    fields: frozenset[str]
    convert: Convert


def _converter(schema: object, named: dict[str, _Record]) -> Convert:
    """Turns the records in a value of a schema into Rows; `named` are the records that come before it."""
    match schema:
        case {"type": "record", "name": name, "fields": fields}:
            return _record(name, fields, named)
        case str() if schema in named:
            return named[schema].convert
        case {"type": "array", "items": items}:
            each = _converter(items, named)
            return lambda value: [each(item) for item in value]
        case {"type": "map", "values": values}:
            of_value = _converter(values, named)
            return lambda value: {key: of_value(item) for key, item in value.items()}
        case list():
            return _union([branch for branch in schema if branch != "null"], named)
    return lambda value: value


def _record(name: str, fields: Sequence[Any], named: dict[str, _Record]) -> Convert:
    parts: list[tuple[str, Convert]] = []

    def to_row(value: Mapping[str, Any]) -> Row:
        return Row(**{each: convert(value[each]) for each, convert in parts})

    # A record may have itself in it.
    named[name] = _Record(frozenset(field["name"] for field in fields), to_row)
    parts += [(field["name"], _converter(field["type"], named)) for field in fields]
    return to_row


def _union(branches: Sequence[Any], named: dict[str, _Record]) -> Convert:
    converters = [_converter(branch, named) for branch in branches]
    if len(converters) == 1:
        (inner,) = converters
        return lambda value: None if value is None else inner(value)
    # The package does not report the branch of a value, and a record has all of its fields.
    names = [branch["name"] if _is_record(branch) else branch for branch in branches]
    records = [named[name] for name in names if isinstance(name, str) and name in named]
    kinds = [branch["type"] if isinstance(branch, dict) else branch for branch in branches]
    others = {
        kind: convert for kind, convert in zip(kinds, converters, strict=True) if kind in ("array", "map")
    }

    def convert(value: object) -> object:
        if isinstance(value, dict):
            record = next((each for each in records if each.fields == value.keys()), None)
            return record.convert(value) if record is not None else others["map"](value)
        return others["array"](value) if isinstance(value, list) else value

    return convert
