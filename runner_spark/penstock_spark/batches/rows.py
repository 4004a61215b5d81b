"""Rows as batches see them: the names and types of their fields, and how values become a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.base.row import Row
from penstock.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint
from penstock.typehints.typehints import get_concrete_type_from_nullable, is_nullable


def row_type(hint: Any) -> RowTypeConstraint | None:
    """The row hint of a NamedTuple, a dataclass or a row hint; None for any other hint."""
    return hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)


def row_maker(row: RowTypeConstraint) -> Callable[..., Any]:
    """A function of keyword arguments that makes the user's class, or a plain ``Row`` if the user has no class.

    >>> row_maker(RowTypeConstraint.from_fields([("a", int)]))(a=1)
    Row(a=1)
    """
    return Row if isinstance(row, GeneratedClassRowTypeConstraint) else row.user_type


def without_none(hint: Any) -> tuple[Any, bool]:
    """A type without None, and whether None was in it.

    >>> from penstock.typehints import Optional
    >>> without_none(Optional[int]), without_none(int)
    ((<class 'int'>, True), (<class 'int'>, False))
    """
    return (get_concrete_type_from_nullable(hint), True) if is_nullable(hint) else (hint, False)
