"""Records in files of text: what CSV and JSON files have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from penstock.error import UnsupportedByRunner, refusal
from penstock.io.files.compression import CompressionTypes
from penstock.io.files.naming_errors import encode_text
from penstock.io.files.paths import known_path
from penstock.io.formats.text_rows import TextRowsSink
from penstock_spark.columns.losses import find_unknown_fields
from penstock_spark.columns.records import field_of, fields_of, to_plain
from penstock_spark.files.compressed import open_for_writing
from penstock_spark.sinks.file_names import names_of
from penstock_spark.sinks.files import FileSink, SparkFiles
from penstock_spark.sinks.partitions import Partitions, RecordsFile, records_in
from penstock_spark.sinks.plan import Encoder
from penstock_spark.sinks.text_blocks import make_partitioned_rows, make_text_files, make_text_rows


@dataclass(frozen=True)
class RecordText:
    # Takes names, rows, and whether the rows are the first ones of a file; returns text that ends with a line end.
    write: Callable[[Sequence[str], Sequence[Sequence[Any]], bool], bytes]
    columns: tuple[str, ...] | None  # The columns, if they are known before the first record.
    where: str
    has_header: bool = False  # Whether a file without records contains the names of the columns.
    is_list: bool = False  # Whether the records of a file are one text, which is made at the end.

    def head(self) -> bytes:
        return TextOfFile(self).of([]) if self.has_header else b""


def encode_rows(
    text: str, encoding: str, names: Sequence[str], rows: Sequence[Sequence[Any]], shown: Callable[[Any], str]
) -> bytes:
    """The bytes of the text of rows; UnicodeEncodeError, with the field, for a character that the encoding lacks.

    `shown` makes the text of one value.
    """

    def whose() -> str:
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            try:
                "".join(map(shown, column)).encode(encoding)
            except UnicodeEncodeError:
                return f" in the field {name}"
        return ""

    return encode_text(text, encoding, whose)


@dataclass
class TextOfFile:
    """The text of one file; if its columns are not known before, its first record has them."""

    text: RecordText
    columns: tuple[str, ...] | None = None
    is_first: bool = True

    def of(self, values: Sequence[Any]) -> bytes:
        """The text of the next records, with the header if they are the first ones."""
        records = [to_plain(value) for value in values]
        other = next((record for record in records if not isinstance(record, dict)), records)
        if other is not records:
            raise refusal(
                TypeError,
                f"an element of type {type(other).__name__} has no named fields",
                where=self.text.where,
                hint="make it a Row, e.g. with beam.Select, or a NamedTuple",
            )
        columns = self._columns(records)
        rows = [[record.get(name) for name in columns] for record in records]
        is_first, self.is_first = self.is_first, False
        return self.text.write(columns, rows, is_first)

    def _columns(self, records: list[dict[str, Any]]) -> list[str]:
        if self.text.columns is None and not self.text.has_header:
            # Each record of JSON has its own names.
            return list(dict.fromkeys(name for record in records for name in record))
        self.columns = self.columns or self.text.columns or tuple(records[0] if records else ())
        known = frozenset(self.columns)
        if self.text.columns is not None:
            lost = find_unknown_fields(records, known)
        else:
            lost = find_unknown_fields(
                records, known, lacking="and the first element of its file does not have it"
            )
            hint = "declare all fields: give the elements a type of rows with .with_output_types(...)"
            lost = lost and replace(lost, hint=hint)
        if lost is not None:
            raise lost.refused(self.text.where)
        return list(self.columns)


def record_files(sink: TextRowsSink, text: RecordText, empty_shards: int, where: str) -> FileSink:
    partitions = None
    if sink.partition_by:
        left = tuple(name for name in text.columns or () if name not in sink.partition_by)
        text = replace(text, columns=left)
        open_file = partial(RecordsFile, partial(_RecordShard, text=text))
        schema = _columns_of_folders(sink, where)
        partitions = Partitions(sink.partition_by, schema, open_file, where, record_of=to_plain)

    def by_spark() -> SparkFiles:
        if text.is_list:
            raise UnsupportedByRunner(
                f"lines=False is not supported for {known_path(sink.path)}",
                where=where,
                hint="write to a path without a scheme",
            )
        if partitions is not None:
            return make_text_files(lambda: _BlocksApart(text, partitions), b"", partitions=partitions)
        return make_text_files(lambda: _RecordBlocks(TextOfFile(text)), text.head())

    return FileSink(
        names_of(sink, where),
        sink.num_shards or 0,
        empty_shards,
        lambda path: _RecordShard(path, text),
        by_spark,
        partitions=partitions,
    )


def _columns_of_folders(sink: TextRowsSink, where: str) -> pa.Schema:
    """The columns of ``partition_by`` with the types of the elements; ValueError for a type that is not known."""
    hints = dict(fields_of(sink.element_type))
    fields = []
    for name in sink.partition_by:
        try:
            fields.append(field_of(name, hints[name], where))
        except ValueError:
            what = (
                f"the name of a folder cannot hold the column {name!r} of partition_by, of type {hints[name]}"
            )
            hint = "give the elements a NamedTuple type, whose column is a string, an integer, a date or a boolean"
            raise refusal(ValueError, what, where=where, hint=hint) from None
    return pa.schema(fields)


class _RecordShard:
    def __init__(self, path: str, text: RecordText) -> None:
        self._file = open_for_writing(path, CompressionTypes.UNCOMPRESSED)
        self._text = TextOfFile(text)
        self._held: list[Any] = []

    def write(self, values: Sequence[Any]) -> int:
        """Takes all records; the records of a list wait for the end."""
        if self._text.text.is_list:
            self._held += values
        else:
            self._file.write(self._text.of(values))
        return len(values)

    def close(self) -> None:
        if self._text.text.is_list:
            self._file.write(self._text.of(self._held))
        elif self._text.is_first:
            self._file.write(self._text.text.head())
        self._file.close()


@dataclass
class _RecordBlocks(Encoder):
    """Rows of text for Spark's text writer; a task without elements writes no file."""

    text: TextOfFile

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """One row, without its last line end, which Spark adds."""
        if not values:
            return make_text_rows()
        return make_text_rows(self.text.of(values).removesuffix(b"\n"))


@dataclass
class _BlocksApart(Encoder):
    """Rows of text for Spark's text writer, each with the records of one folder."""

    text: RecordText
    partitions: Partitions
    # The files of the folders that have records of this task, and so a header.
    files: dict[str, TextOfFile] = field(default_factory=dict)
    count: int = 0

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        [(keys, rest)] = self.partitions.cut(values)
        rows: dict[str, list[int]] = {}
        for row, folder in enumerate(self.partitions.folders(keys)):
            rows.setdefault(folder, []).append(row)
        blocks = [
            self.files.setdefault(folder, TextOfFile(self.text))
            .of(records_in(rest.take(pa.array(own))))
            .removesuffix(b"\n")
            for folder, own in rows.items()
        ]
        first, self.count = self.count, self.count + len(blocks)
        firsts = pa.array([own[0] for own in rows.values()], pa.int64())
        return make_partitioned_rows(keys.take(firsts), range(first, self.count), blocks)
