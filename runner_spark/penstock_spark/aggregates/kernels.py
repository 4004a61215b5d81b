"""The combiners that the runner knows, each as a `Kernel`: how values are added up, merged, and given to Spark.

Whoever asks whether a CombineFn is a sum, a count or another one of these asks `kernel_of`. Every other CombineFn is
called as its author wrote it, which is always right.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.functions.combinefn import (
    CallableWrapperCombineFn,
    CombineFn,
    DefaultingCombineFn,
    NoSideInputsCallableWrapperCombineFn,
)
from penstock.machines.column_rules import Holding
from penstock.machines.contents import is_immutable
from penstock.transforms.ready_combiners import CountCombineFn, Largest, MeanCombineFn, Smallest, TopCombineFn


@dataclass(frozen=True)
class Adding:
    """How a kernel adds values up in Python. What it holds of some values is plain, such as their sum.

    Attributes:
        first: What is held of a first value: an expression of ``value``.
        more: What is held with one more: an expression of ``held`` and ``value``. The loops have both inside, because
            a call for each element would cost (see `penstock_spark.aggregates.loops`).
        merge: What is held of two parts.
        accumulator: The CombineFn's accumulator that stands for what is held.
        result: The CombineFn's output.
        nothing: What is held of no values; None if no values have no result.
        is_number: Whether whole numbers that are held make all of a group when they are added up, so that they
            travel in a column.
        ignores_values: Whether only the number of values matters.
    """

    first: str
    more: str
    merge: Callable[[Any, Any], Any]
    accumulator: Callable[[Any], Any]
    result: Callable[[Any], Any]
    nothing: int | None = None
    is_number: bool = False
    ignores_values: bool = False

    @property
    def holding(self) -> Holding:
        """The same for windows in columns.

        >>> sums = Kernel.named("sum").adding.holding
        >>> sums.result(sums.add(sums.merge(2, 3), 4))
        9
        """
        return Holding(
            add=eval(f"lambda held, value: {self.more}"),
            first=eval(f"lambda value: {self.first}"),
            merge=self.merge,
            result=self.result,
            nothing=lambda: self.nothing,
        )


@dataclass(frozen=True)
class OfColumns:
    """What Spark computes of a column, exactly as Python would.

    Attributes:
        kinds: The kinds of columns (see `penstock_spark.plan.column_kinds`) for which that holds; None for all.
        otherwise: Why Python does it for others: a format of the result's name and the column's kind.
        result_kind: The kind of the result; None for that of the column.
    """

    kinds: frozenset[str] | None
    otherwise: str
    result_kind: str | None


@dataclass(frozen=True)
class Kernel:
    """A combiner that the runner knows.

    Attributes:
        name: What it is called in plans.
        of_columns: What Spark computes of columns; None if Spark has nothing like it.
        adding: How Python adds values up; None if the CombineFn itself is as fast, or more exact.
        is_ordered: Whether the result may depend on the order of equal values.
    """

    name: str
    of_columns: OfColumns | None
    adding: Adding | None
    is_ordered: bool = False

    @staticmethod
    def named(name: str) -> Kernel:
        """The kernel of a name."""
        return _KERNELS[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel.named, (self.name,)


def _itself(held: Any) -> Any:
    return held


def _in_list(held: Any) -> list[Any]:
    return [held]


def _own(held: Any) -> Any:
    """A value of the user's that a window goes on holding; nothing that changes later may be in a pane."""
    return held if is_immutable(held) else copy.deepcopy(held)


_INTEGERS = frozenset({"int"})
_ORDERED = frozenset({"int", "str", "bool", "date", "instant"})

_KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            "sum",
            # A sum of floats depends on the order.
            OfColumns(_INTEGERS, "{} is a sum of {}, not of int", "int"),
            # Not `+=`: that would change a value which belongs to the user.
            Adding("0 + value", "held + value", operator.add, _in_list, lambda held: 0 + held, 0, True),
        ),
        Kernel(
            "count",
            OfColumns(None, "", "int"),
            Adding("1", "held + 1", operator.add, _itself, _itself, 0, True, True),
        ),
        # Where few keys have many values the CombineFn is faster than a loop, and from Python 3.12 on its sum of floats
        # is more exact.
        Kernel("mean", OfColumns(_INTEGERS, "{} is a mean of {}, not of int", "float"), None),
        Kernel(
            "min",
            OfColumns(_ORDERED, "{} is the min of {}, which may be NaN or are not ordered", None),
            Adding("value", "value if value < held else held", min, _in_list, _own),
        ),
        Kernel(
            "max",
            OfColumns(_ORDERED, "{} is the max of {}, which may be NaN or are not ordered", None),
            Adding("value", "value if value > held else held", max, _in_list, _own),
        ),
        # The CombineFn already compares many values at a time. Spark's own would order equal values in its own way.
        Kernel("top", None, None, is_ordered=True),
    )
}
_OF_FUNCTIONS = ((sum, "sum"), (min, "min"), (max, "max"))
_EXACTLY = (
    *(CallableWrapperCombineFn, NoSideInputsCallableWrapperCombineFn),
    *(CountCombineFn, MeanCombineFn, TopCombineFn, Largest, Smallest),
)


def kernel_of(fn: CombineFn | None) -> Kernel | None:
    """The kernel of a CombineFn; None if it is another one, or a subclass, which may do as it likes.

    That of ``CombineGlobally`` is the one inside: whoever adds values up leaves the marker of an empty input out.

    >>> kernel_of(DefaultingCombineFn(CombineFn.from_callable(sum))).name
    'sum'
    >>> kernel_of(CombineFn.from_callable(len)), kernel_of(None)
    (None, None)
    """
    name = None
    match fn:
        case DefaultingCombineFn():
            return kernel_of(fn.fn)
        case CallableWrapperCombineFn():
            name = next((name for function, name in _OF_FUNCTIONS if fn.fn is function), None)
        case TopCombineFn():
            # A key is a function of the user's.
            name = "top" if fn.key is None else None
        case CountCombineFn():
            name = "count"
        case MeanCombineFn():
            name = "mean"
    return _KERNELS[name] if name is not None and type(fn) in _EXACTLY else None


def adding_of(fn: CombineFn | None) -> Adding | None:
    """How values are added up without their CombineFn; None if it has to be called.

    >>> adding_of(CombineFn.from_callable(max)).accumulator(3), adding_of(MeanCombineFn())
    ([3], None)
    """
    kernel = kernel_of(fn)
    return None if kernel is None else kernel.adding
