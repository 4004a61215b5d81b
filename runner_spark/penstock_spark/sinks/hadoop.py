"""Files on any file system that Spark reaches: Spark writes them beside their place, the driver gives them
names.

The driver's part goes through Hadoop's file systems in the JVM, so it works for every scheme that Spark's
does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock_spark.sinks.shard_files import Naming

# A file of Spark's that is larger than this has elements in it, whatever its compression.
_SMALL_BYTES = 128


class HadoopFolder:
    """A folder on one of Hadoop's file systems.

    Args:
        spark: The session, whose JVM does the work.
        folder: The folder's URI; it is made if need be.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._folder = self._path(folder)
        self._checked = self._folder.getFileSystem(spark._jsc.hadoopConfiguration())
        # On a local disk, Hadoop keeps a file of checksums beside each file; files with names of ours have
        # none.
        local = self._checked.getScheme() == "file"
        self._system = self._checked.getRawFileSystem() if local else self._checked
        self._system.mkdirs(self._folder)

    def child(self, name: str) -> str:
        """The URI of something in the folder."""
        return str(self._path(self._folder, name).toString())

    def files(self, folder: str | None = None) -> list[tuple[str, int]]:
        """The names and sizes, in bytes, of the files in it, or in another folder, sorted."""
        statuses = self._system.listStatus(self._path(folder) if folder else self._folder)
        return sorted((each.getPath().getName(), int(each.getLen())) for each in statuses if each.isFile())

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

    def rename(self, source: str, target: str) -> None:
        """Gives a file another name; OSError if the file system will not."""
        if not self._system.rename(self._path(source), self._path(target)):
            raise OSError(f"{source} cannot be renamed to {target}")


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
    temporary = place.child(f"penstock-temp-{uuid.uuid4().hex}")
    try:
        write(frame, temporary)
        written = []
        for name, size in place.files(temporary):
            path = f"{temporary}/{name}"
            is_data = not name.startswith(("_", "."))
            if is_data and (size > _SMALL_BYTES * 64 or has_elements(place.read(path))):
                written.append(path)
        wanted = max(shards, 1) if written else empty_shards
        for number in range(wanted - len(written)):
            written.append(f"{temporary}/empty-{number}")
            place.write(written[-1], empty_file)
        names = naming.names(len(written))
        if naming.old is not None:
            pattern = naming.old(len(written))
            for name in [name for name, _ in place.files() if pattern.match(name)]:
                place.delete(place.child(name))
        for source, name in zip(written, names, strict=True):
            place.delete(name)
            place.rename(source, name)
        return naming.result(names)
    finally:
        place.delete(temporary)
