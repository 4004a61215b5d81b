"""The backend of a session of Spark Connect, by methods of PySpark alone."""

from __future__ import annotations

import atexit
import functools
import logging
import os
import pickle
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyspark
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.plan import SQL, SubqueryAlias
from pyspark.sql.functions import asc, col, spark_partition_id

from penstock.error import UnsupportedByRunner
from penstock.scalars.spark_forms import quote_name
from penstock_spark.session.backend import TIME_ZONE, Backend, JobProgress, Pages, TaskActivity, TaskReports
from penstock_spark.session.connect.opening import Patience, opened_sessions, version_of_server
from penstock_spark.session.connect.reports import ObservedReports
from penstock_spark.session.connect.served_batches import ServedQuery
from penstock_spark.session.connect.server_life import at_loss, client_of, end_without_retries
from penstock_spark.session.connect.shared_folders import check_workers_see
from penstock_spark.session.connect.shipped_pages import InFile, InProgram
from penstock_spark.session.connect.travelling import carry_archive, note_archive, sent_archives
from penstock_spark.session.masters import is_local, local_cores
from penstock_spark.session.meaning import SQL_MEANING
from penstock_spark.session.sizes import bytes_of
from penstock_spark.session.spark_versions import check_clones, version_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

_IN_PROGRAM_BYTES_MAX = 256 << 10
"""Larger side inputs travel once for each run and machine, and not with each task."""

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1", "[::1]")

_OWN_FILES = "spark.sql.artifact.isolation.enabled"
"""The property of a session that decides, when it is made, whether it shares its files with all others that do."""

_ESCAPED = re.compile(r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f-\xa0]""")
"""A letter of a path that Java's addresses escape."""

_UTC = frozenset(
    {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "GMT0", "UCT", "Etc/UCT", "Universal", "Zulu", "Z", "+00:00"}
)
"""The names of one time zone."""

_SIZE_OF_ROWS = "spark.sql.session.localRelationSizeLimit"
"""The property with the size of the rows that a program may send."""

_making = threading.Lock()

_shipped: set[tuple[str, str]] = set()


class _Query(SQL):
    """A query that also knows the observations of its views, with which the reports of their tasks arrive."""

    @property
    def observations(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for view in self._views or ():
            found.update(view.observations)
        return found


@dataclass(frozen=True)
class _Clone:
    """A clone, and the settings that it has and had."""

    spark: SparkSession
    state: Mapping[str, str]

    @property
    def is_stopped(self) -> bool:
        return bool(self.spark.is_stopped)  # type: ignore[attr-defined]


_clones: dict[str, _Clone] = {}
"""The last clone of each session of the program."""

# After a loss, the next pipeline takes a new one.
at_loss(_clones.clear)

_open: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_sessions() -> None:
    """Closes the channels of clones and of sessions that pipelines have opened: an open one may keep the program."""
    for clone in [*_open, *opened_sessions()]:
        with suppress(Exception):
            clone.client.release_session()
        with suppress(Exception):
            clone.client.close()


_LOGGER = logging.getLogger(__name__)


class ConnectBackend(Backend):
    """A session whose Spark is on a server, which counts as a cluster."""

    # Each look is some calls to the server.
    look_seconds = 0.2

    @property
    def _session(self) -> str:
        return str(self.spark.session_id)  # type: ignore[attr-defined]

    @property
    def version(self) -> str:
        return version_of_server(self.spark)

    @property
    def is_local(self) -> bool:
        return False

    @property
    def shares_disk(self) -> bool:
        host = str(self.spark.client.host)
        return host in _THIS_MACHINE and is_local(str(self.spark.conf.get("spark.master", "")))

    @property
    def app_name(self) -> str:
        return str(self.spark.conf.get("spark.app.name", "penstock"))

    @property
    def page(self) -> str:
        return ""

    def parallelism(self) -> int:
        return _parallelism(self.spark)

    def clone(self, conf: Mapping[str, str], is_fresh: bool = True) -> SparkSession:
        check_clones(self.version, pyspark.__version__)
        # The workers of each session are processes of its own, whose start takes seconds.
        state = {**self.spark.conf.getAll, **conf}
        kept = _clones.get(self._session)
        if kept is not None and kept.state == state and not is_fresh and not kept.is_stopped:
            return kept.spark
        clone = _clone_with_own_files(self.spark)
        for name, value in conf.items():
            _set(clone, name, value)
        _write_sizes_as_numbers(clone, self.version)
        _clones[self._session] = _Clone(clone, state)
        _open.add(clone)
        client_of(clone).set_retry_policies([Patience()])
        end_without_retries()
        return clone

    def set(self, name: str, value: str) -> None:
        _set(self.spark, name, value)

    def hand_settings(self, settings: Mapping[str, str]) -> None:
        """Does nothing: tasks have the environment of the server's workers."""

    def moved(self, frame: DataFrame) -> DataFrame:
        # A plan is a description, which the other session analyses again.
        kind = cast("type[Any]", type(frame))
        return cast("DataFrame", kind(cast("Any", frame)._plan, self.spark))

    def empty_frame(self, schema: StructType) -> DataFrame:
        return self.spark.createDataFrame([], schema)

    def frame_of_rows(self, rows: pa.Table, schema: StructType) -> DataFrame:
        return self.spark.createDataFrame(rows, schema)

    def select(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        return frame.select(*map(col, names))

    def repartition(self, frame: DataFrame, count: int, names: tuple[str, ...]) -> DataFrame:
        return frame.repartition(count, *map(col, names))

    def sort(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        return frame.sortWithinPartitions(*map(asc, names))

    def session_of_queries(self, settings: Mapping[str, str], where: str) -> SparkSession:
        # A query runs in the session of its readers, by the settings of that.
        self._check_settings(settings, where)
        return self.spark

    def _check_settings(self, settings: Mapping[str, str], where: str) -> None:
        """Raises UnsupportedByRunner if the session has other settings."""
        for name, value in settings.items():
            # With a default, a server returns it even where Spark has one of its own.
            found = self.spark.conf.get(name)
            if found != value and not {found, value} <= _UTC:
                raise UnsupportedByRunner(
                    f"a query on a Spark Connect server uses the settings of the session, and {name} is {found}",
                    where=where,
                    hint=f"call spark.conf.set({name!r}, {value!r}) before the pipeline runs",
                )

    def bind_in_utc(self, make: Callable[[], DataFrame]) -> DataFrame:
        # The server binds expressions to the zone that the session has when the frame runs.
        self._check_settings(
            {TIME_ZONE: "UTC"}, "in the Spark Connect session that the pipeline would run in"
        )
        return make()

    def frame_of_query(self, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
        # With views of a session, the query would have no meaning in another one.
        views = [SubqueryAlias(cast("Any", frame)._plan, quote_name(name)) for name, frame in tables.items()]
        kind = cast("type[Any]", type(self.spark.range(0)))
        frame = cast("DataFrame", kind(_Query(text, views=views), self.spark))
        # Else it would be analysed later, where nothing explains its errors.
        _ = frame.schema
        return frame

    def check_query(self, text: str) -> None:
        # Only a query may stand in parentheses. Its other errors are found where it stands alone.
        try:
            self.spark.sql(f"SELECT * FROM (\n{text}\n)")
        except ParseException:
            raise
        except PySparkException:
            return

    def analysed_plan(self, frame: DataFrame) -> str:
        whole = str(cast("Any", frame)._explain_string(extended=True))
        return whole.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]

    def order_of(self, frame: DataFrame) -> tuple[tuple[str, bool, bool], ...]:
        """Returns nothing: a server shows no plan."""
        return ()

    def check_workers(self) -> None:
        """Does nothing: the server compares the versions of Python, and the first task says what is missing."""

    def check_workers_see(self, file: str, folder: str) -> None:
        if not self.shares_disk and file.startswith("file:"):
            check_workers_see(self.spark, self.parallelism(), file, folder)

    def workers_python(self) -> AbstractContextManager[None]:
        return nullcontext()

    def has_shipped(self, name: str) -> bool:
        return (self._session, name) in _shipped

    def ship_archive(self, path: str) -> None:
        if self.spark.conf.get(_OWN_FILES, "true") == "true":
            self.spark.addArtifacts(path, pyfile=True)
            note_archive(path)
        else:
            carry_archive(path)
        _shipped.add((self._session, path.rpartition("/")[2]))

    def ship_pages(self, name: str, pages: list[bytes]) -> tuple[Pages, Callable[[], None]]:
        if sum(map(len, pages)) <= _IN_PROGRAM_BYTES_MAX:
            return InProgram(name, tuple(pages)), _nothing
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
            path = Path(folder, name)
            path.write_bytes(pickle.dumps(pages))
            self.spark.addArtifacts(str(path), file=True)
        # The server deletes it with the session.
        return InFile(name), _nothing

    def reports(self) -> TaskReports:
        return ObservedReports()

    def described(self, text: str) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        self.spark.addTag(tag)
        try:
            yield
        finally:
            with suppress(Exception):
                self.spark.removeTag(tag)

    def cancel(self, tag: str) -> None:
        self.spark.interruptTag(tag)

    def progress(self, tag: str) -> JobProgress:
        """Returns nothing: a server reports the progress of an operation only while its answer is read."""
        return JobProgress(lambda: (), lambda number: None)

    def watch_for_waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    def start(
        self, writer: DataStreamWriter, function: Callable[[DataFrame, int], None] | None, folder: str
    ) -> StreamingQuery:
        if function is None:
            return writer.format("noop").start()
        # A checkpoint that this program and the server share is on a disk.
        path = Path(folder.removeprefix("file://"))
        return cast("StreamingQuery", ServedQuery(self.spark, writer, function, path, sent_archives()))

    def last_report(self, query: StreamingQuery) -> tuple[int, str] | None:
        progress = query.lastProgress
        return None if progress is None else (int(progress["batchId"]), str(progress["timestamp"]))

    def activity(self, query: StreamingQuery) -> TaskActivity | None:
        return None

    def longest_task(self, activity: TaskActivity) -> str | None:
        return None

    def leaves_of_batch(self, frame: DataFrame) -> None:
        return None

    def reaches(self, scheme: str) -> bool:
        # Tasks and this program must reach a store both, and they do so in Python.
        return False

    def hadoop(self) -> None:
        """Returns None: there is no Java here."""

    def reads_state_at(self, location: str) -> bool:
        return _ESCAPED.search(location) is None

    def process(self) -> int:
        return os.getpid()


@functools.lru_cache(maxsize=16)
def _parallelism(spark: SparkSession) -> int:
    master = str(spark.conf.get("spark.master", ""))
    if is_local(master) and "*" not in master:
        return local_cores(master)
    # A range without a number of partitions has as many as tasks run at once.
    parts = spark.range(1 << 20).select(spark_partition_id().alias("part")).distinct()
    return max(1, parts.count())


def _clone_with_own_files(spark: SparkSession) -> SparkSession:
    """Returns a clone with files of its own.

    Files that a session shares stay in the list of all sessions when it ends, and its copies of them do not: then no
    task of the server starts.
    """
    with _making:
        kept = spark.conf.get(_OWN_FILES, "true")
        if kept != "true":
            _set(spark, _OWN_FILES, "true")
        try:
            clone: SparkSession = spark.cloneSession()  # type: ignore[attr-defined]
        finally:
            if kept != "true":
                _set(spark, _OWN_FILES, str(kept))
    return clone


def _write_sizes_as_numbers(clone: SparkSession, server: str) -> None:
    """Writes a size of the session without its unit, which older servers write and newer clients cannot read."""
    if version_of(server) < version_of(pyspark.__version__):
        # A server that does not know the property raises an error.
        with suppress(PySparkException):
            _set(clone, _SIZE_OF_ROWS, str(bytes_of(str(clone.conf.get(_SIZE_OF_ROWS)))))


def _set(spark: SparkSession, name: str, value: str) -> None:
    """Sets a property, unless the server refuses it; what the meaning of a program depends on must be settable."""
    try:
        spark.conf.set(name, value)
    except Exception as error:
        if name in SQL_MEANING and spark.conf.get(name, None) != value:
            raise UnsupportedByRunner(
                f"the server does not let a session set {name} to {value}, on which results depend",
                where="in the Spark Connect session that the pipeline would run in",
                hint=f"have the server start with --conf {name}={value}, or run the program with another server",
            ) from error
        _LOGGER.debug("the server refuses to set %s: %s", name, error)


def _nothing() -> None:
    """There is nothing to free."""
