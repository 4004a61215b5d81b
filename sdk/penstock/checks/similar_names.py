"""The known name that a misspelled one most likely means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def find_nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """Returns the known name that is most like `name`, ignoring capitals; None if none is similar enough.

    >>> names = ["team", "Score"]
    >>> find_nearest("scroe", names), find_nearest("SCORE", ["team", "score"]), find_nearest("x", names)
    ('Score', 'score', None)
    """
    spelled: dict[str, list[str]] = {}
    for one in names:
        spelled.setdefault(one.lower(), []).append(one)
    found = difflib.get_close_matches(name.lower(), spelled, 1, likeness)
    if not found:
        return None
    spellings = spelled[found[0]]
    return name if name in spellings else spellings[0]
