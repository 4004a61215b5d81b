"""Reads what a shard has stored, and refuses what is damaged or of another version."""

from __future__ import annotations

import pickle
from typing import Any

from penstock.error import refusal


def versioned(stored: bytes, version: object, what: str) -> tuple[Any, ...]:
    """The content of a pickled tuple that begins with its version.

    Args:
        stored: The tuple, pickled.
        version: The version that this code reads.
        what: What is stored, in words.

    >>> versioned(pickle.dumps((3, "content")), 3, "the state of a shard")
    ('content',)
    >>> versioned(pickle.dumps((2, "content")), 3, "the state of a shard")
    Traceback (most recent call last):
        ...
    ValueError: the state of a shard has the format 2, not 3
      at ...
      hint: go on with the version of penstock that wrote it
    """
    found, *content = unpickled(stored, what)
    if found != version:
        hint = "go on with the version of penstock that wrote it"
        raise refusal(ValueError, f"{what} has the format {found}, not {version}", hint=hint)
    return tuple(content)


def unpickled(stored: bytes, what: str) -> Any:
    """What is pickled; ValueError if it is damaged."""
    try:
        return pickle.loads(stored)
    except Exception as error:
        hint = "restore the checkpoint from a copy, or start again in another folder"
        if isinstance(error, ImportError | AttributeError):
            hint = "define the class again where it was, or start again in another folder"
        raise refusal(
            ValueError, f"{what} cannot be read: {str(error) or type(error).__name__}", hint=hint
        ) from error
