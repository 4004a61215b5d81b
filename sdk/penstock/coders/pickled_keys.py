"""Keys of classes without a deterministic encoding: by the registered fallback coder, or pickled, if so asked."""

from __future__ import annotations

import io
import logging
import pickle
from typing import Any

from penstock.coders.base import Coder, registry_in_use
from penstock.coders.key_classes import class_named, name_of, register_key_class

_LOGGER = logging.getLogger(__name__)


class _Switch:
    on = False


class _Pickler(pickle.Pickler):
    """Names classes as keys do, so that those of the main program are pickled alike everywhere."""

    def persistent_id(self, value: Any) -> bytes | None:
        if not isinstance(value, type) or value.__module__ == "builtins":
            return None
        register_key_class(value)
        return name_of(value)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> type:
        return class_named(name)


class PickledKeyCoder(Coder):
    """Pickles a key; two keys that are equal may have different bytes.

    >>> PickledKeyCoder().decode(PickledKeyCoder().encode({1, 2}))
    {1, 2}
    """

    def encode(self, value: Any) -> bytes:
        """The pickled key."""
        file = io.BytesIO()
        _Pickler(file, 5).dump(value)
        return file.getvalue()

    def decode(self, encoded: bytes) -> Any:
        """The key."""
        return _Unpickler(io.BytesIO(encoded)).load()


def set_pickling(on: bool) -> bool:
    """Sets whether keys may be pickled in this process: the option ``allow_non_deterministic_key_coders``.

    Returns:
        Whether it was different before.
    """
    changed = _Switch.on != on
    _Switch.on = on
    return changed


def fallback_coder(kind: type) -> Coder | None:
    """The coder of keys of a class that has no deterministic encoding.

    Args:
        kind: The class.

    Returns:
        The registered fallback coder that takes the class and says that it is deterministic, or one that pickles if
        that is allowed; otherwise None.
    """
    registry = registry_in_use()
    for fallback in reversed(registry.custom_fallbacks):
        try:
            coder: Coder = fallback.from_type_hint(kind, registry)
        except Exception:
            # It passes this class on.
            continue
        if coder.is_deterministic():
            return coder
        break
    if not _Switch.on:
        return None
    _LOGGER.warning(
        "keys of type %s.%s are pickled: equal ones whose pickled bytes differ are different keys",
        kind.__module__,
        kind.__qualname__,
    )
    return PickledKeyCoder()
