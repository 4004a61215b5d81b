"""Estimates how much memory values take, from a sample of a few."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from types import MemberDescriptorType
from typing import Any

_LOOKED_AT = 4
_ITEMS_LOOKED_AT = (32, 8, 4)
"""The number of items of a container to look at, by the number of containers around it."""
_REFERENCE_BYTES = 8
_SMALL = frozenset((int, float, bool, type(None)))
_FLAT = frozenset((str, bytes, bytearray))
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))


def estimated_bytes(values: Sequence[Any]) -> int:
    """Returns the memory that values take, if those that are not looked at take as much as those that are.

    Equal values have equal estimates, whenever and wherever they are made.

    >>> estimated_bytes(["four"] * 1_000), estimated_bytes([])
    (4000, 0)
    """
    count = len(values)
    if count <= _LOOKED_AT:
        return sum(map(bytes_of, values))
    seen = values[:: count // _LOOKED_AT + 1]
    return sum(map(bytes_of, seen)) * count // len(seen)


def bytes_of(value: Any, depth: int = 0) -> int:
    """Returns the approximate memory of a value and everything in it.

    It asks for a length and for items only where Python itself answers: a container of the user's may compute them.

    >>> bytes_of(("name", b"content")), bytes_of({"key": ["value"] * 100})
    (27, 1319)
    """
    kind = type(value)
    if kind in _SMALL:
        return _REFERENCE_BYTES
    if kind in _FLAT:
        return len(value)
    if kind in _CONTAINERS:
        return _of_items(value, depth)
    try:
        return _of_object(value, depth)
    except Exception:
        # Classes may define the attributes read here, and that may fail; the user's own code has not called them.
        return _REFERENCE_BYTES


def _of_items(items: Collection[Any], depth: int) -> int:
    if isinstance(items, dict):
        return _of_some(len(items), items.keys(), depth) + _of_some(len(items), items.values(), depth)
    return _of_some(len(items), items, depth)


def _of_some(count: int, items: Iterable[Any], depth: int) -> int:
    if depth == len(_ITEMS_LOOKED_AT) or not count:
        return _REFERENCE_BYTES * (count + 1)
    seen = [bytes_of(item, depth + 1) for item in islice(items, _ITEMS_LOOKED_AT[depth])]
    return _REFERENCE_BYTES * count + sum(seen) * count // len(seen)


def _of_object(value: Any, depth: int) -> int:
    kind = type(value)
    if isinstance(value, tuple):
        return _of_some(tuple.__len__(value), tuple.__iter__(value), depth)
    if hasattr(kind, "nbytes"):
        return int(value.nbytes)
    if hasattr(kind, "memory_usage"):
        # For a table of pandas, `getsizeof` looks at each of its objects.
        return int(value.memory_usage(deep=False).sum())
    return sys.getsizeof(value) + _of_items(_attributes(value), depth)


def _attributes(value: object) -> list[Any]:
    """Returns the values in an object's dict and slots, without a call of its class."""
    try:
        held = list(object.__getattribute__(value, "__dict__").values())
    except AttributeError:
        held = []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(name)
            if isinstance(member, MemberDescriptorType):
                try:
                    held.append(member.__get__(value))
                except AttributeError:
                    # The slot is empty.
                    continue
    return held
