"""A CombineFn of Python expressions, which a loop over many values can contain."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.functions.combinefn import CombineFn


@dataclass(frozen=True)
class CombineExpressions:
    """How values are combined, as texts of Python expressions; equal texts are compiled once."""

    first: str  # What is held of a first ``value``.
    more: str  # What is held of ``held`` and one more ``value``.
    merge: str  # What is held of ``held`` and ``other``, which is held of other values.
    result: str  # The result of what is ``held``.
    # The functions that the expression of the result may name. The others may name none, since they are parts of loops.
    functions: tuple[Callable[..., Any], ...] = ()


class CombineFunctions(NamedTuple):
    """What expressions are compiled to."""

    first: Callable[[Any], Any]
    more: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]


@functools.cache
def combine_functions(expressions: CombineExpressions) -> CombineFunctions:
    """The functions of expressions, compiled once for all that are equal."""
    names = {function.__name__: function for function in expressions.functions}
    texts = (
        f"lambda value: {expressions.first}",
        f"lambda held, value: {expressions.more}",
        f"lambda held, other: {expressions.merge}",
        f"lambda held: {expressions.result}",
    )
    return CombineFunctions(*(eval(compile(text, "<combine>", "eval"), names) for text in texts))


class ExpressionCombineFn(CombineFn):
    """Combines values by expressions; a group without values has the result None.

    Args:
        expressions: The expressions. What is held must be immutable.

    Attributes:
        takes_retractions: No expression takes a value back.

    >>> longest = CombineExpressions("len(value)", "max(held, len(value))", "max(held, other)", "held", (len, max))
    >>> ExpressionCombineFn(longest).apply(["a", "abc", "ab"])
    3
    """

    takes_retractions = False

    def __init__(self, expressions: CombineExpressions) -> None:
        self.expressions = expressions

    def create_accumulator(self) -> list[Any]:
        """What is held, in a list; nothing yet."""
        return []

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        functions = combine_functions(self.expressions)
        return [functions.more(accumulator[0], element) if accumulator else functions.first(element)]

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        helds = [held for accumulator in accumulators for held in accumulator]
        return [functools.reduce(combine_functions(self.expressions).merge, helds)] if helds else []

    def extract_output(self, accumulator: list[Any]) -> Any:
        return combine_functions(self.expressions).result(accumulator[0]) if accumulator else None
