"""The base of functions that make the rows of a source in a task, with the driver's settings of reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from penstock_spark.reports.reporting import Reporting, current_reporting, report_with
from penstock_spark.session.worker_socket import acknowledge_each


@dataclass(frozen=True)
class TaskRows(ABC):
    """The function for Spark's ``mapInArrow`` over the findings of a source, such as the names of files."""

    reporting: Reporting = field(default_factory=current_reporting, kw_only=True)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        report_with(self.reporting)
        for batch in acknowledge_each(batches):
            yield from self.rows_of(batch)

    @abstractmethod
    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Reads what a batch refers to, and yields its rows."""
