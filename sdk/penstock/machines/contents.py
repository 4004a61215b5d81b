"""What a window holds between two panes: values or an accumulator, and how a value is retracted from it.

Memory follows the accumulator, not the elements, wherever the CombineFn allows it: always while nothing is retracted,
and otherwise if the CombineFn has ``subtract_input`` (the paper's ``uncombine``) and says that it subtracts the value
exactly. Other values are kept, and combined anew.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from penstock.machines.long_lists import AnyList, LongList, joined

_IMMUTABLE = frozenset((int, float, str, bytes, bool, complex, type(None)))


class Contents(ABC):
    """The operations on what a window holds: a value, which `add` and `merge` may change in place."""

    @abstractmethod
    def empty(self) -> Any:
        """What a window without elements holds."""

    @abstractmethod
    def add(self, held: Any, value: Any) -> Any:
        """Adds a value."""

    @abstractmethod
    def subtract(self, held: Any, value: Any) -> Any:
        """Takes a value back, even one that has not arrived yet."""

    @abstractmethod
    def merge(self, several: Sequence[Any]) -> Any:
        """Merges what several windows hold."""

    @abstractmethod
    def result(self, held: Any, is_kept: bool) -> Any:
        """The value of a pane; a copy if the window keeps what it holds (`is_kept`) and may change it later."""

    def owed(self, held: Any) -> list[Any]:
        """The values that were retracted before they arrived."""
        return []

    def has_values(self, held: Any) -> bool:
        """Whether there may be values besides those that are owed."""
        return True

    @functools.cached_property
    def has_result_of_nothing(self) -> bool:
        """Whether an empty window has a result: 0 for a sum, but none for a maximum."""
        try:
            self.result(self.empty(), False)
        except Exception:
            return False
        return True


class Values(Contents):
    """A raw group: the list of values, in order of arrival."""

    def empty(self) -> list[Any]:
        return []

    def add(self, held: AnyList, value: Any) -> AnyList:
        held.append(value)
        return held

    def subtract(self, held: AnyList, value: Any) -> AnyList:
        """Never called: where elements may be retractions, a `Bag` is used."""
        raise NotImplementedError

    def merge(self, several: Sequence[AnyList]) -> AnyList:
        first, *others = several
        for other in others:
            if isinstance(other, LongList):
                first = joined(first, other)
            else:
                first.extend(other)
        return first

    def result(self, held: AnyList, is_kept: bool) -> list[Any]:
        return list(held) if is_kept or isinstance(held, LongList) else held


class Accumulator(Contents):
    """The accumulator of a CombineFn."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def empty(self) -> Any:
        return self.fn.create_accumulator()

    def add(self, held: Any, value: Any) -> Any:
        return self.fn.add_input(held, value)

    def subtract(self, held: Any, value: Any) -> Any:
        return self.fn.subtract_input(held, value)

    def merge(self, several: Sequence[Any]) -> Any:
        return several[0] if len(several) == 1 else self.fn.merge_accumulators(several)

    def result(self, held: Any, is_kept: bool) -> Any:
        # Some CombineFns return the accumulator itself.
        if is_kept and not is_immutable(held):
            held = copy.deepcopy(held)
        return self.fn.extract_output(held)


class Bag(Contents):
    """Values that can be retracted: a pair of lists, of values that are there and of values that are owed.

    A CombineFn without ``subtract_input`` combines all values for each pane; without a CombineFn, panes hold the list.
    """

    def __init__(self, fn: Any = None) -> None:
        self.fn = fn

    def empty(self) -> tuple[list[Any], list[Any]]:
        return [], []

    def add(self, held: tuple[list[Any], list[Any]], value: Any) -> tuple[list[Any], list[Any]]:
        """Settles a debt with the value, or keeps it."""
        there, owed = held
        if not _remove(owed, value):
            there.append(value)
        return held

    def subtract(self, held: tuple[list[Any], list[Any]], value: Any) -> tuple[list[Any], list[Any]]:
        """Drops the value, or owes it."""
        there, owed = held
        if not _remove(there, value):
            owed.append(value)
        return held

    def merge(self, several: Sequence[tuple[list[Any], list[Any]]]) -> tuple[list[Any], list[Any]]:
        """Settles what one window owes with what another holds."""
        first, *others = several
        for there, owed in others:
            for value in there:
                self.add(first, value)
            for value in owed:
                self.subtract(first, value)
        return first

    def result(self, held: tuple[list[Any], list[Any]], is_kept: bool) -> Any:
        return self._of(held[0])

    def owed(self, held: tuple[list[Any], list[Any]]) -> list[Any]:
        return held[1]

    def has_values(self, held: tuple[list[Any], list[Any]]) -> bool:
        return bool(held[0])

    def _of(self, values: list[Any]) -> Any:
        return list(values) if self.fn is None else self.fn.apply(values)


class Exact(Contents):
    """The accumulator of the values that a CombineFn subtracts exactly, beside a bag of all others.

    So a sum of integers stays one number, whatever is retracted, and the floats that are there are added up anew.
    The CombineFn has ``subtract_input`` and ``subtracts``.
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self._accumulator = Accumulator(fn)
        self._bag = Bag(fn)

    def empty(self) -> tuple[Any, tuple[list[Any], list[Any]]]:
        return self._accumulator.empty(), self._bag.empty()

    def add(self, held: tuple[Any, Any], value: Any) -> tuple[Any, Any]:
        accumulator, bag = held
        if self.fn.subtracts(value):
            return self._accumulator.add(accumulator, value), bag
        return accumulator, self._bag.add(bag, value)

    def subtract(self, held: tuple[Any, Any], value: Any) -> tuple[Any, Any]:
        accumulator, bag = held
        if self.fn.subtracts(value):
            return self._accumulator.subtract(accumulator, value), bag
        return accumulator, self._bag.subtract(bag, value)

    def merge(self, several: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        accumulators, bags = zip(*several, strict=True)
        return self._accumulator.merge(accumulators), self._bag.merge(bags)

    def result(self, held: tuple[Any, Any], is_kept: bool) -> Any:
        accumulator, (there, _) = held
        if there:
            others = self.fn.add_inputs(self.fn.create_accumulator(), there)
            # Merging may change only its first argument.
            accumulator = self._accumulator.merge([others, accumulator])
        return self._accumulator.result(accumulator, is_kept)

    def owed(self, held: tuple[Any, Any]) -> list[Any]:
        """What the bag owes; an accumulator that owes something is below zero instead."""
        return self._bag.owed(held[1])


def contents_of(combine: Any, input_retracts: bool, keeps: bool = False) -> Contents:
    """The operations that suit a grouping; `keeps` says whether windows keep their elements after a pane."""
    if not input_retracts:
        return Values() if combine is None else Accumulator(combine)
    if not hasattr(combine, "subtract_input"):
        return Bag(combine)
    if not hasattr(combine, "subtracts"):
        return Accumulator(combine)
    # Where windows do not keep elements, inserted and retracted values need panes of their own: they have no mean.
    return Exact(combine) if keeps else Bag(combine)


def is_immutable(held: Any) -> bool:
    """Whether the type of what a window holds shows that it cannot change."""
    return type(held) in _IMMUTABLE or (type(held) is tuple and _IMMUTABLE.issuperset(map(type, held)))


def _remove(values: list[Any], value: Any) -> bool:
    """Removes the last equal value of the same type (True is not 1), and says whether it found one."""
    for number in reversed(range(len(values))):
        if type(values[number]) is type(value) and values[number] == value:
            del values[number]
            return True
    return False
