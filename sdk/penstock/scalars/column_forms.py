"""Says what functions of elements do to columns, for an engine that computes with columns itself."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scalars.tree import Literal
from penstock.scalars.types import SqlType


@dataclass(frozen=True)
class FieldColumns:
    """A row of an element's fields.

    Attributes:
        names: The names of the fields.
        types: Their types in a query.
    """

    names: tuple[str, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True)
class NamedColumns:
    """A Row with names of a row without names.

    Attributes:
        places: For each field, the number of a column, or its value in every row.
        names: The names of the fields.
    """

    places: tuple[int | Literal, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class TypedText:
    """An expression over the columns ``c0``, ``c1`` and up in Spark's SQL.

    Attributes:
        text: The expression.
        type: The type of its value.
    """

    text: str
    type: SqlType


@dataclass(frozen=True)
class AggregateText(TypedText):
    """An aggregate over such columns.

    Attributes:
        held: What is held of it: the name of the aggregate, and the types of its values.
    """

    held: str


@dataclass(frozen=True)
class GroupedColumns:
    """A row of the keys and the aggregates of a group of rows, with the bounds of its window among the keys.

    Attributes:
        keys: The keys besides the window.
        aggregates: What Spark computes of the rows of a group, exactly as Python does.
        start: The place of the window's start among all keys; None if it is not there.
        end: The place of the window's end.
    """

    keys: tuple[TypedText, ...]
    aggregates: tuple[AggregateText, ...]
    start: int | None
    end: int | None


@dataclass(frozen=True)
class NotColumns:
    """Something that Spark does not compute exactly as Python does.

    Attributes:
        reason: Why, as a clause.
    """

    reason: str


ColumnForm = FieldColumns | NamedColumns | GroupedColumns | NotColumns


class HasColumnForm:
    """A function or a DoFn that says what it does to columns.

    Attributes:
        column_form: What it does; None if only Python can do it.
    """

    column_form: ColumnForm | None = None
