"""Rows as Avro in the values of records."""

from __future__ import annotations

import datetime
import importlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from types import ModuleType

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.scalars.types import SqlType
from penstock.sql.plan.relations import ColumnDef, Columns
from penstock.sql.tables.json_rows import check_not_null, read_value

HEADER_BYTES = 5
"""The zero and the number of the schema before a value that a schema registry knows."""

_TYPES: Mapping[str, object] = {
    "STRING": "string",
    "BIGINT": "long",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "BINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "TIMESTAMP_NTZ": {"type": "long", "logicalType": "local-timestamp-micros"},
}


_CLASSES: Mapping[str, type] = {
    "STRING": str,
    "BOOLEAN": bool,
    "BINARY": bytes,
    "DECIMAL": Decimal,
    "DATE": datetime.date,
    "TIMESTAMP": datetime.datetime,
    "TIMESTAMP_NTZ": datetime.datetime,
}


def schema_of(columns: Columns) -> dict[str, object]:
    """Returns the schema of rows as Avro.

    Raises:
        ValueError: A column has a type without one in Avro.

    >>> from penstock.scalars.types import BIGINT, STRING
    >>> from penstock.sql.plan.relations import ColumnDef
    >>> schema = schema_of((ColumnDef("team", STRING), ColumnDef("points", BIGINT.or_null(False))))
    >>> schema["fields"]
    [{'name': 'team', 'type': ['null', 'string']}, {'name': 'points', 'type': 'long'}]
    """
    fields = [{"name": each.name, "type": _type_of(each.name, each.type)} for each in columns]
    return {"type": "record", "name": "row", "fields": fields}


def _type_of(name: str, kind: SqlType) -> object:
    found = _TYPES.get(kind.name)
    if kind.name == "DECIMAL" and kind.precision is not None:
        found = {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale or 0,
        }
    if found is None:
        what = f"the column {name!r} is {kind.or_null()}, for which no type of Avro is known"
        raise refusal(ValueError, what, where="", hint="give the schema: avro_schema = '/data/goals.avsc'")
    return ["null", found] if kind.nullable else found


def read_schema(text: str) -> dict[str, object]:
    """Returns a schema that is given as JSON, or as the path of a file with it.

    Raises:
        ValueError: It is not JSON, or the file cannot be read.

    >>> read_schema('{"type": "record", "name": "goal", "fields": []}')["name"]
    'goal'
    """
    try:
        if not text.lstrip().startswith("{"):
            with open(text, encoding="utf-8") as file:
                text = file.read()
        found = json.loads(text)
    except OSError as error:
        what = f"the schema {text!r} cannot be read: {error.strerror}"
        raise refusal(
            ValueError, what, where="", hint="give the path of a file, or the schema as JSON"
        ) from None
    except ValueError as error:
        what = f"the schema of Avro is not JSON: {error}"
        raise refusal(ValueError, what, where="", hint="correct the schema") from None
    if not isinstance(found, dict) or found.get("type") != "record":
        what = "the schema of Avro is not of a record"
        hint = 'write {"type": "record", "name": "goal", "fields": [{"name": "team", "type": "string"}]}'
        raise refusal(ValueError, what, where="", hint=hint)
    return found


@dataclass(frozen=True)
class _Avro:
    """Values by a schema, read or written.

    Attributes:
        schema: The schema.
    """

    schema: Mapping[str, object] = field(hash=False)

    @cached_property
    def parsed(self) -> object:
        """The schema as fastavro keeps it."""
        return self.library.parse_schema(dict(self.schema))

    @property
    def library(self) -> ModuleType:
        """The package that reads and writes."""
        return importlib.import_module("fastavro")

    def __reduce__(self) -> tuple[object, ...]:
        # A parsed schema of fastavro stays here.
        return _restore, (type(self), {name: getattr(self, name) for name in self.__dataclass_fields__})


def _restore(kind: Callable[..., _Avro], fields: Mapping[str, object]) -> _Avro:
    return kind(**fields)


@dataclass(frozen=True)
class RowsOfAvro(_Avro):
    """Decodes a record of Avro as a row.

    Attributes:
        columns: The columns; the record may have more fields, and one that lacks a field has NULL there.
        has_header: Whether a zero and the number of the schema precede it, as a schema registry wants it.
    """

    columns: Columns = ()
    has_header: bool = False

    def __call__(self, data: bytes) -> Row:
        """The row of a value."""
        if self.has_header:
            if len(data) < HEADER_BYTES or data[0] != 0:
                what = "a record has no header of a schema registry"
                raise refusal(ValueError, what, where="", hint="write format = 'avro'")
            data = data[HEADER_BYTES:]
        stream = io.BytesIO(data)
        try:
            found = self.library.schemaless_reader(stream, self.parsed, None)
        except Exception as error:
            what = f"a record is not Avro of the schema: {type(error).__name__}"
            raise refusal(ValueError, what, where="", hint="give the schema of the writer") from None
        if stream.read(1):
            what = "bytes are left over after the Avro value"
            hint = "give the schema of the writer; write format = 'avro-confluent' for a schema registry"
            raise refusal(ValueError, what, where="", hint=hint)
        return Row(**{each.name: _checked(each, found.get(each.name)) for each in self.columns})


def _checked(column: ColumnDef, value: object) -> object:
    """The value of a column, which the schema of the writer may have with another type."""
    wanted = _CLASSES.get(column.type.name)
    if wanted is None:
        return read_value(column, value)
    if check_not_null(column, value) is not None and type(value) is not wanted:
        what = f"the field {column.name!r} of a record is not {column.type.or_null()}"
        raise refusal(ValueError, what, where="", hint="declare the column with the type of the schema")
    return value


@dataclass(frozen=True)
class AvroOfRows(_Avro):
    """Encodes values of a row as a record of Avro."""

    def __call__(self, values: Mapping[str, object]) -> bytes:
        """The record of a row."""
        stream = io.BytesIO()
        self.library.schemaless_writer(stream, self.parsed, values)
        return stream.getvalue()
