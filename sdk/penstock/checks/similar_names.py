"""The known name that a misspelled one most likely means."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")

_SHORT, _LONG = 6, 8
"""In a shorter name than the first, a changed letter is not a slip; a name of the second length may have two slips."""


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


def find_slip(name: str, names: Iterable[str]) -> str | None:
    """Returns the known name that `name` misspells by a slip of the hand; None if there is none.

    A slip leaves out, adds or changes a letter, or swaps two; names of eight letters or more may have two slips. In a
    name of less than six letters, a changed letter makes another word.

    >>> names = ["mode", "streaming"]
    >>> [find_slip(name, names) for name in ("mod", "mdoe", "steamign", "node", "models", "mode")]
    ['mode', 'mode', 'streaming', None, None, None]
    """
    near = [
        (_count_slips(name, known), known)
        for known in names
        if name != known and abs(len(name) - len(known)) <= _most_slips(name, known)
    ]
    found = [(slips, known) for slips, known in near if slips <= _most_slips(name, known)]
    return min(found)[1] if found else None


def _most_slips(one: str, other: str) -> int:
    return 2 if min(len(one), len(other)) >= _LONG else 1


def _count_slips(one: str, other: str) -> int:
    """The minimum number of slips that make one word of another."""
    change = 2 if min(len(one), len(other)) < _SHORT else 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, wanted in enumerate(other, 1):
            least = min(last[column] + 1, now[column - 1] + 1, last[column - 1] + change * (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                least = min(least, before[column - 2] + 1)
            now.append(least)
        before, last = last, now
    return last[-1]


def hint_at_choice(message: str) -> str | None:
    """Returns the hint at a wrong choice, by the message of argparse; None if it is another one, or none is similar.

    >>> hint_at_choice("argument COMMAND: invalid choice: 'grph' (choose from 'graph', 'live')")
    "did you mean 'graph'?"
    """
    found = _CHOICE.search(message)
    near = find_nearest(found[1], re.findall(r"[\w-]+", found[2])) if found else None
    return near and f"did you mean {near!r}?"


def hint_at_name(name: str, names: Iterable[str], otherwise: str | None = None, likeness: float = 0.6) -> str:
    """Returns the hint at a wrong name: the known one that is most like it, or what to do if none is.

    Args:
        name: The wrong name.
        names: The known names.
        otherwise: The hint if no name is similar; by default the first of all names.
        likeness: How much a name has to be like the wrong one, from 0 to 1.

    >>> hint_at_name("scroe", ["team", "score"]), hint_at_name("x", ["team", "score"]), hint_at_name("x", [])
    ("did you mean 'score'?", 'use one of score, team', 'there are none')
    """
    names = sorted(set(names))
    if near := find_nearest(name, names, likeness):
        return f"did you mean {near!r}?"
    if otherwise is not None:
        return otherwise
    return f"use one of {', '.join(names[:10])}" if names else "there are none"
