"""Splits of plain files on the workers' disks, which a task reads itself: Spark only assigns them.

Lines that Spark reads become rows, then columns, and travel from Java to Python before the pipeline uses them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock_spark.files.file_store import file_store, is_on_disk
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.session.sizes import bytes_of

SHORTENED_FILE = "it was truncated after the pipeline found it"

SHARE_BYTES = 64 << 20
"""The number of bytes that are worth a task."""

BLOCK_BYTES = 512 << 10
"""The number of bytes that one call reads: about ten thousand short lines, which fit into a processor's cache."""

OPENING_BYTES = 64 << 10
"""Opening a file on a disk takes a task as long as reading this many bytes. Spark counts 4 MB, as for a store: its
tasks would have 32 small files each, and starting a task takes longer than reading them.
"""

_Item = TypeVar("_Item")


class Split(NamedTuple):
    """A part of a file: the records that begin in it."""

    path: str  # Absolute, or the URL of a file on an object store.
    name: str  # The user's name of the file.
    start: int
    end: int  # The byte after the last one.


def splits_of(
    spark: SparkSession,
    paths: Iterable[str],
    delimiter: bytes,
    headers: int = 0,
    sizes: Mapping[str, int] | None = None,
) -> list[tuple[Split, ...]]:
    """Returns the splits of files, grouped by task, and of the size that Spark would choose.

    A delimiter has one byte. The first `headers` records of each file belong to no split. Files on object stores need
    their `sizes`.
    """
    whole = whole_files(paths, sizes)
    if headers:
        whole = [split._replace(start=_end_of_records(split.path, delimiter, headers)) for split in whole]
    opening_bytes = _size(spark, "openCostInBytes")
    return group_splits(
        whole,
        parallelism_of(spark),
        bytes_max=_size(spark, "maxPartitionBytes"),
        bytes_min=opening_bytes,
        opening_bytes=opening_bytes if sizes else min(opening_bytes, OPENING_BYTES),
    )


def group_splits(
    files: Sequence[Split], parallelism: int, bytes_max: int, bytes_min: int, opening_bytes: int
) -> list[tuple[Split, ...]]:
    """Groups whole files, by task, into splits of at least `bytes_min` if they are large enough.

    >>> [len(task) for task in group_splits([Split("/a", "/a", 0, 1)] * 6, 2, 128 << 20, 4 << 20, 64 << 10)]
    [3, 3]
    """
    share = sum(file.end - file.start + opening_bytes for file in files) // parallelism
    limit = min(bytes_max, max(opening_bytes, share))
    step = max(limit, min(bytes_min, bytes_max))
    cut = [
        file._replace(start=start, end=min(start + step, file.end))
        for file in files
        for start in range(file.start, file.end, step)
    ]
    return _distribute_splits(cut, limit, opening_bytes)


def whole_files(paths: Iterable[str], sizes: Mapping[str, int] | None = None) -> list[Split]:
    """Returns each file as one split; files on object stores need their `sizes`."""
    places = [(os.path.abspath(name) if is_on_disk(name) else name, name) for name in paths]
    return [Split(path, name, 0, sizes[name] if sizes else os.path.getsize(path)) for path, name in places]


def leaves_files_out(spark: SparkSession) -> bool:
    """True if the session makes Spark ignore missing or broken files, which only Spark's readers do."""
    names = ("ignoreMissingFiles", "ignoreCorruptFiles")
    return any(spark.conf.get(f"spark.sql.files.{name}") == "true" for name in names)


def _size(spark: SparkSession, name: str) -> int:
    """Returns a setting in bytes, at least one."""
    text = spark.conf.get(f"spark.sql.files.{name}")
    return max(1, bytes_of(str(text)))


def _distribute_splits(splits: list[Split], limit: int, opening_bytes: int) -> list[tuple[Split, ...]]:
    """Distributes splits among tasks, the largest first; opening a file counts as reading `opening_bytes`."""
    tasks: list[list[Split]] = []
    used = limit
    for split in sorted(splits, key=lambda split: split.start - split.end):
        if used + split.end - split.start > limit:
            tasks.append([])
            used = 0
        tasks[-1].append(split)
        used += split.end - split.start + opening_bytes
    return list(map(tuple, tasks))


def distribute_parts(
    items: Sequence[_Item], bytes_of: Callable[[_Item], int], parallelism: int
) -> tuple[tuple[_Item, ...], ...]:
    """Returns the items of each task: about as many bytes in each, and not many more tasks than run at once.

    >>> distribute_parts([1, 2, 3], lambda item: item, parallelism=2)
    ((3,), (2, 1))
    """
    total = sum(map(bytes_of, items))
    count = min(len(items), max(parallelism, total // SHARE_BYTES))
    tasks: list[list[_Item]] = [[] for _ in range(count)]
    weights = [0] * count
    for item in sorted(items, key=lambda each: -bytes_of(each)):
        lightest = weights.index(min(weights))
        tasks[lightest].append(item)
        weights[lightest] += bytes_of(item) + 1
    return tuple(map(tuple, tasks))


def items_of_tasks(batch: pa.RecordBatch, by_task: Sequence[Sequence[_Item]]) -> Iterator[_Item]:
    """Yields the items of the tasks whose numbers are in the only column of a batch."""
    for number in batch.column(0).to_pylist():
        yield from by_task[number]


def _end_of_records(path: str, delimiter: bytes, count: int) -> int:
    """Returns the end of the first `count` records of a file, or the file's end."""
    end = 0
    with file_store(path).open(path) as file:
        while block := file.read(BLOCK_BYTES):
            at = -1
            while count and (at := block.find(delimiter, at + 1)) >= 0:
                count -= 1
                if not count:
                    return end + at + 1
            end += len(block)
    return end


def blocks_of(split: Split, delimiter: bytes) -> Iterator[bytes]:
    """Yields the records that begin in a split, with their delimiters, many at a time; the last one may lack it."""
    with file_store(split.path).open(split.path) as file:
        # The first record begins behind a delimiter, which may be the last byte before the split.
        reached = file.seek(max(split.start - 1, 0))
        is_inside = split.start == 0
        begun: list[bytes] = []
        while block := file.read(BLOCK_BYTES):
            last = max(split.end - 1 - reached, 0)
            reached += len(block)
            # The record that has the split's last byte is its last one.
            end = block.find(delimiter, last) + 1 if reached >= split.end else 0
            if end:
                block = block[:end]
            if not is_inside:
                beginning = block.find(delimiter) + 1
                is_inside = beginning > 0
                block = block[beginning:] if is_inside else b""
            cut = block.rfind(delimiter) + 1
            if cut:
                yield b"".join([*begun, block[:cut]])
                begun = []
            if cut < len(block):
                begun.append(block[cut:])
            if end:
                return
        if reached < split.end:
            # The lines so far are only a part of the result.
            raise OSError(errno.EIO, SHORTENED_FILE)
        if begun:
            yield b"".join(begun)
