"""Reads the content that a shard has stored, and refuses content that is damaged or of another format."""

from __future__ import annotations

import pickle
from typing import Any

from penstock.error import refusal
from penstock_spark.process.written_formats import WrittenFormat


def content_of(stored: bytes, form: WrittenFormat, mark: str | None = None) -> tuple[Any, ...]:
    """Returns the content of a pickled tuple that begins with the number of its format, after a `mark` if given.

    >>> content_of(pickle.dumps((3, "content")), WrittenFormat("a page of keys", 3))
    ('content',)
    >>> content_of(pickle.dumps(("columns 1", "content")), WrittenFormat("a page of windows", 1), "columns ")
    ('content',)
    >>> content_of(b"page", WrittenFormat("a page of keys", 3))
    Traceback (most recent call last):
    ValueError: a page of keys cannot be read: ...
      hint: restore the checkpoint from a copy, or start again in another folder
    """
    parts = load_pickle(stored, form.name)
    found, *content = parts if isinstance(parts, tuple) and parts else (None,)
    if mark is not None:
        number = str(found).removeprefix(mark)
        found = int(number) if number.isdecimal() else None
    form.check(found)
    return tuple(content)


def load_pickle(stored: bytes, what: str) -> Any:
    r"""Returns the unpickled value; ValueError if it is damaged, or if a class in it has changed.

    >>> load_pickle(b"cbuiltins\nrange\n(tR.", "a window")
    Traceback (most recent call last):
    ValueError: a window cannot be read: range expected ...
      hint: give new fields of the class a default, or undo its change
    """
    try:
        return pickle.loads(stored)
    except Exception as error:
        hint = "restore the checkpoint from a copy, or start again in another folder"
        if isinstance(error, ImportError | AttributeError):
            hint = "define the class again where it was, or start again in another folder"
        elif isinstance(error, TypeError):
            hint = "give new fields of the class a default, or undo its change"
        raise refusal(
            ValueError, f"{what} cannot be read: {str(error) or type(error).__name__}", hint=hint
        ) from error
