"""Whether a micro-batch reads its files as they are: Spark takes a shorter file for one with fewer lines, and goes by
names.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from penstock.io.filesystems import FileSystems
from penstock_spark.files.changed_files import ChangedFiles, tell_empty
from penstock_spark.files.compressed import not_unpacked
from penstock_spark.files.finding import unreadable
from penstock_spark.files.found_file import open_by_hadoop, open_found
from penstock_spark.files.splits import SHORTER
from penstock_spark.reports.failure import step_failed

_QUERY = "sql.streaming.queryId"
_IGNORED = "spark.sql.files.ignoreMissingFiles"
_FILES, _NOTHING_NEW = "LogicalRelation", "LocalRelation"
_SCHEME = "file:"
_UNPACKING = ("TextFileFormat", "CSVFileFormat")
"""Spark's readers that undo compressions, by the endings of names."""
_WITH_HEADERS = ("ParquetFileFormat", "BinaryFileFormat")
"""Spark's readers of files that begin with a header: of Parquet, and of whole files, such as Avro and ORC."""


CheckFiles = Callable[[Sequence[str]], None]
"""Raises a step's failure if Spark would not read the elements of some files, as Spark writes their names."""


class WholeFiles:
    """Compares the files that a micro-batch has read with what Spark had found when it began.

    It looks only at local disks: HDFS and object stores replace whole files, and Spark notices that. For each
    source, a micro-batch costs a few calls of Java, and one look at each of its files.
    """

    def __init__(
        self, spark: SparkSession, places: Mapping[int, str], checks: Mapping[int, CheckFiles] | None = None
    ) -> None:
        self._spark = spark
        self._places = dict(places)
        self._checks = {places[source]: check for source, check in (checks or {}).items()}
        self._changed = ChangedFiles()
        self._told = set[str]()  # The files without a byte.

    @property
    def may_be_short(self) -> bool:
        """Whether there is a source that has to be looked at."""
        return bool(self._places)

    def check(self, frame: DataFrame) -> None:
        """Raises a step's marked failure if a file of a micro-batch that was read has become shorter or
        disappeared.
        """
        for leaf, where in self._leaves(frame):
            files = _on_disk(leaf.relation().location())
            for error, path in _missing_parts(files, self._ignores_missing(leaf)):
                step_failed(unreadable(error, path, where), where)
            sizes = {_local(path): size for path, size in files.listed.items()}
            self._changed.read(sizes, where)
            if _format_of(leaf) in _WITH_HEADERS:
                # A micro-batch is looked at more than once.
                tell_empty({path: size for path, size in sizes.items() if path not in self._told}, where)
                self._told.update(path for path, size in sizes.items() if size == 0)

    def begin(self, frame: DataFrame) -> None:
        """Warns of files that have changed since they were read, and raises a step's marked failure before a file is
        read that Spark would not read or unpack as it is meant.
        """
        self._changed.look()
        for leaf, where in self._leaves(frame):
            if where in self._checks:
                self._checks[where](_paths_of(leaf.relation().location()))
            if _format_of(leaf) in _UNPACKING:
                for path in map(_shown, _paths_of(leaf.relation().location())):
                    error = not_unpacked(path, where, self._open)
                    if error is not None:
                        step_failed(error, where)

    def close(self) -> None:
        """Warns of files that have changed since they were read."""
        self._changed.look()

    def _open(self, path: str) -> BinaryIO:
        return open_found(path) if FileSystems.get_scheme(path) is None else open_by_hadoop(self._spark, path)

    def _leaves(self, frame: DataFrame) -> Iterator[tuple[Any, str]]:
        """The relations of the files that a micro-batch reads, each with its step."""
        if not self._places:
            return
        number = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
        query = self._spark._jsparkSession.streams().get(number).streamingQuery()
        # The sources are the first leaves, in their order. What follows are the first states of the groupings.
        leaves = query.lastExecution().analyzed().collectLeaves()
        for source, where in list(self._places.items()):
            leaf = leaves.apply(source)
            kind = leaf.getClass().getSimpleName()
            if kind == _FILES:
                yield leaf, where
            elif kind != _NOTHING_NEW:
                # It reads no files, and never will.
                del self._places[source]

    def _ignores_missing(self, leaf: Any) -> bool:
        options = leaf.relation().options()
        given = options.get("ignoreMissingFiles")
        text = given.get() if given.isDefined() else self._spark.conf.get(_IGNORED, "false")
        return str(text).lower() == "true"


def _format_of(leaf: Any) -> str:
    return str(leaf.relation().fileFormat().getClass().getSimpleName())


class _OnDisk(NamedTuple):
    """Files of a micro-batch on this machine's disks, as Spark writes their paths."""

    asked: list[str]
    listed: dict[str, int]  # Those that were there when Spark looked at them, with their sizes.
    sizes: dict[str, int]  # The present sizes.


def _on_disk(found: Any) -> _OnDisk:
    asked = [path for path in _paths_of(found) if path.startswith(_SCHEME)]
    if not asked:
        return _OnDisk([], {}, {})
    files = found.allFiles()
    sizes = {path: _size(path) for path in asked}
    if files.size() == len(asked) and found.sizeInBytes() == sum(sizes.values()):
        return _OnDisk(asked, sizes, sizes)
    listed = {files.apply(at).getPath().toString(): files.apply(at).getLen() for at in range(files.size())}
    return _OnDisk(asked, listed, sizes)


def _missing_parts(files: _OnDisk, ignores_missing: bool) -> Iterator[tuple[OSError, str]]:
    for path in files.asked:
        if path not in files.listed and not ignores_missing:
            yield OSError(errno.ENOENT, "it was deleted after the stream had found it"), _local(path)
        elif path in files.listed and 0 <= files.sizes[path] < files.listed[path]:
            yield OSError(errno.EIO, SHORTER), _local(path)


def _paths_of(found: Any) -> list[str]:
    """The files that a micro-batch reads, as Spark writes them."""
    return str(found.rootPaths().mkString("\0")).split("\0")


def _size(path: str) -> int:
    """The present size of a file; -1 if it has disappeared since it was read, which Spark reports itself."""
    try:
        return os.path.getsize(_local(path))
    except OSError:
        return -1


def _shown(path: str) -> str:
    return _local(path) if path.startswith(_SCHEME) else path


def _local(path: str) -> str:
    return "/" + path.removeprefix(_SCHEME).lstrip("/")
