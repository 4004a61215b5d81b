"""The types of elements with named fields, as sinks of records see them."""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any

from penstock.base.row import Row
from penstock.construction.ptransform import PTransform
from penstock.error import refusal
from penstock.typehints import typehints


def field_names(element_type: Any) -> tuple[str, ...] | None:
    """The names of a record type's fields, in order; None for any other type.

    >>> from typing import NamedTuple
    >>> field_names(NamedTuple("Score", [("team", str), ("points", int)]))
    ('team', 'points')
    """
    fields = getattr(element_type, "_fields", None)
    if not fields and is_dataclass(element_type):
        fields = [each.name for each in dataclass_fields(element_type)]
    if not isinstance(fields, tuple | list):
        return None
    return tuple(each if isinstance(each, str) else each[0] for each in fields)


def hint_of_records(as_rows: bool) -> Any:
    """The type of records that are read: rows, or dicts by the names of columns."""
    return Row if as_rows else typehints.Dict[str, Any]


def type_of_records(transform: PTransform[Any, Any], pcoll: Any, what: str, schema: str) -> Any:
    """The type of the records that a step writes; ValueError with these words if the elements are none."""
    element_type = getattr(pcoll, "element_type", None)
    if field_names(element_type) is None:
        hint = f"pass {schema}, or give the elements a NamedTuple type"
        raise refusal(ValueError, what, where=transform._where(), hint=hint)
    return element_type
