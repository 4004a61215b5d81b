"""Files as a sink: tasks or Spark write them under temporary names, and the driver renames them when all are whole.

On a local (or shared) disk, the tasks write them to a temporary folder, and answer with their names. A task that runs
again, or twice at once, writes other files; the driver takes the files of the attempts that succeeded for Spark,
and deletes the folder with the rest. On any other file system, Spark's own writer does the same.

In batch mode, a run deletes the files of an earlier run with such names, even if it writes fewer. In a stream, each
micro-batch has its own files, whose names contain its number. Exactly once: a retry replaces all files that an earlier
try has named. A micro-batch without elements writes no file, and each file has its own header and footer.

If rows are kept apart by the values of columns, this holds for the folders of all values together: what an earlier run,
or an earlier try, has left in the folder of a value that does not come any more is also removed.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.error import UnsupportedByRunner, refusal
from penstock.graph import Sink
from penstock.io.files.object_stores import check_store_url
from penstock.io.files.shards import Shards
from penstock.io.formats.partition_folders import escape_value, move_into_folders
from penstock.utils.identifiers import identifier
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import (
    Reach,
    StoreFiles,
    absolute_uri,
    file_store,
    files_of_spark,
    folder_of,
    is_on_disk,
    reach_of,
)
from penstock_spark.files.naming import SHARD, SHARDS, Naming, match_names_like
from penstock_spark.files.store import FileStore
from penstock_spark.files.temporary import (
    PREFIX,
    begin,
    end,
    make_name,
    name_of_claim,
    remove_abandoned,
    remove_of_earlier_claims,
)
from penstock_spark.session.session import existing_session
from penstock_spark.sinks.file_names import Names, TemplateNames
from penstock_spark.sinks.partitions import Partitions, PartitionWriter, RowsWriter
from penstock_spark.sinks.plan import Encoder, MicroBatch, SinkPlan

# A Spark file that is larger than this has elements in it, whatever its compression.
_LARGE_BYTES = 8192

# It stands for a micro-batch's number when a name becomes a pattern.
_BATCH = 666_666_667
_NUMBERS = {_BATCH: "batch", SHARD: "shard", SHARDS: "shards"}

_LOGGER = logging.getLogger(__name__)


class ShardWriter(Protocol):
    """Writes the elements of one file."""

    def write(self, values: Sequence[Any]) -> int:
        """Writes elements until the file is full; how many it took, less than all only if it is full."""

    def close(self) -> None:
        """Ends the file."""


@dataclass(frozen=True)
class SparkFiles:
    """The functions with which Spark writes the files of a format."""

    schema: str | StructType
    make_encoder: Callable[[], Encoder]  # Called once in each task.
    write: Callable[[DataFrame, str], None]  # Lets Spark write a frame of such rows to a new folder.
    # True if a small file with these bytes has elements: Spark writes an empty file if the first task has
    # none.
    has_elements: Callable[[bytes], bool]
    empty_file: bytes  # The content of a file without elements.


def _not_in_columns() -> SparkFiles | None:
    """Python encodes the elements."""


@dataclass(frozen=True)
class FileSink:
    """The functions and options that write a sink of files of any format."""

    names: Names
    shards: int  # The requested number of files; 0 means one for each task that has elements.
    empty_shards: int  # The number of files for an empty collection in batch mode.
    open_shard: Callable[[str], ShardWriter]  # Opens a file on a local disk for writing, given its path.
    # Describes how Spark writes the files; UnsupportedByRunner if Spark cannot do everything that the user asked for.
    by_spark: Callable[[], SparkFiles]
    # Describes how Spark writes a frame whose columns are the fields of the elements; None if it does not.
    columns: Callable[[], SparkFiles | None] = _not_in_columns
    # The requested limits of a file; with them, there may be more files than shards.
    limits: tuple[str, ...] = ()
    # The partitions that keep rows apart; with them, `shards` is the most files of a folder, and no file is empty.
    partitions: Partitions | None = None


def make_task_file_sink(
    shards: Shards,
    subjects: str,
    open_shard: Callable[[str], ShardWriter],
    where: str,
    partitions: Partitions | None = None,
    instead: str = "",
) -> FileSink:
    """A sink of files that tasks write, and Spark cannot.

    Args:
        shards: The folder and the names of the files.
        subjects: What errors call the files, such as ``"Avro files"``.
        open_shard: Opens a file on a local disk for writing, given its path.
        where: The step.
        partitions: How rows are kept apart in folders.
        instead: More of the hint for a place that tasks do not reach.
    """

    def by_spark() -> SparkFiles:
        raise UnsupportedByRunner(
            f"{subjects} cannot be written to {shards.prefix}",
            where=where,
            hint=f"write to a path without a scheme, on a disk that all workers share{instead}",
        )

    least = max(shards.count, 1)
    return FileSink(TemplateNames(shards), shards.count, least, open_shard, by_spark, partitions=partitions)


def plan_files(sink: Sink, files: FileSink, is_stream: bool, where: str) -> SinkPlan:
    if sink.triggering_frequency:
        raise UnsupportedByRunner(
            "triggering_frequency is for unbounded collections", where=where, hint="leave it out"
        )
    files.names.refuse("WVU", where)
    writing = _Writing(files, _temporary_name(files.names) if is_stream else make_name())
    # Without a session, nothing is written yet: the plan says the same for both ways, except for columns.
    spark = existing_session() if reach_of(files.names.place) is Reach.STORE else None
    reach = reach_of(files.names.place, spark)
    if reach is Reach.STORE:
        if spark is not None:
            check_store_url(files.names.place, where)
        return writing.by_tasks_on_store()
    plan = writing.by_tasks() if reach is Reach.DISK else writing.by_spark(files.by_spark())
    columns = files.columns()
    return plan if columns is None else replace(plan, columns=writing.by_spark(columns))


def _temporary_name(names: Names) -> str:
    """The constant name of a stream's temporary folder, so that a later run deletes what a killed run left in
    it.
    """
    return f"{PREFIX}{os.path.basename(names.path('stream', 0, 1))}"


@dataclass(frozen=True)
class _Writing:
    """Moves files to their final names."""

    files: FileSink
    temporary: str  # The name of the temporary folder.

    def by_tasks(self) -> SinkPlan:
        """On a disk that all workers share."""
        return self._by_tasks(DiskFiles(), os.path.abspath(self.files.names.folder))

    def by_tasks_on_store(self) -> SinkPlan:
        """As on a local disk, but the files are copied to their names: such stores do not rename."""
        return self._by_tasks(StoreFiles(), self.files.names.folder)

    def _by_tasks(self, system: DiskFiles | StoreFiles, folder: str) -> SinkPlan:
        temporary = os.path.join(folder, self.temporary)
        open_shard, partitions = system.wrap_opener(self.files.open_shard), self.files.partitions
        local = system if isinstance(system, DiskFiles) else None
        # Neither is a function made here: that would travel to the tasks of each micro-batch with its code.
        make_encoder: Callable[[], Encoder] = functools.partial(_FileEncoder, temporary, open_shard, local)
        if partitions is not None:
            open_file = system.wrap_opener(partitions.open_file)
            make_encoder = functools.partial(_PartitionEncoder, temporary, partitions, open_file, local)

        def write(frame: DataFrame) -> list[_Written]:
            return [_parse_row(row.file, temporary) for row in frame.collect()]

        def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
            return self._commit(
                system, temporary, batch, lambda: write(frame), lambda path: open_shard(path).close()
            )

        return SinkPlan("file string", make_encoder, self.files.shards or None, commit)

    def by_spark(self, spark_files: SparkFiles) -> SinkPlan:
        # Hadoop does not decode a path: a URI's escapes would be part of it.
        folder = absolute_uri(self.files.names.folder)

        def commit(frame: DataFrame, batch: MicroBatch) -> list[Any]:
            system = files_of_spark(frame.sparkSession, folder)
            temporary = f"{folder}/{name_of_claim(self.temporary, batch.claim)}"
            if batch.may_be_retry:
                remove_of_earlier_claims(system, folder, self.temporary, batch.claim)

            def write() -> list[_Written]:
                # Spark makes the folder that it writes to.
                spark_files.write(frame, f"{temporary}/files")
                found = [
                    (_Written(inside, f"{temporary}/files/{_below(inside, name)}"), size)
                    for inside, name, size in system.below(f"{temporary}/files")
                ]
                # Spark writes no empty file into the folder of a partition.
                return [
                    each
                    for each, size in found
                    if each.inside
                    or size > _LARGE_BYTES
                    or spark_files.has_elements(system.read(each.path) or b"")
                ]

            make_empty = functools.partial(system.write, content=spark_files.empty_file)
            return self._commit(system, temporary, batch, write, make_empty)

        return SinkPlan(spark_files.schema, spark_files.make_encoder, self.files.shards or None, commit)

    def _commit(
        self,
        system: FileStore,
        temporary: str,
        batch: MicroBatch,
        write: Callable[[], list[_Written]],
        make_empty: Callable[[str], None],
    ) -> list[Any]:
        """Lets files be written to a temporary folder, renames them, and then deletes the stale ones.

        If this is interrupted, the old files, the new files, or some of each exist, and the next run or try
        replaces all.
        """
        files = self.files

        def absolute(path: str) -> str:
            return os.path.abspath(path) if is_on_disk(path) else path

        def naming_in(inside: str) -> Naming:
            return Naming(
                lambda shard, shards: move_into_folders(files.names.path(batch.name, shard, shards), inside)
            )

        if batch.may_be_retry:
            remove_abandoned(system, folder_of(temporary))
        try:
            begin(system, temporary)
            written = self._by_folder(write(), batch, temporary, make_empty)
            names = {inside: naming_in(inside).names(len(paths)) for inside, paths in written.items()}
            # Looked at before: two runs that write the same names at once cannot delete each other's new files then.
            folder = absolute(naming_in("").folder)
            beginning = naming_in("").beginning
            present = _present(system, folder, files, beginning) if batch.may_be_retry else {}
            stale = [
                (inside, name)
                for inside, there in present.items()
                for name in naming_in(inside).find_stale(len(names.get(inside, ())), there)
            ]
            if files.partitions is not None:
                for inside in written:
                    system.make(f"{folder}/{inside}")
            paths = [absolute(path) for inside in names for path in names[inside]]
            old = {f"{folder}/{_below(inside, name)}" for inside, there in present.items() for name in there}
            # While the tasks wrote, this process may have hung, and another run may have continued in its place.
            batch.check()
            _name_files(system, [each for inside in written for each in written[inside]], paths, old)
            for inside, name in stale:
                system.remove(f"{folder}/{_below(inside, name)}")
            if stale:
                _LOGGER.warning(
                    "%s: deleted the files of an earlier run, %d in all, such as %s",
                    naming_in("").folder,
                    len(stale),
                    _below(*stale[0]),
                )
            return files.names.results(names, batch.name)
        finally:
            end(system, temporary)

    def _by_folder(
        self,
        found: Iterable[_Written],
        batch: MicroBatch,
        temporary: str,
        make_empty: Callable[[str], None],
    ) -> dict[str, list[_Written]]:
        """The files that are written, in order, by their folders; with as many empty ones as are missing."""
        written: dict[str, list[_Written]] = {}
        for each in sorted(found):
            written.setdefault(each.inside, []).append(each)
        if self.files.partitions is None:
            files = written.setdefault("", [])
            empty_shards = 0 if batch.stream else self.files.empty_shards
            wanted = max(self.files.shards, 1) if files else empty_shards
            for _ in range(wanted - len(files)):
                files.append(_Written("", f"{temporary}/empty-{identifier()}"))
                make_empty(files[-1].path)
        return written


class _Written(NamedTuple):
    """A file in the temporary folder."""

    inside: str  # The folders of its partition, such as ``country=DE/day=2026-01-02``; "" without partitions.
    path: str
    size: int | None = None  # Its bytes when its task had written it, if the task could know.


def _parse_row(row: str, temporary: str) -> _Written:
    """Reads a row of `_rows`."""
    size, _, path = row.partition(" ")
    return _Written(path[len(temporary) + 1 :].rpartition("/")[0], path, int(size) if size else None)


def _below(*parts: str) -> str:
    """A path of folders, without those that have no name, and a file."""
    return "/".join(filter(None, parts))


def _present(system: FileStore, folder: str, files: FileSink, beginning: str) -> dict[str, list[str]]:
    """The names that begin like the names of a sink, by the folders of partitions."""
    if files.partitions is None:
        return {"": system.names(folder, beginning)}
    levels = [f"{escape_value(column)}=" for column in files.partitions.columns]
    return system.names_below(folder, [*levels, beginning])


def _name_files(system: FileStore, written: Sequence[_Written], names: Sequence[str], old: set[str]) -> None:
    """Gives files their names; if a store fails on the way, the new names go again as far as it lets them."""
    if isinstance(system, DiskFiles):
        _check_whole(system, written)
    named: list[str] = []
    try:
        for source, name in zip(written, names, strict=True):
            system.replace(source.path, name)
            named.append(name)
    except OSError:
        for name in () if system.renames else named:
            if name not in old:
                with contextlib.suppress(OSError):
                    system.remove(name)
        raise


def _check_whole(system: DiskFiles, written: Sequence[_Written]) -> None:
    """Raises an OSError if a file is not as its task has left it: a machine that goes down loses what it had to write.

    Nobody could see afterwards that lines are missing in a file that has its name.
    """
    for each in written:
        if each.size is not None and (found := system.size(each.path)) != each.size:
            what = f"a task wrote {each.size} bytes, but the file has {found}"
            raise OSError(errno.EIO, what, each.path)


def prepare_files(files: FileSink, spark: SparkSession, where: str) -> None:
    """Refuses to start where another stream has left files: this stream would replace some of them."""
    naming = Naming(functools.partial(files.names.path, MicroBatch(_BATCH, "any").name))
    system = file_store(naming.folder, spark)
    remove_abandoned(system, naming.folder)
    name = os.path.basename(naming.example())
    present = _present(system, naming.folder, files, re.split("|".join(map(str, _NUMBERS)), name)[0])
    like = match_names_like(name, _NUMBERS)
    found = sorted(
        _below(inside, each) for inside, there in present.items() for each in there if like.match(each)
    )
    if found:
        raise refusal(
            FileExistsError,
            f"{naming.folder or 'the working folder'} contains files of another stream, such as {found[0]}",
            where=where,
            hint="delete them, write elsewhere, or continue with the checkpoint of the stream that wrote them",
        )


class _FileEncoder(Encoder):
    """Writes a task's elements to files, and returns the files' names; without elements it writes no file."""

    def __init__(
        self, temporary: str, open_shard: Callable[[str], ShardWriter], local: DiskFiles | None
    ) -> None:
        self._temporary = temporary
        self._open_shard = open_shard
        self._local = local
        self._writer: ShardWriter | None = None
        self._files: list[str] = []

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        rest: Sequence[Any] = values
        while rest:
            taken = self._shard().write(rest)
            rest = rest[taken:]
            if rest:
                self._close()
        return _rows((), self._local)

    def finish(self) -> pa.RecordBatch | None:
        self._close()
        return _rows(self._files, self._local)

    def _shard(self) -> ShardWriter:
        if self._writer is None:
            path = os.path.join(self._temporary, _unique_name(len(self._files)))
            self._writer = self._open_shard(path)
            self._files.append(path)
        return self._writer

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class _PartitionEncoder(Encoder):
    """Writes a task's elements to a file for each combination of values, and returns the files' names."""

    def __init__(
        self,
        temporary: str,
        partitions: Partitions,
        open_file: Callable[[str], RowsWriter],
        local: DiskFiles | None,
    ) -> None:
        self._temporary = temporary
        self._open_file = open_file
        self._local = local
        self._writer = PartitionWriter(partitions, self._open_in)
        self._files: list[str] = []

    def encode(self, values: list[Any]) -> pa.RecordBatch:
        self._writer.write(values)
        return _rows((), self._local)

    def finish(self) -> pa.RecordBatch | None:
        self._writer.close()
        return _rows(self._files, self._local)

    def _open_in(self, inside: str) -> RowsWriter:
        if self._local is not None:
            self._local.make_inside(self._temporary, inside)
        self._files.append(f"{self._temporary}/{inside}/{_unique_name(0)}")
        return self._open_file(self._files[-1])


def _unique_name(number: int) -> str:
    """A name for a file of this task, sorted as the tasks are."""
    context = TaskContext.get()
    partition = context.partitionId() if context else 0
    return f"{partition:06d}-{number:06d}-{identifier()}"


def _rows(files: Iterable[str], local: DiskFiles | None) -> pa.RecordBatch:
    """The sizes and the paths of some files; without `local` they are in a store, and the sizes are not known."""
    rows = [f"{'' if local is None else local.size(file)} {file}" for file in files]
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.string())], names=["file"])
