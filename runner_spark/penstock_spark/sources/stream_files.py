"""The files that a stream reads: Beam's pattern, as one that Spark's file stream watches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from penstock.error import refusal
from penstock.io.streaming.stream_sources import StreamSource
from penstock_spark.files.disk_files import DiskFiles
from penstock_spark.files.file_store import absolute_uri, is_on_disk, reach_of
from penstock_spark.files.finding import Files, Namer, change_seconds_of, find_files, namer_of, pattern_of
from penstock_spark.files.temporary import is_unfinished
from penstock_spark.session.backends import session_of_reader
from penstock_spark.sources.reader_options import check_file_options, file_options
from penstock_spark.sources.spark_refusals import translate_spark_errors

FILE, START, CHANGED = "__penstock_file", "__penstock_start", "__penstock_changed"
PLACE = (FILE, START, CHANGED)
"""The last columns of a stream of files: the file as Spark writes it, the offset at which a task has begun to read in
it, and the time of its last change, in microseconds; the last one only for files that arrive while the stream runs."""

Reader: TypeAlias = DataFrameReader | DataStreamReader

SURVEYED_FILES = 100
"""The number of existing files whose columns a stream looks at when it is opened: half of them are the first ones,
and half the last ones, which have the columns that a restarted stream has to know."""

_PARTS = re.compile(r"\*\*|[*?]|\[!?\]?[^\]]*\]|.", re.DOTALL)
_PLAIN_SET = re.compile(r"\[!?[\w. -]+\]", re.ASCII)
_WILDCARD = re.compile(r"[*?\[]")
_ROOT = "^[^/]*:(//[^/]*)?"
"""The pattern of what precedes the path of a file: a scheme, and a host or a bucket."""


def place_columns(stream: StreamSource) -> list[Column]:
    """Returns the columns `PLACE`.

    Files are read in the order in which they have changed. A recorded log may have been copied, so the
    elements of a log are in the order of the files' names.
    """
    columns = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start").alias(START)]
    if stream.arrival_time is None and not stream.is_bounded:
        columns.append(F.unix_micros("_metadata.file_modification_time").alias(CHANGED))
    return columns


@dataclass(frozen=True)
class Naming:
    """The parts of file names that count.

    >>> naming = Naming(Namer(None, None), (2,))
    >>> [naming.name(name) for name in ("s3://bucket/logs/may.txt", "s3://bucket/logs/old/may.txt")]
    ['s3://bucket/logs/may.txt', None]
    >>> Naming(pattern="/logs/*/*").name("file:/logs/_temporary/may.txt") is None
    True
    """

    # Turns Spark's names of the files into the user's form.
    namer: Namer = field(default_factory=lambda: Namer(None, None))
    # The possible numbers of slashes in a matching file's path; None for any.
    depths: tuple[int, ...] | None = None
    pattern: str = ""

    def name(self, spark_name: str) -> str | None:
        """Returns the user's name of a file; None if only a folder on its path matches, or if the file still lacks its
        final name.
        """
        depth = re.sub(_ROOT, "", spark_name).count("/")
        if self.depths is not None and depth not in self.depths:
            return None
        name = self.namer(spark_name)
        return None if is_unfinished(name, self.pattern) else name


@dataclass(frozen=True)
class StreamFiles:
    """The files that match a pattern, now and later."""

    # As the user wrote it. Without wildcards, it names a file, or a folder whose files are meant.
    pattern: str
    glob: str  # The same for Hadoop's file systems.
    # The numbers of slashes in such a path. Spark also reads the content of a matching folder.
    depths: tuple[int, ...]
    options: tuple[tuple[str, Any], ...]  # Options for Spark's file stream.
    where: str

    def reader(self, spark: SparkSession) -> Reader:
        """Returns the reader of Spark that opens the files."""
        return spark.readStream

    def load(self, reader: Reader, format: str) -> DataFrame:
        """Reads the files with a Spark reader, with files in deeper folders; `Naming` separates them."""
        reader = reader.options(**file_options(self.options))
        with translate_spark_errors(f"{format} {self.pattern}", self.where):
            return reader.format(format).load(self.glob)

    def seen_by_spark(self, spark: SparkSession) -> list[str]:
        """Returns the files that Spark would read now, as Spark writes their names."""
        with translate_spark_errors(f"files {self.pattern}", self.where):
            return (
                spark.read.options(**file_options(self.options))
                .format("binaryFile")
                .load(self.glob)
                .inputFiles()
            )

    def naming(self) -> Naming:
        return Naming(namer_of(self.pattern), self.depths, self.pattern)

    def present(self, spark: SparkSession) -> Files:
        with translate_spark_errors(f"files {self.pattern}", self.where):
            found: tuple[str, ...] = ()
            if not _WILDCARD.search(self.pattern):
                found = find_files(spark, self.pattern + "/*", self.where, validate=False).paths
            if not found and not DiskFiles().is_folder(self.pattern):
                found = find_files(spark, self.pattern, self.where, validate=False).paths
        return Files(
            self.pattern, choose_files_to_survey(found), reach_of(self.pattern, spark), where=self.where
        )


@dataclass(frozen=True)
class PresentFiles(StreamFiles):
    """The files that match a pattern now, for a source that is read once with the code of a stream."""

    validate: bool = True

    def reader(self, spark: SparkSession) -> Reader:
        return spark.read

    def load(self, reader: Reader, format: str) -> DataFrame:
        of_files = cast(DataFrameReader, reader)
        return self.present(session_of_reader(of_files)).load(of_files, format)

    def naming(self) -> Naming:
        return Naming(namer_of(self.pattern))

    def present(self, spark: SparkSession) -> Files:
        return find_files(spark, self.pattern, self.where, validate=self.validate)


def choose_files_to_survey(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the files that are looked at, if not each can be."""
    if len(paths) <= SURVEYED_FILES:
        return paths
    half = SURVEYED_FILES // 2
    by_age = sorted(paths, key=change_seconds_of) if is_on_disk(paths[0]) else paths
    return tuple(sorted({*paths[:half], *by_age[-half:]}))


def stream_files(stream: StreamSource, path: object, where: str) -> StreamFiles:
    """Returns the files of a source; a pattern without a scheme is local, as in Beam."""
    if stream.is_bounded:
        pattern = pattern_of(path, where)
        validate = getattr(stream.source, "validate", True)
        return PresentFiles(pattern, pattern, (), (), where, validate=validate)
    check_file_options(stream.options, where)
    pattern = re.sub("(?<![:/])/+$", "", pattern_of(path, where))
    if re.sub(_ROOT, "", pattern) in ("", "/"):
        pattern = pattern.removesuffix("/") + "/*"
    absolute = absolute_uri(pattern)
    depth = re.sub("/+", "/", re.sub(_ROOT, "", absolute)).count("/")
    if _WILDCARD.search(pattern):
        return StreamFiles(pattern, _for_hadoop(absolute, where), (depth,), stream.options, where)
    _check_visible(pattern, where)
    folder, _, name = _for_hadoop(absolute, where).rpartition("/")
    # Spark watches a name that is not there yet, or that is a file's, only if it is a pattern.
    glob = f"{folder}/{{{name.replace(',', chr(92) + ',')}}}"
    return StreamFiles(pattern, glob, (depth, depth + 1), stream.options, where)


def _for_hadoop(pattern: str, where: str) -> str:
    r"""Converts the pattern to the language of Hadoop's file systems.

    >>> _for_hadoop("/logs/[!a-c]*/{1}.txt", "at step 'Read'")
    '/logs/[!a-c]*/\\{1\\}.txt'
    >>> _for_hadoop("/logs/**.txt", "at step 'Read'")
    Traceback (most recent call last):
        ...
    ValueError: a stream of files cannot watch the pattern /logs/**.txt because of its **
      at step 'Read'
      hint: write a * for each level of folders, with a stream for each depth
    """
    parts = _PARTS.findall(pattern)
    for part in parts:
        if part == "**" or (len(part) > 1 and not _PLAIN_SET.fullmatch(part)):
            hint = "write a * for each level of folders, with a stream for each depth"
            if part != "**":
                hint = "use only letters, digits, dots, spaces, _ and - within [], or a ? instead"
            what = f"a stream of files cannot watch the pattern {pattern} because of its {part}"
            raise refusal(ValueError, what, where=where, hint=hint)
    return "".join(re.sub(r"^([\\{}\[\]])$", r"\\\1", part) for part in parts)


def _check_visible(pattern: str, where: str) -> None:
    name = pattern.rpartition("/")[2]
    if name.startswith((".", "_")) and not DiskFiles().is_folder(pattern):
        what = f"Spark's readers leave out files whose name begins with _ or . such as {pattern}"
        raise refusal(ValueError, what, where=where, hint="rename the file, or give a folder as folder/*")


def make_schema_error(parts: str, files: StreamFiles, hint: str) -> ValueError:
    what = f"the {parts} of {files.pattern} are unknown: no file there has any yet"
    return refusal(ValueError, what, where=files.where, hint=hint)
