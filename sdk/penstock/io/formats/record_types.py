"""The types of elements with named fields, as sinks of records see them."""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any

from penstock.construction.ptransform import PTransform, where_of
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.transforms.elements.field_checks import known_fields
from penstock.typehints import typehints


def field_names(element_type: object) -> tuple[str, ...] | None:
    """Returns the names of a record type's fields, in order; None for any other type.

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


def column_names_of(schema: object) -> tuple[str, ...] | None:
    """Returns the names of the columns of a schema of Arrow, Spark or Avro, or of a type of rows; None if it has none.

    >>> column_names_of({"type": "record", "fields": [{"name": "team", "type": "string"}]}), column_names_of(None)
    (('team',), None)
    """
    if isinstance(schema, dict):
        fields = schema.get("fields")
        return None if fields is None else tuple(each["name"] for each in fields)
    names = getattr(schema, "names", None)
    return tuple(names) if isinstance(names, list | tuple) else field_names(schema)


def hint_of_records(as_rows: bool) -> Any:
    """Returns the type of records that are read: rows, or dicts by the names of columns."""
    return Row if as_rows else typehints.Dict[str, Any]


def type_of_records(transform: PTransform[Any, Any], pcoll: PCollection[Any], what: str, schema: str) -> Any:
    """Returns the type of the records that a step writes; ValueError with these words if the elements are none."""
    element_type = pcoll.element_type
    if field_names(element_type) is None:
        hint = f"pass {schema}, or give the elements a NamedTuple type"
        raise refusal(ValueError, what, where=where_of(transform), hint=hint)
    return element_type


def check_fields_have_columns(schema: object, element_type: object, where: str | None) -> None:
    """Refuses elements with fields that a given schema lacks; where the type has no fields, the workers check.

    >>> from typing import NamedTuple
    >>> Score, Team = NamedTuple("Score", [("team", str), ("points", int)]), NamedTuple("Team", [("team", str)])
    >>> check_fields_have_columns(Team, Score, "at step 'Write' (game.py:41)")
    Traceback (most recent call last):
        ...
    ValueError: the elements have the field 'points', which the schema lacks
      at step 'Write' (game.py:41)
      hint: add it to the schema, or leave it out of the elements before the write
    """
    names, fields = column_names_of(schema), known_fields(element_type)
    lost = [name for name in fields or () if name not in names] if names is not None else []
    if lost:
        fields_lost = f"the field{'s' if lost[1:] else ''} {', '.join(map(repr, lost))}"
        what = f"the elements have {fields_lost}, which the schema lacks"
        hint = "add it to the schema, or leave it out of the elements before the write"
        raise refusal(ValueError, what, where=where, hint=hint)
