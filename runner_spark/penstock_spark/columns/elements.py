"""Rows as elements of batches of all libraries, and the errors for elements that do not match their type hints."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from penstock.elements.row import Row
from penstock.error import refusal
from penstock.functions.batches import BatchConverter
from penstock.typehints.row_type import GeneratedClassRowTypeConstraint, RowTypeConstraint
from penstock.typehints.typehints import get_concrete_type_from_nullable, is_nullable, show_type
from penstock.values.types import FLOAT_DIGIT_BITS, TYPES


def make_element_error(element_type: object, field: str = "") -> TypeError:
    r"""Returns the error for an element, or for a field of it; it does not show the element, which may be private.

    >>> print(make_element_error(int))
    an element of a batch does not match its type hint: <class 'int'>
      at ...
      hint: use list[...] as the batch's type for elements of several types, or that may be None (an int has 64 bits)
    >>> print(str(make_element_error(str, "team")).partition("\n")[0])
    the field team of an element of a batch does not match its type hint: <class 'str'>
    """
    whose = f"the field {field} of an element" if field else "an element"
    inner, _ = strip_none(element_type)
    limits = next((each.limits for each in TYPES if each.hint == inner), "")
    return refusal(
        TypeError,
        f"{whose} of a batch does not match its type hint: {show_type(element_type)}",
        hint="use list[...] as the batch's type for elements of several types, or that may be None"
        + (f" ({limits})" if limits else ""),
    )


def strip_none(hint: object) -> tuple[Any, bool]:
    """Returns a type without None, and whether None was in it.

    >>> from penstock.typehints import Optional
    >>> strip_none(Optional[int]), strip_none(int)
    ((<class 'int'>, True), (<class 'int'>, False))
    """
    return (get_concrete_type_from_nullable(hint), True) if is_nullable(hint) else (hint, False)


def are_kept(numbers: Any, floats: Any) -> bool:
    """True if an array of floats has all integers that it was made of, and no infinity for a large number.

    >>> import numpy as np
    >>> are_kept([1 << 53, 0.1], np.array([2.0**53, 0.1])), are_kept([(1 << 53) + 1], np.array([2.0**53]))
    (True, False)
    """
    digits = FLOAT_DIGIT_BITS.get(8 * floats.dtype.itemsize)
    if digits is None:
        return True
    places = (abs(floats) >= 2.0**digits).nonzero()[0].tolist()
    return all(_is_kept(numbers[place], float(floats[place])) for place in places)


def _is_kept(number: float, made: float) -> bool:
    if hasattr(number, "__index__"):
        return int(number) == made
    return not math.isinf(made) or math.isinf(number)


def length_of(batch: object, kind: type) -> int:
    """Returns the length of a batch; TypeError for another kind of iterable, because most iterables have a length."""
    if not isinstance(batch, kind):
        raise TypeError(f"{type(batch).__name__} is not an instance of {kind.__name__}")
    return len(batch)  # type: ignore[arg-type]


class LibraryBatches(BatchConverter[Any, Any]):
    """Batches that are objects of one class of a library."""

    def get_length(self, batch: object) -> int:
        return length_of(batch, self._batch_type)


def row_type(hint: object) -> RowTypeConstraint | None:
    """The row hint of a NamedTuple, a dataclass or a row hint; None for any other hint."""
    return hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)


def make_row_maker(row: RowTypeConstraint) -> Callable[..., Any]:
    """A function of keyword arguments that makes the user's class, or a plain ``Row`` if the user has no class.

    >>> make_row_maker(RowTypeConstraint.from_fields([("a", int)]))(a=1)
    Row(a=1)
    """
    return Row if isinstance(row, GeneratedClassRowTypeConstraint) else row.user_type


class RowBatches(LibraryBatches):
    """Batches with a column for each field of a row; an element that lacks a field does not match its type hint."""

    def _columns(self, elements: Sequence[Any]) -> list[list[Any]]:
        try:
            return [[getattr(element, name) for element in elements] for name, _ in self._element_type.fields]
        except AttributeError:
            raise make_element_error(self._element_type) from None

    def _rows(self, known: Collection[str], values_of: Callable[[str, Any], list[Any]]) -> list[Any]:
        """The elements of a batch with these columns, from the values of each column and the field's hint."""
        fields, make = self._element_type.fields, make_row_maker(self._element_type)
        names = [name for name, _ in fields]
        if not set(names) <= set(known):
            raise make_element_error(self._element_type)
        columns = [values_of(name, hint) for name, hint in fields]
        return [make(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]
