"""The columns of a table whose values are in the names of folders: their types, and the values of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from penstock.error import refusal
from penstock.io.formats.partition_folders import values_of_path
from penstock.typehints.unions import column_of
from penstock.values.types import IN_FOLDERS
from penstock_spark.columns.records import field_of, fields_of
from penstock_spark.columns.types import spark_type_of, spelling_of, value_of
from penstock_spark.reports.failure import fail_step


@dataclass(frozen=True)
class PartitionValues:
    """The columns that are in the names of folders."""

    fields: tuple[tuple[str, pa.DataType, T.DataType], ...]
    where: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.fields)

    def with_columns(self, schema: T.StructType) -> T.StructType:
        """The schema of the files with these columns at its end; a column of a file with such a name is hidden."""
        own = [T.StructField(name, kind) for name, _, kind in self.fields]
        return T.StructType([*self.without_columns(schema), *own])

    def without_columns(self, schema: T.StructType) -> T.StructType:
        return T.StructType([field for field in schema if field.name not in self.names])

    def check(self, paths: Iterable[str]) -> None:
        """Refuses files in folders whose names have no values of the types."""
        for path in {path.rpartition("/")[0]: path for path in paths}.values():
            self.of_file(path)

    def of_file(self, path: str) -> dict[str, pa.Scalar]:
        """The values of a file, from its path; ValueError for a text that is not of the type."""
        strings = values_of_path(path, self.names)
        return {
            name: self._value(text, name, kind, path)
            for text, (name, kind, _) in zip(strings, self.fields, strict=True)
        }

    def hints(self) -> list[tuple[str, Any]]:
        """The types of the values, any of which may be None."""
        found = [(name, value_of(kind)) for name, kind, _ in self.fields]
        return [(name, column_of(value.hint)) for name, value in found if value is not None]

    def in_python(self, path: str) -> dict[str, Any]:
        """The values of a file as Python's."""
        return {name: value.as_py() for name, value in self.of_file(path).items()}

    def others(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names of columns of files that these columns do not hide."""
        return tuple(name for name in names if name not in self.names)

    def replace_file_column(self, batch: pa.RecordBatch, namer: Callable[[str], str]) -> pa.RecordBatch:
        """Rows whose last column is the file, as Spark names it, with these columns instead of it."""
        *own, files = batch.columns
        files = files.dictionary_encode()
        known = [self.in_python(namer(file)) for file in files.dictionary.to_pylist()]
        values = [
            pa.array([each[name] for each in known], kind).take(files.indices)
            for name, kind, _ in self.fields
        ]
        return pa.RecordBatch.from_arrays([*own, *values], names=[*batch.schema.names[:-1], *self.names])

    def added(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """The rows of a file with these columns at their end, for a task of a stream."""
        names = [name for name in batch.schema.names if name not in self.names]
        try:
            values = self.of_file(path)
        except ValueError as error:
            fail_step(error, self.where)
        columns = [batch.column(name) for name in names]
        columns += [pa.repeat(value, batch.num_rows) for value in values.values()]
        return pa.RecordBatch.from_arrays(columns, names=[*names, *values])

    def _value(self, text: str | None, name: str, kind: pa.DataType, path: str) -> pa.Scalar:
        try:
            return pa.scalar(text, pa.string()).cast(kind)
        except pa.ArrowException:
            what = f"the column {name} of {path} is in the name of a folder, and has no value of the type {kind} there"
            hint = "correct its type in schema, or move the folder away"
            raise refusal(ValueError, what, where=self.where, hint=hint) from None


def add_folder_values(record: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """A record of a file with the values of its folders at the end, which hide fields of the same names.

    >>> add_folder_values({"day": "?", "n": 1}, {"day": 7}), add_folder_values({"n": 1}, {})
    ({'n': 1, 'day': 7}, {'n': 1})
    """
    if not known:
        return record
    return {**{name: value for name, value in record.items() if name not in known}, **known}


def partition_values(columns: Sequence[str], schema: object, where: str) -> PartitionValues:
    """The columns with the types of a ``pyarrow.Schema`` or a type of rows; without one, they are text.

    >>> partition_values(["year"], pa.schema([("year", pa.int16())]), "").added(
    ...     pa.RecordBatch.from_pydict({"n": [1, 2]}), "/out/year=2026/visits-0"
    ... ).to_pydict()
    {'n': [1, 2], 'year': [2026, 2026]}
    """
    kinds = {name: pa.string() for name in columns}
    if isinstance(schema, pa.Schema):
        kinds = {name: schema.field(name).type for name in columns}
    elif schema is not None:
        hints = dict(fields_of(schema))
        kinds = {name: field_of(name, hints[name], where).type for name in columns}
    return PartitionValues(tuple((name, *_as_read(name, kind, where)) for name, kind in kinds.items()), where)


def _as_read(name: str, kind: pa.DataType, where: str) -> tuple[pa.DataType, T.DataType]:
    spelling = spelling_of(pa.int64() if kind == pa.uint64() else kind)
    if spelling is not None and spelling.value in IN_FOLDERS:
        return spelling.leaves, spark_type_of(spelling.leaves)
    what = f"the column {name!r} of partition_by has the type {kind}, which cannot be read from the names of folders"
    hint = "declare it as a string, an integer, a date or a boolean, and convert the values in a Map"
    raise refusal(ValueError, what, where=where, hint=hint)
