"""The operations on files by which a run keeps data, on local disks and on what Spark reaches through Hadoop."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import SparkSession

from penstock.io.filesystems import FileSystems
from penstock.utils import clock
from penstock_spark.files.stores import StoreFiles, is_beyond_spark


class LocalFiles:
    """The disks of this machine; paths are absolute."""

    def names(self, folder: str, *beginnings: str) -> list[str]:
        """The sorted names in a folder that begin with one of the texts, if any are given; none if it does
        not exist.
        """
        try:
            return sorted(filter(lambda name: name.startswith(beginnings or ""), os.listdir(folder or ".")))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        """The sorted names of files by their folders, as paths below the given one.

        The names in such a path, and of the file, begin with the texts, in order.

        >>> LocalFiles().names_below("/no such folder", ["day=", "visits-"])
        {}
        """
        *levels, last = beginnings
        folders = [""]
        for beginning in levels:
            folders = [
                os.path.join(outer, name)
                for outer in folders
                for name in self.names(os.path.join(folder, outer), beginning)
            ]
        # A path that is not a folder has no names.
        found = {below: self.names(os.path.join(folder, below), last) for below in folders}
        return {below: names for below, names in found.items() if names}

    def make(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)

    def make_inside(self, folder: str, inside: str) -> None:
        """Makes folders below one that exists: a task that outlives its run does not make the run's folder again."""
        for name in inside.split("/"):
            folder = os.path.join(folder, name)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def idle_seconds(self, folder: str) -> float:
        """For how long nothing in a folder has changed, as far as the file system tells."""
        try:
            changes = [each.stat().st_mtime for each in os.scandir(folder)]
            return clock.seconds() - max([os.stat(folder).st_mtime, *changes])
        except OSError:
            return 0.0  # It goes away as we look.

    def size(self, path: str) -> int:
        return os.path.getsize(path)

    def read(self, path: str) -> bytes | None:
        """The bytes of a small file; None if it does not exist."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """Makes a small file, and the folders around it; it may be seen before it is whole."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def replace(self, source: str, target: str) -> None:
        """Renames a file, and replaces the target if it exists."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def delete(self, path: str) -> None:
        """Deletes as much of a folder as permissions allow."""
        shutil.rmtree(path, ignore_errors=True)


class HadoopFiles:
    """One of Hadoop's file systems: the driver reaches it through the JVM, so every scheme of Spark's works."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        # Each name after a point is a question to Java.
        self._package: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
        self._path = self._package.Path
        self._checked = self._path(location).getFileSystem(spark._jsc.hadoopConfiguration())
        self.is_local = self._checked.getScheme() == "file"
        # On a local disk, Hadoop keeps a file of checksums beside each file; files with names of ours have none.
        self._system = self._checked.getRawFileSystem() if self.is_local else self._checked

    def exists(self, path: str) -> bool:
        local = self._local(path)
        return bool(self._system.exists(self._path(path))) if local is None else os.path.exists(local)

    def is_folder(self, path: str) -> bool:
        local = self._local(path)
        if local is not None:
            return os.path.isdir(local)
        return self.exists(path) and bool(self._system.getFileStatus(self._path(path)).isDirectory())

    def names(self, folder: str, *beginnings: str) -> list[str]:
        if not beginnings:
            return self.names_in(folder) or []
        # Hadoop looks through the folder itself: telling each file to Python would take a thousand times longer.
        patterns = [f"{escaped(folder.rstrip('/'))}/{escaped(beginning)}*" for beginning in beginnings]
        found = [str(each.getPath().getName()) for pattern in patterns for each in self._glob(pattern)]
        return sorted(found)

    def names_in(self, folder: str) -> list[str] | None:
        """The sorted names in a folder, none if it does not exist; None if it is a file.

        A run asks before each commit, and each call of Java's takes its time, so this makes few of them, and none for a
        local disk.
        """
        local = self._local(folder)
        if local is not None:
            try:
                return sorted(os.listdir(local))
            except FileNotFoundError:
                return []
            except NotADirectoryError:
                return None if os.path.exists(local) else []
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        names = sorted(str(each.getPath().getName()) for each in self._system.listStatus(path))
        # A file lists itself.
        is_file = names == [folder.rstrip("/").rpartition("/")[2]] and not self.is_folder(folder)
        return None if is_file else names

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        levels = "/".join(f"{escaped(beginning)}*" for beginning in beginnings)
        found: dict[str, list[str]] = {}
        for path in sorted(self.matching(f"{escaped(folder.rstrip('/'))}/{levels}")):
            *below, name = path.split("/")[-len(beginnings) :]
            found.setdefault("/".join(below), []).append(name)
        return found

    def files(self, folder: str) -> list[tuple[str, int]]:
        statuses = self._system.listStatus(self._path(folder))
        return sorted(
            (str(each.getPath().getName()), int(each.getLen())) for each in statuses if each.isFile()
        )

    def matching(self, pattern: str) -> list[str]:
        """The paths of the files that match a whole path as one of Hadoop's glob patterns."""
        return [str(each.getPath().toString()) for each in self._glob(pattern) if each.isFile()]

    def all_below(self, folder: str) -> Iterator[str]:
        listing = self._system.listFiles(self._path(folder), True)
        while listing.hasNext():
            yield str(listing.next().getPath().toString())

    def below(self, folder: str, inside: str = "") -> list[tuple[str, str]]:
        """The files below a folder that are not hidden, each as its folder, relative to the given one, and
        its name.
        """
        found: list[tuple[str, str]] = []
        for status in self._system.listStatus(self._path(folder)):
            name = str(status.getPath().getName())
            if is_hidden(name):
                continue
            if status.isFile():
                found.append((inside, name))
            else:
                found += self.below(f"{folder}/{name}", f"{inside}/{name}".lstrip("/"))
        return sorted(found)

    def changed_millis(self, folder: str) -> dict[str, int]:
        statuses = self._system.listStatus(self._path(folder))
        return {str(each.getPath().getName()): int(each.getModificationTime()) for each in statuses}

    def idle_seconds(self, folder: str) -> float:
        """The time since a file was last added to the folder, or removed."""
        status = self._system.getFileStatus(self._path(folder))
        return clock.seconds() - float(status.getModificationTime()) / 1000

    def read(self, path: str) -> bytes | None:
        local = self._local(path)
        if local is not None:
            try:
                with open(local, "rb") as file:
                    return file.read()
            except (FileNotFoundError, NotADirectoryError):
                return None
        if not self.exists(path):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def open(self, path: str) -> tuple[Any, int]:
        """Java's stream of a file's bytes, and their number."""
        where = self._path(path)
        # The stream comes last, since nobody would close it if the size could not be read.
        size = int(self._system.getFileStatus(where).getLen())
        return self._system.open(where), size

    def write(self, path: str, content: bytes, replaces: bool = True) -> None:
        stream = self._system.create(self._path(path), replaces)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def claim(self, path: str, content: bytes) -> bool:
        """Makes a small file; returns False if somebody else has made it. Others may see it before it is whole."""
        try:
            if self.is_local:
                # Hadoop's local file system looks first and writes then: two callers could both make it.
                with open(str(self._path(path).toUri().getPath()), "xb") as file:
                    file.write(content)
            else:
                self.write(path, content, replaces=False)
        except FileExistsError:
            return False
        except Exception as error:
            if "FileAlreadyExistsException" in str(error):
                return False
            raise
        return True

    def make(self, folder: str) -> None:
        self._system.mkdirs(self._path(folder))

    def rename(self, source: str, target: str) -> None:
        """Renames a file or a folder to a name that does not exist yet; OSError if the file system refuses."""
        if not self._system.rename(self._path(source), self._path(target)):
            raise OSError(f"{source} cannot be renamed to {target}")

    def copy(self, source: str, target: str) -> None:
        """Copies a file, or a folder with its content, to a name that does not exist yet."""
        copied = self._package.FileUtil.copy(
            self._system, self._path(source), self._system, self._path(target), False, self._system.getConf()
        )
        if not copied:
            raise OSError(f"{source} cannot be copied to {target}")

    def replace(self, source: str, target: str) -> None:
        self.remove(target)
        self.rename(source, target)

    def remove(self, path: str) -> None:
        """Deletes a file with its checksums, if it exists."""
        self._checked.delete(self._path(path), False)

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder with its content, if it exists."""
        self._checked.delete(self._path(path), True)

    def _local(self, path: str) -> str | None:
        """The path of a file on this machine's disks as Python has it; None if only Hadoop knows where it is."""
        return plain_path(path) if self.is_local else None

    def _glob(self, pattern: str) -> Any:
        return self._system.globStatus(self._path(pattern)) or ()


FileSystem = LocalFiles | HadoopFiles | StoreFiles


def file_system_of(spark: SparkSession, path: str) -> FileSystem:
    if is_beyond_spark(spark, path):
        return StoreFiles()
    return LocalFiles() if FileSystems.get_scheme(path) is None else HadoopFiles(spark, path)


def folder_of(path: str) -> str:
    """The folder around a file.

    >>> folder_of("s3://bucket/a"), folder_of("/a"), folder_of("a")
    ('s3://bucket', '/', '')
    """
    return path.rpartition("/")[0] if FileSystems.get_scheme(path) else os.path.dirname(path)


def plain_path(path: str) -> str | None:
    """The path of a local file without its scheme, where it is certain what Hadoop makes of it.

    >>> plain_path("file:///a%20/b"), plain_path("file:/a"), plain_path("/a/b"), plain_path("a"), plain_path("file://a/b")
    ('/a%20/b', '/a', '/a/b', None, None)
    """
    plain = path.removeprefix("file://") if path.startswith("file:///") else path.removeprefix("file:")
    # Java writes other letters as its locale says.
    return plain if plain.startswith("/") and not plain.startswith("//") and plain.isascii() else None


def is_hidden(name: str) -> bool:
    """Whether Spark's readers skip a file or a folder with this name.

    >>> [is_hidden(name) for name in (".a", "_a", "_a=1", "a")]
    [True, True, False, False]
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def escaped(text: str) -> str:
    r"""A text as a glob pattern of Hadoop's that matches nothing else.

    >>> escaped("logs{1}*")
    'logs\\{1\\}\\*'
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", text)
