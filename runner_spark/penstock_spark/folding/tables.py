"""Tables of partial results, by key, of one window; they take many values at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.functions.combinefn import CombineFn, without_marker
from penstock.functions.folds import Fold, accumulator_fold, fold_of
from penstock.machines.folds import LIST
from penstock_spark.folding.loops import loop_of
from penstock_spark.plan.hosts import Loop

_WAITING_VALUES = 50_000


def batch_fold(combine: CombineFn | None, loop: Loop) -> Fold:
    """The fold of a grouping of a batch that reads each window at once, by the loop of its tasks.

    The marker of an input that may be empty is never folded.
    """
    if combine is None:
        return LIST
    fn = without_marker(combine)
    return accumulator_fold(fn) if loop is Loop.CALLS else fold_of(fn)


class ListTable:
    """The values of each name, in a list."""

    def __init__(self) -> None:
        self._lists: dict[Any, list[Any]] = {}

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name; names repeat."""
        append_by_name(self._lists, names, values)

    def open(self, names: list[Any]) -> None:
        """Adds names, which stay empty if no value comes."""
        for name in names:
            self._lists.setdefault(name, [])

    def partials_by_name(self) -> dict[Any, Any]:
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
    """Any fold: values wait in lists, so that it gets many at a time."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._held: dict[Any, Any] = {}
        self._waiting: dict[Any, list[Any]] = {}
        self._waiting_count = 0

    def add(self, names: list[Any], values: list[Any]) -> None:
        append_by_name(self._waiting, names, values)
        self._waiting_count += len(names)
        if self._waiting_count >= _WAITING_VALUES:
            self._fold_waiting()

    def open(self, names: list[Any]) -> None:
        for name in names:
            self._waiting.setdefault(name, [])

    def _fold_waiting(self) -> None:
        fold, held = self._fold, self._held
        for name, values in self._waiting.items():
            held[name] = fold.add(held[name] if name in held else fold.empty(), values)
        self._waiting = {}
        self._waiting_count = 0

    def partials_by_name(self) -> dict[Any, Any]:
        self._fold_waiting()
        return self._held

    def __len__(self) -> int:
        return len(self._held) + len(self._waiting)


class LoopTable:
    """A fold whose expressions a loop contains."""

    def __init__(self, fold: Fold) -> None:
        assert fold.source is not None
        self.held: dict[Any, Any] = {}
        self._empty = fold.empty
        self._is_count = fold.name == "count"
        self._add = loop_of(fold.source, "key", from_pairs=False)
        self._opened: dict[Any, None] = {}

    def add(self, names: list[Any], values: list[Any]) -> None:
        if self._is_count:
            # Python's own loop over names, which takes any dict; a Counter would slow other loops down.
            Counter.update(self.held, names)  # type: ignore[call-overload]
        else:
            self._add(self.held, names, values)

    def open(self, names: list[Any]) -> None:
        self._opened.update(dict.fromkeys(names))

    def partials_by_name(self) -> dict[Any, Any]:
        if not self._opened:
            return self.held
        return {**{name: self._empty() for name in self._opened}, **self.held}

    def __len__(self) -> int:
        return len(self.held) + len(self._opened)


Table = ListTable | FoldTable | LoopTable


def table_for(fold: Fold, loop: Loop) -> Callable[[], Table]:
    """Returns a function that makes the table of a window."""
    if fold is LIST:
        return ListTable
    if loop is Loop.CALLS:
        return lambda: FoldTable(fold)
    return lambda: LoopTable(fold)
