"""CSV files that tasks cut into records for Spark's parser, which does not reach them or cuts in another way."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.error import refusal
from penstock.io.csvio import CsvSource
from penstock.io.files.compression import CompressionTypes
from penstock.scalars.spark_forms import quote_name
from penstock_spark.files.compressed import decompress, open_for_reading, translate_decompression_errors
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import absolute_uri, is_on_disk
from penstock_spark.files.finding import Files, make_unreadable_error
from penstock_spark.files.splits import Split, distribute_parts, leaves_files_out, splits_of, whole_files
from penstock_spark.files.store_frames import (
    ReadParts,
    is_compressed,
    line_splits,
    lines_of,
    read_by_tasks,
    read_decompressed,
    read_whole,
    rows_of,
    split_lines,
    whole_splits,
)
from penstock_spark.formats.csv.quotes import (
    comment_remover,
    ends_in_quote,
    left_open,
    lines_and_quotes,
    without_mark,
)
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import report_with
from penstock_spark.session.backends import map_in_arrow
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.session.worker_socket import acknowledge_each
from penstock_spark.sources.stream_files import Naming, StreamFiles

_RECORDS_AT_ONCE = 5_000
UNDECODED = re.compile("[\udc80-\udcff]")
"""A byte that an encoding does not have, as Python keeps it."""
_LINES_LOOKED_AT = 2_000_000
"""The maximum number of lines that the driver looks at to find the number of a malformed one."""

_RECORDS = "value string, _metadata struct<file_path: string>"
LINE, BYTES = "__line", "__bytes"
"""The columns with the number of the line at which a record begins, and with its bytes if its encoding lacks them."""


def are_cut_by_tasks(files: Files, source: CsvSource, options: dict[str, Any]) -> bool:
    """True if tasks cut the files: Spark's parser changes line ends within quotes, and knows few comments."""
    return files.is_unsupported_by_spark or bool(options.get("comment")) or is_multi_line(source, options)


def is_multi_line(source: CsvSource, options: dict[str, Any]) -> bool:
    """True if a file is parsed as a whole: records may have line ends, or bytes that look like ends of lines."""
    return not source.splittable or not has_plain_lines(options)


def records_of(
    spark: SparkSession,
    files: Files,
    source: CsvSource,
    options: dict[str, Any],
    *,
    has_header: bool,
    errors: str = "strict",
) -> DataFrame:
    """The text of each record with the name of its file, without headers, blank lines and comments."""
    by_lines = not is_multi_line(source, options)
    checks = has_header and not options.get("names")
    found = (header_of(spark, path, files, options) for path in files.paths) if checks else iter(())
    first = next((tuple(each) for each in found if each is not None), None)
    rest = (files.where, options, by_lines, has_header, first, errors)
    if not files.is_open_to_tasks or (not files.is_unsupported_by_spark and leaves_files_out(spark)):
        contents = files.load(spark.read, "binaryFile").select("content", "_metadata.file_path")
        cut_contents: DataFrame = map_in_arrow(contents, _Contents(_Records((), *rest)), _RECORDS)
        return cut_contents
    return read_by_tasks(spark, _Records(_parts(spark, files, by_lines), *rest), _RECORDS)


def _parts(spark: SparkSession, files: Files, by_lines: bool) -> tuple[tuple[Split, ...], ...]:
    """Parts of files by task, cut between lines, or whole files."""
    if files.is_unsupported_by_spark:
        return (line_splits if by_lines else whole_splits)(spark, files.sizes)
    is_cut = {path: by_lines and not is_compressed(path) for path in files.paths}
    whole_ones = whole_files([path for path in files.paths if not is_cut[path]])
    parts = splits_of(spark, [path for path in files.paths if is_cut[path]], b"\n")
    return (*parts, *distribute_parts(whole_ones, lambda file: file.end, parallelism_of(spark)))


def has_plain_lines(options: dict[str, Any]) -> bool:
    """True if files can be cut into lines before they are decoded, which is not so in UTF-16, for example."""
    try:
        return "\n,a".encode(str(options.get("encoding") or "utf-8"), "replace") == b"\n,a"
    except LookupError:
        return True  # Only Java may know the encoding.


def names_of(spark: SparkSession, files: Files, options: dict[str, Any], has_header: bool) -> list[str]:
    """The names of the columns, by the first record of the first file that has one; each name is there once."""
    for path in files.paths:
        found = header_of(spark, path, files, options)
        if found is None:
            continue
        if has_header and (not all(found) or len({name.lower() for name in found}) < len(found)):
            what = f"the header of {path} has a name twice or an empty one"
            hint = "name the columns with names= and header=0, or correct the header"
            raise refusal(ValueError, what, where=files.where, hint=hint)
        return names_in(found, has_header)
    return []


def names_in(first: list[str], has_header: bool) -> list[str]:
    """The names of the columns, by the first record of all, as Spark names them."""
    if not has_header:
        return [str(number) for number in range(len(first))]
    lower = [name.lower() for name in first]
    return [
        f"_c{at}" if not name else f"{name}{at}" if lower.count(name.lower()) > 1 else name
        for at, name in enumerate(first)
    ]


def header_of(spark: SparkSession, path: str, files: Files, options: dict[str, Any]) -> list[str] | None:
    """The first record of a file; None if it has none."""
    with opened(spark, path, files, options, "replace") as lines:
        record = next(cut(lines, options), None)
    return None if record is None else fields_of(record.text, options)


@contextmanager
def opened(
    spark: SparkSession, path: str, files: Files, options: dict[str, Any], errors: str = "strict"
) -> Iterator[Iterator[str]]:
    """The lines of a file, with their ends, for the driver."""
    opens = files.store(spark).open
    try:
        with _text(path, opens, options, files.where, errors) as lines:
            yield lines
    except OSError as error:
        raise make_unreadable_error(error, path, files.where) from None


@contextmanager
def _text(
    path: str, opens: Callable[[str], BinaryIO], options: dict[str, Any], where: str, errors: str = "strict"
) -> Iterator[Iterator[str]]:
    compression = CompressionTypes.detect_compression_type(path)
    encoding = options.get("encoding") or "utf-8"
    with opens(path) as stored, open_for_reading(stored, compression) as content:
        try:
            text = io.TextIOWrapper(content, encoding, errors, newline="")
        except LookupError:
            what = f"Python does not know the encoding {encoding}"
            raise refusal(
                LookupError, what, where=where, hint="use a name such as 'utf-8' or 'latin-1'"
            ) from None
        yield _unpacked_lines(text, compression, path, where)


def _unpacked_lines(text: io.TextIOWrapper, compression: str, path: str, where: str) -> Iterator[str]:
    lines = without_mark(text)
    while True:
        if compression == CompressionTypes.UNCOMPRESSED:
            yield from lines
            return
        with translate_decompression_errors(compression, path, where):
            some = list(islice(lines, _RECORDS_AT_ONCE))
        if not some:
            return
        yield from some


def fields_of(record: str, options: dict[str, Any]) -> list[str]:
    return next(csv.reader(io.StringIO(record, newline=""), **dialect(options)), [])


def dialect(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments with which Python's own reader reads what Spark's parser reads with these options."""
    escape = options.get("escapechar")
    return {
        "delimiter": options.get("sep") or options.get("delimiter") or ",",
        "quotechar": options.get("quotechar", '"'),
        "escapechar": escape,
        "doublequote": escape is None,
        "skipinitialspace": bool(options.get("skipinitialspace", False)),
    }


class Record(NamedTuple):
    """A part of a file that Spark's parser reads as one record."""

    text: str
    line: int  # The number of its first line, counted from 1.
    is_open: bool  # Whether a quote in it is never closed.


def cut(lines: Iterable[str], options: dict[str, Any]) -> Iterator[Record]:
    r"""The records of a file, whose quotes may have line ends in them.

    >>> [tuple(record) for record in cut(['a,b\n', '# note\n', '1,"x\n', 'y"\n', '\n', '2,"z'], {"comment": "#"})]
    [('a,b', 1, False), ('1,"x\ny"', 3, False), ('2,"z', 6, True)]
    """
    taken: list[str] = []
    first = 1
    for number, (line, is_open) in enumerate(lines_and_quotes(lines, options), 1):
        if not taken:
            first = number
        taken.append(line)
        if not is_open:
            record = "".join(taken)
            if record.strip():
                yield Record(record.rstrip("\r\n"), first, False)
            taken.clear()
    if taken:
        yield Record("".join(taken), first, True)


def cut_by_lines(lines: Iterable[str], options: dict[str, Any]) -> Iterator[Record]:
    """Each line as a record: a quote that it leaves open makes it malformed, and not the next one a part of it."""
    uncommented, ends_within = comment_remover(options), re.compile(ends_in_quote(options)).fullmatch
    quote = options.get("quotechar") or '"'
    for number, line in enumerate(lines, 1):
        record = uncommented(line)
        if record.strip():
            is_open = quote in record and ends_within(record) is not None
            yield Record(record.rstrip("\r\n"), number, is_open)


def first_malformed(
    spark: SparkSession, path: str, files: Files, source: CsvSource, options: dict[str, Any], fields: int
) -> str:
    """Says what is wrong with the first malformed record of a file; an empty text if it is not found soon."""
    split = cut if is_multi_line(source, options) else cut_by_lines
    with opened(spark, path, files, options, "replace") as lines:
        for record in split(islice(lines, _LINES_LOOKED_AT), options):
            found = len(fields_of(record.text, options))
            if record.is_open:
                return f", where line {record.line} leaves a quote open"
            if found != fields:
                return f", where line {record.line} has {found} field{'s' * (found != 1)} instead of {fields}"
    return ""


def first_wrong(
    spark: SparkSession,
    files: Files,
    source: CsvSource,
    options: dict[str, Any],
    at: int,
    is_wrong: Callable[[str], bool],
) -> tuple[str, int] | None:
    """The file and the line of the first record with a wrong text in the column `at`; None if it is not found soon."""
    split = cut if is_multi_line(source, options) else cut_by_lines
    has_header = options.get("header", "infer") == 0 or (
        options.get("header", "infer") == "infer" and options.get("names") is None
    )
    for path in files.paths:
        with opened(spark, path, files, options, "replace") as lines:
            for record in islice(split(islice(lines, _LINES_LOOKED_AT), options), int(has_header), None):
                fields = fields_of(record.text, options)
                if len(fields) > at and is_wrong(fields[at]):
                    return path, record.line
    return None


@dataclass(frozen=True)
class _Records(ReadParts):
    options: dict[str, Any]
    by_lines: bool
    has_header: bool
    header: tuple[str, ...] | None  # What the first record of each file must be; None for anything.
    errors: str = "strict"  # What becomes of bytes that the encoding does not have.

    def read(self, part: Split) -> Iterator[pa.RecordBatch]:
        lines = self._lines_of_split if self.by_lines else self._lines_of_file
        place = absolute_uri(part.path)
        yield from self.batches(place, part.name, part.start == 0, lines(part))

    def batches(
        self, place: str, path: str, at_start: bool, lines: Iterator[str]
    ) -> Iterator[pa.RecordBatch]:
        """The records of lines, which begin where a file begins or behind the end of a line."""
        for some in self.found(path, at_start, lines):
            yield rows_of(place, pa.array([record.text for record in some], pa.string()))

    def found(self, path: str, at_start: bool, lines: Iterator[str]) -> Iterator[list[Record]]:
        """The records of lines, many at a time."""
        records = (cut_by_lines if self.by_lines else cut)(lines, self.options)
        try:
            if at_start and self.has_header:
                for record in islice(records, 1):
                    self._check(record.text, path)
            while some := list(islice(records, _RECORDS_AT_ONCE)):
                if some[-1].is_open and not self.by_lines:
                    raise left_open(path, self.where)
                yield some
        except UnicodeDecodeError as error:
            what = f"{path} has text that is not {error.encoding}"
            fail_step(refusal(ValueError, what, where=self.where, hint="pass encoding="), self.where)
        except (ValueError, LookupError) as error:
            fail_step(error, self.where)
        except OSError as error:
            fail_step(make_unreadable_error(error, path, self.where), self.where)

    def _lines_of_split(self, split: Split) -> Iterator[str]:
        encoding = self.options.get("encoding") or "utf-8"
        at_start = split.start == 0
        for some in self._bytes_of_lines(split):
            for line in some:
                text = line.decode(encoding, self.errors)
                yield text.removeprefix("\ufeff") if at_start else text
                at_start = False

    def _bytes_of_lines(self, split: Split) -> Iterator[list[bytes]]:
        if not is_compressed(split.path) or not is_on_disk(split.path):
            yield from lines_of(split, self.where)
            return
        compression = CompressionTypes.detect_compression_type(split.path)
        with (
            translate_decompression_errors(compression, split.path, self.where),
            DiskFiles().open(split.path) as stored,
        ):
            content = open_for_reading(stored, compression).read()
        yield from split_lines([content])

    def _lines_of_file(self, split: Split) -> Iterator[str]:
        if not is_on_disk(split.path):
            read = read_decompressed if is_compressed(split.path) else read_whole
            content = read(split.path, split.end, self.where)
            yield from self.lines_of_content(content)
            return
        with _text(split.path, DiskFiles().open, self.options, self.where, self.errors) as lines:
            yield from lines

    def lines_of_content(self, content: bytes) -> Iterator[str]:
        encoding = self.options.get("encoding") or "utf-8"
        yield from without_mark(io.TextIOWrapper(io.BytesIO(content), encoding, self.errors, newline=""))

    def of_content(self, content: bytes, path: str) -> Iterator[pa.RecordBatch]:
        """The records of a whole file, as Spark has read it."""
        yield from self.batches(path, path, True, self._lines_of_stored(content, path))

    def _lines_of_stored(self, content: bytes, path: str) -> Iterator[str]:
        compression = CompressionTypes.detect_compression_type(path)
        if compression != CompressionTypes.UNCOMPRESSED:
            content = decompress(content, compression, path, self.where)
        return self.lines_of_content(content)

    def numbered(self, content: bytes, path: str) -> Iterator[pa.RecordBatch]:
        """The records of a whole file with the numbers of their lines, and with the bytes that are not decoded."""
        encoding = self.options.get("encoding") or "utf-8"
        for some in self.found(path, True, self._lines_of_stored(content, path)):
            values = [record.text for record in some]
            raws: list[bytes | None] = [None] * len(some)
            for place, text in enumerate(values):
                if not text.isascii() and UNDECODED.search(text):
                    raws[place] = text.encode(encoding, self.errors)
                    values[place] = UNDECODED.sub("\ufffd", text)
                elif self.errors == "replace" and "\ufffd" in text:
                    raws[place] = text.encode()
            columns = [
                pa.array(values, pa.string()),
                pa.array([record.line for record in some], pa.int64()),
                pa.array(raws, pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, names=["value", LINE, BYTES])

    def _check(self, record: str, path: str) -> None:
        if self.header is None:
            return
        own = [name.lower() for name in fields_of(record, self.options)]
        if own != [name.lower() for name in self.header]:
            what = f"the header of {path} has different columns than the first file"
            hint = "read such files with a separate pattern, or name the columns with names= and header=0"
            fail_step(refusal(ValueError, what, where=self.where, hint=hint), self.where)


@dataclass(frozen=True)
class _Contents:
    """Cuts whole files, which Spark has read."""

    records: _Records

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report_with(self.records.reporting)
        for batch in acknowledge_each(batches):
            for content, name in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                yield from self.records.of_content(content, unquote(name))


@dataclass(frozen=True)
class _ArrivingContents:
    """Cuts whole files of a stream into records, and repeats the columns that say which file each record comes from."""

    records: _Records
    naming: Naming

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report_with(self.records.reporting)
        for batch in acknowledge_each(batches):
            for at in range(batch.num_rows):
                content, name, *_ = (column[at].as_py() for column in batch.columns)
                path = self.naming.name(name)
                for found in () if path is None else self.records.numbered(content, path):
                    place = [pa.repeat(column[at], found.num_rows) for column in batch.columns[1:]]
                    names = [*found.schema.names, *batch.schema.names[1:]]
                    yield pa.RecordBatch.from_arrays([*found.columns, *place], names)


def arriving_records(
    contents: DataFrame,
    files: StreamFiles,
    options: dict[str, Any],
    header: tuple[str, ...] | None,
    has_header: bool,
) -> DataFrame:
    """The text of each record of whole files of a stream, beside the columns that follow the content.

    Args:
        contents: The content of each file, its name, and other columns.
        files: The files that are meant.
        options: The user's.
        header: What the first record of each file must be; None for anything.
        has_header: Whether the first record of each file is a header.
    """
    # Python can write back what it did not decode, except in encodings of several bytes a character.
    errors = "surrogateescape" if has_plain_lines(options) else "replace"
    cut = _Records((), files.where, options, False, has_header, header, errors)
    own = StructType().add("value", "string").add(LINE, "long").add(BYTES, "binary")
    schema = StructType([*own.fields, *contents.schema.fields[1:]])
    found: DataFrame = map_in_arrow(contents, _ArrivingContents(cut, files.naming()), schema)
    return found


def parsed(records: DataFrame, names: list[str], malformed: str, options: dict[str, Any]) -> DataFrame:
    """The columns of the records as text, with a record that is not CSV in the column `malformed`."""
    columns = [*names, malformed]
    schema = ", ".join(f"{quote_name(name)} string" for name in columns)
    frame = records.select(F.from_csv("value", schema, options).alias("parsed"), "_metadata")
    return frame.select(*(F.col("parsed").getField(name).alias(name) for name in columns), "_metadata")
