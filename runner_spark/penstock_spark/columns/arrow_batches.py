"""Batches that are Arrow tables or record batches, with a row for each element, or Arrow arrays."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.functions.batches import BatchConverter
from penstock.typehints import typehints
from penstock.typehints.column_types import ValueTypeConstraint
from penstock.typehints.row_type import RowTypeConstraint
from penstock.utils.timestamp import Timestamp
from penstock_spark.columns.elements import (
    LibraryBatches,
    RowBatches,
    make_element_error,
    make_row_maker,
    row_type,
    strip_none,
)
from penstock_spark.columns.records import column_of, plain_type, to_arrow_accepted
from penstock_spark.columns.types import type_in_python
from penstock_spark.columns.values import cast_column, values_of

_TABLES = {pa.Table: pa.Table.from_arrays, pa.RecordBatch: pa.RecordBatch.from_arrays}
_Make = Callable[[Any], Any] | None
"""Converts pyarrow's value to the hinted type; None if pyarrow's value has that type."""


def converter(element_type: object, batch_type: Any) -> BatchConverter[Any, Any]:
    if batch_type is pa.Array:
        return ArrayConverter(element_type)
    if batch_type not in _TABLES:
        raise TypeError("batch type must be pa.Table, pa.RecordBatch or pa.Array")
    row = row_type(element_type)
    if row is None:
        raise TypeError(f"Element type must have named fields for batch type pa.{batch_type.__name__}")
    return TableConverter(batch_type, row)


def field_of(name: str, hint: object) -> pa.Field:
    """Returns the Arrow field for values of a type; TypeError if no field returns them unchanged.

    >>> field_of("a", typehints.Optional[typehints.List[int]])
    pyarrow.Field<a: list<item: int64 not null>>
    """
    inner, nullable = strip_none(hint)
    return pa.field(name, _type_of(inner), nullable)


def _type_of(hint: object) -> pa.DataType:
    if isinstance(hint, ValueTypeConstraint):
        return plain_type(hint)
    if isinstance(hint, type):
        # A datetime may have a zone or none, and a column has one or the other.
        plain_one = None if hint is datetime.datetime else plain_type(hint)
        if plain_one is not None:
            return plain_one
        if hint.__module__.partition(".")[0] == "numpy":
            return pa.from_numpy_dtype(hint)
    row = row_type(hint)
    if row is not None:
        return pa.struct([field_of(name, each) for name, each in row.fields])
    if isinstance(hint, typehints.ListConstraint):
        return pa.list_(field_of("item", hint.inner_type))
    if isinstance(hint, typehints.DictConstraint):
        return pa.map_(_type_of(hint.key_type), field_of("value", hint.value_type))
    raise TypeError(f"Arrow has no type for {typehints.show_type(hint)}")


def _maker(hint: object) -> _Make:
    inner, _ = strip_none(hint)
    make = _maker_of_some(inner)
    return make and (lambda value: None if value is None else make(value))


def _maker_of_some(hint: object) -> _Make:
    if hint is Timestamp:
        return Timestamp.from_utc_datetime
    row = row_type(hint)
    if row is not None:
        makers = {name: _maker(each) for name, each in row.fields}
        of = make_row_maker(row)
        return lambda value: of(**{name: _make_optional(make, value[name]) for name, make in makers.items()})
    if isinstance(hint, typehints.ListConstraint):
        item = _maker(hint.inner_type)
        return item and (lambda value: [_make_optional(item, each) for each in value])
    if isinstance(hint, typehints.DictConstraint):
        key, item = _maker(hint.key_type), _maker(hint.value_type)
        return lambda value: {_make_optional(key, name): _make_optional(item, each) for name, each in value}
    return None


def _make_optional(make: _Make, value: object) -> Any:
    return value if make is None else make(value)


def _to_arrow(values: Sequence[Any], field: pa.Field, hint: object, name: str = "") -> pa.Array:
    """Values as a column; `name` is the field that the hint is of, if the elements have fields."""
    found = to_arrow_accepted(values, field, name)
    try:
        return column_of(found, field, "")
    except TypeError:
        raise make_element_error(hint, name) from None


def _to_python(column: pa.Array, hint: object) -> list[Any]:
    make = _maker(hint)
    field = pa.field("element", type_in_python(column.type))
    values = values_of(cast_column(column, field), field)
    return values if make is None else list(map(make, values))


class ArrayConverter(LibraryBatches):
    """Arrays of elements.

    >>> made = ArrayConverter(int)
    >>> made.explode_batch(made.produce_batch([1, 2]))
    [1, 2]
    """

    def __init__(self, element_type: object) -> None:
        super().__init__(pa.Array, element_type)
        self._field = field_of("element", element_type)

    def produce_batch(self, elements: Sequence[Any]) -> pa.Array:
        return _to_arrow(elements, self._field, self._element_type)

    def explode_batch(self, batch: object) -> Any:
        return _to_python(batch, self._element_type)

    def combine_batches(self, batches: Sequence[Any]) -> pa.Array:
        return pa.concat_arrays(batches)

    def estimate_byte_size(self, batch: pa.Array) -> int:
        return int(batch.nbytes)


class TableConverter(RowBatches):
    """Tables or record batches with a column for each field.

    >>> from penstock.pvalue import Row
    >>> made = TableConverter(pa.Table, RowTypeConstraint.from_fields([("a", int), ("b", str)]))
    >>> made.explode_batch(made.produce_batch([Row(a=1, b="c")]))
    [Row(a=1, b='c')]
    """

    def __init__(self, batch_type: object, element_type: RowTypeConstraint) -> None:
        super().__init__(batch_type, element_type)
        self._schema = pa.schema([field_of(name, hint) for name, hint in element_type.fields])

    def produce_batch(self, elements: Sequence[Any]) -> pa.Table | pa.RecordBatch:
        columns = zip(self._columns(elements), self._schema, self._element_type.fields, strict=True)
        arrays = [_to_arrow(values, field, hint, name) for values, field, (name, hint) in columns]
        return _TABLES[self._batch_type](arrays, schema=self._schema)

    def explode_batch(self, batch: pa.Table | pa.RecordBatch) -> Any:
        return self._rows(batch.schema.names, lambda name, hint: _to_python(batch.column(name), hint))

    def combine_batches(self, batches: Sequence[Any]) -> pa.Table | pa.RecordBatch:
        table = pa.concat_tables([pa.table(batch) for batch in batches])
        return table if self._batch_type is pa.Table else table.combine_chunks().to_batches()[0]

    def estimate_byte_size(self, batch: pa.Table | pa.RecordBatch) -> int:
        return int(batch.nbytes)
