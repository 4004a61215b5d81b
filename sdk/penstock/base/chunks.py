"""Cuts a one-pass iterable into lists, so that batch code runs at C speed with bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

CHUNK_LENGTH = 4096


def split_into_chunks(elements: Iterable[Any], length: int = CHUNK_LENGTH) -> Iterator[list[Any]]:
    """Yields the elements, in order, as non-empty lists of at most `length`; only one list is held at a time.

    >>> list(split_into_chunks(iter("abcde"), 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    if isinstance(elements, list) and len(elements) <= length:
        if elements:
            yield elements
        return
    rest = iter(elements)
    while chunk := list(islice(rest, length)):
        yield chunk
