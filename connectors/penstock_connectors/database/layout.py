"""The rows of a table that elements stand for: records, upserts, or changes, as Arrow columns."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from penstock.elements.bounded_window import IntervalWindow
from penstock.error import refusal
from penstock.io.database import DatabaseSink
from penstock.relations.upserts import Upsert
from penstock.utils.windowed_value import ValueKind
from penstock_connectors.database.columns import check_types, is_nested
from penstock_spark.connecting.values import schema_of, spark_schema_of, to_arrow_schema, to_batch, to_plain

ORDER = "penstock_order"
"""Which of several changes of a key is the last: the number of the partition, and of the row in it."""

CHANGE = "penstock_change"
"""1 for a row that is there from now on, and -1 for one that is gone."""

PARTITION_SHIFT = 40


@dataclass(frozen=True)
class Layout:
    """The columns of a table, and how elements fill them."""

    schema: pa.Schema
    key: tuple[str, ...]
    mode: str
    elements: str
    where: str

    @staticmethod
    def of(sink: DatabaseSink, where: str) -> Layout:
        schema = _schema(sink, where)
        check_types(schema, where)
        for name in sink.key:
            if name not in schema.names:
                what = f"the key has the column {name}, but the rows have no such field"
                raise refusal(ValueError, what, where=where, hint=f"the fields are {', '.join(schema.names)}")
            if is_nested(schema.field(name).type):
                what = f"the column {name} of the key has the type {schema.field(name).type}"
                raise refusal(ValueError, what, where=where, hint="use strings, numbers and times as keys")
            if sink.elements == "rows" and schema.field(name).nullable and sink.mode == "upsert":
                schema = schema.set(schema.get_field_index(name), schema.field(name).with_nullable(False))
        return Layout(schema, sink.key, sink.mode, sink.elements, where)

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    @property
    def others(self) -> list[str]:
        """The columns that are not part of the key."""
        return [name for name in self.schema.names if name not in self.key]

    @property
    def has_changes(self) -> bool:
        """True if an element may delete a row."""
        return self.elements != "rows"

    @property
    def staged_names(self) -> list[str]:
        """The columns of rows on their way to the table."""
        order = [ORDER] if self.mode == "upsert" else []
        return [*self.names, *order, *([CHANGE] if self.has_changes else [])]

    def rows(self, values: list[Any], first: int) -> pa.RecordBatch:
        """Elements as rows; with mode="upsert", rows carry their order, from `first` on."""
        match self.elements:
            case "upserts":
                records = [self._record(value) for value in values]
                # A deleted row has only a key.
                fields = [field.with_nullable(field.name not in self.key) for field in self.schema]
                batch = to_batch(records, pa.schema(fields), self.where)
                changes = [-1 if value.is_deleted else 1 for value in values]
            case "changes":
                pairs = [self._pair(value) for value in values]
                batch = to_batch([record for _, record in pairs], self.schema, self.where)
                changes = [-1 if kind.is_retraction else 1 for kind, _ in pairs]
            case _:
                batch, changes = to_batch(values, self.schema, self.where), []
        if self.mode == "upsert":
            order = pa.array(range(first, first + len(values)), pa.int64())
            batch = batch.append_column(ORDER, order)
        return batch.append_column(CHANGE, pa.array(changes, pa.int8())) if self.has_changes else batch

    def _pair(self, value: object) -> tuple[ValueKind, Any]:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], ValueKind):
            return value
        raise self._wrong(value, "a pair of a ValueKind and a row")

    def _wrong(self, value: object, wanted: str) -> TypeError:
        what = f"an element of type {type(value).__name__} is not {wanted}"
        return refusal(TypeError, what, where=self.where, hint="correct the declared type of the elements")

    def _record(self, upsert: object) -> dict[str, Any]:
        if not isinstance(upsert, Upsert):
            raise self._wrong(upsert, "an Upsert")
        parts = list(_parts(upsert.key))
        if len(parts) != len(self.key):
            what = f"the key of an Upsert has {len(parts)} parts, but the key of the table {len(self.key)}"
            hint = f"name a column for each part (a window has two); now they are {', '.join(self.key)}"
            raise refusal(TypeError, what, where=self.where, hint=hint)
        key = dict(zip(self.key, parts, strict=True))
        if upsert.is_deleted:
            return key
        value = to_plain(upsert.value) if _is_record(upsert.value) else upsert.value
        if isinstance(value, dict):
            return {**value, **key}
        if len(self.others) != 1:
            what = f"the value of an Upsert is one {type(value).__name__}, but {len(self.others)} columns need values"
            raise refusal(TypeError, what, where=self.where, hint="make the value a record with these fields")
        return {self.others[0]: value, **key}


def _schema(sink: DatabaseSink, where: str) -> pa.Schema:
    given = sink.schema
    if given is None:
        return schema_of(sink.element_type, where)
    if isinstance(given, str | StructType):
        return to_arrow_schema(spark_schema_of(given))
    return schema_of(given, where)


def _is_record(value: object) -> bool:
    is_named = hasattr(value, "_asdict") or isinstance(value, dict)
    return is_named or (is_dataclass(value) and not isinstance(value, type))


def _parts(key: object) -> Iterator[Any]:
    """The values of a key for the columns of the table.

    >>> list(_parts(("amy", IntervalWindow(0, 60))))
    ['amy', Timestamp(0), Timestamp(60)]
    """
    if isinstance(key, tuple):
        for part in key:
            yield from _parts(part)
    elif isinstance(key, IntervalWindow):
        yield from (key.start, key.end)
    else:
        yield key


def json_of(values: pa.Array, where: str, name: str) -> list[str | None]:
    """A column of lists, records or dicts as JSON; times and Decimals become strings."""
    try:
        return [
            None
            if value is None
            else json.dumps(_as_json(value, values.type), allow_nan=False, ensure_ascii=False)
            for value in values.to_pylist()
        ]
    except ValueError:
        what = f"a value of the field {name} holds NaN or an infinite number, which JSON cannot represent"
        raise refusal(ValueError, what, where=where, hint="replace it with None before the write") from None


def _as_json(value: Any, kind: pa.DataType) -> object:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _as_json(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: _as_json(value[field.name], field.type) for field in kind}
    if is_nested(kind):
        return [_as_json(item, kind.value_type) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if pa.types.is_decimal(kind) else value
