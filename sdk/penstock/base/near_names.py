"""The known name that a misspelled one most likely means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like `name`; None if none is that much like it, nor differs in capitals only.

    >>> nearest("scroe", ["team", "score"]), nearest("SCORE", ["team", "score"]), nearest("x", ["team", "score"])
    ('score', 'score', None)
    """
    known = list(names)
    found = difflib.get_close_matches(name, known, 1, likeness)
    return found[0] if found else next((one for one in known if one.lower() == name.lower()), None)
