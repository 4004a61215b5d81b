"""A CombineFn of Python expressions, which a loop over many values can contain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.functions.described_combinefn import DescribedCombineFn
from penstock.functions.folds import NOTHING, Fold, FoldSource, fold_from, register_fold


class ExpressionCombineFn(DescribedCombineFn):
    """Combines values by expressions; a group without values has the result None.

    Args:
        source: The expressions. Partial results are immutable.
        keeps: What the partial results contain.

    Attributes:
        accepts_retractions: False: no expression can retract a value.

    >>> longest = FoldSource("len(value)", "max(partial, len(value))", "max(partial, other)")
    >>> ExpressionCombineFn(longest).apply(["a", "abc", "ab"])
    3
    """

    accepts_retractions = False

    def __init__(self, source: FoldSource, keeps: str = "") -> None:
        self.source = source
        self.keeps = keeps

    def create_accumulator(self) -> object:
        """Returns the partial result of no values."""
        return NOTHING

    def add_input(self, accumulator: object, element: object) -> object:
        return fold_by_expressions(self).step(accumulator, element)

    def merge_accumulators(self, accumulators: Iterable[Any]) -> object:
        return fold_by_expressions(self).merged([NOTHING, *accumulators])

    def extract_output(self, accumulator: object) -> object:
        return fold_by_expressions(self).finish(accumulator)


def _no_result() -> None:
    return None


@register_fold(ExpressionCombineFn)
def fold_by_expressions(fn: ExpressionCombineFn) -> Fold:
    """Returns the fold of the expressions themselves."""
    return fold_from(fn.source, nothing=_no_result)
