"""What the type hint of an output says of its elements, where it also speaks of what is around them."""

from __future__ import annotations

from typing import Any, get_args

from penstock.typehints import typehints
from penstock.typehints.native_type_compatibility import convert_to_beam_type

_ANNOTATIONS = ("TimestampedValue", "WindowedValue")


def strip_output_annotations(type_hint: Any, strip_tagged_output: bool = True) -> Any:
    """The type of the elements of a type hint that may speak of timestamps, windows or tags, which are no elements.

    ``TimestampedValue[T]`` is T; any other such hint says nothing, so that it is `Any`.

    Args:
        type_hint: The type hint.
        strip_tagged_output: Whether tags count.
    """
    names = (*_ANNOTATIONS, "TaggedOutput") if strip_tagged_output else _ANNOTATIONS
    found = False
    arguments = get_args(type_hint)
    if getattr(type_hint, "__name__", None) == "TimestampedValue" and len(arguments) == 1:
        type_hint = convert_to_beam_type(arguments[0])

    def look(hint: Any, _: Any) -> None:
        nonlocal found
        found = found or getattr(hint, "__name__", None) in names

    typehints.visit_inner_types(type_hint, look, [])
    return typehints.Any if found else type_hint
