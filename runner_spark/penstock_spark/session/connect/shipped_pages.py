"""The pages of a side input on their way to the workers of a Connect server, which has no broadcasts for them."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

_KEPT_MAX = 16
"""A worker keeps what it has decoded for so many side inputs, as long as tasks of one run come."""

_kept: OrderedDict[str, Any] = OrderedDict()


@dataclass(frozen=True, eq=False)
class InProgram:
    """Pages that travel with the function that reads them."""

    name: str
    pages: tuple[bytes, ...]

    @property
    def value(self) -> list[bytes]:
        return list(self.pages)

    def __reduce__(self) -> Any:
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

    def __reduce__(self) -> Any:
        return _keep, (InFile, self.name)


def _keep(kind: Any, name: str, *content: object) -> Any:
    """Returns the one object of this name in a process, so that its tasks decode the pages once."""
    if name not in _kept:
        _kept[name] = kind(name, *content)
        if len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return _kept[name]
