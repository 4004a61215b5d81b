"""Reads the columns that Spark has computed as batches of elements, with their times and windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.elements.bounded_window import GlobalWindow, IntervalWindow
from penstock.scalars.field_functions import named_tuple
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN
from penstock.windows.window_fn import FixedWindows, SlidingWindows
from penstock_spark.columns.values import cast_to_python_types, to_dicts, to_rows, values_of
from penstock_spark.worker.batch import GLOBAL, MIN_MICROS, ONLY_PANE, Batch, Windows


@dataclass(frozen=True)
class ColumnReader:
    names: tuple[str, ...]  # The names of the fields, which are the first columns.
    records: str  # As in `penstock_spark.plan.column_plan.Table`, like the next two.
    time: str
    windowfn: (
        FixedWindows | SlidingWindows | None
    )  # The column ``w`` has the starts of its windows; None for the global window.
    is_combined: bool  # Whether elements come out of a grouping.

    def read(self, record: pa.RecordBatch) -> Batch:
        columns = record.columns[: len(self.names)]
        values = self._values(pa.RecordBatch.from_arrays(columns, names=list(self.names)))
        windows, ends = self._windows(record)
        timestamps: int | list[int] = MIN_MICROS
        if self.time == "column":
            timestamps = record.column("t").to_pylist()
        elif self.time == "end":
            timestamps = ends
        return Batch(values, timestamps, windows, ONLY_PANE if self.is_combined else PANE_INFO_UNKNOWN)

    def _values(self, record: pa.RecordBatch) -> list[Any]:
        if self.records == "dict":
            return to_dicts(record)
        if self.records == "row":
            return to_rows(record)
        table = cast_to_python_types(record)
        values = zip(*map(values_of, table.columns, table.schema), strict=True)
        if self.records == "tuple":
            return list(values)
        return list(map(named_tuple("Result", self.names)._make, values))

    def _windows(self, record: pa.RecordBatch) -> tuple[Windows | list[Windows], int | list[int]]:
        if self.windowfn is None:
            return GLOBAL, GlobalWindow().max_timestamp().micros
        starts = record.column("w").to_pylist()
        # Elements of one window share one tuple: those who part them by window look at that first.
        size = self.windowfn.size_micros
        made: dict[int, Windows] = {
            start: (IntervalWindow.from_micros(start, start + size),) for start in set(starts)
        }
        last = size - 1
        return [made[start] for start in starts], [start + last for start in starts]
