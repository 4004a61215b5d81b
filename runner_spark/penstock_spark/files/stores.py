"""Object stores that Spark does not reach, because Hadoop has no file system for their scheme.

PySpark from a wheel brings none for S3, Google Cloud Storage or Azure. There, tasks and the driver use fsspec.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner
from penstock.io.files.object_stores import ObjectStore, settings_of_stores, store_of, told
from penstock.io.filesystem import BeamIOError, CompressionTypes
from penstock.utils import clock

if TYPE_CHECKING:
    from py4j.java_gateway import JVMView

_LOGGER = logging.getLogger(__name__)


def is_beyond_spark(spark: SparkSession | None, path: str) -> bool:
    """Whether a path is on an object store that only fsspec reaches; without a session, whether it may be."""
    if store_of(path) is None:
        return False
    if spark is None:
        return True
    jvm: JVMView = spark._jvm
    try:
        scheme = path.partition("://")[0]
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, spark._jsc.hadoopConfiguration())
    except Exception:
        # Hadoop names the class of some file systems that are in packages of their own.
        return True
    return False


def hand_settings(spark: SparkSession) -> None:
    """Gives later tasks the program's settings of stores, such as credentials; Spark shows them nowhere.

    A worker has the environment that the session was started in, perhaps on another machine. The program may have set
    its own later.
    """
    context = spark.sparkContext
    own = settings_of_stores()
    if not own:
        return
    jvm: JVMView = spark._jvm
    is_local = str(context.master).startswith("local")
    for name, value in own.items():
        if context._conf.get(f"spark.executorEnv.{name}") is not None:
            continue  # The session says what its workers get: they may reach a store by another address.
        if name in context.environment or not is_local or jvm.System.getenv(name) != value:
            context.environment[name] = value


def refuse_streams(spark: SparkSession, path: str, what: str, where: str) -> None:
    """Refuses a path that Spark itself would have to reach."""
    if is_beyond_spark(spark, path):
        scheme = path.partition("://")[0]
        raise UnsupportedByRunner(
            f"{what} {path}: Spark has no file system for {scheme}",
            where=where,
            hint=f"add Hadoop's package for {scheme} with --spark_conf=spark.jars.packages=..., use a path on a disk, "
            "or find files with fileio.MatchContinuously",
        )


class StoreFiles:
    """An object store as the driver of a sink uses it; paths are URLs, and folders are beginnings of names."""

    def __init__(self) -> None:
        self._store = ObjectStore()

    def names(self, folder: str, *beginnings: str) -> list[str]:
        """The sorted first parts of the names in a folder that begin with one of the texts, if any are given."""
        top = folder.rstrip("/") + "/"
        found = {
            each.path[len(top) :].partition("/")[0]
            for beginning in beginnings or ("",)
            for each in self._store._list(top + beginning)
        }
        return sorted(found)

    def names_below(self, folder: str, beginnings: Sequence[str]) -> dict[str, list[str]]:
        """The sorted names of files by their folders; the parts of their paths begin with the texts, in order."""
        top = folder.rstrip("/") + "/"
        found: dict[str, list[str]] = {}
        for path in sorted(each.path for each in self._store._list(top + beginnings[0])):
            *below, name = parts = path[len(top) :].split("/")
            if len(parts) == len(beginnings) and all(map(str.startswith, parts, beginnings)):
                found.setdefault("/".join(below), []).append(name)
        return found

    def make(self, folder: str) -> None:
        """Nothing: a store has no folders."""

    def is_folder(self, path: str) -> bool:
        return any(True for _ in self._store._list(path.rstrip("/") + "/"))

    def idle_seconds(self, folder: str) -> float:
        changes = [each.last_updated_in_seconds for each in self._store._list(folder.rstrip("/") + "/")]
        return clock.seconds() - max(changes, default=clock.seconds())

    def read(self, path: str) -> bytes | None:
        try:
            with self._store.open_stored(path) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        with self._store.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            file.write(content)

    def replace(self, source: str, target: str) -> None:
        """Copies a file within the store; the copy takes the place of the target at once. The source stays."""
        with told(target):
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
