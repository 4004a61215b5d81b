"""The annotations of functions and classes, also where one names what exists for type checkers only.

Since Python 3.14 annotations are evaluated when they are read. A program that runs without their names then meets a
NameError when another module reads them.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable

from typing_extensions import Format, get_annotations

_FORMAT: dict[str, typing.Any] = (
    {"annotation_format": Format.FORWARDREF} if sys.version_info >= (3, 14) else {}
)


def annotations_of(annotated: object) -> dict[str, typing.Any]:
    """Returns the annotations of a function, or of a class and its bases; as strings if a name is missing.

    >>> def count(text: str) -> int: ...
    >>> annotations_of(count)
    {'text': <class 'str'>, 'return': <class 'int'>}
    >>> def sell(price: Money) -> int: ...
    >>> annotations_of(sell)
    {'price': 'Money', 'return': 'int'}
    """
    try:
        return typing.get_type_hints(annotated, include_extras=True)
    except Exception:
        owners = reversed(annotated.__mro__) if isinstance(annotated, type) else (annotated,)
        found = (get_annotations(owner, format=Format.FORWARDREF) for owner in owners)
        return {name: hint for each in found for name, hint in each.items()}


def texts_of(annotated: object) -> dict[str, str]:
    """Returns the annotations of a function, or of a class without its bases, as strings.

    >>> def sell(price: Money, pieces: int): ...
    >>> texts_of(sell)
    {'price': 'Money', 'pieces': 'int'}
    """
    return {name: str(hint) for name, hint in get_annotations(annotated, format=Format.STRING).items()}


def signature_as_written(function: Callable[..., typing.Any]) -> inspect.Signature:
    """Returns the signature of a function whose annotations cannot all be evaluated."""
    return inspect.signature(function, **_FORMAT)
