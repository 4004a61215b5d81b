"""Rows as batches see them: the names and types of their fields, and how values become a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from penstock.base.row import Row
from penstock.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint
from penstock_spark.batches.misfits import OfLibrary, misfit


def row_type(hint: Any) -> RowTypeConstraint | None:
    """The row hint of a NamedTuple, a dataclass or a row hint; None for any other hint."""
    return hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)


def row_maker(row: RowTypeConstraint) -> Callable[..., Any]:
    """A function of keyword arguments that makes the user's class, or a plain ``Row`` if the user has no class.

    >>> row_maker(RowTypeConstraint.from_fields([("a", int)]))(a=1)
    Row(a=1)
    """
    return Row if isinstance(row, GeneratedClassRowTypeConstraint) else row.user_type


class RowBatches(OfLibrary):
    """Batches with a column for each field of a row; an element that lacks a field does not match its type hint."""

    def _columns(self, elements: Sequence[Any]) -> list[list[Any]]:
        try:
            return [[getattr(element, name) for element in elements] for name, _ in self._element_type.fields]
        except AttributeError:
            raise misfit(self._element_type) from None

    def _rows(self, known: Collection[str], values_of: Callable[[str, Any], list[Any]]) -> list[Any]:
        """The elements of a batch with these columns, from the values of each column and the field's hint."""
        fields, make = self._element_type.fields, row_maker(self._element_type)
        names = [name for name, _ in fields]
        if not set(names) <= set(known):
            raise misfit(self._element_type)
        columns = [values_of(name, hint) for name, hint in fields]
        return [make(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]
