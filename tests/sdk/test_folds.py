"""A fold makes what its CombineFn makes, however values are divided, and a subclass has a fold of its own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from random import Random
from typing import Any

import pytest

from penstock.functions import folds
from penstock.functions.combinefn import CallableWrapperCombineFn, CombineFn, curry_combine_fn
from penstock.functions.folds import Fold, FoldSource, fold_of
from penstock.transforms.combining.ready_combiners import (
    CountCombineFn,
    Largest,
    MeanCombineFn,
    TopCombineFn,
    TupleCombineFn,
)

# Sums of each family are exact in any order.
FAMILIES = ((1, -3, True, 2**70), (0.25, -1.5, 2), (0, -0.0))
FOUR = TupleCombineFn.of_lists([sum, max, CountCombineFn(), min])
KNOWN = {
    "sum": CombineFn.from_callable(sum),
    "count": CountCombineFn(),
    "min": CombineFn.from_callable(min),
    "max": CombineFn.from_callable(max),
    "mean": MeanCombineFn(),
    "top": TopCombineFn(2),
    "tuple": FOUR,
}


def outcome(compute: Callable[[], Any]) -> Any:
    """A result as text, or the type of the error in its place."""
    try:
        return repr(compute())
    except Exception as error:
        return type(error)


def law(name: str, seed: int) -> None:
    """Partial results of parts, pickled in between, come to what the CombineFn makes of all values."""
    fn, random = KNOWN[name], Random(seed)
    fold, family = fold_of(fn), random.choice(FAMILIES)
    assert fold.name == name

    def value() -> Any:
        return [random.choice(family) for _ in range(4)] if fn is FOUR else random.choice(family)

    def partial_of(values: list[Any]) -> Any:
        if values and random.random() < 0.3:
            return reduce(fold.step, values[1:], fold.lift(values[0]))
        if random.random() < 0.5:
            return fold.add(fold.empty(), values)
        return reduce(fold.step, values, fold.empty())

    parts = [[value() for _ in range(random.randint(0, 3))] for _ in range(random.randint(1, 3))]
    everything = [each for part in parts for each in part]
    before = copy.deepcopy(everything)
    partials = [pickle.loads(pickle.dumps(fold.compact(partial_of(part)))) for part in parts]
    whole = fold.merged(partials) if random.random() < 0.5 else reduce(fold.merge, partials)
    expected = outcome(lambda: fn.apply(everything))
    assert outcome(lambda: fold.result(whole, True)) == expected
    assert outcome(lambda: fold.result(whole, False)) == expected
    assert everything == before


def law_holds(name: str) -> None:
    for seed in range(100):
        law(name, seed)


@pytest.mark.parametrize("name", KNOWN)
def test_a_fold_makes_what_its_combine_fn_makes_however_values_are_divided(name: str) -> None:
    law_holds(name)


def broken(change: Callable[[FoldSource], FoldSource]) -> Fold:
    """The fold of sums with other expressions."""
    assert folds.SUM.source is not None
    return folds.fold_from(change(folds.SUM.source), empty=0, name="sum")


MUTANTS = {
    "a sum begins with its first value": lambda: broken(lambda source: replace(source, lift="value")),
    "a sum forgets what it has": lambda: broken(lambda source: replace(source, step="0 + value")),
    "one part is left out": lambda: broken(lambda source: replace(source, merge="partial")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds_what_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "_OF_FUNCTIONS", ((sum, MUTANTS[name]()),))
    with pytest.raises(AssertionError):
        law_holds("sum")


class Shown(CallableWrapperCombineFn):
    """A sum that shows its result."""

    def extract_output(self, accumulator: list[Any], *args: Any, **kwargs: Any) -> Any:
        return f"<{super().extract_output(accumulator)}>"


class Twice(CountCombineFn):
    """A count that counts twice."""

    def add_input(self, accumulator: int, element: Any) -> int:
        return accumulator + 2


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (Shown(sum), "<3>"),
        (Twice(), 4),
        (curry_combine_fn(CombineFn.from_callable(max), [], {"key": lambda value: -value}), 1),
        (CombineFn.from_callable(len), 2),
        (TopCombineFn(1, key=lambda value: -value), [1]),
        (Largest(1), [2]),
    ],
)
def test_a_fold_calls_the_methods_of_a_combine_fn_that_is_not_known(fn: CombineFn, expected: Any) -> None:
    fold = fold_of(fn)
    assert fold.source is None
    assert fold.finish(reduce(fold.step, [1, 2], fold.empty())) == expected


def test_a_counter_counts_down_for_what_is_retracted() -> None:
    inverse = fold_of(CountCombineFn()).inverse
    assert inverse is not None
    assert inverse(3, "anything") == 2


def test_a_pane_shares_nothing_with_a_window_that_keeps_its_partial_result() -> None:
    fold, kept = fold_of(CombineFn.from_callable(max)), [1]
    assert fold.result(kept, False) is kept
    assert fold.result(kept, True) == kept
    assert fold.result(kept, True) is not kept


def test_folds_of_users_are_not_put_side_by_side() -> None:
    assert fold_of(TupleCombineFn.of_lists([sum, MeanCombineFn()])).source is None
    assert fold_of(TupleCombineFn(sum, max)).source is None
