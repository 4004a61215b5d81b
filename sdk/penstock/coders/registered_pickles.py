"""Pickling in which the registered coder of a class encodes the objects of the class.

So an object that cannot be pickled gets from step to step, wherever it is in an element: alone, or in a pair.

>>> import pickle
>>> from penstock.coders import Coder, registry
>>> class Temperature:
...     def __init__(self, degrees): self.degrees = degrees
...     def __reduce__(self): raise TypeError("no pickles of me")
>>> class TemperatureCoder(Coder):
...     def encode(self, value): return str(value.degrees).encode()
...     def decode(self, encoded): return Temperature(int(encoded))
>>> registry.register_coder(Temperature, TemperatureCoder)
>>> table = coder_table()
>>> restore, arguments = table[Temperature](Temperature(20))
>>> restore(*arguments).degrees
20
>>> registry.custom_types.remove(Temperature); forget_coders()
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections import ChainMap
from collections.abc import Callable, MutableMapping
from functools import cache
from typing import Any

from penstock.coders import checked_coding
from penstock.coders.base import registry_in_use
from penstock.error import refusal

Reducer = Callable[[Any], tuple[Any, ...]]


def dumps(value: object, pickler: Callable[..., Any] = pickle.Pickler) -> bytes:
    """Pickles a value with the registered coders by a pickler such as cloudpickle's; ``pickle.loads`` reads it."""
    if pickler is pickle.Pickler and not coder_table():
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    into = io.BytesIO()
    _with_coders(pickler)(into, pickle.HIGHEST_PROTOCOL).dump(value)
    return into.getvalue()


@cache
def coder_table() -> dict[type, Reducer]:
    """Returns, for each class with a user's coder, the function that pickles its objects.

    Records of a `RowCoder` can be pickled unchanged, which is faster.
    """
    registry = registry_in_use()
    return {
        kind: _encoded
        for kind, coder in registry.get_custom_type_coder_tuples()
        if isinstance(kind, type) and not getattr(coder, "pickles_as_it_is", False)
    }


@cache
def _with_coders(pickler: Any) -> Any:
    """Returns a subclass of the pickler that asks the table first: a pickler reads its table when it is made."""
    own = getattr(pickler, "dispatch_table", None)
    # The standard library's pickler has only a slot for one.
    others = own if isinstance(own, MutableMapping) else copyreg.dispatch_table
    tables = [*reversed(_flat(others)), coder_table()]

    def dispatch_table(_: object) -> dict[Any, Any]:
        # Merged at each access: a pickler looks up the class of each object, and any of the tables may have grown.
        return {kind: reducer for table in tables for kind, reducer in table.items()}

    return type("PicklerWithCoders", (pickler,), {"dispatch_table": property(dispatch_table)})


def _flat(table: MutableMapping[Any, Any]) -> list[MutableMapping[Any, Any]]:
    """Returns the maps in a map of maps: a pickler looks up the class of each object."""
    return [each for part in table.maps for each in _flat(part)] if isinstance(table, ChainMap) else [table]


def _encoded(value: object) -> tuple[Any, ...]:
    kind: Any = type(value)
    return _decoded, (kind, checked_coding.encode_value(_coder_of(kind), value, kind))


def _decoded(kind: object, encoded: bytes) -> object:
    return checked_coding.decode_value(_coder_of(kind), encoded, kind)


@cache
def _coder_of(kind: Any) -> Any:
    registry = registry_in_use()
    coder = registry.registered_coder(kind)
    if coder is None:
        what = f"an object of class {kind.__qualname__} was written with a coder that is no longer registered"
        raise refusal(TypeError, what, hint="register the coder of the class in this program as well")
    return coder


def forget_coders() -> None:
    """Forgets the registry's answers; the registry calls this when it changes."""
    for asked in (coder_table, _with_coders, _coder_of):
        asked.cache_clear()
