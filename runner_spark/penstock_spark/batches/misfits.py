"""Errors for elements and batches that do not match their type hints."""

from __future__ import annotations

from typing import Any

from penstock.error import refusal
from penstock.functions.batches import BatchConverter
from penstock.typehints.typehints import show_type


def misfit(element_type: Any) -> TypeError:
    """The error for an element; it does not show the element, which may be private.

    >>> print(misfit(int))
    an element of a batch does not match its type hint: <class 'int'>
      at ...
      hint: use list[...] as the batch's type for elements of several types, or that may be None
    """
    return refusal(
        TypeError,
        f"an element of a batch does not match its type hint: {show_type(element_type)}",
        hint="use list[...] as the batch's type for elements of several types, or that may be None",
    )


def length_of(batch: Any, kind: type) -> int:
    """The length of a batch; TypeError for another kind of iterable, because most iterables have a length."""
    if not isinstance(batch, kind):
        raise TypeError(f"{type(batch).__name__} is not an instance of {kind.__name__}")
    return len(batch)  # type: ignore[arg-type]


class OfLibrary(BatchConverter[Any, Any]):
    """Batches that are objects of one class of a library."""

    def get_length(self, batch: Any) -> int:
        return length_of(batch, self._batch_type)
