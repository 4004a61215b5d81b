"""The classes of rows that a query's result may have, and whether its columns fit them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any, TypeVar

from penstock.checks.similar_names import hint_at_name
from penstock.error import noun_for, refusal
from penstock.scalars.nested_values import of_elements
from penstock.scalars.types import SqlType, from_hint
from penstock.sql.execution.steps import RowFunction
from penstock.typehints import row_type
from penstock.typehints.annotations import annotations_of
from penstock.typehints.containers import DictConstraint, ListConstraint, TupleSequenceConstraint
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.typehints.unions import without_none

_ClassT = TypeVar("_ClassT")
_ALIKE = {"TIMESTAMP_NTZ": "TIMESTAMP", "INTEGER": "BIGINT", "FLOAT": "DOUBLE"}
"""Types whose values have one class in Python, each with the other."""


def check_output_class(output: type[_ClassT]) -> type[_ClassT]:
    """Returns a class that has fields.

    Raises:
        TypeError: It has none.

    >>> check_output_class(int)
    Traceback (most recent call last):
        ...
    TypeError: output must be a NamedTuple or a dataclass, but is the class int
      at ...
      hint: write class Total(NamedTuple): …, with a field for each column
    """
    is_class = isinstance(output, type)
    if is_class and (is_dataclass(output) or getattr(output, "_fields", None)):
        return output
    what = f"the class {output.__name__}" if is_class else noun_for(output)
    hint = "write class Total(NamedTuple): …, with a field for each column"
    raise refusal(TypeError, f"output must be a NamedTuple or a dataclass, but is {what}", hint=hint)


def fields_of(output: type[Any]) -> dict[str, object]:
    """Returns the types of the fields of a class, by name."""
    hints = annotations_of(output)
    names = [each.name for each in dataclass_fields(output)] if is_dataclass(output) else output._fields
    return {name: hints.get(name, Any) for name in names}


def check_output_fields(output: type[Any], rows: row_type.RowTypeConstraint, where: str | None) -> None:
    """Refuses a query whose columns are not the fields of a class.

    Args:
        output: The class.
        rows: The type of the rows of the query.
        where: The place of the step.

    Raises:
        TypeError: A column or a field has no partner, or another type.
    """
    name, declared = output.__name__, fields_of(output)
    columns = {column: from_hint(kind) for column, kind in rows.fields}
    for column, kind in columns.items():
        if column not in declared:
            what = f"the query has the column {column!r}, and {name} has no such field"
            otherwise = f"add it to the class, or leave it out; {name} has {', '.join(declared)}"
            hint = hint_at_name(column, declared, otherwise)
            raise refusal(TypeError, what, where=where, hint=hint)
        wanted = from_hint(declared[column])
        if not _fits(kind, wanted):
            what = f"the column {column!r} of the query is {_article(kind)}, and the field of {name} {_article(wanted)}"
            raise refusal(TypeError, what, where=where, hint="correct the class, or CAST the column")
    for field in declared:
        if field not in columns:
            what = f"{name} has the field {field!r}, and the query has no such column"
            otherwise = f"select it, or name it with AS; its columns are {', '.join(columns)}"
            raise refusal(TypeError, what, where=where, hint=hint_at_name(field, columns, otherwise))


def _fits(column: SqlType, field: SqlType) -> bool:
    known = _ALIKE.get(column.name, column.name), _ALIKE.get(field.name, field.name)
    if "ANY" in known or column.name == "NULL":
        return True
    names = [name for name, _ in column.fields] == [name for name, _ in field.fields]
    alike = known[0] == known[1] and names and len(column.parts) == len(field.parts)
    return alike and all(map(_fits, column.parts, field.parts))


def _article(kind: SqlType) -> str:
    text = str(kind.or_null())
    return f"{'an' if text[0] in 'AI' else 'a'} {text}"


class MakeInstance(RowFunction):
    """Makes of a Row an instance of a class, and of Rows in it instances of the classes of its fields.

    Args:
        output: The class.
        names: The names of the columns.
    """

    def __init__(self, output: type[Any], names: tuple[str, ...]) -> None:
        self._output: Callable[..., object] = output
        self._names = names
        kinds = dict(from_hint(output).fields)
        # A class that contains itself has no type, and its values stay unchanged.
        nested = {name for name, kind in kinds.items() if kind.is_nested and not kind.has("ANY")}
        hints = {name: hint for name, hint in fields_of(output).items() if name in nested}
        self._makers = {name: maker for name, hint in hints.items() if (maker := _maker_of(hint))}
        self._not_null = tuple(
            name for name, hint in fields_of(output).items() if name in names and not _may_be_null(hint)
        )

    def __call__(self, row: object) -> object:
        for name in self._not_null:
            if getattr(row, name) is None:
                what = f"the column {name!r} is NULL, and the field of {self._output.__name__} does not accept None"
                hint = f"declare the field with | None, or select COALESCE({name}, …)"
                raise refusal(ValueError, what, where="", hint=hint)
        values = {name: getattr(row, name) for name in self._names}
        for name, make in self._makers.items():
            if values.get(name) is not None:
                values[name] = make(values[name])
        return self._output(**values)

    def __reduce__(self) -> tuple[Any, ...]:
        return MakeInstance, (self._output, self._names)


def _maker_of(hint: object) -> Callable[[Any], object] | None:
    """Returns what makes values of a hint of SQL's values; None if they are the same."""
    bare = without_none(convert_to_beam_type(hint))
    if isinstance(bare, ListConstraint):
        made = _maker_of(bare.inner_type)
        return of_elements(made) if made else None
    if isinstance(bare, TupleSequenceConstraint):
        elements = of_elements(_maker_of(bare.inner_type) or _same)
        return lambda array: tuple(elements(array))
    if isinstance(bare, DictConstraint):
        of_value = _maker_of(bare.parameters[1])
        return None if of_value is None else _of_values(of_value)
    row = row_type.RowTypeConstraint.from_user_type(bare)
    return None if row is None else MakeInstance(row.user_type, tuple(name for name, _ in row.fields))


def _of_values(make: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda held: {key: None if each is None else make(each) for key, each in held.items()}


def _same(value: object) -> object:
    return value


def _may_be_null(hint: object) -> bool:
    """True if a field may be None."""
    return from_hint(hint).nullable
