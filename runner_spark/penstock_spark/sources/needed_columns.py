"""The columns of files in which no value may be missing, because the types that the program declares exclude None."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.io.formats.declared_fields import KEEPS_APART, make_missing, needed_fields
from penstock.io.formats.file_formats import RecordFileSource
from penstock.io.rejects import UNKNOWN_POSITION, Position, Rejected, Unreadable, reject
from penstock.scalars.spark_forms import quote_name
from penstock.typehints.constraints import Hint
from penstock_spark.reports.failure import fail_step, mark
from penstock_spark.sources.decoding import explain


@dataclass(frozen=True)
class NeededColumns:
    """Finds records without a value in a column that needs one: they are rejects, or errors of the step."""

    hints: Mapping[str, Hint] = field(default_factory=dict)  # Their declared types, by name.
    where: str = ""
    has_rejects: bool = False
    ways_out: tuple[str, ...] = ()  # What else the user can do than to let the column be None.

    @staticmethod
    def of(source: RecordFileSource, where: str, *, has_rejects: bool | None = None) -> NeededColumns:
        """The columns of a source; with None for `has_rejects`, its format has no rejects."""
        ways_out = () if has_rejects is None else (KEEPS_APART,)
        return NeededColumns(needed_fields(source.declared), where, bool(has_rejects), ways_out)

    def make_missing(self, name: str) -> Unreadable:
        """Why a record without a value in a column does not fit."""
        return make_missing(name, self.hints[name], *self.ways_out)

    def fail(self, name: str, file: str) -> NoReturn:
        """Raises the step's failure for a record of a file without a value in a column."""
        fail_step(self.make_error(name, file), self.where)

    def make_error(self, name: str, file: str) -> Exception:
        """The error for a record of a file without a value in a column."""
        return explain(self.make_missing(name), file, None, self.where, "")

    def check(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        """Returns records of a file, all of which have the values that they need; otherwise the step fails."""
        for name in self._lacking(batch):
            self.fail(name, file)
        return batch

    def divide(self, batch: pa.RecordBatch, elements: list[Any], file: str) -> list[Any]:
        """The elements of records, with a `Rejected` for each one that lacks a value, or the step fails."""
        lacking = self._lacking(batch)
        if lacking and not self.has_rejects:
            self.fail(lacking[0], file)
        for name in reversed(lacking):
            for place in pc.indices_nonzero(pc.is_null(batch.column(name))).to_pylist():
                elements[place] = self.rejected(name, elements[place], file)
        return elements

    def rejected(
        self, name: str, element: object, file: str, position: Position = UNKNOWN_POSITION
    ) -> Rejected:
        """Returns the reject that replaces an element which lacks a value."""
        if isinstance(element, Rejected):
            return Rejected(element.record._replace(field=name, reason=str(self.make_missing(name))))
        return Rejected(reject(file, position, element, self.make_missing(name)))

    def _lacking(self, batch: pa.RecordBatch) -> list[str]:
        """The columns in which a value is missing."""
        own = [name for name in self.hints if name in batch.schema.names]
        return [name for name in own if batch.column(name).null_count]

    def guarded(self, frame: DataFrame, names: Collection[str], file: str) -> DataFrame:
        """The frame, which fails as the step would where a value is missing in one of these columns."""
        own = [name for name in frame.columns if name in names]
        if not own:
            return frame
        columns = []
        for column in frame.schema:
            value = F.col(quote_name(column.name))
            if column.name in own:
                error = F.lit(mark(self.make_error(column.name, file), self.where))
                value = F.coalesce(value, F.raise_error(error).cast(column.dataType)).alias(column.name)
            columns.append(value)
        return frame.select(*columns)


NOTHING_NEEDED = NeededColumns()
"""For files of which the program declares nothing."""
