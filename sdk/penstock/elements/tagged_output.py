"""The TaggedOutput: an element on its way to an output with a tag."""

from __future__ import annotations

from typing import Generic

from typing_extensions import TypeVar

from penstock.error import refusal

TagType = TypeVar("TagType", bound=str)
ValueType = TypeVar("ValueType")


class TaggedOutput(Generic[TagType, ValueType]):
    """A value that a DoFn sends to a tagged output instead of the main one (Beam's ``TaggedOutput``).

    >>> TaggedOutput("errors", 3).tag
    'errors'
    """

    def __init__(self, tag: TagType, value: ValueType) -> None:
        if not isinstance(tag, str):
            what = f"Attempting to create a TaggedOutput with non-string tag {tag!r}"
            raise refusal(TypeError, what, hint=f"write {str(tag)!r}")
        self.tag = tag
        self.value = value
