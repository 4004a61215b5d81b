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


def hint_at_name(name: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """Returns the hint at a wrong name: the known one that is most like it, or what to do if none is.

    Args:
        name: The wrong name.
        names: The known names.
        otherwise: The hint if no name is similar; by default the first of all names.

    >>> hint_at_name("scroe", ["team", "score"]), hint_at_name("x", ["team", "score"]), hint_at_name("x", [])
    ("did you mean 'score'?", 'use one of score, team', 'there are none')
    """
    names = sorted(set(names))
    if near := find_nearest(name, names):
        return f"did you mean {near!r}?"
    if otherwise is not None:
        return otherwise
    return f"use one of {', '.join(names[:10])}" if names else "there are none"
