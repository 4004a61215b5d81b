"""Schemas: the fields of a type, and the class for given fields (Beam's ``typehints.schemas``).

A schema is a `RowTypeConstraint`. Beam's functions that turn schemas into protocol messages, and logical types,
are left out: nothing would read the messages.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable

from penstock.absent import hint_at_absent_names
from penstock.error import refusal
from penstock.typehints.constraints import Hint
from penstock.typehints.row_type import RowTypeConstraint, named_tuple_for_fields
from penstock.typehints.schema_registry import SCHEMA_REGISTRY, SchemaTypeRegistry
from penstock.typehints.unions import union_of

Fields = Iterable[tuple[str, Hint]]


def schema_from_element_type(element_type: Hint) -> RowTypeConstraint:
    """Returns the schema of a row hint, a NamedTuple or a dataclass; TypeError if the type has no fields (Beam's name).

    >>> schema_from_element_type(typing.NamedTuple("Point", [("x", int)]))
    Row(x=<class 'int'>)
    """
    if isinstance(element_type, RowTypeConstraint):
        return element_type
    row = RowTypeConstraint.from_user_type(element_type)
    if row is None:
        hint = "make Row values, or give a NamedTuple or a dataclass as type hint"
        raise refusal(TypeError, f"Could not determine schema for type hint {element_type!r}", hint=hint)
    return row


def named_fields_from_element_type(element_type: Hint) -> list[tuple[str, Hint]]:
    """Returns the fields of a type, in order, as pairs of name and type; TypeError if it has none (Beam's name)."""
    return list(schema_from_element_type(element_type).fields)


def named_fields_from_schema(schema: RowTypeConstraint) -> list[tuple[str, Hint]]:
    """Returns the fields of a schema, in order, as pairs of name and type (Beam's name)."""
    return list(schema.fields)


def named_fields_to_schema(names_and_types: dict[str, Hint] | Fields) -> RowTypeConstraint:
    """Returns the schema with these fields (Beam's name)."""
    pairs = names_and_types.items() if isinstance(names_and_types, dict) else names_and_types
    return RowTypeConstraint.from_fields(pairs)


def named_tuple_to_schema(
    named_tuple: type, schema_registry: SchemaTypeRegistry = SCHEMA_REGISTRY
) -> RowTypeConstraint:
    """Returns the schema of a NamedTuple or a dataclass, entered into the registry (Beam's name)."""
    row = schema_from_element_type(named_tuple)
    if row.schema_id is None:
        row.set_schema_id(schema_registry.register(named_tuple, row))
    return row


def named_tuple_from_schema(
    schema: RowTypeConstraint, schema_registry: SchemaTypeRegistry = SCHEMA_REGISTRY
) -> typing.Any:
    """Returns the class for the rows of a schema: the registered one, or the user's, or one made up (Beam's name).

    >>> named_tuple_from_schema(named_fields_to_schema({"x": int}))(x=1).x
    1
    """
    return schema_registry.get_typing_by_id(schema.schema_id) or schema.user_type


register_row = named_tuple_to_schema


def union_schema_type(element_types: Iterable[Hint]) -> RowTypeConstraint:
    """Returns the schema each of whose fields is the union of the fields of that name (Beam's name).

    Raises:
        TypeError: If the types do not all have the same field names in the same order.
    """
    rows = [named_fields_from_element_type(item) for item in element_types]
    names = [[name for name, _hint in row] for row in rows]
    if any(row != names[0] for row in names):
        what = f"Could not determine schema: inconsistent names {names}"
        raise refusal(TypeError, what, hint="give all the same fields")
    return RowTypeConstraint.from_fields(
        (column[0][0], union_of(hint for _name, hint in column)) for column in zip(*rows, strict=True)
    )


__all__ = [
    "SCHEMA_REGISTRY",
    "named_fields_from_element_type",
    "named_fields_from_schema",
    "named_fields_to_schema",
    "named_tuple_for_fields",
    "named_tuple_from_schema",
    "named_tuple_to_schema",
    "register_row",
    "schema_from_element_type",
    "union_schema_type",
]

hint_at_absent_names(globals())
