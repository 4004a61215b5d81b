"""Reads ranges of a Python source in a task, and distributes ranges among tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from penstock.error import noun_for, refusal
from penstock.io.custom.ranges import RangeSource, SourceRange, TimedElements, UnreadableElement
from penstock.io.rejects import Position, Rejected, reject, say_why
from penstock_spark.columns.types import arrow_schema_of
from penstock_spark.columns.values import cast_to_python_types, to_rows
from penstock_spark.formats.ranges.positions import RetryLimit
from penstock_spark.reports.failure import fail_step
from penstock_spark.reports.reporting import TaskRows
from penstock_spark.sources.parts import PartsReader
from penstock_spark.sources.scan import Part
from penstock_spark.worker.batch import Batch


def parts_of(
    source: RangeSource[Any], piece: SourceRange, has_rejects: bool, where: str, as_columns: bool = False
) -> Iterator[tuple[Any, Sequence[int] | None]]:
    """The elements of a range with their event times, in parts; whatever the source raises is an error of the step.

    With `as_columns`, the parts are Arrow batches, as the source yields them.
    """
    reading = _Reading(source, piece, has_rejects, where, as_columns)
    try:
        while (part := reading.next_part()) is not None:
            yield part
    except GeneratorExit:
        raise
    except BaseException as error:
        fail_step(error, where)


class _Reading:
    """The parts that `read` yields. If the connection is lost, it reads the range again, without the parts before."""

    def __init__(
        self, source: RangeSource[Any], piece: SourceRange, has_rejects: bool, where: str, as_columns: bool
    ) -> None:
        self._source = source
        self._as_columns = as_columns
        self._piece = piece
        self._has_rejects = has_rejects
        self._patience = RetryLimit(source, where)
        self._parts: Iterator[Any] | None = None
        self._given = 0
        self._to_leave_out = 0

    def next_part(self) -> tuple[Any, Sequence[int] | None] | None:
        """The next elements that were not given before; None at the end."""
        return self._patience.wait_for(self._next_new)

    def _next_new(self) -> tuple[Any, Sequence[int] | None] | None:
        if self._parts is None:
            self._parts, self._to_leave_out = iter(self._source.read(self._piece)), self._given
        try:
            for part in self._parts:
                values, times_micros = (part, None) if self._as_columns else self._checked(part)
                left_out = min(self._to_leave_out, len(values))
                self._to_leave_out -= left_out
                if left_out < len(values):
                    self._given += len(values) - left_out
                    return values[left_out:], None if times_micros is None else times_micros[left_out:]
        except BaseException:
            self._parts = None
            raise
        if self._to_leave_out:
            what = f"read() has yielded {self._given} elements, and fewer when the range was read again"
            raise refusal(ValueError, what, hint="let read() yield the same elements each time")
        return None

    def _checked(self, part: Any) -> tuple[list[Any], Sequence[int] | None]:
        values, times_micros = _check_part(self._source, part)
        for place, value in enumerate(values):
            if type(value) is UnreadableElement:
                source = value.source or self._piece.partition
                if not self._has_rejects:
                    raise explain_unreadable(source, value) from value.error
                values[place] = Rejected(reject(source, value.position, value.raw, value.error))
        return values, times_micros


def explain_unreadable(source: str, element: UnreadableElement) -> Exception:
    """Returns the error of an element that cannot be decoded, with its place."""
    if element.position == Position():
        return element.error
    what = f"{element.position.after(source)}: the record cannot be read: {say_why(element.error)}"
    hint = "correct the deserializer, or pass rejects=True, which keeps such records apart"
    return refusal(ValueError, what, where="", hint=hint)


def _check_part(source: RangeSource[Any], part: Any) -> tuple[list[Any], Sequence[int] | None]:
    times_micros = None
    if isinstance(part, TimedElements):
        part, times_micros = part.elements, part.times_micros
        if len(part) != len(times_micros):
            what = f"read() has yielded {len(part)} elements, but {len(times_micros)} times"
            raise refusal(ValueError, what, hint="give TimedElements one time for each element")
    elif source.has_times:
        what = f"read() has yielded {noun_for(part)}, but the source says that it has times"
        raise refusal(TypeError, what, hint="yield TimedElements, or set has_times = False")
    if isinstance(part, pa.RecordBatch):
        part = to_rows(part)
    if isinstance(part, str | bytes) or not isinstance(part, Sequence):
        what = f"read() has yielded {noun_for(part)}, which is not a list of elements"
        raise refusal(TypeError, what, hint="yield lists of elements, such as yield [element]")
    return list(part), times_micros


@dataclass(frozen=True)
class BatchReader(PartsReader):
    source: RangeSource[Any]
    parts: Sequence[Sequence[SourceRange]]
    where: str
    has_rejects: bool = False

    def read(self, piece: SourceRange) -> Iterator[list[Any] | Batch]:
        for values, times_micros in parts_of(self.source, piece, self.has_rejects, self.where):
            yield values if times_micros is None else Batch(values, list(times_micros))


class StreamDecoder:
    """Reads the ranges that are pickled in the rows of a batch."""

    def __init__(self, source: RangeSource[Any], has_rejects: bool, where: str) -> None:
        self._source = source
        self._has_rejects = has_rejects
        self._where = where

    def __call__(self, batch: pa.RecordBatch) -> Iterator[Part]:
        for ranges in batch.column(0).to_pylist():
            for piece in pickle.loads(ranges):
                # Without elements, the partition still counts for the watermark.
                yield Part((piece.partition, piece.start, -1), [], [], piece.partition)
                read = parts_of(self._source, piece, self._has_rejects, self._where)
                for number, (values, times_micros) in enumerate(read):
                    yield Part((piece.partition, piece.start, number), values, times_micros, piece.partition)


@dataclass(frozen=True)
class RowsOfRanges(TaskRows):
    """Gives the columns of ranges in a task, without Python's objects."""

    source: RangeSource[Any]
    schema: T.StructType
    where: str

    def rows_of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(self.schema)
        for ranges in batch.column(0).to_pylist():
            for piece in pickle.loads(ranges):
                for rows, _ in parts_of(self.source, piece, False, self.where, as_columns=True):
                    yield self._as_read(rows, schema)

    def _as_read(self, rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        try:
            table = cast_to_python_types(rows).combine_chunks()
        except ValueError as error:
            fail_step(error, self.where)
        columns = [
            column.combine_chunks().cast(each.type)
            for column, each in zip(table.columns, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def distribute_ranges(ranges: Sequence[SourceRange], tasks: int) -> list[list[SourceRange]]:
    """The ranges of each task, neighbours together; at most `tasks` lists, none of them empty.

    >>> ranges = [SourceRange(name, 0, 1) for name in "abc"]
    >>> [[piece.partition for piece in task] for task in distribute_ranges(ranges, 2)]
    [['a'], ['b', 'c']]
    """
    tasks = min(tasks, len(ranges))
    cuts = [len(ranges) * task // tasks for task in range(tasks + 1)] if tasks else []
    return [list(ranges[start:end]) for start, end in pairwise(cuts)]
