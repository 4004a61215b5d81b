"""Environment variables for the duration of a block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for a block: Java inherits them, the user's program keeps its own.

    >>> with environment({"PENSTOCK_EXAMPLE": "1"}):
    ...     os.environ["PENSTOCK_EXAMPLE"]
    '1'
    >>> "PENSTOCK_EXAMPLE" in os.environ
    False
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
