"""A Python source as a stream: Spark keeps its positions, and its rows are ranges that tasks read.

For Spark it is a data source of its own interface for Python. Spark runs the driver's part in a process beside the
driver, and lets a worker hand out each row. Both unpickle the classes below by value, so that they can extend their
import path before they import anything of ours.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.error import UnsupportedByRunner
from penstock.io.custom.ranges import RangesOfSource, RangeSource
from penstock.io.streaming.stream_sources import MAX_RECORDS, StreamSource
from penstock_spark.formats.ranges.positions import AWAY, Positions
from penstock_spark.formats.ranges.reading import RowsOfRanges, StreamDecoder, distribute_ranges
from penstock_spark.process.written_formats import POSITION
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import Reporting, current_reporting, report_with
from penstock_spark.session.backends import backend_of, map_in_arrow
from penstock_spark.session.parallelism import parallelism_of
from penstock_spark.session.spark_versions import version_of
from penstock_spark.shipping.import_paths import driver_sys_path
from penstock_spark.sources.scan import StreamScan
from penstock_spark.worker.batch import loads
from penstock_spark.worker.programs import dumps_for_workers

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

_OLDEST = (4, 2)
"""The first Spark that passes a Python source the position at which it continues."""


@dataclass(frozen=True)
class _Planning:
    """The parameters of the process beside the driver."""

    source: RangeSource[Any]
    limit: int | None
    parallelism: int
    where: str
    reporting: Reporting


def open_range_stream(
    description: RangesOfSource, stream: StreamSource, spark: SparkSession, where: str
) -> StreamScan:
    source = description.source
    if version_of(spark.version) < _OLDEST:
        raise UnsupportedByRunner(
            f"{source.describe()} cannot be read as a stream on Spark {spark.version}",
            where=where,
            hint="use Spark 4.2 or later, or read it in batch mode",
        )
    limit = dict(stream.options).get(MAX_RECORDS)
    parallelism = parallelism_of(spark)
    planning = dumps_for_workers(_Planning(source, limit, parallelism, where, current_reporting()), spark)
    name = f"penstock-{hashlib.sha256(planning).hexdigest()[:16]}"
    with backend_of(spark).workers_python():
        spark.dataSource.register(_data_source(name, planning, driver_sys_path()))
    frame = spark.readStream.format(name).load()
    decoder = partial(StreamDecoder, source, stream.has_rejects, where)
    return StreamScan(frame, decoder, source.poll_seconds, announces=True)


def read_range_columns(
    frame: DataFrame, source: RangeSource[Any], schema: T.StructType, where: str
) -> DataFrame:
    """Returns the columns of the ranges in a stream's frame, if the parts of a source are Arrow batches."""
    rows: DataFrame = map_in_arrow(frame, RowsOfRanges(source, schema, where), schema)
    return rows


def _data_source(name: str, planning: bytes, sys_path: tuple[str, ...]) -> type[DataSource]:
    """Returns the class that Spark pickles; its methods import what they need."""

    class Reader(DataSourceStreamReader):
        def __init__(self) -> None:
            self._planner: Planner | None = None

        def _planned(self) -> Planner:
            if self._planner is None:
                import sys

                sys.path.extend(folder for folder in sys_path if folder not in sys.path)
                from penstock_spark.formats.ranges.stream import Planner

                self._planner = Planner(planning)
            return self._planner

        def initialOffset(self) -> dict[str, Any]:
            planned = self._planned()
            return dict(planned.written(planned.positions.first()))

        def getDefaultReadLimit(self) -> ReadLimit:
            return self._planned().read_limit()

        def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:
            is_limited = type(limit).__name__ == "ReadMaxRows"
            planned = self._planned()
            return dict(planned.latest(start, is_limited))

        def reportLatestOffset(self) -> dict[str, Any] | None:
            newest = self._planned().newest()
            return None if newest is None else self._planned().written(newest)

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
            planned = self._planned()
            return [
                InputPartition(row) for row in planned.rows(planned.position(start), planned.position(end))
            ]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            yield (partition.value,)

        def commit(self, end: dict[str, Any]) -> None:
            planned = self._planned()
            planned.positions.commit(planned.position(end))

        def stop(self) -> None:
            if self._planner is not None:
                self._planner.positions.close()

    class Ranges(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return "ranges binary"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return Reader()

    return Ranges


class Planner:
    """Answers Spark's questions in the process beside the driver."""

    def __init__(self, planning: bytes) -> None:
        planned: _Planning = loads(planning)
        report_with(planned.reporting)
        self._planned = planned
        self._last: object = None
        self._has_told_away = False
        self.positions = Positions(planned.source, planned.limit, planned.parallelism, planned.where)

    def written(self, position: object) -> dict[str, Any]:
        """Returns a position as Spark keeps it."""
        return {"format": POSITION.number, "position": position}

    def position(self, written: dict[str, Any]) -> object:
        try:
            POSITION.check(written.get("format"), self._planned.where)
        except ValueError as error:
            fail_step(error, self._planned.where)
        return written["position"]

    def read_limit(self) -> ReadLimit:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        return ReadAllAvailable() if self._planned.limit is None else ReadMaxRows(self._planned.limit)

    def latest(self, start: dict[str, Any], is_limited: bool) -> dict[str, Any]:
        """Returns the end of the next micro-batch, which has no elements if the source goes away, or comes back."""
        self._last = self.positions.last(self.position(start), is_limited)
        written, before = self.written(self._last), start.get(AWAY, 0)
        if not self.positions.is_away:
            self._has_told_away = False
            return written
        # A driver sees its own micro-batches only, so the message may repeat what an earlier driver has received.
        is_told, self._has_told_away = self._has_told_away and before > 0, True
        return {**written, AWAY: before if is_told else before + 1}

    def newest(self) -> object:
        """Returns the end of all that exists, for Spark's reports of progress; None if it is unknown."""
        return self.positions.newest(self._last)

    def rows(self, start: object, end: object) -> list[bytes]:
        """Returns the pickled ranges of each task."""
        ranges = self.positions.ranges(start, end)
        return [pickle.dumps(task) for task in distribute_ranges(ranges, self._planned.parallelism)]
