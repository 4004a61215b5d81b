"""Quotes that are still open where a line or a file ends, which Spark's parser closes without a word."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.error import refusal
from penstock.io.compression import CompressionTypes
from penstock_spark.files.compressed import open_for_reading, unpacking
from penstock_spark.files.finding import Files
from penstock_spark.files.found_file import open_found
from penstock_spark.files.splits import Split
from penstock_spark.files.store_frames import ReadParts, read_by_tasks, whole_splits

_ON_DISK = "file:"


def ends_in_quote(options: dict[str, Any]) -> str:
    """The pattern of all of a text that begins outside of quotes and ends within them.

    >>> bool(re.fullmatch(ends_in_quote({}), 'a,"b')), bool(re.fullmatch(ends_in_quote({}), 'a,"b"'))
    (True, False)
    """
    quote, separator = (
        re.escape(options.get(name) or default)
        for name, default in (("quotechar", '"'), ("sep", options.get("delimiter") or ","))
    )
    escape = re.escape(options.get("escapechar") or "")
    within = (
        f"[^{quote}{escape}]++|{escape}[{quote}{escape}]|{escape}"
        if escape
        else f"[^{quote}]++|{quote}{quote}"
    )
    quoted = f"{quote}(?:{within})*+"
    rest = f"[^{separator}{quote}][^{separator}]*+"
    space = "[ \\t]*+" if options.get("skipinitialspace") else ""
    field = f"(?:{quoted}{quote}(?:{rest})?+|{rest}|)"
    return f"(?:{space}{field}{separator})*+{space}{quoted}"


def is_left_open(lines: Iterable[str], options: dict[str, Any]) -> bool:
    r"""Whether lines, with their ends, leave a quote open; quotes may have line ends in them.

    >>> is_left_open(["a,b\n", '1,"x\n', "2,y\n"], {}), is_left_open(["a,b\n", '1,"x\n', 'y"\n'], {})
    (True, False)
    """
    ends_within = re.compile(ends_in_quote(options)).fullmatch
    quote, comment = options.get("quotechar") or '"', options.get("comment")
    is_open = False
    for line in lines:
        if quote in line and (is_open or not (comment and line.startswith(comment))):
            # Within quotes, a line goes on as if it began with one.
            is_open = ends_within(quote + line if is_open else line) is not None
    return is_open


def file_left_open(path: str, options: dict[str, Any]) -> bool:
    """Whether a file on a disk ends within quotes; False if it cannot be read, which whoever reads it will say."""
    compression = CompressionTypes.detect_compression_type(path)
    encoding = options.get("encoding") or "utf-8"
    try:
        with (
            unpacking(compression, path, ""),
            open_found(path) as stored,
            io.TextIOWrapper(open_for_reading(stored, compression), encoding, "replace", newline="") as text,
        ):
            return is_left_open(_without_mark(text), options)
    except (OSError, ValueError, LookupError):
        return False


def spark_file_left_open(spark_name: str, options: dict[str, Any]) -> bool:
    """The same for a file with Spark's name; False if it is not on a disk."""
    if not spark_name.startswith(_ON_DISK):
        return False
    return file_left_open("/" + unquote(spark_name.removeprefix(_ON_DISK)).lstrip("/"), options)


def check_quotes_of_files(spark: SparkSession, files: Files, options: dict[str, Any], where: str) -> None:
    """Raises ValueError if one of the files, on disks of the workers, ends within quotes."""
    parts = whole_splits(spark, files.sizes_on_disk())
    found = read_by_tasks(spark, _LeftOpen(parts, where, options), "file string").collect()
    if found:
        raise left_open(min(file for (file,) in found), where)


def left_open(file: str, where: str) -> ValueError:
    """The error for a file that ends within quotes: its last field has everything that follows the quote."""
    what = f"{file} ends within quotes: one of its quotes is never closed"
    return refusal(ValueError, what, where=where, hint="close the quote, or name another quotechar")


@dataclass(frozen=True)
class _LeftOpen(ReadParts):
    options: dict[str, Any]

    def read(self, part: Split) -> Iterator[pa.RecordBatch]:
        if file_left_open(part.path, self.options):
            yield pa.RecordBatch.from_pydict({"file": [part.path]})


def _without_mark(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix("\ufeff")
