"""One folder on any file system that Spark reaches, with files that appear whole or not at all."""

from __future__ import annotations

import errno
import os

from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner, refusal
from penstock.utils.identifiers import identifier
from penstock_spark.files.file_store import (
    Reach,
    SparkFiles,
    absolute_uri,
    escape_glob,
    files_of_spark,
    java_text,
    reach_of,
)
from penstock_spark.session.backends import backend_of


class Place:
    """A folder, which may not exist yet, on one of Hadoop's file systems, or on a local disk without a scheme.

    `location` is its URI, and `files` its file system, if that is known.
    """

    def __init__(
        self, spark: SparkSession, location: str | os.PathLike[str], files: SparkFiles | None = None
    ) -> None:
        text = os.fspath(location)
        self.location = absolute_uri(text)
        self._spark = spark
        if files is not None:
            self._files = files
            return
        if backend_of(spark).hadoop() is not None and reach_of(text, spark) is Reach.STORE:
            scheme = text.partition("://")[0]
            what = f"Spark cannot access the folder {text}: it has no file system for {scheme}"
            hint = f"use a path on a disk, or add Hadoop's package for {scheme}: --spark_conf=spark.jars.packages=..."
            raise refusal(ValueError, what, hint=hint)
        try:
            self._files = files_of_spark(spark, self.location)
        except UnsupportedByRunner:
            raise
        except Exception as error:
            what = f"Spark cannot access the folder {text}: {java_text(error)}"
            hint = "write a local path, or a URI whose file system Spark is set up for"
            raise refusal(ValueError, what, hint=hint) from error

    def names(self) -> list[str]:
        """Returns the sorted names in the folder; an empty list if it does not exist."""
        names = self._files.names_in(self.location)
        if names is None:
            what = f"{self.location} is a file"
            raise refusal(ValueError, what, hint="name a folder, or a path that does not exist yet")
        return names

    def paths(self, pattern: str) -> list[str]:
        """Returns the files below the folder that match a glob pattern of Hadoop, as paths relative to the folder."""
        found = self._files.matching(f"{escape_glob(self.location.rstrip('/'))}/{pattern}")
        levels = pattern.count("/") + 1
        return ["/".join(path.split("/")[-levels:]) for path in found]

    def make(self) -> None:
        self._files.make(self.location)

    def read(self, name: str) -> bytes:
        """Returns the bytes of a small file; FileNotFoundError if it does not exist."""
        content = self._files.read(self._child(name))
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._child(name))
        return content

    def write(self, name: str, content: bytes) -> None:
        """Writes a new small file under a hidden name, and then renames it."""
        hidden = f".{name}.{identifier()}"
        self._files.write(self._child(hidden), content, replaces=False)
        self.rename(hidden, name)

    def replace(self, name: str, content: bytes) -> None:
        """Writes a small file that may exist; for an instant, a reader may find no file, but never a part of one."""
        hidden = f".{name}.{identifier()}"
        self._files.write(self._child(hidden), content, replaces=False)
        self._files.replace(self._child(hidden), self._child(name))

    def rename(self, old: str, new: str) -> None:
        self._files.rename(self._child(old), self._child(new))

    def claim(self, name: str, content: bytes) -> bool:
        return self._files.claim(self._child(name), content)

    def delete(self, name: str) -> None:
        self._files.delete(self._child(name))

    def size(self) -> tuple[int, int]:
        """Returns the bytes of all files below the folder, and their number."""
        return self._files.size_below(self.location)

    def inside(self, name: str) -> Place:
        return Place(self._spark, self._child(name), self._files)

    def _child(self, name: str) -> str:
        return f"{self.location.rstrip('/')}/{name}"
