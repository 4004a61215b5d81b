"""A file store opens, lists, renames and deletes the files of a disk, a file system of Hadoop, or an object store.

`reach_of` alone decides whether a path is on a disk, on a file system of Hadoop, or on an object store that Spark
does not reach; `file_store` returns the store of a path. Tasks reach disks and object stores, the driver all three.
"""

from __future__ import annotations

import contextlib
import enum
import io
import logging
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from pyarrow import fs
from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner
from penstock.io.files.object_stores import ObjectStore, store_of, translate_errors, upload
from penstock.io.filesystem import BeamIOError, CompressionTypes
from penstock.io.filesystems import FileSystems
from penstock.utils import clock
from penstock_spark.files.disk_files import DiskFiles, without_scheme
from penstock_spark.files.store import FileStore, is_hidden
from penstock_spark.session.backends import backend_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_BLOCK_BYTES = 1 << 16
"""The size of one read of a file through Java: each read is a call, which takes a millisecond."""

_COPY_BYTES = 4 << 20
_File = TypeVar("_File")
_LOGGER = logging.getLogger(__name__)


class Reach(enum.Enum):
    """The processes that reach a path."""

    DISK = "disk"
    """All processes: the path has no scheme, and is on a disk that all machines share."""

    HADOOP = "Hadoop"
    """Spark, and the driver through Spark's Java, but not tasks in Python."""

    STORE = "object store"
    """All Python processes, by fsspec, but not Spark.

    PySpark from a wheel has no file system for S3, Google Cloud Storage or Azure.
    """


def is_on_disk(path: str) -> bool:
    """True if a path has no scheme.

    >>> is_on_disk("/logs/may.txt"), is_on_disk("file:///logs/may.txt"), is_on_disk("s3://logs/may.txt")
    (True, False, False)
    """
    return FileSystems.get_scheme(path) is None


def reach_of(path: str, spark: SparkSession | None = None) -> Reach:
    """Returns which processes reach a path; without a session, it assumes that Spark reaches no object store.

    >>> [reach_of(path).name for path in ("/logs", "hdfs://host/logs", "s3://bucket/logs")]
    ['DISK', 'HADOOP', 'STORE']
    """
    if is_on_disk(path):
        return Reach.DISK
    if store_of(path) is None:
        return Reach.HADOOP
    if spark is None:
        return Reach.STORE
    return Reach.HADOOP if backend_of(spark).reaches(path.partition("://")[0]) else Reach.STORE


def file_store(path: str, spark: SparkSession | None = None) -> FileStore:
    """Returns the store of a path; without a session, as in a task, no store that only Java reaches."""
    match reach_of(path, spark):
        case Reach.DISK:
            return DiskFiles()
        case Reach.STORE:
            return StoreFiles()
    assert spark is not None, path
    return files_of_spark(spark, path)


class HadoopFiles(FileStore):
    """A file system of Hadoop: the driver reaches it through the JVM, so all schemes that Spark knows work."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        hadoop = backend_of(spark).hadoop()
        assert hadoop is not None, location
        self._package = hadoop.package
        self._path = self._package.Path
        self._checked = self._path(location).getFileSystem(hadoop.configuration)
        self.is_local = self._checked.getScheme() == "file"
        # On a local disk, Hadoop keeps a file of checksums beside each file; penstock's own files have none.
        self._system = self._checked.getRawFileSystem() if self.is_local else self._checked

    def exists(self, path: str) -> bool:
        return bool(self._system.exists(self._path(path)))

    def is_folder(self, path: str) -> bool:
        return self.exists(path) and bool(self._system.getFileStatus(self._path(path)).isDirectory())

    def names(self, folder: str, *beginnings: str) -> list[str]:
        if not beginnings:
            return self.names_in(folder) or []
        # Hadoop looks through the folder itself: passing each name to Python would take a thousand times longer.
        patterns = [
            f"{escape_glob(folder.rstrip('/'))}/{escape_glob(beginning)}*" for beginning in beginnings
        ]
        found = [str(each.getPath().getName()) for pattern in patterns for each in self._glob(pattern)]
        return sorted(found)

    def names_in(self, folder: str) -> list[str] | None:
        """Returns the sorted names in a folder, an empty list if it does not exist; None if it is a file.

        A run asks before each commit, and each call to Java takes about a millisecond, so this makes few calls.
        """
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        names = sorted(str(each.getPath().getName()) for each in self._system.listStatus(path))
        # A file lists itself.
        is_file = names == [folder.rstrip("/").rpartition("/")[2]] and not self.is_folder(folder)
        return None if is_file else names

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        levels = "/".join(f"{escape_glob(beginning)}*" for beginning in beginnings)
        found: dict[str, list[str]] = {}
        for path in sorted(self.matching(f"{escape_glob(folder.rstrip('/'))}/{levels}")):
            *below, name = path.split("/")[-len(beginnings) :]
            found.setdefault("/".join(below), []).append(name)
        return found

    def matching(self, pattern: str) -> list[str]:
        """Returns the paths of the files whose whole paths match a glob pattern of Hadoop."""
        return [str(each.getPath().toString()) for each in self._glob(pattern) if each.isFile()]

    def all_below(self, folder: str) -> Iterator[str]:
        listing = self._system.listFiles(self._path(folder), True)
        while listing.hasNext():
            yield str(listing.next().getPath().toString())

    def below(self, folder: str, inside: str = "") -> list[tuple[str, str, int]]:
        """Returns the files below a folder that are not hidden, each as its folder, relative to the given one, its
        name, and its size.
        """
        found: list[tuple[str, str, int]] = []
        for status in self._system.listStatus(self._path(folder)):
            name = str(status.getPath().getName())
            if is_hidden(name):
                continue
            if status.isFile():
                found.append((inside, name, int(status.getLen())))
            else:
                found += self.below(f"{folder}/{name}", f"{inside}/{name}".lstrip("/"))
        return sorted(found)

    def size_below(self, folder: str) -> tuple[int, int]:
        """Returns the bytes of all files below a folder, and their number; zeros if it does not exist."""
        if not self.exists(folder):
            return 0, 0
        # The file system adds up: HDFS knows the sum, and a store lists the folder once.
        found = self._system.getContentSummary(self._path(folder))
        return int(found.getLength()), int(found.getFileCount())

    def changed_millis(self, folder: str) -> dict[str, int]:
        statuses = self._system.listStatus(self._path(folder))
        return {str(each.getPath().getName()): int(each.getModificationTime()) for each in statuses}

    def idle_seconds(self, folder: str) -> float:
        status = self._system.getFileStatus(self._path(folder))
        return clock.seconds() - float(status.getModificationTime()) / 1000

    def read(self, path: str) -> bytes | None:
        if not self.exists(path):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def open(self, path: str, *, reads_ahead: bool = True) -> BinaryIO:
        where = self._path(path)
        try:
            # The stream comes last, since nothing would close it if the size could not be read.
            size = int(self._system.getFileStatus(where).getLen())
            stream = _HadoopStream(self._system.open(where), size)
        except Exception as error:
            raise OSError(None, java_text(error), path) from None
        return cast(BinaryIO, io.BufferedReader(stream, _BLOCK_BYTES))

    def write(self, path: str, content: bytes, replaces: bool = True) -> None:
        stream = self._system.create(self._path(path), replaces)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def claim(self, path: str, content: bytes) -> bool:
        """Makes a small file; returns False if another process has made it. Others may see it before it is whole."""
        try:
            if self.is_local:
                # Hadoop's local file system checks first and writes then: two callers could both make the file.
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
        self._checked.delete(self._path(path), True)

    def _glob(self, pattern: str) -> Sequence[JavaObject]:
        return self._system.globStatus(self._path(pattern)) or ()


SparkFiles = HadoopFiles | DiskFiles
"""The files that both Spark and the driver program reach."""


def files_of_spark(spark: SparkSession, location: str) -> SparkFiles:
    """Returns the file system of a path that Spark reads and writes, and the driver program too.

    Raises:
        UnsupportedByRunner: The session reaches no file systems of Hadoop for this program, and the path is not on a
            disk.
    """
    if backend_of(spark).hadoop() is not None:
        files = HadoopFiles(spark, location)
        # Hadoop starts a process for each file that it makes on a disk, and a call to Java takes a millisecond.
        return DiskFiles() if files.is_local and plain_path(location) is not None else files
    if not is_on_disk(without_scheme(location)):
        raise UnsupportedByRunner(
            f"in a session of Spark Connect, this program and Spark do not both reach {location}",
            where="in the Spark Connect session that the pipeline would run in",
            hint="name a folder on a disk or volume that this machine and the server share under the same path, such "
            "as /Volumes/catalog/schema/volume/folder",
        )
    return DiskFiles()


class _HadoopStream(io.RawIOBase):
    """Java's stream of a file's bytes."""

    def __init__(self, stream: JavaObject, size: int) -> None:
        self._stream, self._size = stream, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._stream.getPos())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        # Java refuses to go beyond the end, and Python does not.
        place = min(start + offset, self._size)
        if place < 0:
            raise ValueError(f"the place {place} is before the file")
        self._stream.seek(place)
        return place

    def readinto(self, buffer: Any) -> int:
        try:
            found = bytes(self._stream.readNBytes(len(buffer)))
        except Exception as error:
            raise OSError(None, java_text(error)) from None
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class StoreFiles(FileStore):
    """An object store as the driver of a sink uses it; paths are URLs, and folders are beginnings of names."""

    renames = False

    def __init__(self) -> None:
        self._store = ObjectStore()

    def wrap_opener(self, open_file: Callable[[str], Any]) -> Callable[[str], Any]:
        """Returns the function that opens a file for writing: a task writes it to its own disk, and then stores it."""
        return partial(_StoredWhenClosed, open_file)

    def open(self, path: str, *, reads_ahead: bool = True) -> BinaryIO:
        return self._store.open_stored(path, reads_ahead=reads_ahead)

    def names(self, folder: str, *beginnings: str) -> list[str]:
        top = folder.rstrip("/") + "/"
        found = {
            each.path[len(top) :].partition("/")[0]
            for beginning in beginnings or ("",)
            for each in self._store._list(top + beginning)
        }
        return sorted(found)

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        top = folder.rstrip("/") + "/"
        found: dict[str, list[str]] = {}
        for path in sorted(each.path for each in self._store._list(top + beginnings[0])):
            *below, name = parts = path[len(top) :].split("/")
            if len(parts) == len(beginnings) and all(map(str.startswith, parts, beginnings)):
                found.setdefault("/".join(below), []).append(name)
        return found

    def make(self, folder: str) -> None:
        """Does nothing, because a store has no folders."""

    def is_folder(self, path: str) -> bool:
        return any(True for _ in self._store._list(path.rstrip("/") + "/"))

    def idle_seconds(self, folder: str) -> float:
        changes = [each.last_updated_in_seconds for each in self._store._list(folder.rstrip("/") + "/")]
        return clock.seconds() - max(changes, default=clock.seconds())

    def read(self, path: str) -> bytes | None:
        try:
            with self.open(path) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        with self._store.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            file.write(content)

    def replace(self, source: str, target: str) -> None:
        """Copies a file within the store; the copy replaces the target in one step. The source stays."""
        with translate_errors(target):
            self._store._copy(source, target)

    def remove(self, path: str) -> None:
        """Deletes a file, if there is one; what the store refuses is an error, because the file would be read again."""
        try:
            self._store.delete([path])
        except BeamIOError:
            if self._store.exists(path):
                raise

    def delete(self, path: str) -> None:
        """Deletes all files below a folder, as far as the store lets it; the next run deletes what is left."""
        try:
            for each in self._store._list(path.rstrip("/") + "/"):
                self._store.delete([each.path])
        except OSError as error:
            _LOGGER.warning("%s was not deleted: %s", path, error.strerror or error)


class _StoredWhenClosed:
    """A file that a task writes to its disk, and that `close` stores at its URL."""

    def __init__(self, open_file: Callable[[str], Any], url: str) -> None:
        folder = tempfile.mkdtemp(prefix="penstock-")
        # A task that fails also leaves nothing on its disk.
        self._clean = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._local = os.path.join(folder, "shard")
        self._url = url
        self._writer = open_file(self._local)

    def write(self, values: Any) -> Any:
        return self._writer.write(values)

    def close(self) -> None:
        self._writer.close()
        upload(self._local, self._url)
        self._clean()


@contextlib.contextmanager
def copy_to_disk(files: fs.FileSystem, paths: Sequence[str]) -> Iterator[list[str]]:
    """Yields the paths of copies on the driver's own disk, for code that must not wait for a network; then deletes
    them.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        copies = [f"{folder}/{number}" for number in range(len(paths))]
        for path, copy in zip(paths, copies, strict=True):
            with files.open_input_stream(path) as source, open(copy, "wb") as target:
                shutil.copyfileobj(source, target, _COPY_BYTES)
        yield copies


def size_of(file: BinaryIO) -> int:
    """Returns the size of a file, which is then at its beginning.

    >>> size_of(io.BytesIO(b"abc"))
    3
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def absolute_uri(path: str) -> str:
    """Returns a path with its scheme, which does not depend on a working folder.

    >>> absolute_uri("/logs/a b"), absolute_uri("hdfs://host/logs")
    ('file:///logs/a b', 'hdfs://host/logs')
    """
    return f"file://{os.path.abspath(path)}" if is_on_disk(path) else path


def disk_path(path: str) -> str | None:
    """Returns a path on a disk without the scheme ``file``; None for all other schemes.

    >>> disk_path("file:///logs"), disk_path("logs"), disk_path("hdfs://host/logs")
    ('/logs', 'logs', None)
    """
    path = path.removeprefix("file://")
    return path if is_on_disk(path) else None


def folder_of(path: str) -> str:
    """Returns the folder around a file.

    >>> folder_of("s3://bucket/a"), folder_of("/a"), folder_of("a")
    ('s3://bucket', '/', '')
    """
    return os.path.dirname(path) if is_on_disk(path) else path.rpartition("/")[0]


def plain_path(path: str) -> str | None:
    """Returns the path of a local file without its scheme; None where Hadoop might read the path differently.

    >>> plain_path("file:///a%20/b"), plain_path("file:/a"), plain_path("/a/b"), plain_path("a"), plain_path("file://a/b")
    ('/a%20/b', '/a', '/a/b', None, None)
    """
    plain = path.removeprefix("file://") if path.startswith("file:///") else path.removeprefix("file:")
    # Java encodes other letters according to its locale.
    return plain if plain.startswith("/") and not plain.startswith("//") and plain.isascii() else None


def escape_glob(text: str) -> str:
    r"""Returns a glob pattern of Hadoop that matches only this text.

    >>> escape_glob("logs{1}*")
    'logs\\{1\\}\\*'
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", text)


def java_text(error: Exception) -> str:
    """Returns the first line of the message that Java has for an error, or of the error's own message."""
    thrown = getattr(error, "java_exception", None)
    return str(error if thrown is None else thrown.getMessage()).partition("\n")[0]
