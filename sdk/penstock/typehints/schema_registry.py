"""The register of the classes that rows with a schema are made of (Beam's ``typehints.schema_registry``)."""

from __future__ import annotations

import typing

from penstock.utils.identifiers import make_uuid


class SchemaTypeRegistry:
    """Classes and their schemas, by the schema's name (Beam's name)."""

    def __init__(self) -> None:
        self.by_id: dict[str, tuple[typing.Any, typing.Any]] = {}

    def generate_new_id(self) -> str:
        """Returns a new name."""
        return make_uuid()

    def register(self, typing_: object, schema: object) -> str:
        """Enters a class under a new name; returns the name."""
        schema_id = self.generate_new_id()
        self.by_id[schema_id] = (typing_, schema)
        return schema_id

    def add(self, typing_: typing.Any, schema: typing.Any) -> None:
        """Enters a class under the name of its schema, a `RowTypeConstraint`; without a name, nothing."""
        if schema.schema_id:
            self.by_id[schema.schema_id] = (typing_, schema)

    def load_registered_typings(self, by_id: dict[str, typing.Any]) -> None:
        """Enters classes under names, except where the name is taken."""
        for schema_id, typing_ in by_id.items():
            self.by_id.setdefault(schema_id, (typing_, None))

    def get_registered_typings(self) -> dict[str, typing.Any]:
        """Returns the classes, by name."""
        return {schema_id: entry[0] for schema_id, entry in self.by_id.items()}

    def get_typing_by_id(self, unique_id: str | None) -> typing.Any:
        """Returns the class of that name; None if there is none."""
        return self.by_id.get(unique_id or "", (None, None))[0]

    def get_schema_by_id(self, unique_id: str | None) -> typing.Any:
        """Returns the schema of that name; None if there is none."""
        return self.by_id.get(unique_id or "", (None, None))[1]


SCHEMA_REGISTRY = SchemaTypeRegistry()
