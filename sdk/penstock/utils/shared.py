"""One object for all DoFns of a worker process, such as a large model (Beam's ``apache_beam.utils.shared``)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from penstock.error import refusal
from penstock.utils.identifiers import identifier

__all__ = ["Shared"]


class Shared:
    """A handle of an object that is created once in each process (Beam's ``Shared``).

    The handle is sent with the DoFn that holds it; every copy of it refers to the same object of a process. The object
    lives while it is in use, and until the process acquires the object of another handle: so it is not created again
    for each task. A step that uses several handles keeps their objects as attributes of its DoFn.

    >>> class Table(dict):
    ...     pass
    >>> handle = Shared()
    >>> handle.acquire(lambda: Table(red=4)) is handle.acquire(lambda: Table(blue=3))
    True
    """

    def __init__(self) -> None:
        self._key = identifier()

    def acquire(self, constructor_fn: Callable[[], Any], tag: object = None) -> Any:
        """Returns the object; creates it if the process has none.

        Args:
            constructor_fn: Creates the object; one thread at a time calls it, the others wait. A result of None is not
                kept.
            tag: The purpose of the object, such as the version of a model; a new tag creates a new object.

        Raises:
            TypeError: If the object cannot be referred to weakly, such as a list or a dict.
        """
        with _lock:
            place = _places.setdefault(self._key, _Place())
        found = place.acquire(constructor_fn, tag)
        # An unused previous object ends here. No lock is held, since its end may acquire another object.
        _kept[0] = found
        return found


class _Place:
    """Locates the object of one handle in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refer: Callable[[], Any] = lambda: None
        self._tag: object = None

    def acquire(self, constructor_fn: Callable[[], Any], tag: object) -> object:
        with self._lock:
            found = self._refer()
            if found is None or self._tag != tag:
                found = constructor_fn()
                if found is not None:
                    self._refer, self._tag = _weakly(found), tag
            return found


def _weakly(found: object) -> Callable[[], Any]:
    try:
        return weakref.ref(found)
    except TypeError as error:
        name = type(found).__name__
        hint = f"pass an object of your own class: class Table({name}): pass"
        raise refusal(TypeError, f"an object of type {name} cannot be shared: {error}", hint=hint) from error


_lock = threading.Lock()
_places: dict[str, _Place] = {}
_kept: list[Any] = [None]
"""The object that was acquired last, which lives on while it is not in use."""
