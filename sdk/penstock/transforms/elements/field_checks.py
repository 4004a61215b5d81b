"""Refuses names of fields that elements of a known type do not have, where the program names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

from penstock import graph
from penstock.checks.similar_names import find_nearest
from penstock.construction.pvalue import PCollection
from penstock.elements.row import Row
from penstock.error import refusal
from penstock.functions.dofn import FlatMapDoFn
from penstock.scalars.expressions import Expression
from penstock.scalars.field_functions import KeyAndValues, KeyedBy, KeyOf, RowInWindow, RowOf, StampedBy
from penstock.typehints.code_reading import attributes_surely_read
from penstock.typehints.column_types import RecordConstraint
from penstock.typehints.constraints import show_type
from penstock.typehints.containers import TupleConstraint
from penstock.typehints.decorators import TypeCheckError
from penstock.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint

_FIELDS_SHOWN = 20
_WITHOUT_FIELDS = (tuple, int, float, bool, str, bytes)


def check_fields(function: object, element_type: object, where: str | None) -> None:
    """Refuses a function over fields that reads a field which the elements lack; the error names the nearest field."""
    names = dict.fromkeys(_fields_read(function))
    if names:
        check_field_names(names, element_type, where)


def check_attributes(function: object, pcoll: PCollection[Any], where: str | None) -> None:
    """Refuses a Python function that surely reads a field which its rows lack."""
    if not (
        isinstance(function, FunctionType)
        and isinstance(pcoll.element_type, GeneratedClassRowTypeConstraint)
        and _is_as_made(pcoll)
    ):
        return
    names = [name for name in attributes_surely_read(function.__code__) if not name.startswith("_")]
    check_field_names(names, pcoll.element_type, where)


def _is_as_made(pcoll: PCollection[Any]) -> bool:
    """True if no Python function has had the elements since a source or an expression made them: it may set fields."""
    while (step := pcoll.producer) is not None and step.transform is not None:
        match step.transform.to_primitive():
            case graph.Read():
                return True
            case graph.ParDo(dofn) if isinstance(dofn, FlatMapDoFn) and _parts_of(dofn.fn):
                return True
            case graph.ParDo(dofn) if not (isinstance(dofn, FlatMapDoFn) and isinstance(dofn.fn, Expression)):
                return False
            case graph.ParDo() | graph.Reshuffle() | graph.AssignWindows():
                [pcoll] = step.inputs
            case _:
                return False
    return False


def check_field_names(names: Sequence[str] | dict[str, Any], element_type: object, where: str | None) -> None:
    """Refuses names that are not fields of the elements; see `check_fields`.

    >>> check_field_names(["taem"], RowTypeConstraint.from_fields([("team", str)]), "at step 'Select'")
    Traceback (most recent call last):
        ...
    penstock.typehints.signatures.TypeCheckError: the elements have no field 'taem'
      at step 'Select'
      hint: did you mean 'team'? The fields are: team
    """
    known = known_fields(element_type)
    if known is None:
        _check_plain(names, element_type, where)
        return
    for name in names:
        if name not in known and not _is_attribute(name, element_type):
            near = find_nearest(name, known)
            more = ", ..." if len(known) > _FIELDS_SHOWN else ""
            fields = (
                f"fields are: {', '.join(known[:_FIELDS_SHOWN])}{more}" if known else "elements have none"
            )
            hint = f"did you mean {near!r}? The {fields}" if near else f"the {fields}"
            what = f"the elements have no field {name!r}"
            raise refusal(TypeCheckError, what, where=where, hint=hint)


def _check_plain(names: Sequence[str] | dict[str, Any], element_type: object, where: str | None) -> None:
    """Refuses names of fields of pairs, numbers and strings: they have none."""
    kind = tuple if isinstance(element_type, TupleConstraint) else element_type
    if kind not in _WITHOUT_FIELDS:
        return
    for name in names:
        if not hasattr(kind, name):
            what = f"the elements have no field {name!r}"
            hint = f"elements of type {show_type(element_type)} have none: pass a function of the element, or make rows"
            raise refusal(TypeCheckError, what, where=where, hint=hint)


def known_fields(element_type: object) -> list[str] | None:
    """Returns the names of the fields of a type; None if elements of the type may have others.

    >>> known_fields(RecordConstraint([("team", str)])), known_fields(int)
    (['team'], None)
    """
    if isinstance(element_type, RecordConstraint):
        return [name for name, _ in element_type.fields]
    row = element_type
    if not isinstance(row, RowTypeConstraint):
        row = RowTypeConstraint.from_user_type(element_type)
    if row is None:
        return None
    if not isinstance(row, GeneratedClassRowTypeConstraint) and _makes_more(row.user_type):
        return None
    return [name for name, _ in row.fields]


def _makes_more(user_type: object) -> bool:
    """True if objects of a class may have attributes that the class does not show."""
    return hasattr(user_type, "__getattr__") or hasattr(user_type, "__post_init__")


def _is_attribute(name: str, element_type: object) -> bool:
    """True if objects of a type have an attribute that is not a field, such as a property."""
    if isinstance(element_type, RecordConstraint):
        return False
    if isinstance(element_type, GeneratedClassRowTypeConstraint):
        return hasattr(Row, name) or hasattr(tuple, name)
    return hasattr(getattr(element_type, "user_type", element_type), name)


def _fields_read(function: object) -> Iterator[str]:
    if isinstance(function, Expression):
        yield from function.fields()
    for part in _parts_of(function):
        yield from _fields_read(part)


def _parts_of(function: object) -> tuple[object, ...]:
    """The functions inside a function over fields."""
    match function:
        case RowOf(fields=fields) | RowInWindow(fields=fields) | KeyOf(fields=fields):
            return tuple(each for _, each in fields)
        case KeyAndValues(key, values):
            return key, *values
        case KeyedBy(key):
            return (key,)
        case StampedBy(moment):
            return (moment,)
    return ()
