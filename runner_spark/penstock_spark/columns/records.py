"""Records as Arrow columns: the schema of a row type, and its rows, dicts and tuples as columns."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.typehints import typehints
from penstock.typehints.annotations import annotations_of
from penstock.typehints.column_types import PairsConstraint, ValueTypeConstraint
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.utils.timestamp import Timestamp
from penstock.values.types import (
    BINARY,
    BOOLEAN,
    DECIMAL,
    DECIMAL_DIGITS,
    FLOAT,
    INTEGER,
    TEXT,
    TYPES,
    UNSIGNED_INTEGER,
)
from penstock_spark.columns.losses import (
    find_unknown_fields,
    loss_of,
    make_field_loss,
    make_missing_field_loss,
    make_none_loss,
)
from penstock_spark.columns.types import field_of_value, spelling_of_hint, value_of

_SIMPLE = frozenset(each.python for each in TYPES)
"""The types of values that `to_plain` returns unchanged, whatever is in them."""


def schema_of(element_type: object, where: str) -> pa.Schema:
    """Returns the Arrow schema of a type with named fields; ValueError if a field has a type that no column can hold.

    >>> from typing import NamedTuple
    >>> schema_of(NamedTuple("Score", [("team", str), ("points", int | None)]), "at step 'Write'")
    team: string not null
    points: int64
    """
    fields = fields_of(element_type)
    if not fields:
        raise refusal(
            ValueError,
            f"penstock cannot find the columns of the type {element_type}",
            where=where,
            hint="pass a schema, or give the elements a NamedTuple type",
        )
    return pa.schema([field_of(name, hint, where) for name, hint in fields])


def fields_of(element_type: object) -> list[tuple[str, Any]]:
    if isinstance(element_type, type) and (
        dataclasses.is_dataclass(element_type) or hasattr(element_type, "_fields")
    ):
        hints = annotations_of(element_type)
        names = getattr(element_type, "_fields", None) or [
            each.name for each in dataclasses.fields(element_type)
        ]
        return [(name, convert_to_beam_type(hints.get(name, Any))) for name in names]
    declared = getattr(element_type, "_fields", ())
    return [(each[0], each[1]) for each in declared] if isinstance(declared, tuple | list) else []


def field_of(name: str, hint: object, where: str) -> pa.Field:
    """Returns the Arrow field of a type; ValueError for a type that no column can hold.

    >>> str(field_of("points", int | None, "at step 'Write'"))
    'pyarrow.Field<points: int64>'
    """
    inner, nullable = _optional(hint)
    spelling = spelling_of_hint(inner) if isinstance(inner, collections.abc.Hashable) else None
    if spelling is not None:
        return field_of_value(name, spelling, nullable)
    return pa.field(name, _type(name, inner, where), nullable)


def _optional(hint: object) -> tuple[Any, bool]:
    members = getattr(hint, "union_types", None) or (
        typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else ()
    )
    others = [member for member in members if member is not type(None)]
    if not others or len(others) == len(tuple(members)):
        return hint, hint is type(None)
    return typehints.Union[tuple(others)], True


def plain_type(hint: object) -> pa.DataType | None:
    """Returns the Arrow type of single values; None for other hints.

    >>> from penstock.typehints.column_types import decimal_of
    >>> plain_type(decimal_of(10, 2)), plain_type(typehints.Union[int, float])
    (Decimal128Type(decimal128(10, 2)), DataType(double))
    """
    if isinstance(hint, ValueTypeConstraint) and hint.value_class is decimal.Decimal:
        return pa.decimal128(*hint.parameters)
    members = getattr(hint, "union_types", ())
    if set(members) == {int, float}:
        return pa.float64()
    if members and all(isinstance(each, ValueTypeConstraint) and each.parameters for each in members):
        scale = max(each.parameters[1] for each in members)
        digits = max(precision - behind for precision, behind in (each.parameters for each in members))
        return pa.decimal128(min(digits + scale, DECIMAL_DIGITS), scale)
    spelling = spelling_of_hint(hint) if isinstance(hint, collections.abc.Hashable) else None
    return None if spelling is None else spelling.leaves


def _type(name: str, hint: object, where: str) -> pa.DataType:
    kind = plain_type(hint)
    if kind is not None:
        return kind
    if isinstance(hint, PairsConstraint):
        hint = typehints.Dict[hint.inner_type.tuple_types]
    fields = fields_of(hint)
    if fields:
        return pa.struct([field_of(inner, each, where) for inner, each in fields])
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping) and len(arguments) == 2:
        key, value = (
            field_of(part, each, where) for part, each in zip(("key", "value"), arguments, strict=True)
        )
        return pa.map_(key.type, value)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Iterable) and arguments:
        return pa.list_(field_of("item", arguments[0], where))
    inner = getattr(hint, "inner_type", None)
    if inner is not None:
        return pa.list_(field_of("item", inner, where))
    pair = getattr(hint, "key_type", None), getattr(hint, "value_type", None)
    if None not in pair:
        return pa.map_(field_of("key", pair[0], where).type, field_of("value", pair[1], where))
    raise refusal(
        ValueError,
        f"a column cannot hold the type {hint} of the field {name}",
        where=where,
        hint="pass a schema",
    )


def to_plain(value: object, name: str = "") -> Any:
    """Returns a value in the form that Arrow accepts: at any depth, dicts for records and datetimes for timestamps.

    ValueError, without the step, for a timestamp that no datetime has; it names the field, which is `name` for the
    value itself.

    >>> from penstock.pvalue import Row
    >>> to_plain(Row(a=[Row(b=Timestamp(0))]))
    {'a': [{'b': datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)}]}
    """
    if type(value) in _SIMPLE or isinstance(value, str | bytes | int | float):
        return value
    if isinstance(value, Timestamp):
        return _datetime_of(value, name)
    if isinstance(value, Mapping):
        return _plain_fields(value)
    if isinstance(value, Row):
        # A field may have the name of a method.
        return _plain_fields(vars(value))
    as_dict = getattr(value, "_asdict", None)
    if as_dict is not None:
        return _plain_fields(as_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: to_plain(getattr(value, each.name), each.name) for each in dataclasses.fields(value)
        }
    return (
        [to_plain(each, name) for each in value]
        if isinstance(value, list | tuple | set | frozenset)
        else value
    )


def _plain_fields(fields: Mapping[Any, Any]) -> dict[Any, Any]:
    # Most values need no call.
    return {key: each if type(each) in _SIMPLE else to_plain(each, key) for key, each in fields.items()}


def _datetime_of(time: Timestamp, name: str) -> datetime.datetime:
    whose = f"a time of the field {name}" if name else "a time"
    try:
        return time.to_utc_datetime(has_tz=True)
    except OverflowError:
        what = f"{whose} is outside of the years 1 to 9999"
        hint = "filter out such elements, or convert the time to a number, with time.micros"
    except ValueError:
        what = f"{whose} is finer than a microsecond"
        hint = "truncate it with to_precision(6, allow_lossy_conversion=True), or make it a number, with time.nanos"
    raise refusal(ValueError, what, where="", hint=hint)


def to_batch(values: Sequence[Any], schema: pa.Schema, where: str) -> pa.RecordBatch:
    """Returns records as columns; a missing field is null if the schema allows it, else NoSuchField (a KeyError).

    ValueError for a field that the schema lacks.
    """
    columns = _columns_of_tuples(values)
    if columns is not None:
        records: Sequence[Mapping[str, Any]] = [columns]
        arrays = [_column_of_tuples(columns, len(values), field, where) for field in schema]
    else:
        records = [to_plain(value) for value in values]
        arrays = [_column(records, field, where) for field in schema]
    lost = find_unknown_fields(records, frozenset(schema.names))
    if lost is not None:
        raise lost.refused(where)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns_of_tuples(values: Sequence[Any]) -> dict[str, Sequence[Any]] | None:
    """Returns the fields of NamedTuples of one class; a dict of each of them would take most of the time."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else object
    names = getattr(kind, "_fields", None)
    if names is None or not issubclass(kind, tuple):
        return None
    return dict(zip(names, zip(*values, strict=True), strict=True))


def _column_of_tuples(columns: dict[str, Sequence[Any]], count: int, field: pa.Field, where: str) -> pa.Array:
    found = columns.get(field.name)
    if found is None:
        if not field.nullable:
            raise make_missing_field_loss(field.name).refused(where)
        found = [None] * count
    if not _SIMPLE.issuperset(map(type, found)):
        found = [to_plain(value, field.name) for value in found]
    return column_of(found, field, where)


_OF_ONE_FORM = (BOOLEAN, INTEGER, UNSIGNED_INTEGER, FLOAT, DECIMAL, TEXT, BINARY)


def to_arrow_accepted(values: Sequence[Any], field: pa.Field, name: str) -> Sequence[Any]:
    """Values of a field in the form that Arrow accepts: see `to_plain`, which calls the field `name`."""
    if value_of(field.type) in _OF_ONE_FORM or _SIMPLE.issuperset(map(type, values)):
        return values
    return [to_plain(value, name) for value in values]


def _column(records: Sequence[Any], field: pa.Field, where: str) -> pa.Array:
    name = field.name
    try:
        values = [record.get(name) if field.nullable else record[name] for record in records]
    except KeyError:
        raise make_missing_field_loss(name).refused(where) from None
    except (AttributeError, TypeError):
        kind = type(next(record for record in records if not isinstance(record, dict))).__name__
        raise refusal(
            TypeError,
            f"an element of type {kind} has no named fields",
            where=where,
            hint="make it a dict or a Row",
        ) from None
    return column_of(values, field, where)


def column_of(values: Sequence[Any], field: pa.Field, where: str) -> pa.Array:
    """Returns values as a column; TypeError for another type, more than 64 bits, None in a field that is not nullable,
    and times with a zone where the field has none, or the other way round; ValueError for a field inside of a value
    that the type lacks.
    """
    nulls_fit = field.nullable or not any(value is None for value in values)
    try:
        lost = loss_of(values, field, field)
        if lost is None and nulls_fit:
            if _has_map(field.type):
                values = [_with_pairs(value, field.type) for value in values]
            column = pa.array(values, field.type)
            if _inner_nulls_fit(column):
                return column
            lost = make_none_loss(field.name, "something in a value of the field")
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Arrow's own message would show the value.
        lost = None
    raise (lost or (make_field_loss(field) if nulls_fit else make_none_loss(field.name))).refused(where)


def _inner_nulls_fit(column: pa.Array) -> bool:
    """True if nulls inside of the values are only where the type allows them, which Arrow does not check."""
    kind = column.type
    if not _has_required(kind):
        return True
    column = column.drop_null()
    if pa.types.is_map(kind):
        inner = [(kind.key_field, column.keys), (kind.item_field, column.items)]
    elif pa.types.is_struct(kind):
        inner = list(zip(kind, column.flatten(), strict=True))
    else:
        inner = [(kind.field(0), column.flatten())]
    return all((field.nullable or not part.null_count) and _inner_nulls_fit(part) for field, part in inner)


def _has_required(kind: pa.DataType) -> bool:
    """True if a field inside of a type must not be null."""
    fields = map(kind.field, range(kind.num_fields))
    return any(not field.nullable or _has_required(field.type) for field in fields)


def _has_map(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.MapType):
        return True
    return any(_has_map(kind.field(place).type) for place in range(kind.num_fields))


def _with_pairs(value: Any, kind: pa.DataType) -> object:
    """Returns a value whose maps, at any depth, are lists of pairs instead of dicts."""
    if value is None:
        return None
    if isinstance(kind, pa.MapType):
        pairs = value.items() if isinstance(value, dict) else value
        return [(_with_pairs(key, kind.key_type), _with_pairs(item, kind.item_type)) for key, item in pairs]
    if isinstance(kind, pa.StructType):
        return {field.name: _with_pairs(value.get(field.name), field.type) for field in kind}
    return [_with_pairs(each, kind.value_type) for each in value] if kind.num_fields else value
