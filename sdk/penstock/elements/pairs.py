"""Pairs of a key and a value, and the error about elements that are not pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.error import refusal

NEVER_PAIRS = (str, bytes, dict, set, frozenset)
"""Types whose values are not pairs, even if they have two members."""


def make_pair_error(values: Iterable[Any], *, where: str | None = None) -> TypeError:
    """Returns the error about elements that should be pairs; it names their types.

    >>> print(make_pair_error([("a", 1), 7], where=""))
    a grouping reads elements that are not (key, value) pairs: int
      hint: map the elements to 2-tuples first, for example with beam.WithKeys
    """
    kinds = {type(value).__name__ for value in values if not (isinstance(value, tuple) and len(value) == 2)}
    return refusal(
        TypeError,
        f"a grouping reads elements that are not (key, value) pairs: {', '.join(sorted(kinds)) or 'unknown'}",
        where=where,
        hint="map the elements to 2-tuples first, for example with beam.WithKeys",
    )
