"""Random identifiers: the only module that makes unique names."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_make: Callable[[], uuid.UUID] = uuid.uuid4


@contextmanager
def replace_identifiers(make: Callable[[], uuid.UUID]) -> Iterator[None]:
    """Lets another function make identifiers while the block runs.

    >>> with replace_identifiers(lambda: uuid.UUID(int=10)):
    ...     print(identifier()[-4:], make_uuid()[-4:])
    000a 000a
    """
    global _make
    before, _make = _make, make
    try:
        yield
    finally:
        _make = before


def identifier() -> str:
    """Returns 32 hexadecimal digits that are unique."""
    return _make().hex


def make_uuid() -> str:
    """Returns an identifier in the form of a UUID, with hyphens."""
    return str(_make())
