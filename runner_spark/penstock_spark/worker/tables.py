"""Accumulators by key, with plain loops for the combiners that everybody uses.

A table takes names and values of one batch at a time and gives, in the end, an accumulator of the CombineFn for each
name. The special tables keep numbers and turn them into accumulators only then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from penstock.functions.combinefn import CombineFn, DefaultingCombineFn

_FOLD_ELEMENTS = 50_000


class Table(Protocol):
    """Accumulators by name."""

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name; names repeat."""
        ...

    def open(self, names: list[Any]) -> None:
        """Makes places for names, with nothing in them if no value comes."""
        ...

    def accumulators(self) -> dict[Any, Any]:
        """The accumulator of each name."""
        ...

    def numbers(self) -> dict[Any, Any]:
        """What is left of the values of each name, for combiners whose accumulators are plain numbers."""
        ...

    def __len__(self) -> int:
        """The number of names."""
        ...


class ListTable:
    """No combining: the values of each name, in a list."""

    def __init__(self) -> None:
        self._lists: dict[Any, list[Any]] = {}

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name."""
        append_by_name(self._lists, names, values)

    def open(self, names: list[Any]) -> None:
        """Empty lists."""
        for name in names:
            self._lists.setdefault(name, [])

    def accumulators(self) -> dict[Any, Any]:
        """The lists."""
        return self._lists

    def numbers(self) -> dict[Any, Any]:
        """There are none."""
        raise AssertionError("values are no numbers")

    def __len__(self) -> int:
        return len(self._lists)


def append_by_name(lists: dict[Any, list[Any]], names: list[Any], values: list[Any]) -> None:
    """Appends each value to the list of its name."""
    for name, value in zip(names, values, strict=True):
        if name in lists:
            lists[name].append(value)
        else:
            lists[name] = [value]


class FoldTable:
    """Any CombineFn: values wait in lists, so that ``add_inputs`` sees many at a time."""

    def __init__(self, fn: CombineFn) -> None:
        self.fn = fn
        self._accumulators: dict[Any, Any] = {}
        self._waiting: dict[Any, list[Any]] = {}
        self._waiting_count = 0

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name."""
        append_by_name(self._waiting, names, values)
        self._waiting_count += len(names)
        if self._waiting_count >= _FOLD_ELEMENTS:
            self._fold()

    def open(self, names: list[Any]) -> None:
        """Accumulators of nothing."""
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
        """The accumulator of each name, compacted."""
        self._fold()
        return {name: self.fn.compact(accumulator) for name, accumulator in self._accumulators.items()}

    def numbers(self) -> dict[Any, Any]:
        """There are none."""
        raise AssertionError("a CombineFn of any kind has no numbers")

    def __len__(self) -> int:
        return len(self._accumulators) + len(self._waiting)


class CountTable:
    """The number of values of each name."""

    def __init__(self, fn: CombineFn) -> None:
        self.fn = fn
        self._counts: Counter[Any] = Counter()

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name."""
        self._counts.update(names)

    def open(self, names: list[Any]) -> None:
        """Counts of nothing."""
        for name in names:
            self._counts.setdefault(name, 0)

    def accumulators(self) -> dict[Any, Any]:
        """The accumulator of a CountCombineFn is the count."""
        return dict(self._counts)

    def numbers(self) -> dict[Any, Any]:
        """The counts."""
        return dict(self._counts)

    def __len__(self) -> int:
        return len(self._counts)


class SumTable:
    """The sum of the values of each name (``CombinePerKey(sum)``)."""

    def __init__(self, fn: CombineFn) -> None:
        self.fn = fn
        self.sums: dict[Any, Any] = {}

    def add(self, names: list[Any], values: list[Any]) -> None:
        """Takes one value for each name."""
        sums = self.sums
        for name, value in zip(names, values, strict=True):
            if name in sums:
                # Not `+=`: that would change a value which belongs to the user.
                sums[name] = sums[name] + value
            else:
                sums[name] = 0 + value

    def open(self, names: list[Any]) -> None:
        """Sums of nothing."""
        for name in names:
            self.sums.setdefault(name, 0)

    def accumulators(self) -> dict[Any, Any]:
        """The accumulator of each name."""
        made = accumulators_of(self.fn, list(self.sums.values()))
        return dict(zip(self.sums, made, strict=True))

    def numbers(self) -> dict[Any, Any]:
        """The sums."""
        return self.sums

    def __len__(self) -> int:
        return len(self.sums)


def add_by_window(
    sums_of: Callable[[Any], dict[Any, Any]], windows: list[Any], names: list[Any], values: list[Any]
) -> None:
    """Adds each value to the sum of its name in the dictionary of its window, in one pass.

    Args:
        sums_of: Gives the sums by name for what an element has as windows; asked once for each distinct object.
        windows: What each element has as windows.
        names: The elements' names.
        values: Their values.

    >>> sums = {("v",): {}, ("w",): {}}
    >>> first, second = sums
    >>> add_by_window(sums.__getitem__, [first, second, first], ["a", "a", "a"], [1, 2, 3])
    >>> sums
    {('v',): {'a': 4}, ('w',): {'a': 2}}
    """
    found: dict[int, dict[Any, Any]] = {}
    last = None
    sums: dict[Any, Any] = {}
    for own, name, value in zip(windows, names, values, strict=True):
        # Neighbours mostly share a window, whose tuple a step before keeps.
        if own is not last:
            last, place = own, id(own)
            if place in found:
                sums = found[place]
            else:
                sums = found[place] = sums_of(own)
        if name in sums:
            # Not `+=`: that would change a value which belongs to the user.
            sums[name] = sums[name] + value
        else:
            sums[name] = 0 + value


def table_for(fn: CombineFn | None) -> Callable[[], Table]:
    """The best table for a CombineFn, or for values that are only grouped."""
    if fn is None:
        return ListTable
    kind = known(fn)
    if kind == "count":
        return lambda: CountTable(fn)
    if kind == "sum":
        return lambda: SumTable(fn)
    return lambda: FoldTable(fn)


def without_default(fn: CombineFn) -> CombineFn:
    """The CombineFn that combines, of one that leaves the marker of an empty input out.

    >>> from penstock.functions.combinefn import DefaultingCombineFn
    >>> known(without_default(DefaultingCombineFn(CombineFn.from_callable(sum))))
    'sum'
    """
    return fn.fn if type(fn) is DefaultingCombineFn else fn


def known(fn: CombineFn) -> str | None:
    """The name of a combiner that the runner knows: ``sum``, ``min``, ``max``, ``count`` or ``mean``.

    >>> known(CombineFn.from_callable(sum)), known(CombineFn.from_callable(len))
    ('sum', None)
    """
    from penstock.functions.combinefn import CallableWrapperCombineFn
    from penstock.transforms.ready_combiners import CountCombineFn, MeanCombineFn

    if type(fn) is CountCombineFn:
        return "count"
    if type(fn) is MeanCombineFn:
        return "mean"
    if isinstance(fn, CallableWrapperCombineFn):
        function = fn.fn
        return {sum: "sum", min: "min", max: "max"}.get(function) if _hashable(function) else None
    return None


def accumulators_of(fn: CombineFn, numbers: list[Any]) -> list[Any]:
    """The accumulators of a sum or a count whose results are some numbers.

    >>> accumulators_of(CombineFn.from_callable(sum), [3])
    [[3]]
    """
    if known(fn) == "count":
        return numbers
    # The sum of sums is the sum, and so each sum stands for its values.
    return [fn.add_inputs(fn.create_accumulator(), [number]) for number in numbers]


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
