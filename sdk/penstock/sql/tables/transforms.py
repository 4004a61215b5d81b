"""The transforms that read and write declared tables, with their watermarks, rejected records and keys."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast, get_type_hints

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.elements.row import Row
from penstock.error import split_hint
from penstock.io.rejects import RejectedRecord
from penstock.io.sink_transforms import TableSinkTransform
from penstock.io.source_transforms import SourceTransform
from penstock.io.sparkio import FILE_FORMATS, WriteToSpark
from penstock.relations.upserts import Upserts
from penstock.scalars.types import from_hint
from penstock.sql.errors import SqlError
from penstock.sql.plan.relations import ColumnDef, Columns
from penstock.sql.tables.columns import row_hint, spark_schema
from penstock.sql.tables.connectors import Setting, settings_of
from penstock.sql.tables.declared_records import row_of_record
from penstock.sql.tables.latest_rows import LatestRows
from penstock.sql.tables.records import FieldOfRecord, RecordsOfRows, RowsOfRecords
from penstock.sql.tables.table import Table
from penstock.transforms.elements.pardo import Map
from penstock.typehints import KV, row_type
from penstock.typehints import Any as AnyHint

REJECT_COLUMNS = tuple(
    ColumnDef(name, from_hint(hint).or_null()) for name, hint in get_type_hints(RejectedRecord).items()
)
"""The columns of a table of rejected records: the fields of a `penstock.io.rejects.RejectedRecord`."""

_WILDCARDS = frozenset("*?[{")


def read_columns(table: Table) -> PTransform[Any, Any]:
    """Returns a transform whose elements have the columns of a table."""
    make = table.connector.columns_of
    if make is None:
        return ReadTable(table, as_stream=False)
    parameters = inspect.signature(make).parameters
    arguments = {name: value for name, value in table.reading.items() if name in parameters}
    if table.types:
        arguments["columns"] = tuple(each.name for each in table.types)
    if "as_rows" in parameters:
        arguments["as_rows"] = True
    return make(**arguments)


class WriteRejected(PTransform[Any, Any]):
    """Writes rejected records, or those columns of them that a table has.

    Args:
        columns: The columns.
        write: Writes rows with these columns.
    """

    def __init__(self, columns: Columns, write: PTransform[Any, Any]) -> None:
        super().__init__()
        self._columns = columns
        self._write = write

    def expand(self, pcoll: PCollection[Any]) -> object:
        row = Map(RowOf(tuple(each.name for each in self._columns)))
        return pcoll | "Columns" >> row.with_output_types(row_hint(self._columns)) | "Write" >> self._write


class ReadTable(PTransform[Any, Any]):
    """Reads a table, and writes the records that it rejects to another.

    Args:
        table: The table.
        as_stream: Whether it is read continuously.
        rejects: Writes rejected records; None if they are errors.
    """

    def __init__(self, table: Table, as_stream: bool, rejects: WriteRejected | None = None) -> None:
        super().__init__()
        self._table = table
        self._as_stream = as_stream
        self._rejects = rejects

    def expand(self, pbegin: PBegin) -> Any:
        table, connector = self._table, self._table.connector
        # Without words about them, a table that only streams reject has rejects in a batch too.
        has_rejects = self._rejects is not None and (self._as_stream or connector.rejects)
        read = self._read(has_rejects and not self._as_stream)
        found = pbegin | "Read" >> (self._stream(read, has_rejects) if self._as_stream else read)
        rows = found
        if has_rejects and self._rejects is not None:
            rows, rejected = cast(Iterable[PCollection[Any]], found)
            _ = rejected | "Write rejected" >> self._rejects
        if table.records is not None:
            make = LatestRows if table.declared.key else RowsOfRecords
            return rows | "Rows" >> make(row_of_record(table.records), table.types)
        if connector.after_read is not None:
            return rows | "Rows" >> connector.after_read(self._columns_inside(rows))
        if table.types and not _is_row_type(rows.element_type):
            named = Map(RowOf(tuple(each.name for each in table.types)))
            rows = rows | "Columns" >> named.with_output_types(row_hint(table.types))
        return rows

    def _columns_inside(self, rows: PCollection[Any]) -> Columns:
        """The columns of what is in the elements: the declared ones, or those that the source returns."""
        if self._table.types:
            return self._table.types
        parts: tuple[object, ...] = getattr(rows.element_type, "tuple_types", ())
        return columns_of_type(parts[-1]) if parts else ()

    def _read(self, has_rejects: bool) -> SourceTransform[Any]:
        table, connector = self._table, self._table.connector
        assert connector.read is not None
        parameters = inspect.signature(connector.read).parameters
        check_needed(table, settings_of(connector.read, connector), table.reading, "read")
        arguments = dict(table.reading)
        names = tuple(each.name for each in table.types)
        if "as_rows" in parameters:
            arguments["as_rows"] = True
        if "columns" in parameters and names:
            arguments["columns"] = names
        if "partition_by" in parameters and table.declared.partition_by:
            arguments["partition_by"] = table.declared.partition_by
            arguments["schema"] = row_hint(
                tuple(each for each in table.types if each.name in table.declared.partition_by)
            )
        elif connector.file_pattern is not None:
            arguments[connector.file_pattern] = find_files_of(str(arguments[connector.file_pattern]))
        if connector.schema == "spark" and connector.finds_in_engine:
            if names:
                arguments["schema"] = spark_schema(
                    table.types, tuple(each.type for each in table.declared.columns)
                )
            elif table.system == "csv":
                arguments.setdefault("inferSchema", "true")
        if table.records is not None:
            arguments["value_deserializer"] = table.records.reader()
            arguments["with_metadata"] = bool(table.records.metadata or table.declared.key)
        if has_rejects:
            arguments["rejects"] = True
        read = connector.read(**arguments)
        assert isinstance(read, SourceTransform)
        return read

    def _stream(self, read: SourceTransform[Any], has_rejects: bool) -> SourceTransform[Any]:
        table = self._table
        mark = table.declared.watermark
        selector: FieldOfRecord | FieldInside | str | None = None
        if mark is not None and table.records is not None:
            selector = FieldOfRecord(row_of_record(table.records), mark.column)
        elif mark is not None:
            inside = table.connector.after_read is not None
            selector = FieldInside(mark.column) if inside else mark.column
        stream: SourceTransform[Any] = read.as_stream(
            selector, table.watermark, rejects=has_rejects, **table.stream_arguments
        )
        return stream


def _is_row_type(element_type: object) -> bool:
    """True if elements have named fields that are known."""
    return row_type.RowTypeConstraint.from_user_type(element_type) is not None or isinstance(
        element_type, row_type.RowTypeConstraint
    )


def columns_of_type(element_type: object) -> Columns:
    """Returns the columns of a type of rows; none if it has no fields."""
    row = element_type
    if not isinstance(row, row_type.RowTypeConstraint):
        row = row_type.RowTypeConstraint.from_user_type(element_type)
    if not isinstance(row, row_type.RowTypeConstraint):
        return ()
    return tuple(ColumnDef(name, from_hint(hint)) for name, hint in row.fields)


@dataclass(frozen=True)
class RowOf:
    """A row with some columns of an element: of a row, a dict or a tuple in the order of the columns.

    >>> RowOf(("team", "points"))(("blue", 3)), RowOf(("team",))({"team": "red", "points": 5})
    (Row(team='blue', points=3), Row(team='red'))
    """

    names: tuple[str, ...]

    def __call__(self, element: object) -> Row:
        """The row of an element."""
        if isinstance(element, Mapping):
            return Row(**{name: element.get(name) for name in self.names})
        if isinstance(element, tuple | list) and not hasattr(element, "_fields"):
            return Row(**dict(zip(self.names, element, strict=True)))
        return Row(**{name: getattr(element, name) for name in self.names})


@dataclass(frozen=True)
class FieldInside:
    """The field of the second part of a pair; the start of 1970 for a pair without one, which is not a row."""

    name: str

    def __call__(self, pair: tuple[object, object]) -> object:
        """The value of the field."""
        return 0 if pair[1] is None else getattr(pair[1], self.name)


def find_path_of_spark(table: Table) -> str | None:
    """Returns the path of a table whose files Spark itself reads; None if it has none."""
    format = str(table.reading.get("format", table.system)).lower()
    path = table.reading.get("path")
    is_file = table.connector.finds_in_engine and format in FILE_FORMATS
    return str(path) if is_file and path is not None else None


def find_files_of(path: str) -> str:
    """Returns the pattern of the files of a path: of a folder, all files in it.

    >>> find_files_of("/nowhere/goals"), find_files_of("/nowhere/*.parquet"), find_files_of("s3://lake/a.parquet")
    ('/nowhere/goals/*', '/nowhere/*.parquet', 's3://lake/a.parquet')
    """
    if not _WILDCARDS.isdisjoint(path) or os.path.isfile(path):
        return path
    name = path.rstrip("/").rpartition("/")[2]
    return f"{path.rstrip('/')}/*" if os.path.isdir(path) or "." not in name else path


def check_needed(
    table: Table, settings: Mapping[str, Setting], given: Mapping[str, object], verb: str
) -> None:
    """Refuses a table that lacks a setting without which it cannot be read or written."""
    missing = [name for name, each in settings.items() if each.is_needed and each.argument not in given]
    if missing and not (missing == ["path"] and table.system == "spark"):
        what = f"the table {table.name!r} of {table.system} lacks the setting {missing[0]!r}"
        table.script.refuse(what, table.declared.at, f"write WITH (…, {missing[0]} = '…') to {verb} it")


class WriteTable(PTransform[Any, Any]):
    """Writes rows, or changes of rows by the primary key, to a table.

    Args:
        table: The table.
        columns: The columns of the rows.
        overwrite: Whether the rows that are there go.
    """

    def __init__(self, table: Table, columns: Columns, overwrite: bool = False) -> None:
        super().__init__()
        self._table = table
        self._columns = columns
        self._overwrite = overwrite

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        table = self._table
        key = table.declared.key if table.takes_changes else ()
        if key:
            pairs = Map(KeyAndRow(self._spelled(key)))
            pcoll = pcoll | "Key" >> pairs.with_output_types(KV[AnyHint, pcoll.element_type])
            pcoll = pcoll | "Changes" >> Upserts()
        if table.records is not None:
            encode = table.records.writer(self._columns)
            records = RecordsOfRows(encode, self._spelled(key), table.records.key_format)
            pcoll = pcoll | "Elements" >> records
        written: PCollection[Any] = pcoll | "Write" >> self._write(key)
        return written

    def _spelled(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names of columns as the columns spell them."""
        spelled = {each.name.lower(): each.name for each in self._columns}
        return tuple(spelled.get(name.lower(), name) for name in names)

    def _write(self, key: tuple[str, ...]) -> PTransform[Any, Any]:
        table, connector = self._table, self._table.connector
        assert connector.write is not None
        parameters = inspect.signature(connector.write).parameters
        check_needed(table, settings_of(connector.write, connector), table.writing, "write")
        arguments = dict(table.writing)
        if connector.file_prefix is not None:
            arguments[connector.file_prefix] = f"{str(arguments[connector.file_prefix]).rstrip('/')}/part"
        arguments.update(connector.appends)
        if self._overwrite:
            arguments.update(connector.overwrites or {})
        if key and connector.has_keys:
            arguments.update(connector.merges)
            arguments["key"] = self._spelled(key)
        if "partition_by" in parameters and table.declared.partition_by:
            arguments["partition_by"] = self._spelled(table.declared.partition_by)
        if connector.schema == "spark" and (table.types or key):
            declared = tuple(each.type for each in table.declared.columns)
            arguments["schema"] = spark_schema(self._columns, declared)
        write = connector.write(**arguments)
        if key and isinstance(write, TableSinkTransform) and write.sink.schema is None:
            # The elements are changes, which do not contain the columns.
            write.sink = replace(write.sink, element_type=row_hint(self._columns))
        return write


@dataclass(frozen=True)
class KeyAndRow:
    """A pair of the key of a row and the row.

    >>> KeyAndRow(("team",))(Row(team="blue", points=3))
    ('blue', Row(team='blue', points=3))
    """

    names: tuple[str, ...]

    def __call__(self, row: object) -> tuple[object, object]:
        """The pair of a row."""
        values = tuple(getattr(row, name) for name in self.names)
        return (values if len(values) > 1 else values[0]), row


_ALL_FIELDS = {"ignoreNullFields": "false"}
"""Settings with which Spark writes JSON as `WriteToJson` does: a field that is None is null, and not left out."""


def make_reject_folder(path: str) -> WriteRejected:
    """Returns a transform that writes rejected records as JSON into a folder."""
    schema = spark_schema(REJECT_COLUMNS)
    write = WriteToSpark("json", path, mode="append", schema=schema, **_ALL_FIELDS)
    return WriteRejected(REJECT_COLUMNS, write)


def make_reject_table(table: Table) -> WriteRejected:
    """Returns a transform that writes rejected records, or those columns of them that a table has, to it."""
    columns = table.types or REJECT_COLUMNS
    own = _ALL_FIELDS if table.system == "json" else {}
    return WriteRejected(columns, WriteTable(replace(table, writing={**own, **table.writing}), columns))


def refuse_as_sql(error: Exception, table: Table) -> NoReturn:
    """Raises the error of a transform of a table with the place of its statement."""
    if isinstance(error, SqlError):
        raise error
    what, hint = split_hint(str(error))
    if "validate=" in hint:
        # A table has no such setting.
        hint = "check the path"
    table.script.refuse(
        f"the table {table.name!r}: {what.splitlines()[0]}", table.declared.at, hint or "correct the table"
    )
