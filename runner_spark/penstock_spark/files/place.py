"""One folder on any file system that Spark reaches, with files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from penstock.base.identifiers import identifier
from penstock.error import three_parts
from penstock.io.filesystems import FileSystems


class Place(Protocol):
    """A folder, which need not be there yet.

    Attributes:
        location: Its URI.
    """

    location: str

    def names(self) -> list[str]:
        """What is directly in it, sorted; nothing if it is not there."""
        ...

    def make(self) -> None:
        """Makes it, and what leads to it, if need be."""
        ...

    def read(self, name: str) -> bytes:
        """The bytes of a small file."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Makes a small file that was not there: under a hidden name first, then renamed."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Gives a file a name that no other has."""
        ...

    def claim(self, name: str, content: bytes) -> bool:
        """Makes a small file; whether this caller made it, and nobody else had. It may be seen before it is whole."""
        ...

    def delete(self, name: str) -> None:
        """Deletes a file, or a folder with all that it has; nothing if it is not there."""
        ...

    def inside(self, name: str) -> Place:
        """A folder in it."""
        ...


class HadoopPlace:
    """A folder on one of Hadoop's file systems.

    Args:
        spark: A session, whose JVM does the work.
        location: A URI; without a scheme, a local path.

    Raises:
        ValueError: No such file system is known.
    """

    def __init__(self, spark: SparkSession, location: str | os.PathLike[str]) -> None:
        text = os.fspath(location)
        self.location = text if FileSystems.get_scheme(text) else f"file://{os.path.abspath(text)}"
        self._spark = spark
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        try:
            self._folder = self._path(self.location)
            system = self._folder.getFileSystem(spark._jsc.hadoopConfiguration())
        except Exception as error:
            what = f"Spark does not reach the folder {text}: {_cause(error)}"
            hint = "write a local path, or a URI whose file system Spark is set up for"
            raise ValueError(three_parts(what, hint=hint)) from error
        # On a local disk, Hadoop keeps a file of checksums beside each file; files with names of ours have none.
        self._is_local = system.getScheme() == "file"
        self._system = system.getRawFileSystem() if self._is_local else system

    def names(self) -> list[str]:
        """What is directly in it, sorted; nothing if it is not there.

        Raises:
            ValueError: It is a file.
        """
        if not self._system.exists(self._folder):
            return []
        if self._system.getFileStatus(self._folder).isFile():
            what = f"{self.location} is a file"
            raise ValueError(three_parts(what, hint="name a folder, or one that is not there yet"))
        return sorted(str(each.getPath().getName()) for each in self._system.listStatus(self._folder))

    def make(self) -> None:
        """Makes it, and what leads to it, if need be."""
        self._system.mkdirs(self._folder)

    def read(self, name: str) -> bytes:
        """The bytes of a small file."""
        stream = self._system.open(self._child(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Makes a small file that was not there: under a hidden name first, then renamed."""
        hidden = f".{name}.{identifier()}"
        stream = self._system.create(self._child(hidden), False)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        self.rename(hidden, name)

    def rename(self, old: str, new: str) -> None:
        """Gives a file a name that no other has.

        Raises:
            OSError: The file system will not.
        """
        if not self._system.rename(self._child(old), self._child(new)):
            raise OSError(f"{self.location}/{old} cannot be renamed to {new}")

    def claim(self, name: str, content: bytes) -> bool:
        """Makes a small file; whether this caller made it, and nobody else had. It may be seen before it is whole."""
        if self._is_local:
            # Hadoop's local file system looks first and writes then: two callers could both make it.
            return _claimed(Path(str(self._child(name).toUri().getPath())), content)
        try:
            stream = self._system.create(self._child(name), False)
        except Exception as error:
            if "FileAlreadyExistsException" in str(error):
                return False
            raise
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        return True

    def delete(self, name: str) -> None:
        """Deletes a file, or a folder with all that it has; nothing if it is not there."""
        self._system.delete(self._child(name), True)

    def inside(self, name: str) -> HadoopPlace:
        """A folder in it."""
        return HadoopPlace(self._spark, f"{self.location.rstrip('/')}/{name}")

    def _child(self, name: str) -> Any:
        return self._path(self._folder, name)


def _claimed(path: Path, content: bytes) -> bool:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def _cause(error: Exception) -> str:
    """What Java says, in one line."""
    thrown = getattr(error, "java_exception", None)
    return str(error if thrown is None else thrown.getMessage()).partition("\n")[0]
