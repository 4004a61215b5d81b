"""Files on a local (or shared) disk, written by the tasks themselves and named by the driver when all are
whole.

A task writes to a temporary folder beside the files' final place, under names of its own, and answers with
those names. A task that is run again, or twice at once, writes other files; the driver takes those that Spark
says succeeded, gives them their final names and deletes the folder with the rest.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from penstock.base.identifiers import identifier
from penstock_spark.files.naming import Naming, report_stale
from penstock_spark.files.temporary import make_local, remove_abandoned_local
from penstock_spark.sinks.plan import Encoder, SinkPlan

_SCHEMA = "file string"


class ShardWriter(Protocol):
    """Writes the elements of one file."""

    def write(self, values: Sequence[Any]) -> int:
        """Writes elements until the file is full; how many it took, less than all only if it is full."""

    def close(self) -> None:
        """Ends the file."""


def local_plan(
    folder: str,
    open_shard: Callable[[str], ShardWriter],
    naming: Naming,
    *,
    shards: int,
    empty_shards: int,
) -> SinkPlan:
    """A plan whose tasks write the files.

    Args:
        folder: Where the files go; the temporary folder is made in it.
        open_shard: Opens a file for writing, given its path.
        naming: The final names.
        shards: How many files are asked for; 0 means one for each task that has elements.
        empty_shards: How many files an empty collection gives.
    """
    temporary = os.path.join(os.path.abspath(folder), naming.temporary_folder)

    def commit(frame: DataFrame) -> list[Any]:
        if not naming.temporary:
            remove_abandoned_local(folder)
        make_local(temporary)
        try:
            written = sorted(row.file for row in frame.collect())
            wanted = max(shards, 1) if written else empty_shards
            written += [_empty(temporary, open_shard) for _ in range(wanted - len(written))]
            return naming.result(_give_names(written, naming))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    return SinkPlan(_SCHEMA, lambda: _FileEncoder(temporary, open_shard), shards or None, commit)


def _empty(temporary: str, open_shard: Callable[[str], ShardWriter]) -> str:
    path = os.path.join(temporary, f"empty-{identifier()}")
    open_shard(path).close()
    return path


def _give_names(written: list[str], naming: Naming) -> list[str]:
    """Gives files their names, and then deletes those of an earlier run.

    Wherever this is cut short, the old files or the new ones are there, or some of each, and the next run replaces all.
    """
    names = naming.names(len(written))
    folder = naming.folder or "."
    # Looked at before: two runs that write the same names at once cannot delete each other's new files then.
    stale = naming.stale(len(names), _names_in(folder)) if naming.replaces else []
    for source, name in zip(written, names, strict=True):
        os.replace(source, name)
    for name in stale:
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
    report_stale(folder, stale)
    return names


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


class _FileEncoder(Encoder):
    """Writes a task's elements to files, and answers with their names."""

    def __init__(self, temporary: str, open_shard: Callable[[str], ShardWriter]) -> None:
        self._temporary = temporary
        self._open_shard = open_shard
        self._writer: ShardWriter | None = None
        self._files: list[str] = []

    def start(self) -> pa.RecordBatch | None:
        """Nothing: a task without elements writes no file."""
        return None

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        """Writes the elements, to another file whenever one is full; no rows."""
        rest: Sequence[Any] = values
        while rest:
            taken = self._shard().write(rest)
            rest = rest[taken:]
            if rest:
                self._close()
        return _rows(())

    def finish(self) -> pa.RecordBatch | None:
        """The names of the files, in order."""
        self._close()
        return _rows(self._files)

    def _shard(self) -> ShardWriter:
        if self._writer is None:
            context = TaskContext.get()
            partition = context.partitionId() if context else 0
            name = f"{partition:06d}-{len(self._files):06d}-{identifier()}"
            path = os.path.join(self._temporary, name)
            self._writer = self._open_shard(path)
            self._files.append(path)
        return self._writer

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _rows(files: Iterable[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(list(files), pa.string())], names=["file"])
