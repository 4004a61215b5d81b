"""Checks that a micro-batch reads whole files: Spark reads a shortened file as one with fewer lines, and decompresses
files according to their names.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from penstock_spark.files.changed_files import ChangedFiles, warn_of_empty_files
from penstock_spark.files.compressed import find_compression_error
from penstock_spark.files.file_store import file_store
from penstock_spark.files.finding import make_unreadable_error
from penstock_spark.files.splits import SHORTENED_FILE
from penstock_spark.reports.failure import fail_step
from penstock_spark.session.backends import backend_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_IGNORED = "spark.sql.files.ignoreMissingFiles"
_FILES, _NOTHING_NEW = "LogicalRelation", "LocalRelation"
_SCHEME = "file:"
_UNPACKING = ("TextFileFormat", "CSVFileFormat")
"""Spark's readers that decompress files, by the endings of names."""
_WITH_HEADERS = ("ParquetFileFormat", "BinaryFileFormat")
"""Spark's readers of files that begin with a header: of Parquet, and of whole files, such as Avro and ORC."""


CheckFiles = Callable[[Sequence[str]], None]
"""Raises a step's failure if Spark would not read the elements of some files, as Spark writes their names."""


class WholeFiles:
    """Compares the files that a micro-batch has read with those that Spark had found when it began.

    It looks only at local disks: HDFS and object stores replace whole files, and Spark notices that. For each
    source, a micro-batch costs a few calls to Java, and one or two calls to the system for each of its files.
    """

    def __init__(
        self, spark: SparkSession, places: Mapping[int, str], checks: Mapping[int, CheckFiles] | None = None
    ) -> None:
        self._spark = spark
        self._places = dict(places)
        self._checks = {places[source]: check for source, check in (checks or {}).items()}
        self._changed = ChangedFiles()
        self._warned = set[str]()  # The empty files.
        self._of_batch: tuple[DataFrame | None, list[_Relation]] = (None, [])

    @property
    def may_be_short(self) -> bool:
        """True if a source has files to be checked."""
        return bool(self._places)

    def check(self, frame: DataFrame) -> None:
        """Raises a step's marked failure if a file that a micro-batch has read has become shorter or
        disappeared.
        """
        for relation in self._relations(frame):
            files, where = relation.on_disk(), relation.where
            for error, path in _missing_parts(files, relation):
                fail_step(make_unreadable_error(error, path, where), where)
            sizes = {_local(path): size for path, size in files.listed.items()}
            self._changed.read(sizes, where)
            if relation.format in _WITH_HEADERS:
                # The runner checks a micro-batch more than once.
                warn_of_empty_files(
                    {path: size for path, size in sizes.items() if path not in self._warned}, where
                )
                self._warned.update(path for path, size in sizes.items() if size == 0)

    def begin(self, frame: DataFrame) -> None:
        """Warns of files that have changed since they were read, and raises a step's marked failure before Spark
        reads a file that it cannot read, or would decompress wrongly.
        """
        self._changed.look()
        for relation in self._relations(frame):
            where = relation.where
            if where in self._checks:
                self._checks[where](relation.paths)
            if relation.format in _UNPACKING:
                for path in map(_shown, relation.paths):
                    error = find_compression_error(path, where, file_store(path, self._spark).open)
                    if error is not None:
                        fail_step(error, where)

    def close(self) -> None:
        """Warns of files that have changed since they were read."""
        self._changed.look()

    def _relations(self, frame: DataFrame) -> list[_Relation]:
        """Returns the relations of the files that a micro-batch reads, which it finds once for each micro-batch."""
        if self._places and self._of_batch[0] is not frame:
            self._of_batch = frame, list(self._found(frame))
        return self._of_batch[1] if self._places else []

    def _found(self, frame: DataFrame) -> Iterator[_Relation]:
        leaves = backend_of(self._spark).leaves_of_batch(frame)
        if leaves is None:
            return
        for source, where in list(self._places.items()):
            leaf = leaves.apply(source)
            kind = leaf.getClass().getSimpleName()
            if kind == _FILES:
                yield _Relation(leaf.relation(), where, self._spark)
            elif kind != _NOTHING_NEW:
                # This source never reads files.
                del self._places[source]


class _Relation:
    """The files that a micro-batch reads for one source, as Spark found them; it asks Java for each value once."""

    def __init__(self, relation: JavaObject, where: str, spark: SparkSession) -> None:
        self.where = where
        self._relation = relation
        self._spark = spark

    @cached_property
    def format(self) -> str:
        return str(self._relation.fileFormat().getClass().getSimpleName())

    @cached_property
    def paths(self) -> list[str]:
        """Returns the paths as Spark writes them."""
        return str(self._location.rootPaths().mkString("\0")).split("\0")

    @cached_property
    def ignores_missing(self) -> bool:
        options = self._relation.options()
        given = options.get("ignoreMissingFiles")
        text = given.get() if given.isDefined() else self._spark.conf.get(_IGNORED, "false")
        return str(text).lower() == "true"

    def on_disk(self) -> _OnDisk:
        asked = [path for path in self.paths if path.startswith(_SCHEME)]
        if not asked:
            return _OnDisk([], {}, {})
        sizes = {path: _size(path) for path in asked}
        if self._listed_together == (len(asked), sum(sizes.values())):
            return _OnDisk(asked, sizes, sizes)
        return _OnDisk(asked, self._listed, sizes)

    @cached_property
    def _location(self) -> JavaObject:
        return self._relation.location()

    @cached_property
    def _listed_together(self) -> tuple[int, int]:
        """Returns the number of the files that Spark has listed, and of their bytes."""
        return self._location.allFiles().size(), self._location.sizeInBytes()

    @cached_property
    def _listed(self) -> dict[str, int]:
        files = self._location.allFiles()
        return {files.apply(at).getPath().toString(): files.apply(at).getLen() for at in range(files.size())}


class _OnDisk(NamedTuple):
    """Files of a micro-batch on this machine's disks, as Spark writes their paths."""

    asked: list[str]
    listed: dict[str, int]  # The files that Spark has listed, with their sizes.
    sizes: dict[str, int]  # The present sizes.


def _missing_parts(files: _OnDisk, relation: _Relation) -> Iterator[tuple[OSError, str]]:
    for path in files.asked:
        if path not in files.listed and not relation.ignores_missing:
            yield OSError(errno.ENOENT, "it was deleted after the stream found it"), _local(path)
        elif path in files.listed and 0 <= files.sizes[path] < files.listed[path]:
            yield OSError(errno.EIO, SHORTENED_FILE), _local(path)


def _size(path: str) -> int:
    """Returns the present size of a file; -1 if it has disappeared since it was read, which Spark reports itself."""
    try:
        return os.path.getsize(_local(path))
    except OSError:
        return -1


def _shown(path: str) -> str:
    return _local(path) if path.startswith(_SCHEME) else path


def _local(path: str) -> str:
    return "/" + path.removeprefix(_SCHEME).lstrip("/")
