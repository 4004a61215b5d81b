"""The decoders of the cells of a stateful DoFn, kept in the plan of a checkpoint for people who read its state."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, cast

import cloudpickle

from penstock.functions.userstate import StateSpec
from penstock.machines.cells import cell_of
from penstock_spark.worker.batch import loads


class Unreadable(NamedTuple):
    """Stands for what cannot be decoded.

    Attributes:
        reason: Why.

    >>> Unreadable("No module named 'game'")
    <unreadable: No module named 'game'>
    """

    reason: str

    def __repr__(self) -> str:
        return f"<unreadable: {self.reason}>"


def keep_cells(specs: Iterable[StateSpec]) -> dict[str, str]:
    """Returns what `cell_readers` makes readers of, by the names of the cells; without those that cannot be pickled."""
    kept = {}
    for spec in specs:
        try:
            kept[spec.name] = base64.b64encode(cloudpickle.dumps(spec)).decode()
        except Exception:  # A coder of the user; without it, the state is shown in its stored form.
            continue
    return kept


Readers = Mapping[str, Callable[[object], object]]
"""For each cell, the function that decodes its content."""


def cell_readers(kept: Mapping[str, str]) -> Readers:
    r"""Returns what decodes the contents of cells, and returns an `Unreadable` if it cannot.

    >>> from penstock.coders import VarIntCoder
    >>> from penstock.functions.userstate import BagStateSpec, ReadModifyWriteStateSpec
    >>> specs = [ReadModifyWriteStateSpec("last", VarIntCoder()), BagStateSpec("all", VarIntCoder())]
    >>> readers = cell_readers(keep_cells(specs))
    >>> readers["last"](b"\x07"), readers["all"]([b"\x01", b"\x02"])
    (7, [1, 2])
    """
    return {name: _reader(name, text) for name, text in kept.items()}


class _Readable(Protocol):
    """A cell: each kind has this method, and its own type of result."""

    def read(self) -> object: ...


def _reader(name: str, text: str) -> Callable[[object], object]:
    try:
        spec: StateSpec = loads(base64.b64decode(text))
    except Exception as error:
        gone = Unreadable(describe(error))
        return lambda content: gone

    def read(content: object) -> object:
        try:
            cell = cast(_Readable, cell_of(spec, {name: content}))
            return _plain(cell.read(), content)
        except Exception as error:
            return Unreadable(describe(error))

    return read


def _plain(found: object, content: object) -> object:
    """The content of a cell, as Python would write it."""
    if not isinstance(content, dict | list) or isinstance(found, dict) or not isinstance(found, Iterable):
        return found
    values = list(found)
    if isinstance(content, dict):
        is_map = any(value is not None for value in content.values())
        return dict(values) if is_map else set(values) if _are_hashable(values) else values
    return values


def _are_hashable(values: Iterable[object]) -> bool:
    try:
        hash(tuple(values))
    except TypeError:
        return False
    return True


def describe(error: BaseException) -> str:
    """The first line of an error, with its type unless it is an import that failed."""
    said = str(error).partition("\n")[0]
    return said if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {said}"
