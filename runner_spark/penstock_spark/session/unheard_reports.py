"""The reports of tasks of a query that the program starts itself: nothing follows it, so nothing reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock_spark.session.backend import Function, ReportSink, TaskReports, Told
from penstock_spark.session.backends import backend_of, map_in_arrow
from penstock_spark.session.spark_versions import transform_with_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Unheard(TaskReports, ReportSink):
    """TaskReports that are dropped in the task: kept on the driver, they would grow with each micro-batch."""

    @property
    def value(self) -> Told:
        return {}

    def add(self, term: Told) -> None:
        """Drops it."""

    def map_in_arrow(
        self, frame: DataFrame, make: Callable[[ReportSink], Function], schema: StructType | str
    ) -> DataFrame:
        return map_in_arrow(frame, make(self), schema)

    def transform_with_state(
        self, frame: DataFrame, make: Callable[[ReportSink], StatefulProcessor], schema: str
    ) -> DataFrame:
        with backend_of(frame.sparkSession).workers_python():
            rows: DataFrame = transform_with_state(frame.groupBy("shard"), make(self), schema)
            return rows

    def see(self, progress: Mapping[str, Any]) -> None:
        """Does nothing: no report comes."""
