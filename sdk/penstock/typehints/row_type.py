"""The hint for rows: named fields with a type each, from a NamedTuple, a dataclass or ``Row`` values."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import typing
from collections.abc import Iterable, Mapping, Sequence

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.typehints.annotations import annotations_of
from penstock.typehints.constraints import (
    Any,
    Hint,
    TypeConstraint,
    describe_mismatch,
    is_consistent_with,
    normalize,
    show_type,
)
from penstock.typehints.native_type_compatibility import (
    convert_to_beam_type,
    match_dataclass_for_row,
    match_is_named_tuple,
)
from penstock.typehints.unions import union_of

Option = tuple[str, typing.Any]
_MISSING = object()


class RowTypeConstraint(TypeConstraint):
    """A row: named fields in an order (Beam's name). Make one with `from_user_type` or `from_fields`.

    Native hints of fields are converted, and row classes become row hints. `user_type` is the class of the rows.

    >>> RowTypeConstraint.from_fields([("name", str), ("age", int)])
    Row(name=<class 'str'>, age=<class 'int'>)
    """

    def __init__(
        self,
        fields: Iterable[tuple[str, Hint]],
        user_type: type | None,
        schema_options: Sequence[Option] | None = None,
        field_options: Mapping[str, Sequence[Option]] | None = None,
        field_descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self._fields: tuple[tuple[str, Hint], ...] = tuple(
            (name, _field_hint(hint, frozenset())) for name, hint in fields
        )
        self._user_type = user_type
        self._schema_id: str | None = vars(user_type).get("_penstock_schema_id") if user_type else None
        self._schema_options = list(schema_options or ())
        self._field_options = dict(field_options or {})
        self._field_descriptions = dict(field_descriptions or {})

    @staticmethod
    def from_user_type(
        user_type: Hint,
        schema_options: Sequence[Option] | None = None,
        field_options: Mapping[str, Sequence[Option]] | None = None,
    ) -> RowTypeConstraint | None:
        """Returns the row hint of a NamedTuple or dataclass; None for any other class (Beam's name).

        >>> RowTypeConstraint.from_user_type(typing.NamedTuple("Point", [("x", int), ("y", list[int])]))
        Row(x=<class 'int'>, y=List[<class 'int'>])
        """
        return _row_of(user_type, frozenset(), schema_options, field_options)

    @staticmethod
    def from_fields(
        fields: Iterable[tuple[str, Hint]],
        schema_id: str | None = None,
        schema_options: Sequence[Option] | None = None,
        field_options: Mapping[str, Sequence[Option]] | None = None,
        schema_registry: object = None,
        field_descriptions: Mapping[str, str] | None = None,
    ) -> RowTypeConstraint:
        """Returns the row hint with these fields and without a user's class (Beam's name).

        Args:
            fields: Pairs of name and type, in order.
            schema_id: The name under which `schema_registry` keeps the class of the rows.
            schema_options: Pairs kept with the schema.
            field_options: Pairs kept with each field.
            schema_registry: The `SchemaTypeRegistry` that gets the class, if any.
            field_descriptions: A text for each field.
        """
        return GeneratedClassRowTypeConstraint(
            fields, schema_id, schema_options, field_options, schema_registry, field_descriptions
        )

    def __call__(self, *args: object, **kwargs: object) -> typing.Any:
        """Returns an instance of the user's class, so that native hints such as ``Optional`` take this for a type."""
        return self.user_type(*args, **kwargs)

    @property
    def fields(self) -> tuple[tuple[str, Hint], ...]:
        """Pairs of name and type, in order."""
        return self._fields

    @property
    def user_type(self) -> typing.Any:
        """The class of the rows."""
        return self._user_type

    @property
    def schema_id(self) -> str | None:
        """The name of the schema in the registry, if it has one."""
        return self._schema_id

    def set_schema_id(self, schema_id: str) -> None:
        """Names the schema, on the hint and on the user's class."""
        self._schema_id = schema_id
        if self._user_type is not None:
            type.__setattr__(self._user_type, "_penstock_schema_id", schema_id)

    @property
    def schema_options(self) -> list[Option]:
        """Pairs kept with the schema."""
        return self._schema_options

    def field_options(self, field_name: str) -> Sequence[Option]:
        """Returns pairs kept with a field; empty if there are none."""
        return self._field_options.get(field_name, [])

    def get_type_for(self, name: str) -> Hint:
        """Returns the type of a field; ``Any`` for an unknown field."""
        return dict(self._fields).get(name, Any)

    def _inner_types(self) -> list[Hint]:
        return [hint for _name, hint in self._fields]

    def _consistent_with_check_(self, sub: Hint) -> bool:
        row = sub if isinstance(sub, RowTypeConstraint) else RowTypeConstraint.from_user_type(sub)
        if row is None:
            return sub is Row
        return [name for name, _hint in row.fields] == [name for name, _hint in self._fields] and all(
            map(is_consistent_with, row._inner_types(), self._inner_types())
        )

    def _is_instance_of_class(self, base: type) -> bool:
        if base is Row:
            return True
        return self._user_type is not None and issubclass(self._user_type, base)

    def type_check(self, instance: object) -> None:
        self._refuse_mismatch(instance)

    def _mismatch(self, instance: object) -> str | None:
        if not self._is_row(instance):
            found = f"Instead, an instance of '{type(instance).__name__}' was received."
            return f"Row type-constraint violated. Valid object instance must be of type {self}. {found}"
        for name, hint in self._fields:
            value = getattr(instance, name, _MISSING)
            reason = "There is none." if value is _MISSING else describe_mismatch(hint, value)
            if reason is not None:
                return f"{self} hint type-constraint violated. The field {name!r} is incorrect. {reason}"
        return None

    def _is_row(self, instance: object) -> bool:
        if self._user_type is not None:
            return isinstance(instance, (self._user_type, Row))
        names = tuple(name for name, _hint in self._fields)
        return isinstance(instance, Row) or getattr(instance, "_fields", None) == names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowTypeConstraint) or type(self) is not type(other):
            return False
        return self._fields == other._fields and self._user_type is other._user_type

    def __hash__(self) -> int:
        return hash(self._fields)

    def native_class(self) -> typing.Any:
        return self.user_type

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={show_type(hint)}' for name, hint in self._fields)})"


class GeneratedClassRowTypeConstraint(RowTypeConstraint):
    """A row hint without a user's class; a NamedTuple is made on demand (Beam's name)."""

    def __init__(
        self,
        fields: Iterable[tuple[str, Hint]],
        schema_id: str | None = None,
        schema_options: Sequence[Option] | None = None,
        field_options: Mapping[str, Sequence[Option]] | None = None,
        schema_registry: typing.Any = None,
        field_descriptions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(fields, None, schema_options, field_options, field_descriptions)
        self._schema_id = schema_id
        if schema_id and schema_registry is not None:
            schema_registry.add(self.user_type, self)

    def one_for(self, members: Sequence[Hint]) -> Hint | None:
        """Returns the row of all, if they have the same names."""
        return merge_rows(members)

    @property
    def user_type(self) -> typing.Any:
        """A NamedTuple with these fields; the same one for equal hints."""
        return named_tuple_for_fields(self._fields)

    def __reduce__(self) -> tuple[typing.Any, ...]:
        options = (self._schema_options, self._field_options, None, self._field_descriptions)
        return RowTypeConstraint.from_fields, (self._fields, self._schema_id, *options)


def _field_hint(hint: Hint, seen: frozenset[type]) -> Hint:
    """Returns the hint of a field; a row class becomes a row hint unless it contains itself."""
    return _row_of(hint, seen) or normalize(convert_to_beam_type(hint), none_as_type=True)


def _row_of(
    user_type: Hint,
    seen: frozenset[type],
    schema_options: Sequence[Option] | None = None,
    field_options: Mapping[str, Sequence[Option]] | None = None,
) -> RowTypeConstraint | None:
    if match_is_named_tuple(user_type):
        names = list(user_type._fields)
    elif match_dataclass_for_row(user_type):
        names = [field.name for field in dataclasses.fields(user_type)]
    else:
        return None
    if user_type in seen:
        return None
    hints = annotations_of(user_type)
    fields = [(name, _field_hint(hints.get(name, Any), seen | {user_type})) for name in names]
    row = RowTypeConstraint(
        (), user_type, schema_options, field_options, getattr(user_type, "_field_descriptions", None)
    )
    # Set afterwards: the constructor would look into a class that contains itself forever.
    row._fields = tuple(fields)
    return row


def merge_rows(members: Sequence[Hint]) -> Hint | None:
    """Returns one row hint for several without a user's class, if they have the same names; otherwise None.

    >>> merge_rows([RowTypeConstraint.from_fields([("x", item)]) for item in (int, str)])
    Row(x=Union[<class 'int'>, <class 'str'>])
    """
    rows = [member for member in members if isinstance(member, GeneratedClassRowTypeConstraint)]
    if not rows or len(rows) < len(members) or len({tuple(dict(row.fields)) for row in rows}) > 1:
        return None
    columns = zip(*(row.fields for row in rows), strict=True)
    return RowTypeConstraint.from_fields(
        (column[0][0], union_of(hint for _name, hint in column)) for column in columns
    )


def named_tuple_for_fields(fields: Iterable[tuple[str, Hint]]) -> typing.Any:
    """Returns a NamedTuple, the same for the same fields; ValueError if a name cannot be an attribute.

    Its instances are pickled by their fields, since the class is in no module.

    >>> named_tuple_for_fields([("x", int)]) is named_tuple_for_fields([("x", int)])
    True
    """
    return _named_tuple(tuple((name, _hint_of(hint)) for name, hint in fields))


def _hint_of(hint: Hint) -> Hint:
    return normalize(convert_to_beam_type(hint), none_as_type=True)


@functools.lru_cache(maxsize=1024)
def _named_tuple(fields: tuple[tuple[str, Hint], ...]) -> object:
    for name, _hint in fields:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            what = f"{name!r} cannot name a field of a NamedTuple"
            raise refusal(ValueError, what, hint="rename the field of the row")
    make: typing.Any = typing.NamedTuple
    cls = make("PenstockRow", list(fields))
    cls.__reduce__ = _reduce
    cls._penstock_fields = fields
    return cls


def _reduce(row: typing.Any) -> tuple[typing.Any, ...]:
    return _restore, (row._penstock_fields, tuple(row))


def _restore(fields: tuple[tuple[str, Hint], ...], values: tuple[object, ...]) -> object:
    return named_tuple_for_fields(fields)(*values)
