"""The backend of a classic session, by way of Java."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from penstock.scalars.spark_forms import quote_name
from penstock.utils import clock
from penstock_spark.session.backend import (
    TIME_ZONE,
    Backend,
    Function,
    Hadoop,
    JobProgress,
    MapOfState,
    Pages,
    ReportSink,
    TaskActivity,
    TaskReports,
    Told,
)
from penstock_spark.session.classic.accumulators import accumulator_of
from penstock_spark.session.classic.progress_of_jobs import progress_of
from penstock_spark.session.classic.query_orders import order_of
from penstock_spark.session.classic.shared_folders import check_workers_see
from penstock_spark.session.classic.task_activity import activity_of, longest_task
from penstock_spark.session.classic.waiting import watch_for_waiting
from penstock_spark.session.classic.workers_python import check_workers_python, workers_python
from penstock_spark.session.masters import is_local
from penstock_spark.session.spark_versions import transform_with_state

if TYPE_CHECKING:
    import pyarrow as pa
    from py4j.java_gateway import JavaObject, JVMView
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType

_DESCRIPTION = "spark.job.description"
_QUERY = "sql.streaming.queryId"
_END_SECONDS_MAX = 5.0
"""The time that cancelled tasks get to end, before their files are removed."""

_kept: weakref.WeakKeyDictionary[SparkContext, dict[tuple[str, tuple[str, ...]], Any]] = (
    weakref.WeakKeyDictionary()
)
"""Java's lists of columns: PySpark would send every name and every order to Java one by one."""

_shipped: set[tuple[str, int, str]] = set()


@dataclass(frozen=True)
class Accumulated(TaskReports):
    """TaskReports that come by the accumulator of a SparkContext, which all runs share."""

    accumulator: Accumulator[Told]

    @property
    def value(self) -> Told:
        return self.accumulator.value

    def map_in_arrow(
        self, frame: DataFrame, make: Callable[[ReportSink], Function], schema: StructType | str
    ) -> DataFrame:
        with workers_python():
            return frame.mapInArrow(make(self.accumulator), schema)

    def transform_with_state(
        self,
        frame: DataFrame,
        make: Callable[[ReportSink], StatefulProcessor],
        schema: str,
        state: MapOfState,
    ) -> DataFrame:
        with workers_python():
            made: DataFrame = transform_with_state(frame.groupBy("shard"), make(self.accumulator), schema)
            return made

    def see(self, progress: Mapping[str, Any]) -> None:
        """Does nothing: all reports have come by the accumulator."""


@dataclass(frozen=True)
class ClassicBackend(Backend):
    """A session whose Java this program calls."""

    @property
    def version(self) -> str:
        return self.spark.version

    @property
    def is_local(self) -> bool:
        return is_local(self.spark.sparkContext.master or "")

    @property
    def shares_disk(self) -> bool:
        return self.is_local

    @property
    def app_name(self) -> str:
        return str(self.spark.sparkContext.appName)

    @property
    def page(self) -> str:
        return self.spark.sparkContext.uiWebUrl or ""

    def parallelism(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    def clone(self, conf: Mapping[str, str], is_fresh: bool = True) -> SparkSession:
        # It takes milliseconds.
        clone = type(self.spark)(self.spark.sparkContext, self.spark._jsparkSession.cloneSession())
        for name, value in conf.items():
            clone.conf.set(name, value)
        return clone

    def set(self, name: str, value: str) -> None:
        self.spark.conf.set(name, value)

    def hand_settings(self, settings: Mapping[str, str]) -> None:
        context = self.spark.sparkContext
        jvm: JVMView = self.spark._jvm
        starts_workers = str(context.master).startswith("local")
        for name, value in settings.items():
            if context._conf.get(f"spark.executorEnv.{name}") is not None:
                continue  # The session says what its workers get: they may reach a store by another address.
            if name in context.environment or not starts_workers or jvm.System.getenv(name) != value:
                context.environment[name] = value

    def moved(self, frame: DataFrame) -> DataFrame:
        plan = frame._jdf.queryExecution().analyzed()
        dataset = getattr(self.spark.sparkContext._jvm, "org.apache.spark.sql.classic.Dataset")
        return DataFrame(dataset.ofRows(self.spark._jsparkSession, plan), self.spark)

    def empty_frame(self, schema: StructType) -> DataFrame:
        session = self.spark._jsparkSession
        rows = self.spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        return DataFrame(session.createDataFrame(rows, session.parseDataType(schema.json())), self.spark)

    def frame_of_rows(self, rows: pa.Table, schema: StructType) -> DataFrame:
        # PySpark's own method writes a file.
        jvm: JVMView = self.spark._jvm
        batches = jvm.PythonUtils.toSeq([batch.serialize().to_pybytes() for batch in rows.to_batches()])
        made = jvm.PythonSQLUtils.toDataFrame(batches.iterator(), schema.json(), self.spark._jsparkSession)
        return DataFrame(made, self.spark)

    def select(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        return DataFrame(frame._jdf.select(self._columns("plain", names)), frame.sparkSession)

    def repartition(self, frame: DataFrame, count: int, names: tuple[str, ...]) -> DataFrame:
        return DataFrame(frame._jdf.repartition(count, self._columns("plain", names)), frame.sparkSession)

    def sort(self, frame: DataFrame, names: tuple[str, ...]) -> DataFrame:
        return DataFrame(frame._jdf.sortWithinPartitions(self._columns("sort", names)), frame.sparkSession)

    def _columns(self, kind: str, names: tuple[str, ...]) -> JavaObject:
        """Returns a Scala sequence of columns, or of ascending sort orders if `kind` is ``sort``."""
        context = self.spark.sparkContext
        kept = _kept.setdefault(context, {})
        if (kind, names) not in kept:
            columns = [col(name).asc()._jc if kind == "sort" else col(name)._jc for name in names]
            jvm: JVMView = context._jvm
            kept[kind, names] = jvm.PythonUtils.toSeq(columns)
        return kept[kind, names]

    def session_of_queries(self, settings: Mapping[str, str], where: str) -> SparkSession:
        session: SparkSession = self.spark.newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        return session

    def bind_in_utc(self, make: Callable[[], DataFrame]) -> DataFrame:
        # Spark binds expressions to the zone when the frame is made.
        zone = self.spark.conf.get(TIME_ZONE)
        if zone == "UTC":
            return make()
        self.spark.conf.set(TIME_ZONE, "UTC")
        try:
            return make()
        finally:
            self.spark.conf.set(TIME_ZONE, str(zone))

    def frame_of_query(self, text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
        for name, frame in tables.items():
            frame.createOrReplaceTempView(quote_name(name))
        return self.spark.sql(text)

    def check_query(self, text: str) -> None:
        self.spark._jsparkSession.sessionState().sqlParser().parseQuery(text)

    def analysed_plan(self, frame: DataFrame) -> str:
        # A source that is the whole plan has a text of its own.
        return str(frame._jdf.queryExecution().analyzed().treeString())

    def order_of(self, frame: DataFrame) -> tuple[tuple[str, bool, bool], ...]:
        return order_of(frame._jdf.queryExecution().analyzed(), frame.columns)

    def check_workers(self) -> None:
        check_workers_python(self.spark.sparkContext, self.is_local)

    def check_workers_see(self, file: str, folder: str) -> None:
        check_workers_see(self.spark.sparkContext, file, folder)

    def workers_python(self) -> AbstractContextManager[None]:
        return workers_python()

    def has_shipped(self, name: str) -> bool:
        return self._mark(name) in _shipped

    def ship_archive(self, path: str) -> None:
        self.spark.sparkContext.addPyFile(path)
        _shipped.add(self._mark(path.rpartition("/")[2]))

    def _mark(self, name: str) -> tuple[str, int, str]:
        context = self.spark.sparkContext
        return context.applicationId, id(context), name

    def ship_pages(self, name: str, pages: list[bytes]) -> tuple[Pages, Callable[[], None]]:
        broadcast = self.spark.sparkContext.broadcast(pages)
        return broadcast, broadcast.destroy

    def reports(self) -> TaskReports:
        return Accumulated(accumulator_of(self.spark.sparkContext))

    @contextmanager
    def described(self, text: str) -> Iterator[None]:
        context = self.spark.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, text)
        try:
            yield
        finally:
            # None removes the description, which PySpark's types do not say.
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        context = self.spark.sparkContext
        context.addJobTag(tag)
        try:
            yield
        finally:
            with suppress(Exception):
                context.removeJobTag(tag)

    def cancel(self, tag: str) -> None:
        context = self.spark.sparkContext
        context.cancelJobsWithTag(tag)
        until = clock.monotonic_seconds() + _END_SECONDS_MAX
        while context.statusTracker().getActiveStageIds() and clock.monotonic_seconds() < until:
            clock.sleep(0.05)

    def progress(self, tag: str) -> JobProgress:
        return progress_of(self.spark.sparkContext, tag)

    def watch_for_waiting(self) -> AbstractContextManager[None]:
        return watch_for_waiting(self.spark.sparkContext)

    def start(
        self, writer: DataStreamWriter, function: Callable[[DataFrame, int], None] | None, folder: str
    ) -> StreamingQuery:
        return (writer.format("noop") if function is None else writer.foreachBatch(function)).start()

    def last_report(self, query: StreamingQuery) -> tuple[int, str] | None:
        # Java takes long to write all of it.
        progress = query._jsq.lastProgress()
        return None if progress is None else (int(progress.batchId()), str(progress.timestamp()))

    def activity(self, query: StreamingQuery) -> TaskActivity | None:
        return activity_of(query, self.spark.sparkContext)

    def longest_task(self, activity: TaskActivity) -> str | None:
        return longest_task(self.spark.sparkContext, activity)

    def leaves_of_batch(self, frame: DataFrame) -> JavaObject:
        number = frame.sparkSession.sparkContext.getLocalProperty(_QUERY)
        query = self.spark._jsparkSession.streams().get(number).streamingQuery()
        # The sources are the first leaves, in their order. The first states of the groupings follow.
        return query.lastExecution().analyzed().collectLeaves()

    def reaches(self, scheme: str) -> bool:
        jvm: JVMView = self.spark._jvm
        configuration = self.spark._jsc.hadoopConfiguration()
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
        except Exception:
            # Hadoop names the class of some file systems that are in packages of their own.
            return False
        return True

    def hadoop(self) -> Hadoop:
        # Python asks Java for each name after a dot.
        package = self.spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
        return Hadoop(package, self.spark._jsc.hadoopConfiguration())

    def reads_state_at(self, location: str) -> bool:
        jvm: JVMView = self.spark._jvm
        uri = jvm.org.apache.hadoop.fs.Path(location).toUri()
        return bool(uri.getRawPath() == uri.getPath())

    def process(self) -> int:
        java: JVMView = self.spark._jvm
        return int(java.java.lang.ProcessHandle.current().pid())
