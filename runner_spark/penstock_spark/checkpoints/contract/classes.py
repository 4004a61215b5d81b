"""The classes that may occur in values of a type hint, and in the fields of its rows."""

from __future__ import annotations

from typing import Any

from penstock.typehints.constraints import AnyTypeConstraint
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.typehints import visit_inner_types

Classes = dict[Any, tuple[str, ...]]
"""Classes, each with the names of its fields in order; no names if it is not a class of rows."""


def find_classes(*hints: object) -> Classes:
    """Returns the classes in some hints; a hint that allows anything stands for itself.

    >>> from typing import NamedTuple
    >>> Point = NamedTuple("Point", [("x", int), ("y", int)])
    >>> {found.__name__: fields for found, fields in find_classes(str, Point).items()}
    {'str': (), 'Point': ('x', 'y'), 'int': ()}
    """
    found: Classes = {}
    for hint in hints:
        _look(hint, found)
    return found


def _look(hint: object, found: Classes) -> None:
    row = hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)
    if row is not None:
        if row.user_type not in found:
            found[row.user_type] = tuple(name for name, _ in row.fields)
            for _, field in row.fields:
                _look(field, found)
        return
    parts: list[Any] = []
    visit_inner_types(hint, lambda part, _: parts.append(part), None)
    for part in parts:
        if part is not hint:
            _look(part, found)
        elif isinstance(part, type | AnyTypeConstraint):
            # A hint that consists of others adds nothing to them.
            found.setdefault(part, tuple(getattr(part, "_fields", ())))
