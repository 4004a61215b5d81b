"""The combiners that the runner knows, each as a `Kernel`: how values are added up, merged, and given to Spark.

Whoever asks whether a CombineFn is a sum, a count or another one of these asks `kernel_of`. Every other CombineFn is
called as its author wrote it, which is always right.
"""

from __future__ import annotations

import copy
import functools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.functions.combinefn import (
    CallableWrapperCombineFn,
    CombineFn,
    DefaultingCombineFn,
    NoSideInputsCallableWrapperCombineFn,
)
from penstock.functions.expression_combinefn import (
    CombineExpressions,
    ExpressionCombineFn,
    combine_functions,
)
from penstock.machines.column_rules import Holding
from penstock.machines.contents import is_immutable
from penstock.transforms.ready_combiners import (
    CountCombineFn,
    Largest,
    MeanCombineFn,
    Smallest,
    TopCombineFn,
    TupleCombineFn,
)


@dataclass(frozen=True)
class Adding:
    """How a kernel adds values up in Python; it holds plain data, such as the sum of some values."""

    first: str  # An expression of ``value``: what the kernel holds of a first value.
    # An expression of ``held`` and ``value``: what it holds with one more value. The loops contain both
    # expressions, because a call for each element would cost (see `penstock_spark.aggregates.loops`).
    more: str
    merge: Callable[[Any, Any], Any]  # Merges what two parts hold.
    accumulator: Callable[[Any], Any]  # Turns what is held into the CombineFn's accumulator.
    result: Callable[[Any], Any]  # Turns what is held into the CombineFn's output.
    nothing: int | None = None  # What an empty group holds; None if an empty group has no result.
    # Whether adding up the whole numbers of several parts gives the result, so that they travel in a column.
    is_number: bool = False
    ignores_values: bool = False  # Whether only the number of values matters.

    @property
    def holding(self) -> Holding:
        """The same functions, for windows in columns.

        >>> sums = Kernel.named("sum").adding.holding
        >>> sums.result(sums.add(sums.merge(2, 3), 4))
        9
        """
        return Holding(
            add=_function(f"lambda held, value: {self.more}"),
            first=_function(f"lambda value: {self.first}"),
            merge=self.merge,
            result=self.result,
            nothing=lambda: self.nothing,
        )


@functools.cache
def _function(expression: str) -> Callable[..., Any]:
    """The function that an expression of a kernel is; each task asks for it again."""
    function: Callable[..., Any] = eval(expression)
    return function


@dataclass(frozen=True)
class OfColumns:
    """An aggregate that Spark computes of a column exactly as Python would."""

    # The kinds of columns that it accepts (see `penstock_spark.plan.column_kinds`); None for all.
    kinds: frozenset[str] | None
    otherwise: str  # Why Python aggregates the others: a format of the result's name and the column's kind.
    result_kind: str | None  # None if the result has the column's kind.


@dataclass(frozen=True)
class Kernel:
    name: str
    of_columns: OfColumns | None  # None if Spark has no such aggregate.
    adding: Adding | None  # None if the CombineFn itself is as fast, or more exact.
    is_ordered: bool = False  # Whether the result may depend on the order of equal values.
    fn: CombineFn | None = (
        None  # The CombineFn of the user's step that makes the kernel; None for those with a name.
    )

    @staticmethod
    def named(name: str) -> Kernel:
        return _KERNELS[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Kernel.named, (self.name,)) if self.fn is None else (early_kernel_of, (self.fn,))


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
    """The kernel of a CombineFn; None for an unknown one or a subclass, which may do as it likes.

    A ``CombineGlobally`` has the kernel of the CombineFn inside: callers leave the marker of an empty input
    out.

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
        case ExpressionCombineFn():
            return Kernel("expressions", None, _adding_by(fn.expressions), fn=fn)
    return _KERNELS[name] if name is not None and type(fn) in _EXACTLY else None


def _adding_by(expressions: CombineExpressions) -> Adding:
    functions = combine_functions(expressions)
    return Adding(expressions.first, expressions.more, functions.merge, _in_list, functions.result)


def early_kernel_of(fn: CombineFn | None) -> Kernel | None:
    """The kernel of a CombineFn where its accumulators are made of what the kernel holds; None if it must be called.

    These are the kernels of `kernel_of`, and one for several CombineFns side by side, whose elements are lists.

    >>> adding = early_kernel_of(TupleCombineFn.of_lists([sum, max])).adding
    >>> adding.more, adding.accumulator([3, 5])
    ('[held[0] + value[0], value[1] if value[1] > held[1] else held[1]]', [[3], [5]])
    """
    if type(fn) is not TupleCombineFn or not fn.takes_lists:
        return kernel_of(fn)
    kernels = [kernel_of(each) for each in fn.combiners]
    addings = [kernel.adding for kernel in kernels if kernel is not None and kernel.adding is not None]
    # The expressions of others may have a ``held`` or a ``value`` that is not a name.
    if len(addings) < len(kernels) or any(kernel is not None and kernel.fn is not None for kernel in kernels):
        return None
    return Kernel("side by side", None, _side_by_side(addings), fn=fn)


def _side_by_side(addings: Sequence[Adding]) -> Adding:
    def all_of(name: str) -> str:
        texts = [_NAMES.sub(rf"\g<0>[{at}]", getattr(each, name)) for at, each in enumerate(addings)]
        return f"[{', '.join(texts)}]"

    def merge(one: list[Any], other: list[Any]) -> list[Any]:
        return [each.merge(*parts) for each, *parts in zip(addings, one, other, strict=True)]

    def accumulator(held: list[Any]) -> list[Any]:
        return [each.accumulator(part) for each, part in zip(addings, held, strict=True)]

    def result(held: list[Any]) -> tuple[Any, ...]:
        return tuple(each.result(part) for each, part in zip(addings, held, strict=True))

    return Adding(all_of("first"), all_of("more"), merge, accumulator, result)


_NAMES = re.compile(r"\b(held|value)\b")


def adding_of(fn: CombineFn | None) -> Adding | None:
    """How to add values up without their CombineFn; None if it must be called.

    >>> adding_of(CombineFn.from_callable(max)).accumulator(3), adding_of(MeanCombineFn())
    ([3], None)
    """
    kernel = kernel_of(fn)
    return None if kernel is None else kernel.adding
