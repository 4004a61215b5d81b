"""Finds the files that match a pattern, and names them as the user does."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from penstock.error import UnsupportedByRunner, refusal, three_parts
from penstock.io.files.object_stores import check_store_url, with_step
from penstock.io.files.paths import check_is_file, check_is_no_folder, known_path
from penstock.io.filesystem import translate_pattern
from penstock.io.filesystems import FileSystems
from penstock.options.value_provider import ValueProvider
from penstock_spark.files.compressed import find_compression_error
from penstock_spark.files.file_store import (
    Reach,
    absolute_uri,
    escape_glob,
    file_store,
    files_of_spark,
    is_on_disk,
    reach_of,
)
from penstock_spark.files.listing import list_with_few_tasks
from penstock_spark.files.splits import SHORTENED_FILE, leaves_files_out
from penstock_spark.files.store import FileStore, is_hidden
from penstock_spark.files.store_frames import frame_of_store, make_store_error
from penstock_spark.files.temporary import is_unfinished
from penstock_spark.session.backends import session_of_reader

_WILDCARD = re.compile(r"[*?\[]")
_AT_ONCE = 16
"""The number of files that are looked at together, because each look may wait for a network."""

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Files:
    pattern: str
    # The files, sorted, in the user's form: a pattern without a scheme stands for local paths.
    paths: tuple[str, ...]
    reach: Reach
    # The sizes of files on an object store that Spark does not reach; empty for all others.
    sizes: Mapping[str, int] = field(default_factory=dict)
    where: str = ""  # The step that reads them, for errors of such files.

    @property
    def is_unsupported_by_spark(self) -> bool:
        return self.reach is Reach.STORE

    @property
    def are_on_disk(self) -> bool:
        return self.reach is Reach.DISK

    @property
    def is_open_to_tasks(self) -> bool:
        """True if tasks can open the files on their own."""
        return self.reach is not Reach.HADOOP

    def store(self, spark: SparkSession) -> FileStore:
        """Returns the store that opens the files on the driver."""
        return file_store(self.pattern, spark)

    def load(self, reader: DataFrameReader, format: str, table: str | None = None) -> DataFrame:
        """Reads the files, of which there must be at least one, with a reader of Spark.

        On a store that Spark does not reach, tasks read the formats ``text`` and ``binaryFile``. With the folder of a
        table, the names of folders below it are values of columns.
        """
        spark = session_of_reader(reader)
        if self.is_unsupported_by_spark:
            return frame_of_store(spark, self.sizes, format, self.where)
        if format in ("text", "csv"):
            self._check_packed(spark)
        if table is None:
            reader = reader.option("recursiveFileLookup", True)
        else:
            reader = reader.option("basePath", absolute_uri(table))
        with list_with_few_tasks(spark):
            return reader.format(format).load([_for_spark(path) for path in self.paths])

    def _check_packed(self, spark: SparkSession) -> None:
        store = self.store(spark)
        for error in look_at_all(
            self.paths, lambda path: find_compression_error(path, self.where, store.open)
        ):
            if error is not None:
                raise error

    def sizes_on_disk(self) -> dict[str, int]:
        """Returns the present sizes of files on this machine's disks."""
        return {path: os.path.getsize(path) for path in self.paths}

    def make_size_check(self, where: str) -> Callable[[], None]:
        """Returns a function that raises OSError if one of the files, on this machine's disks, has become shorter."""
        if not self.are_on_disk:
            # Object stores and HDFS replace whole files, and Spark notices that.
            return lambda: None
        sizes = [(path, os.path.getsize(path)) for path in self.paths]
        return lambda: _check_sizes(sizes, where)

    def namer(self) -> Namer:
        return namer_of(self.pattern)


def look_at_all(paths: Iterable[str], look: Callable[[str], _Found]) -> list[_Found]:
    """Returns the result of `look` for each file, in the order of the paths; calls it for many at once.

    >>> look_at_all(["/in/a", "/in/b.c"], len)
    [5, 7]
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return list(threads.map(look, paths))


def change_seconds_of(path: str) -> float:
    """Returns the time of a file's last change, in seconds; 0 if the file was deleted."""
    try:
        return os.path.getmtime(path)
    except OSError:
        return 0.0


def working_folder() -> str:
    """Returns the folder to which the program's paths relate; workers may run in another one."""
    return os.getcwd()


def _check_sizes(sizes: Iterable[tuple[str, int]], where: str) -> None:
    for path, size in sizes:
        try:
            now = os.path.getsize(path)
        except FileNotFoundError:
            # The file was there when Spark read it: otherwise Spark has raised an error.
            continue
        if now < size:
            raise make_unreadable_error(OSError(errno.EIO, SHORTENED_FILE), path, where)


def make_unreadable_error(error: OSError, name: str, where: str) -> OSError:
    """Returns the error for a file that a step cannot read, with three parts."""
    what = f"{name} cannot be read: {error.strerror}"
    if reach_of(name) is Reach.STORE:
        return make_store_error(error, name, where)
    hint = "do not change files while the pipeline reads them"
    if isinstance(error, PermissionError):
        hint = "let the user of the pipeline and its workers read it, or give a pattern without it"
    return OSError(error.errno, three_parts(what, where=where, hint=hint))


def make_changed_error(path: str, where: str) -> OSError:
    """Returns the error for a file whose size has changed since the pipeline found it."""
    what = f"{path} cannot be read: it changed after the pipeline found it"
    return refusal(OSError, what, where=where, hint="do not change files while the pipeline reads them")


@dataclass(frozen=True)
class Namer:
    """Turns Spark's name of a file into the user's name, in the workers.

    >>> Namer("./logs", "/home/me/logs")("file:///home/me/logs/may%202.txt")
    './logs/may 2.txt'
    """

    # The part of the user's pattern before the wildcards; None if the pattern has a scheme.
    folder: str | None
    absolute: str | None  # The absolute path of that folder.

    def __call__(self, spark_name: str) -> str:
        name = unquote(spark_name)
        if self.folder is None or self.absolute is None:
            return re.sub(r"^file:/+", "file:///", name)
        path = re.sub(r"^file:/+", "/", name)
        rest = path[len(self.absolute) :].lstrip("/")
        return os.path.join(self.folder, rest) if path.startswith(self.absolute) else path


def namer_of(pattern: str) -> Namer:
    """Returns the function that turns Spark's ``_metadata.file_path`` into the user's form."""
    if not is_on_disk(pattern):
        return Namer(None, None)
    folder = os.path.dirname(_WILDCARD.split(pattern, maxsplit=1)[0])
    return Namer(folder, os.path.abspath(folder))


def pattern_of(path: Any, where: str) -> str:
    """Returns the path of a source or a sink; ValueError if it is a ValueProvider without a value."""
    pattern = known_path(path)
    if pattern is None:
        raise refusal(ValueError, f"the path {path} has no value", where=where, hint="give its option")
    return pattern


def find_files(spark: SparkSession, path: object, where: str, *, validate: bool = True) -> Files:
    """Returns the files that match a pattern with Beam's wildcards.

    It leaves out files that Spark considers hidden, and files that a writer has not renamed yet.

    A pattern without a scheme is local, as in Beam, and it may be a ValueProvider. It is an error to name a
    file that Spark's readers would skip and, with `validate`, to match no file.
    """
    pattern = pattern_of(path, where)
    pattern = pattern + "*" if pattern.endswith("/") else pattern
    sizes: dict[str, int] = {}
    reach = reach_of(pattern, spark)
    match reach:
        case Reach.STORE:
            sizes = _on_store(spark, pattern, where)
            found = list(sizes)
        case Reach.HADOOP:
            found = _on_hadoop(spark, pattern)
        case Reach.DISK:
            found = _on_disk(pattern, where)
    visible = tuple(
        sorted(
            each
            for each in dict.fromkeys(found)
            if not is_hidden(each.rpartition("/")[2]) and not is_unfinished(each, pattern)
        )
    )
    if found and not visible and not _WILDCARD.search(pattern):
        raise refusal(
            OSError,
            f"Spark's readers leave out files whose name begins with _ or . such as {pattern}",
            where=where,
            hint="rename the file, or read it with fileio.MatchFiles and ReadMatches",
        )
    if validate and not visible:
        raise refusal(
            OSError, f"No files found based on the file pattern {pattern}", where=where, hint="check the path"
        )
    return Files(pattern, visible, reach, {path: sizes[path] for path in visible} if sizes else {}, where)


def _on_store(spark: SparkSession, pattern: str, where: str) -> dict[str, int]:
    """Returns the sizes of the files that a pattern matches; OSError if the store does not answer or refuses."""
    check_store_url(pattern, where)
    if leaves_files_out(spark):
        raise UnsupportedByRunner(
            f"spark.sql.files.ignoreMissingFiles and ignoreCorruptFiles do not work for {pattern}",
            where=where,
            hint="set both to false",
        )
    try:
        found = FileSystems.match([pattern])[0].metadata_list
    except OSError as error:
        raise with_step(error, where) from None
    return {each.path: each.size_in_bytes for each in found}


def find_local_paths(path: str | ValueProvider) -> tuple[str, ...]:
    """Returns the files on this machine's disks that match a pattern; none if it is unknown or has a scheme."""
    pattern = known_path(path)
    if pattern is None or not is_on_disk(pattern):
        return ()
    # A local pattern needs no session.
    return find_files(None, pattern, "").paths  # type: ignore[arg-type]


def _on_disk(pattern: str, where: str) -> list[str]:
    check_is_no_folder(pattern, where)
    paths = [found.path for found in FileSystems.match([pattern])[0].metadata_list]
    for path in paths:
        check_is_file(path, where)
    return [path for path in paths if not os.path.isdir(path)]


def _on_hadoop(spark: SparkSession, pattern: str) -> list[str]:
    """Returns the files on a file system that Spark reaches.

    Hadoop's globs find them where these mean the same as Beam's.
    """
    base = _WILDCARD.split(pattern, maxsplit=1)[0].rpartition("/")[0] + "/"
    files = files_of_spark(spark, base)
    if "**" not in pattern and "[" not in pattern:
        return list(map(_with_authority, files.matching(re.sub(r"([\\{}])", r"\\\1", pattern))))
    if not files.exists(base):
        return []
    matches = re.compile(translate_pattern(_with_authority(pattern))).match
    return list(filter(matches, map(_with_authority, files.all_below(base))))


def _with_authority(path: str) -> str:
    """Returns a path as users write it: ``file:///a`` where Hadoop writes ``file:/a``."""
    return re.sub(r"^(\w+):/(?!/)", r"\1:///", path)


def _for_spark(path: str) -> str:
    """Returns a path that Spark takes literally: with its scheme, and with wildcard characters escaped."""
    return escape_glob(absolute_uri(path))
