"""Files on any file system that Spark reaches: Spark writes them beside their place, the driver gives them
names.

The driver's part goes through Hadoop's file systems in the JVM, so it works for every scheme that Spark's
does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.base import clock
from penstock_spark.files.naming import Naming, report_stale
from penstock_spark.files.temporary import MARK, is_abandoned, report_removed
from penstock_spark.process.identity import this_process

# A file of Spark's that is larger than this has elements in it, whatever its compression.
_SMALL_BYTES = 128


class HadoopFolder:
    """A folder on one of Hadoop's file systems.

    Args:
        spark: The session, whose JVM does the work.
        folder: The folder's URI.
        make: Whether to make it if need be.
    """

    def __init__(self, spark: SparkSession, folder: str, *, make: bool = True) -> None:
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._folder = self._path(folder)
        self._checked = self._folder.getFileSystem(spark._jsc.hadoopConfiguration())
        # On a local disk, Hadoop keeps a file of checksums beside each file; files with names of ours have
        # none.
        local = self._checked.getScheme() == "file"
        self._system = self._checked.getRawFileSystem() if local else self._checked
        if make:
            self._system.mkdirs(self._folder)

    def exists(self, name: str | None = None) -> bool:
        """Whether the folder is there, or something in it."""
        path = self._folder if name is None else self._path(self._folder, name)
        return bool(self._system.exists(path))

    def child(self, name: str) -> str:
        """The URI of something in the folder."""
        return str(self._path(self._folder, name).toString())

    def files(self, folder: str | None = None) -> list[tuple[str, int]]:
        """The names and sizes, in bytes, of the files in it, or in another folder, sorted."""
        statuses = self._system.listStatus(self._path(folder) if folder else self._folder)
        return sorted((each.getPath().getName(), int(each.getLen())) for each in statuses if each.isFile())

    def matching(self, *names: str) -> list[str]:
        """The paths of the files at the end of a path of Hadoop's glob patterns, which begins in the folder."""
        return sorted(str(each.getPath().toString()) for each in self._glob(*names) if each.isFile())

    def _glob(self, *names: str) -> Any:
        # Hadoop looks through the folders itself: telling each file to Python would take a thousand times longer.
        place = escaped(str(self._folder.toString()).rstrip("/"))
        return self._system.globStatus(self._path("/".join([place, *names]))) or ()

    def remove_abandoned(self) -> None:
        """Removes the temporary folders that dead runs have left in the folder."""
        for status in self._glob("{_penstock,penstock}-temp-*"):
            path = str(status.getPath().toString())
            has_mark = status.isDirectory() and self._system.exists(self._path(path, MARK))
            mark = self.read(f"{path}/{MARK}") if has_mark else None
            idle_seconds = clock.seconds() - status.getModificationTime() / 1000
            if status.isDirectory() and is_abandoned(status.getPath().getName(), mark, idle_seconds):
                self.delete(path)
                report_removed(path)

    def names_beginning(self, beginning: str) -> list[str]:
        """The names of the files in it that begin so."""
        return [path.rpartition("/")[2] for path in self.matching(f"{escaped(beginning)}*")]

    def tree(self, path: str, inside: str = "") -> list[tuple[str, str]]:
        """The files below a folder that are not hidden, each as the folder from there and the name."""
        found: list[tuple[str, str]] = []
        for status in self._system.listStatus(self._path(path)):
            name = str(status.getPath().getName())
            if name.startswith(".") or (name.startswith("_") and "=" not in name):
                continue
            if status.isFile():
                found.append((inside, name))
            else:
                found += self.tree(f"{path}/{name}", f"{inside}/{name}".lstrip("/"))
        return sorted(found)

    def read(self, path: str) -> bytes:
        """The bytes of a small file."""
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, content: bytes) -> None:
        """Makes a small file."""
        stream = self._system.create(self._path(path), True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def delete(self, path: str) -> None:
        """Deletes a file or folder, with its checksums; nothing if it is not there."""
        self._checked.delete(self._path(path), True)

    def make(self, path: str) -> None:
        """Makes a folder, and those around it."""
        self._system.mkdirs(self._path(path))

    def rename(self, source: str, target: str) -> None:
        """Gives a file another name; OSError if the file system will not."""
        if not self._system.rename(self._path(source), self._path(target)):
            raise OSError(f"{source} cannot be renamed to {target}")


def escaped(text: str) -> str:
    r"""A text as a glob pattern of Hadoop's that matches it and nothing else.

    >>> escaped("logs{1}*")
    'logs\\{1\\}\\*'
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", text)


def write_files(
    frame: DataFrame,
    folder: str,
    write: Callable[[DataFrame, str], None],
    naming: Naming,
    *,
    shards: int,
    empty_shards: int,
    has_elements: Callable[[bytes], bool],
    empty_file: bytes,
) -> list[Any]:
    """Runs the job that writes, and gives the files their names.

    Args:
        frame: The encoders' rows.
        folder: Where the files go.
        write: Has Spark write the frame to a folder that is not there yet.
        naming: The final names.
        shards: How many files are asked for; 0 means one for each task that has elements.
        empty_shards: How many files an empty collection gives.
        has_elements: Whether a small file, given its bytes, has any elements in it: Spark writes an empty
            file where the first task has none.
        empty_file: The content of a file without elements.
    """
    place = HadoopFolder(frame.sparkSession, folder)
    if not naming.temporary:
        place.remove_abandoned()
    temporary = place.child(naming.temporary_folder)
    # Spark makes the folder that it writes to.
    unnamed = f"{temporary}/files"
    try:
        place.delete(temporary)
        place.write(f"{temporary}/{MARK}", this_process().to_json())
        write(frame, unnamed)
        written = []
        for name, size in place.files(unnamed):
            path = f"{unnamed}/{name}"
            is_data = not name.startswith(("_", "."))
            if is_data and (size > _SMALL_BYTES * 64 or has_elements(place.read(path))):
                written.append(path)
        wanted = max(shards, 1) if written else empty_shards
        for number in range(wanted - len(written)):
            written.append(f"{unnamed}/empty-{number}")
            place.write(written[-1], empty_file)
        names = naming.names(len(written))
        # As on a local disk: looked at before, and deleted after.
        stale = naming.stale(len(names), place.names_beginning(naming.beginning)) if naming.replaces else []
        for source, name in zip(written, names, strict=True):
            place.delete(name)
            place.rename(source, name)
        for name in stale:
            place.delete(place.child(name))
        report_stale(folder, stale)
        return naming.result(names)
    finally:
        place.delete(temporary)
