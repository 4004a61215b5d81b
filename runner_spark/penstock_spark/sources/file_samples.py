"""The first megabytes of files, for facts that must be known before Spark reads them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.io.filesystems import FileSystems
from penstock.io.formats.file_formats import RecordFileSource
from penstock_spark.files.finding import find_local_paths

SAMPLE_BYTES = 4 << 20
"""So much is read of all files together; it takes a few tenths of a second to look at."""

_FILES_MAX = 16


@dataclass(frozen=True)
class FileSample:
    content: bytes
    is_all: bool  # Whether this is the whole file.


def read_samples(paths: Sequence[str]) -> Iterator[FileSample]:
    looked_at = paths[:_FILES_MAX]
    for path in looked_at:
        size = SAMPLE_BYTES // len(looked_at)
        with FileSystems.open(path) as file:
            content = file.read(size + 1)
        yield FileSample(content[:size], len(content) <= size)


def all_content(paths: Sequence[str]) -> list[bytes] | None:
    """Returns the content of all files; None if it is more than `SAMPLE_BYTES`."""
    contents: list[bytes] = []
    left = SAMPLE_BYTES
    for path in paths:
        with FileSystems.open(path) as file:
            contents.append(file.read(left + 1))
        left -= len(contents[-1])
        if left < 0:
            return None
    return contents


def infer_type_from_files(
    type_of: Callable[[Any, Sequence[str]], Any],
) -> Callable[[Any, SparkSession | None, str], Any]:
    """Finds the type of a source's elements in its files on a local disk.

    A broken file has no type here; the pipeline reports it, with the step, when it opens the file.
    """

    def element_type(source: RecordFileSource, spark: SparkSession | None, where: str) -> object:
        with contextlib.suppress(Exception):
            return type_of(source, find_local_paths(source.file_pattern))
        return None

    return element_type
