"""The reports of tasks of a query that the program starts itself: nothing follows it, so nothing reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock_spark.session.backend import Function, ReportSink, TaskReports, Told
from penstock_spark.session.backends import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Unheard(TaskReports, ReportSink):
    """TaskReports that are dropped in the task: kept on the driver, they would grow with each micro-batch."""

    @property
    def value(self) -> Told:
        return {}

    @property
    def sink(self) -> ReportSink:
        return self

    def add(self, term: Told) -> None:
        """Drops it."""

    def map_in_arrow(
        self, frame: DataFrame, make: Callable[[ReportSink], Function], schema: StructType | str
    ) -> DataFrame:
        return map_in_arrow(frame, make(self), schema)
