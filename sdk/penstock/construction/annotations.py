"""Annotations: texts that a block of a program gives to the transforms that it applies."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from penstock.construction.applied import encode_annotations

_annotations: contextvars.ContextVar[Mapping[str, bytes]] = contextvars.ContextVar(
    "penstock_annotations", default=MappingProxyType({})
)


def current_annotations() -> Mapping[str, bytes]:
    """The annotations of the blocks that the program is in."""
    return _annotations.get()


@contextlib.contextmanager
def transform_annotations(**annotations: Any) -> Iterator[None]:
    """Annotates the transforms applied in the block, those inside of composites too (Beam's name).

    Args:
        annotations: Text or bytes by name.

    Raises:
        TypeError: If a value is neither.
    """
    token = _annotations.set({**_annotations.get(), **encode_annotations(annotations)})
    try:
        yield
    finally:
        _annotations.reset(token)
