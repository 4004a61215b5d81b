"""Reads sizes as Spark's properties write them."""

from __future__ import annotations

import re

_UNITS = "bkmgtp"


def bytes_of(text: str) -> int:
    """Returns a size in bytes; without a unit, it is one already.

    >>> bytes_of("4194304"), bytes_of("128MB"), bytes_of("128m"), bytes_of("1 g")
    (4194304, 134217728, 134217728, 1073741824)

    Raises:
        ValueError: The text is not a size.
    """
    found = re.fullmatch(r"(\d+)\s*(?:([kmgtp])b?|b)?", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is not a size in bytes: write a number, perhaps with k, m, g, t or p")
    return int(found[1]) << 10 * _UNITS.index(found[2] or "b")
