"""Which field of a record does not fit its schema: messages of ``fastavro`` would show the value, not the field."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.values.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL_DIGITS,
    FLOAT,
    INSTANT,
    INTEGER,
    LOCAL_TIME,
    NOTHING,
    TEXT,
    TIME,
    ValueType,
)
from penstock_spark.connecting.values import (
    Loss,
    limits_of,
    make_missing_field_loss,
    make_none_loss,
    make_type_loss,
)

MISMATCH = Loss(
    TypeError,
    "an element does not fit the schema of the Avro files",
    "correct the schema, or convert the elements first",
)
"""The loss without the name of a field: for an element that has none, or a check that does not know it."""

SPELLINGS: dict[ValueType, Any] = {
    INTEGER: "long",
    FLOAT: "double",
    TEXT: "string",
    BINARY: "bytes",
    BOOLEAN: "boolean",
    NOTHING: "null",
    DATE: {"type": "int", "logicalType": "date"},
    TIME: {"type": "long", "logicalType": "time-micros"},
    INSTANT: {"type": "long", "logicalType": "timestamp-micros"},
    LOCAL_TIME: {"type": "long", "logicalType": "local-timestamp-micros"},
}
"""The types of values as Avro spells them."""


def _name_of(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    return str(kind.get("logicalType") or kind.get("name") or kind["type"])


_LIMITS = {_name_of(kind): value.limits for value, kind in SPELLINGS.items()} | {
    "int": limits_of(pa.int32()),
    "float": limits_of(pa.float32()),
}


def find_mismatch(field: Mapping[str, Any], values: Iterable[Any]) -> Loss:
    """The loss of a field of a record, one of whose values does not fit.

    >>> find_mismatch({"name": "points", "type": ["null", "int"]}, [1 << 40]).what
    'a value of the field points does not fit the type int'
    """
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    if "null" not in branches and any(value is None for value in values):
        return make_none_loss(field["name"])
    kinds = [branch for branch in branches if branch != "null"] or ["null"]
    limits = _limits_of(kinds[0]) if len(kinds) == 1 else ""
    return make_type_loss(f"a value of the field {field['name']}", " or ".join(map(_name_of, kinds)), limits)


def _limits_of(kind: Any) -> str:
    match kind:
        case {"logicalType": "decimal", "precision": digits} if digits <= DECIMAL_DIGITS:
            return limits_of(pa.decimal128(digits, kind.get("scale", 0)))
    return _LIMITS.get(_name_of(kind), "")


def find_refusal_by_package(records: Iterable[Any], schema: Any) -> Loss:
    """The loss of records of which the package does not write one; it names the field, if the elements have fields.

    >>> schema = {"type": "record", "name": "Score", "fields": [{"name": "points", "type": "long"}]}
    >>> find_refusal_by_package([{"points": 1}, {"points": 1 << 63}], schema).what
    'a value of the field points does not fit the type long'
    """
    fields = schema.get("fields", ()) if isinstance(schema, dict) else ()
    refused = next((each for each in records if not _writes(schema, each)), None)
    if not isinstance(refused, Mapping):
        return MISMATCH
    for count, last in enumerate(fields, 1):
        # A field may have a type that an earlier one names.
        if not _writes({**schema, "fields": fields[:count]}, refused):
            is_there = last["name"] in refused
            return (
                find_mismatch(last, [refused[last["name"]]])
                if is_there
                else make_missing_field_loss(last["name"])
            )
    return MISMATCH


def _writes(schema: object, record: object) -> bool:
    """True if the package writes a record."""
    from fastavro import parse_schema, schemaless_writer

    with contextlib.suppress(Exception):
        schemaless_writer(io.BytesIO(), parse_schema(schema), record)
        return True
    return False
