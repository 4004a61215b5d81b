"""Errors for elements, and for batches, that are not what their type hint says."""

from __future__ import annotations

from typing import Any

from penstock.error import three_parts
from penstock.typehints.typehints import show_type


def misfit(element_type: Any) -> TypeError:
    """The error; it does not show the elements, which may be private.

    >>> print(misfit(int))
    an element of a batch is not what its type hint says: <class 'int'>
      hint: elements that may be None, or of several types, go well with list[...] as the batch's type
    """
    return TypeError(
        three_parts(
            f"an element of a batch is not what its type hint says: {show_type(element_type)}",
            hint="elements that may be None, or of several types, go well with list[...] as the batch's type",
        )
    )


def length_of(batch: Any, kind: type) -> int:
    """The length of a batch.

    Raises:
        TypeError: If it is not of its kind: what can be iterated over has a length too, mostly.

    >>> length_of([1, 2], list)
    2
    """
    if not isinstance(batch, kind):
        raise TypeError(f"{type(batch).__name__} is not an instance of {kind.__name__}")
    return len(batch)  # type: ignore[arg-type]
