"""The columns of a table that tasks write to: its own, if the elements fit them, or the columns of a new table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from penstock.error import noun_for, refusal
from penstock.values.types import INTEGER, NOTHING, UNSIGNED_INTEGER, ValueType
from penstock_spark.columns.records import schema_of
from penstock_spark.columns.types import is_list, value_of, with_values_of, without_values_of


class Place(Protocol):
    """The place of a table."""

    @property
    def shown(self) -> str:
        """Its name without secrets."""


class TableSink(Protocol):
    """The properties that sinks for tables have in common."""

    @property
    def place(self) -> Place: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def value(self) -> str | None: ...
    @property
    def schema(self) -> object: ...
    @property
    def element_type(self) -> object: ...


def choose_columns(
    sink: TableSink,
    own: pa.Schema | None,
    partition_columns: Sequence[str],
    for_new_table: Callable[[pa.Schema], pa.Schema],
    where: str,
) -> pa.Schema:
    """The columns of the data; ValueError if the elements do not fit the table, or there are no columns to write.

    `own` are the columns of the table, or None if it has to be made.
    """
    wanted = sink.schema
    if wanted is None and (sink.element_type is not None or not sink.key):
        wanted = schema_of(sink.element_type, where)
    if wanted is not None and not isinstance(wanted, pa.Schema):
        what = f"schema must be a pyarrow.Schema, but is {noun_for(wanted)}"
        raise refusal(TypeError, what, where=where, hint="write schema=pyarrow.schema([...])")
    if own is not None:
        columns = own
        if wanted is not None:
            _check_fit(wanted, columns, sink, where)
    elif wanted is None:
        what = f"there is no table {sink.place.shown} yet, and its columns are not declared"
        raise refusal(ValueError, what, where=where, hint="pass schema=pyarrow.schema([...])")
    elif not len(wanted):
        hint = "pass schema=pyarrow.schema([...])"
        raise refusal(ValueError, "a table needs a column", where=where, hint=hint)
    else:
        # A table gets no notes about values.
        columns = for_new_table(without_values_of(wanted))
    for name in (*sink.key, *partition_columns, *(() if sink.value is None else (sink.value,))):
        if name not in columns.names:
            what = f"the table {sink.place.shown} has no column {name}"
            raise refusal(ValueError, what, where=where, hint=f"its columns are {', '.join(columns.names)}")
    _check_keys(sink, columns, where)
    return columns if wanted is None else with_values_of(columns, wanted)


def make_type_error(system: str, field: pa.Field, where: str) -> ValueError:
    """The error for a column that the tables of a system cannot have."""
    what = f"{system} has no type for the column {field.name} of type {field.type}"
    hint = "convert the values first; times of day and durations may become integers"
    return refusal(ValueError, what, where=where, hint=hint)


def _check_fit(wanted: pa.Schema, columns: pa.Schema, sink: TableSink, where: str) -> None:
    place = sink.place.shown
    for field in wanted:
        if field.name not in columns.names:
            what = f"the table {place} has no column {field.name}"
            hint = f"add it to the table, or leave the field out; the columns are {', '.join(columns.names)}"
            raise refusal(ValueError, what, where=where, hint=hint)
        own = columns.field(field.name)
        if not _fits(field.type, own.type):
            what = f"the column {field.name} of the table {place} has the type {own.type}, not {field.type}"
            raise refusal(ValueError, what, where=where, hint="convert the values first")
    missing = [field.name for field in columns if not field.nullable and field.name not in wanted.names]
    if missing:
        what = f"the elements have no field {', '.join(missing)}, which the table {place} needs in every row"
        raise refusal(ValueError, what, where=where, hint="add the field to the elements")


def _fits(given: pa.DataType, own: pa.DataType) -> bool:
    """True if values of a type may be in a column; those that are too large for it are refused one by one."""
    value = value_of(given)
    if value is not None:
        return value is NOTHING or _number(value_of(own)) is _number(value)
    if pa.types.is_struct(given):
        names = {field.name: field for field in own} if pa.types.is_struct(own) else {}
        return bool(names) and all(
            each.name in names and _fits(each.type, names[each.name].type) for each in given
        )
    if is_list(given):
        return is_list(own) and _fits(given.value_type, own.value_type)
    if pa.types.is_map(given):
        return bool(pa.types.is_map(own)) and (
            _fits(given.key_type, own.key_type) and _fits(given.item_type, own.item_type)
        )
    return bool(given == own)


def _number(value: ValueType | None) -> ValueType | None:
    """The type of values, with or without a sign."""
    return INTEGER if value is UNSIGNED_INTEGER else value


def _check_keys(sink: TableSink, columns: pa.Schema, where: str) -> None:
    for name in sink.key:
        kind = columns.field(name).type
        # Arrow neither counts nor joins values of extension types, such as UUIDs.
        if pa.types.is_nested(kind) or pa.types.is_floating(kind) or isinstance(kind, pa.BaseExtensionType):
            what = f"the column {name} of type {kind} cannot be a key"
            raise refusal(
                ValueError, what, where=where, hint="use columns of strings, integers, dates or instants"
            )
    others = [name for name in columns.names if name not in (*sink.key, sink.value)]
    if sink.value is not None and any(not columns.field(name).nullable for name in others):
        what = f"the table needs a value for {', '.join(others)}, beside the key and {sink.value}"
        raise refusal(
            ValueError, what, where=where, hint="give the upserts records as values, and leave value out"
        )
