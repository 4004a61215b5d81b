"""The error for elements that are not what the type hint of their batch says."""

from __future__ import annotations

from typing import Any

from penstock.error import three_parts
from penstock.typehints.typehints import show_type


def misfit(element_type: Any) -> TypeError:
    """The error; it does not show the elements, which may be private.

    >>> print(misfit(int))
    an element of a batch is not what its type hint says: int
      hint: elements that may be None, or of several types, go well with list[...] as the batch's type
    """
    return TypeError(
        three_parts(
            f"an element of a batch is not what its type hint says: {show_type(element_type)}",
            hint="elements that may be None, or of several types, go well with list[...] as the batch's type",
        )
    )
