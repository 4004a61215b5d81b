"""The session of a run, and the sources that had to be opened to make the plan."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from pyspark.sql import SparkSession

from penstock.error import UnsupportedByRunner
from penstock.graph import Graph, Read, Sink, Source, Step, Write
from penstock.io.files.object_stores import settings_of_stores
from penstock.io.query_source import QuerySource
from penstock.io.sparkio import DataFrameSource, SparkSink, SparkSource
from penstock.io.streaming.stream_sources import SourceWithRejects, StreamSource
from penstock.options.spark import SparkOptions
from penstock.tracebacks import shows_all_lines
from penstock_spark.checkpoints.custody.folder import read_shard_count
from penstock_spark.files.listing import settings_of_tasks
from penstock_spark.formats.registry import (
    open_source,
    open_stream,
    records_of,
    table_before_opening,
    table_of_schema,
)
from penstock_spark.plan.column_bounds import UNBOUNDED
from penstock_spark.plan.column_kinds import NotInColumns
from penstock_spark.plan.column_plan import Table
from penstock_spark.plan.query_rows import RowsOfGraph
from penstock_spark.process.progress import print_progress
from penstock_spark.reports.crash_marker import FAULT_HANDLER
from penstock_spark.reports.lineage import unwrap_source
from penstock_spark.reports.reporting import Reporting, reports_of
from penstock_spark.reports.spark_errors import ErrorContext, translate_errors
from penstock_spark.session.backends import backend_of, is_local_session
from penstock_spark.session.meaning import SQL_MEANING
from penstock_spark.session.session import SessionOptions, session_for
from penstock_spark.session.spark_versions import check_version
from penstock_spark.shipping.import_paths import ship_packages
from penstock_spark.sources.scan import Scan, StreamScan

_SQL_CONF = {
    # Plans here have a fixed number of partitions; adaptive planning would only add a job for each exchange.
    "spark.sql.adaptive.enabled": "false",
    **SQL_MEANING,
    # Workers give back columns of Arrow's usual types, and Spark would read them wrongly as large ones.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A row of a large group is megabytes; by default a worker gets and copies 64 of them at a time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 << 20),
    # Other readers of files do not say from which file a row is.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # If a worker has died, Spark reports the step that ran, which the fault handler has written down.
    FAULT_HANDLER: "true",
    # Stateful operators do not know the setting, and workers of other settings are other processes.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Groupings keep the state of many keys in pages, which only this store can hold.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}


def open_session(settings: SparkOptions, local_only: bool, asks_workers: bool = True) -> SparkSession:
    """Opens the session that a pipeline's options ask for; with `local_only`, a cluster is an error.

    Without `asks_workers`, nothing waits for a core of a cluster, and the caller asks the workers for their Python.
    """
    spark = session_for(
        session_options(settings, local_only), on_start=lambda: print_progress("starting Spark")
    )
    backend = backend_of(spark)
    check_version(backend.version, "the Spark session")
    if local_only and not backend.is_local:
        raise UnsupportedByRunner(
            "the program names a local runner of Beam, but the Spark session belongs to a cluster",
            hint="name the SparkRunner, or leave out the runner",
        )
    if backend.is_local or asks_workers:
        backend.check_workers()
    # A worker has the environment that the session was started in, perhaps on another machine. The program may have
    # set its own since, such as the credentials of stores.
    if own := settings_of_stores():
        backend.hand_settings(own)
    return spark


def session_options(settings: SparkOptions, local_only: bool) -> SessionOptions:
    """Returns what a pipeline's options say about its session."""
    return SessionOptions(
        spark=cast("SparkSession | None", settings.session()),
        master=settings.master_url() or ("local[*]" if local_only else None),
        app_name=settings.app_name,
        conf=settings.properties(),
        fast_start=bool(settings.fast_start),
    )


_OF_SESSIONS = (SparkSource, DataFrameSource, QuerySource, SparkSink)
"""Sources and sinks that may need the temporary views, functions, formats or frames of the program's session."""


def uses_session(graph: Graph) -> bool:
    """True if a pipeline may read or write something that the program has made in its session."""
    primitives = [step.primitive for step in graph.steps]
    sources = [each.source for each in primitives if isinstance(each, Read)]
    sinks = [each.sink for each in primitives if isinstance(each, Write)]
    ends: list[Source | Sink] = [*sources, *sinks]
    return any(isinstance(unwrap_source(each), _OF_SESSIONS) for each in ends)


def with_packages(spark: SparkSession) -> SparkSession:
    """Returns a session whose workers can import what sources need, which are opened to make the plan."""
    if not is_local_session(spark):
        ship_packages(spark)
    return spark


class OpenSession:
    """A session and open sources, each made when it is first needed.

    Args:
        settings: The options of the pipeline.
        local_only: Whether a cluster is an error.
        is_stream: Whether it is for a streaming query.
        is_fresh: Whether the pipeline needs all that the program's session has now, and not only its settings.
    """

    def __init__(
        self, settings: SparkOptions, local_only: bool, is_stream: bool = False, is_fresh: bool = True
    ) -> None:
        self._is_fresh = is_fresh
        self._settings = settings
        self._local_only = local_only
        self._is_stream = is_stream
        self.scans: dict[str, Scan] = {}
        self.streams: dict[str, StreamScan] = {}
        self.reporting = Reporting(
            show_elements=bool(settings.show_elements_in_errors),
            all_lines=shows_all_lines() or bool(settings.full_trace),
        )

    @functools.cached_property
    def spark(self) -> SparkSession:
        # The run in whose place this one continues may have all cores of a cluster.
        takes_over = self._is_stream and bool(self._settings.take_over)
        return open_session(self._settings, self._local_only, asks_workers=not takes_over)

    @functools.cached_property
    def partitions(self) -> int:
        asked: int | None = self._settings.shuffle_partitions
        return asked or self._kept_shards or max(1, backend_of(self.spark).parallelism())

    @property
    def _kept_shards(self) -> int | None:
        """The number of shards of the checkpoint that a stream continues from, if there is one.

        Another machine, with other processors, continues as the first one began.
        """
        location = self._settings.checkpoint_location
        return read_shard_count(self.spark, location) if self._is_stream and location else None

    @functools.cached_property
    def session(self) -> SparkSession:
        """The runner's own session beside the user's."""
        own = {**settings_of_tasks(self.spark), "spark.sql.shuffle.partitions": str(self.partitions)}
        return with_packages(backend_of(self.spark).clone({**_SQL_CONF, **own}, self._is_fresh))

    def table_of(self, step: Step, source: Source) -> Table:
        """Opens a source for its columns; NotInColumns if they are not the fields of its elements."""
        if isinstance(source, SourceWithRejects):
            raise NotInColumns(f"a step of Python divides the records of {source.describe()}")
        records = records_of(unwrap_source(source))
        if isinstance(source, QuerySource) and any(
            isinstance(each.rows, RowsOfGraph) for each in source.tables
        ):
            # Its tables are there when the steps are lowered that lead to them.
            return table_before_opening(step, source)
        if isinstance(source, StreamSource):
            return self._table_of_stream(step, source, records)
        if step.label not in self.scans:
            with self._opening(step):
                self.scans[step.label] = open_source(source, self.session, step.where)
        scan = self.scans[step.label]
        if not scan.has_columns:
            raise NotInColumns(f"Spark has no types for the columns of {source.describe()}")
        bounds = UNBOUNDED if "column_bounds" in self._settings.switched_off() else scan.bounds
        return replace(table_of_schema(scan.frame.schema, records), bounds=bounds)

    @contextmanager
    def _opening(self, step: Step) -> Iterator[None]:
        """Within the block, the functions of a source that travel to tasks report to this run."""
        context = ErrorContext(self.reporting, places=(step.where,))
        with translate_errors(context), reports_of(self.reporting):
            yield

    def _table_of_stream(self, step: Step, source: StreamSource, records: str) -> Table:
        if step.label not in self.streams:
            with self._opening(step):
                self.streams[step.label] = open_stream(source, self.session, step.where)
        columns = self.streams[step.label].columns
        if columns is None:
            raise NotInColumns(f"Spark has no columns of {source.describe()}")
        return table_of_schema(columns.schema, records)
