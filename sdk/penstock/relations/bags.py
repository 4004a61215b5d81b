"""A bag of rows: how many copies of each row there are, and which copy is removed when a row is retracted.

Rows are copies of one row if `ROW_CODER` encodes them alike: ``1`` and ``1.0`` are two rows, and so are the decimals
1.5 and 1.50. A *form* goes further: it maps a row to what it has in common with all rows that it is a copy of, as 1.5
and 1.50 are one value in SQL. When a row is retracted, exactly that row is removed if it is there, and otherwise a row
with the same form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from penstock.coders.coders import KeyCoder
from penstock.coders.deterministic import decode_key, encode_key

ROW_CODER: Final = KeyCoder()
"""Encodes rows; rows with the same encoding are copies of one."""

Form = Callable[[Any], Any]
"""Maps a row to what it has in common with all rows that it is a copy of."""

Forms = tuple[Form | None, Form | None]
"""Forms of the left and of the right rows of a join; None for rows whose copies are the same rows."""


def are_copies(row: object, other: object) -> bool:
    """True if two rows are copies of one; of rows that have no encoding, if Python says that they are equal.

    >>> are_copies((1, 0.0), (1, 0.0)), are_copies((1, 0.0), (1, -0.0)), are_copies(frozenset("a"), frozenset("a"))
    (True, False, True)
    """
    try:
        return encode_key(row) == encode_key(other)
    except TypeError:
        return bool(row == other)


def place_of_copy(row: object, rows: Sequence[Any], form: Form | None = None) -> int | None:
    """Returns the place of the copy that is removed when a row is retracted; None without a copy.

    >>> place_of_copy(2.0, [1.0, 2, 2.0]), place_of_copy("B", ["a", "b"], str.lower), place_of_copy("c", ["a"])
    (2, 1, None)
    """
    for of in (None,) if form is None else (None, form):
        wanted = encode_key(row if of is None else of(row))
        for place, each in enumerate(rows):
            if encode_key(each if of is None else of(each)) == wanted:
                return place
    return None


class Copies:
    """Counts how often each row is there, in a Counter that the caller keeps.

    Args:
        form: Maps rows to their form; None if rows are copies only of themselves.
        by_value: True if rows that are equal in Python have equal forms. Then one of several equal rows is kept.

    >>> copies, held = Copies(str.lower), Counter()
    >>> for row, sign in [("a", 1), ("A", 1), ("B", 1), ("b", -1)]:
    ...     copies.change(held, row, sign)
    >>> list(copies.elements(held)), copies.distinct(held)
    (['a', 'A'], ['A'])
    """

    def __init__(self, form: Form | None, by_value: bool = False) -> None:
        self._form = form
        self._encodes = form is not None and not by_value

    def change(self, held: Counter[Any], row: object, sign: int) -> None:
        """Inserts a copy if the sign is 1, retracts one if it is -1."""
        key = self._key(row)
        if sign < 0 and self._encodes and key not in held:
            key = self._key_of_copy(row, held) or key
        held[key] += sign
        if not held[key]:
            del held[key]

    def elements(self, held: Counter[Any]) -> Iterator[Any]:
        """Returns the rows, with all copies."""
        return map(self._row, (+held).elements())

    def distinct(self, held: Counter[Any]) -> list[Any]:
        """Returns one row of each form."""
        rows = map(self._row, +held)
        if not self._encodes:
            return list(rows)
        assert self._form is not None
        return list({encode_key(self._form(row)): row for row in rows}.values())

    def _key(self, row: object) -> object:
        return encode_key(row) if self._encodes else row

    def _row(self, key: Any) -> object:
        return decode_key(key) if self._encodes else key

    def _key_of_copy(self, row: object, held: Counter[Any]) -> object:
        keys = list(held)
        place = place_of_copy(row, list(map(decode_key, keys)), self._form)
        return None if place is None else keys[place]
