"""CSV files on object stores that Spark does not reach: tasks cut them into records for Spark's parser."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.error import refusal
from penstock.io.columnar import CsvSource
from penstock_spark.files.finding import Files
from penstock_spark.files.splits import Split
from penstock_spark.files.store_frames import (
    ReadParts,
    beginning,
    is_compressed,
    line_splits,
    lines_of,
    read_by_tasks,
    rows_of,
    unpacked,
    whole,
    whole_splits,
)
from penstock_spark.formats.csv.quotes import is_left_open, left_open
from penstock_spark.reports.failure import step_failed

_HEADER_BYTES = 1 << 20
"""The first record of a file is shorter."""
_RECORDS = "value string, _metadata struct<file_path: string>"


def records_of(
    spark: SparkSession, files: Files, source: CsvSource, options: dict[str, Any], *, has_header: bool
) -> DataFrame:
    """The text of each record with the name of its file, without headers, blank lines and comments."""
    by_lines = source.splittable and has_plain_lines(options)
    parts = (line_splits if by_lines else whole_splits)(spark, files.sizes)
    checks = has_header and not options.get("names")
    found = (header_of(path, files, options) for path in sorted(files.sizes)) if checks else iter(())
    first = next((tuple(each) for each in found if each is not None), None)
    cut = _Records(parts, files.where, options, by_lines, has_header, first)
    return read_by_tasks(spark, cut, _RECORDS)


def has_plain_lines(options: dict[str, Any]) -> bool:
    """Whether files can be cut into lines before they are decoded, which is not so in UTF-16, for example."""
    try:
        return "\n,a".encode(str(options.get("encoding") or "utf-8"), "replace") == b"\n,a"
    except LookupError:
        return True  # Only Java knows it, or nobody.


def names_of(files: Files, options: dict[str, Any], has_header: bool) -> list[str]:
    """The names of the columns, by the first record of the first file that has one."""
    found = (header_of(path, files, options) for path in sorted(files.sizes))
    return names_in(next((each for each in found if each is not None), []), has_header)


def names_in(first: list[str], has_header: bool) -> list[str]:
    """The names of the columns, by the first record of all, as Spark gives them."""
    if not has_header:
        return [str(number) for number in range(len(first))]
    lower = [name.lower() for name in first]
    return [
        f"_c{at}" if not name else f"{name}{at}" if lower.count(name.lower()) > 1 else name
        for at, name in enumerate(first)
    ]


def header_of(path: str, files: Files, options: dict[str, Any]) -> list[str] | None:
    """The first record of a file; None if it has none."""
    size = files.sizes[path]
    content = (
        unpacked(path, size, files.where)
        if is_compressed(path)
        else beginning(path, _HEADER_BYTES, files.where)
    )
    text = content.decode(options.get("encoding") or "utf-8", "replace").removeprefix("\ufeff")
    record = next(_cut(text, options), None)
    return None if record is None else _fields(record, options)


def _fields(record: str, options: dict[str, Any]) -> list[str]:
    return next(csv.reader(io.StringIO(record, newline=""), **dialect(options)), [])


def dialect(options: dict[str, Any]) -> dict[str, Any]:
    """How Python's own reader reads what Spark's parser reads with these options."""
    escape = options.get("escapechar")
    return {
        "delimiter": options.get("sep") or options.get("delimiter") or ",",
        "quotechar": options.get("quotechar", '"'),
        "escapechar": escape,
        "doublequote": escape is None,
        "skipinitialspace": bool(options.get("skipinitialspace", False)),
    }


def _cut(text: str, options: dict[str, Any]) -> Iterator[str]:
    """The texts of the records, whose quotes may have line ends in them."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    comment = options.get("comment")
    for _ in csv.reader(lines(), **dialect(options)):
        record = "".join(taken)
        taken.clear()
        if record.strip() and not (comment and record.startswith(comment)):
            yield record.rstrip("\r\n")


@dataclass(frozen=True)
class _Records(ReadParts):
    options: dict[str, Any]
    by_lines: bool
    has_header: bool
    header: tuple[str, ...] | None  # What the first record of each file must be; None for anything.

    def read(self, part: Split) -> Iterator[pa.RecordBatch]:
        expects = self.has_header and part.start == 0
        for records in self._records(part):
            if expects and records:
                self._check(records.pop(0), part.path)
                expects = False
            yield rows_of(part.path, pa.array(records, pa.string()))

    def _records(self, split: Split) -> Iterator[list[str]]:
        comment = self.options.get("comment")
        try:
            if not self.by_lines:
                read = unpacked if is_compressed(split.path) else whole
                text = self._text(read(split.path, split.end, self.where), at_start=True)
                if is_left_open(io.StringIO(text, newline=""), self.options):
                    step_failed(left_open(split.path, self.where), self.where)
                yield list(_cut(text, self.options))
                return
            at_start = split.start == 0
            for some in lines_of(split, self.where):
                decoded = [self._text(line, at_start and not at) for at, line in enumerate(some)]
                at_start = False
                yield [
                    line for line in decoded if line.strip() and not (comment and line.startswith(comment))
                ]
        except UnicodeDecodeError as error:
            what = f"{split.path} has text that is not {error.encoding}"
            step_failed(refusal(ValueError, what, where=self.where, hint="pass encoding="), self.where)

    def _text(self, data: bytes, at_start: bool) -> str:
        text = data.decode(self.options.get("encoding") or "utf-8")
        return text.removeprefix("\ufeff") if at_start else text

    def _check(self, record: str, path: str) -> None:
        if self.header is None:
            return
        own = [name.lower() for name in _fields(record, self.options)]
        if own != [name.lower() for name in self.header]:
            what = f"the header of {path} names other columns than the first file's"
            hint = "give files of another kind a pattern of their own, or name the columns with names= and header=0"
            step_failed(refusal(ValueError, what, where=self.where, hint=hint), self.where)


def parsed(records: DataFrame, names: list[str], malformed: str, options: dict[str, Any]) -> DataFrame:
    """The columns of the records as text, with a record that is not CSV in the column `malformed`."""
    columns = [*names, malformed]
    schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in columns)
    frame = records.select(F.from_csv("value", schema, options).alias("parsed"), "_metadata")
    return frame.select(*(F.col("parsed").getField(name).alias(name) for name in columns), "_metadata")
