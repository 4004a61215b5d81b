"""What a window holds between two panes: values, or an accumulator, and how something is taken back from it.

Memory follows the accumulator, not the elements, wherever the CombineFn allows it: always while nothing is retracted,
and also then if it has ``subtract_input`` (the paper's ``uncombine``), and says of the value that this is exact. Other
values are kept, and combined anew.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

_IMMUTABLE = frozenset((int, float, str, bytes, bool, complex, type(None)))


class Contents(ABC):
    """The operations on what a window holds: a plain value, which `add` and `merge` may change in place."""

    @abstractmethod
    def empty(self) -> Any:
        """What a window without elements holds."""

    @abstractmethod
    def add(self, held: Any, value: Any) -> Any:
        """With one more value."""

    @abstractmethod
    def subtract(self, held: Any, value: Any) -> Any:
        """With one value less, also if that value has not come yet."""

    @abstractmethod
    def merge(self, several: Sequence[Any]) -> Any:
        """What several windows hold, together."""

    @abstractmethod
    def result(self, held: Any, is_kept: bool) -> Any:
        """The value of a pane.

        Args:
            held: What the window holds.
            is_kept: Whether the window goes on holding it, so that nothing that changes later may be in the pane.
        """

    def owed(self, held: Any) -> list[Any]:
        """The values that were taken back before they came."""
        return []

    def has_values(self, held: Any) -> bool:
        """Whether there may be values besides those that are owed."""
        return True

    @functools.cached_property
    def has_result_of_nothing(self) -> bool:
        """Whether there is a result of no values: 0 for a sum, but none for a maximum."""
        try:
            self.result(self.empty(), False)
        except Exception:
            return False
        return True


class Values(Contents):
    """A raw group: the list of values, in order of arrival."""

    def empty(self) -> list[Any]:
        """No values."""
        return []

    def add(self, held: list[Any], value: Any) -> list[Any]:
        """With one more at the end."""
        held.append(value)
        return held

    def subtract(self, held: list[Any], value: Any) -> list[Any]:
        """Not asked for: where elements may be retractions, a `Bag` is used."""
        raise NotImplementedError

    def merge(self, several: Sequence[list[Any]]) -> list[Any]:
        """One after the other."""
        first, *others = several
        for other in others:
            first.extend(other)
        return first

    def result(self, held: list[Any], is_kept: bool) -> list[Any]:
        """The list."""
        return list(held) if is_kept else held


class Accumulator(Contents):
    """A CombineFn's accumulator.

    Args:
        fn: The CombineFn.
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def empty(self) -> Any:
        """The accumulator of no values."""
        return self.fn.create_accumulator()

    def add(self, held: Any, value: Any) -> Any:
        """With one more input."""
        return self.fn.add_input(held, value)

    def subtract(self, held: Any, value: Any) -> Any:
        """With one input less, by the CombineFn's ``subtract_input``."""
        return self.fn.subtract_input(held, value)

    def merge(self, several: Sequence[Any]) -> Any:
        """The merged accumulator."""
        return several[0] if len(several) == 1 else self.fn.merge_accumulators(several)

    def result(self, held: Any, is_kept: bool) -> Any:
        """The output; some CombineFns give out the accumulator itself, which must then be a copy."""
        if is_kept and not is_immutable(held):
            held = copy.deepcopy(held)
        return self.fn.extract_output(held)


class Bag(Contents):
    """Values that can be taken back: a pair of lists, of values that are there and of values that are owed.

    Args:
        fn: A CombineFn without ``subtract_input``, asked about all values for each pane; None for a raw group.
    """

    def __init__(self, fn: Any = None) -> None:
        self.fn = fn

    def empty(self) -> tuple[list[Any], list[Any]]:
        """Nothing there, nothing owed."""
        return [], []

    def add(self, held: tuple[list[Any], list[Any]], value: Any) -> tuple[list[Any], list[Any]]:
        """Pays a debt, or is there."""
        there, owed = held
        if not _remove(owed, value):
            there.append(value)
        return held

    def subtract(self, held: tuple[list[Any], list[Any]], value: Any) -> tuple[list[Any], list[Any]]:
        """Is no longer there, or is owed."""
        there, owed = held
        if not _remove(there, value):
            owed.append(value)
        return held

    def merge(self, several: Sequence[tuple[list[Any], list[Any]]]) -> tuple[list[Any], list[Any]]:
        """What one owes the other may have."""
        first, *others = several
        for there, owed in others:
            for value in there:
                self.add(first, value)
            for value in owed:
                self.subtract(first, value)
        return first

    def result(self, held: tuple[list[Any], list[Any]], is_kept: bool) -> Any:
        """Of the values that are there."""
        return self._of(held[0])

    def owed(self, held: tuple[list[Any], list[Any]]) -> list[Any]:
        """Those."""
        return held[1]

    def has_values(self, held: tuple[list[Any], list[Any]]) -> bool:
        """Whether any value is there."""
        return bool(held[0])

    def _of(self, values: list[Any]) -> Any:
        return list(values) if self.fn is None else self.fn.apply(values)


class Exact(Contents):
    """The accumulator of the values that a CombineFn subtracts exactly, beside a bag of all others.

    So sums of whole numbers are sums, whatever is taken back, and of floats those that are there are added up anew.

    Args:
        fn: A CombineFn with ``subtract_input`` and ``subtracts``.
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        self._accumulator = Accumulator(fn)
        self._bag = Bag(fn)

    def empty(self) -> tuple[Any, tuple[list[Any], list[Any]]]:
        """The accumulator of no values, and an empty bag."""
        return self._accumulator.empty(), self._bag.empty()

    def add(self, held: tuple[Any, Any], value: Any) -> tuple[Any, Any]:
        """Goes where it can be taken out again."""
        accumulator, bag = held
        if self.fn.subtracts(value):
            return self._accumulator.add(accumulator, value), bag
        return accumulator, self._bag.add(bag, value)

    def subtract(self, held: tuple[Any, Any], value: Any) -> tuple[Any, Any]:
        """Is taken out where it is, or will be."""
        accumulator, bag = held
        if self.fn.subtracts(value):
            return self._accumulator.subtract(accumulator, value), bag
        return accumulator, self._bag.subtract(bag, value)

    def merge(self, several: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        """Each part by itself."""
        accumulators, bags = zip(*several, strict=True)
        return self._accumulator.merge(accumulators), self._bag.merge(bags)

    def result(self, held: tuple[Any, Any], is_kept: bool) -> Any:
        """Of the accumulator, and the accumulator of what is in the bag."""
        accumulator, (there, _) = held
        if there:
            others = self.fn.add_inputs(self.fn.create_accumulator(), there)
            # Only the first of them may change.
            accumulator = self._accumulator.merge([others, accumulator])
        return self._accumulator.result(accumulator, is_kept)

    def owed(self, held: tuple[Any, Any]) -> list[Any]:
        """Those that the bag owes; an accumulator is below zero instead."""
        return self._bag.owed(held[1])


def contents_of(combine: Any, input_retracts: bool, keeps: bool = False) -> Contents:
    """The operations that suit a grouping.

    Args:
        combine: Its CombineFn; None for a raw group.
        input_retracts: Whether its elements may be retractions.
        keeps: Whether windows go on holding their elements after a pane. Where they do not, a value that comes and one
            that is taken back are in panes of their own, for there is no mean of what has been given and what is owed.
    """
    if not input_retracts:
        return Values() if combine is None else Accumulator(combine)
    if not hasattr(combine, "subtract_input"):
        return Bag(combine)
    if not hasattr(combine, "subtracts"):
        return Accumulator(combine)
    return Exact(combine) if keeps else Bag(combine)


def is_immutable(held: Any) -> bool:
    """Whether something that is held cannot change, as far as its type tells."""
    return type(held) in _IMMUTABLE or (type(held) is tuple and _IMMUTABLE.issuperset(map(type, held)))


def _remove(values: list[Any], value: Any) -> bool:
    """Takes the last equal value out; whether there was one. Equal means also of one type: True is not 1."""
    for number in reversed(range(len(values))):
        if type(values[number]) is type(value) and values[number] == value:
            del values[number]
            return True
    return False
