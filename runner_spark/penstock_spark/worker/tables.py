"""Accumulators by key, with plain loops for the combiners that the runner knows.

A table takes names and values of one batch at a time and gives, in the end, an accumulator of the CombineFn for each
name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock_spark.aggregates.kernels import Adding
from penstock_spark.aggregates.loops import loop_of

_FOLD_ELEMENTS = 50_000


class ListTable:
    """No combining: the values of each name, in a list."""

    def __init__(self) -> None:
        self._lists: dict[Any, list[Any]] = {}

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name; names repeat."""
        append_by_name(self._lists, names, values)

    def open(self, names: list[Any]) -> None:
        """Adds names, which stay empty if no value comes."""
        for name in names:
            self._lists.setdefault(name, [])

    def accumulators(self) -> dict[Any, Any]:
        return self._lists

    def __len__(self) -> int:
        return len(self._lists)


def append_by_name(lists: dict[Any, list[Any]], names: list[Any], values: list[Any]) -> None:
    for name, value in zip(names, values, strict=True):
        if name in lists:
            lists[name].append(value)
        else:
            lists[name] = [value]


class FoldTable:
    """Any CombineFn: values wait in lists, so that ``add_inputs`` gets many at a time."""

    def __init__(self, fn: CombineFn) -> None:
        self.fn = fn
        self._accumulators: dict[Any, Any] = {}
        self._waiting: dict[Any, list[Any]] = {}
        self._waiting_count = 0

    def add(self, names: list[Any], values: list[Any]) -> None:
        append_by_name(self._waiting, names, values)
        self._waiting_count += len(names)
        if self._waiting_count >= _FOLD_ELEMENTS:
            self._fold()

    def open(self, names: list[Any]) -> None:
        for name in names:
            self._waiting.setdefault(name, [])

    def _fold(self) -> None:
        fn, accumulators = self.fn, self._accumulators
        for name, values in self._waiting.items():
            accumulator = accumulators[name] if name in accumulators else fn.create_accumulator()
            accumulators[name] = fn.add_inputs(accumulator, values)
        self._waiting = {}
        self._waiting_count = 0

    def accumulators(self) -> dict[Any, Any]:
        self._fold()
        return {name: self.fn.compact(accumulator) for name, accumulator in self._accumulators.items()}

    def __len__(self) -> int:
        return len(self._accumulators) + len(self._waiting)


class AddedTable:
    """Values added up by a plain loop instead of their CombineFn."""

    def __init__(self, fn: CombineFn, adding: Adding) -> None:
        self.held: dict[Any, Any] = {}
        self._fn = fn
        self._adding = adding
        self._add = loop_of(adding, "key", from_pairs=False)
        self._opened: dict[Any, None] = {}

    def add(self, names: list[Any], values: list[Any]) -> None:
        if self._adding.ignores_values:
            # Python's own loop over names, which takes any dict; a Counter would slow other loops down.
            Counter.update(self.held, names)  # type: ignore[call-overload]
        else:
            self._add(self.held, names, values)

    def open(self, names: list[Any]) -> None:
        self._opened.update(dict.fromkeys(names))

    def accumulators(self) -> dict[Any, Any]:
        made = {name: self._fn.create_accumulator() for name in self._opened}
        made.update(zip(self.held, map(self._adding.accumulator, self.held.values()), strict=True))
        return made

    def numbers(self) -> dict[Any, Any]:
        return (
            {**dict.fromkeys(self._opened, self._adding.nothing), **self.held} if self._opened else self.held
        )

    def __len__(self) -> int:
        return len(self.held) + len(self._opened)


Table = ListTable | FoldTable | AddedTable


def table_for(fn: CombineFn | None, adding: Adding | None) -> Callable[[], Table]:
    if fn is None:
        return ListTable
    if adding is None:
        return lambda: FoldTable(fn)
    return lambda: AddedTable(fn, adding)
