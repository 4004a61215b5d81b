"""The pages of a side input on their way to the workers of a Connect server, which has no broadcasts for them."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_KEPT_MAX = 16
"""The number of side inputs for which a worker keeps what it has decoded."""

_kept: OrderedDict[str, object] = OrderedDict()


@dataclass(frozen=True, eq=False)
class InProgram:
    """Pages that travel with the function that reads them."""

    name: str
    pages: tuple[bytes, ...]

    @property
    def value(self) -> list[bytes]:
        return list(self.pages)

    def __reduce__(self) -> tuple[object, ...]:
        return _keep, (InProgram, self.name, self.pages)


@dataclass(frozen=True, eq=False)
class InFile:
    """Pages that travel as a file of the session."""

    name: str

    @property
    def value(self) -> list[bytes]:
        from pyspark import SparkFiles

        with open(SparkFiles.get(self.name), "rb") as file:
            pages: list[bytes] = pickle.load(file)
        return pages

    def __reduce__(self) -> tuple[object, ...]:
        return _keep, (InFile, self.name)


def _keep(kind: Callable[..., object], name: str, *content: object) -> object:
    """Returns the one object of this name in a process, so that its tasks decode the pages once."""
    if name not in _kept:
        _kept[name] = kind(name, *content)
        if len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return _kept[name]
