"""PCollections in nested tuples, lists and dicts, with the type hints that are written for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.construction import pvalue


def pairs_with_hints(value: Any, hint: Any, context: str) -> Iterator[tuple[str, Any, Any]]:
    """Pairs each PCollection of a nested value with the type hint at the same place of a nested hint."""
    if isinstance(value, pvalue.PValue):
        yield context, value, hint
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from pairs_with_hints(part, hint.get(key) if isinstance(hint, dict) else hint, f" {key}")
    elif isinstance(value, (list, tuple)):
        several = isinstance(hint, (list, tuple))
        for index, part in enumerate(value):
            part_hint = (hint[index] if index < len(hint) else None) if several else hint
            yield from pairs_with_hints(part, part_hint, f" position {index}" if several else context)
