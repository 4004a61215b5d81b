"""What a window holds where values are taken back: an accumulator of what can be subtracted, a bag of all else."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from penstock.functions.combinefn import CombineFn, DefaultingCombineFn, curry_combine_fn
from penstock.functions.folds import ACCUMULATOR
from penstock.machines import folds
from penstock.machines.folds import LIST, bag_fold, exact_fold, fold_for
from penstock.transforms.combining.ready_combiners import CountCombineFn, MeanCombineFn

VALUES = LIST.form
BAG = bag_fold().form
SUM = CombineFn.from_callable(sum)
MEAN = MeanCombineFn()
EXACT = exact_fold(SUM).form
COMBINES = {
    "sum": SUM,
    "mean": MEAN,
    "mean with a default": DefaultingCombineFn(MEAN),
    "sum with a start": curry_combine_fn(SUM, (), {"start": 0}),
}


@pytest.mark.parametrize(
    ("combine", "input_retracts", "keeps", "expected"),
    [
        (None, False, True, VALUES),
        (None, True, True, BAG),
        (SUM, False, True, ACCUMULATOR),
        (SUM, True, True, EXACT),
        (SUM, True, False, BAG),
        (MEAN, True, True, EXACT),
        (DefaultingCombineFn(SUM), True, True, EXACT),
        (curry_combine_fn(SUM, (), {"start": 1}), True, True, EXACT),
        (CountCombineFn(), True, True, ACCUMULATOR),
        (CountCombineFn(), True, False, ACCUMULATOR),
        (CombineFn.from_callable(max), True, True, BAG),
    ],
)
def test_a_window_holds_an_accumulator_where_it_can(combine, input_retracts, keeps, expected):
    assert fold_for(combine, input_retracts, keeps).form == expected


def test_whole_numbers_take_no_more_room_the_more_there_are():
    fold = fold_for(SUM, input_retracts=True, keeps=True)
    assert fold.inverse is not None
    some = fold.empty()
    for number in range(1_000):
        some = fold.inverse(fold.step(some, number), number + 1)
    assert fold.result(some, is_kept=True) == -1_000
    assert len(pickle.dumps(some)) < 200


@pytest.mark.parametrize("fn", [SUM, MEAN])
def test_of_floats_nothing_is_left_that_is_not_there(fn):
    # Of floats, 1e16 + 1.0 - 1e16 is 0.0.
    exact = exact_fold(fn)
    assert exact.inverse is not None
    held = exact.add(exact.empty(), [1e16, 1.0, 2])
    assert exact.result(exact.inverse(held, 1e16), is_kept=True) == fn.apply([1.0, 2])


# Quarters, of which sums are exact in any order, and integers that floats do not have.
NUMBERS = st.one_of(
    st.integers(-3, 3), st.just(2**70), st.booleans(), st.integers(-9, 9).map(lambda number: number / 4)
)
Change = tuple[int, Any, bool]
"""In which of two windows a value is added, or else subtracted."""


@st.composite
def scripts(draw: Any) -> list[Change]:
    """Values that come, some of which are taken back, maybe before and maybe in the other window."""
    values = draw(st.lists(st.tuples(NUMBERS, st.booleans()), max_size=12))
    changes = [(draw(st.integers(0, 1)), value, True) for value, _ in values]
    changes += [(draw(st.integers(0, 1)), value, False) for value, is_taken_back in values if is_taken_back]
    return draw(st.permutations(changes))  # type: ignore[no-any-return]


def law(changes: list[Change], name: str) -> None:
    """Two windows that merge hold what a bag of all values holds, whatever panes came out and were stored before."""
    fn = COMBINES[name]
    exact, bag = folds.exact_fold(fn), bag_fold(fn)
    assert exact.inverse is not None
    assert bag.inverse is not None
    windows = [exact.empty(), exact.empty()]
    expected = bag.empty()
    for number, value, is_added in changes:
        held = windows[number]
        held = exact.step(held, value) if is_added else exact.inverse(held, value)
        exact.result(held, is_kept=True)
        windows[number] = pickle.loads(pickle.dumps(held))
        expected = bag.step(expected, value) if is_added else bag.inverse(expected, value)
    held = exact.merged(windows)
    assert exact.owed(held) == []
    first, again = (exact.result(held, is_kept) for is_kept in (True, False))
    # NaN, the mean of nothing, is not equal to itself.
    assert repr(first) == repr(again) == repr(bag.result(expected, is_kept=False))


CASES = (scripts(), st.sampled_from(list(COMBINES)))


@settings(max_examples=200)
@given(*CASES)
def test_an_accumulator_beside_a_bag_holds_what_a_bag_holds(changes, name):
    law(changes, name)


MUTANTS = {
    "what is taken back stays": (
        "accumulator_fold",
        lambda real: lambda fn: replace(real(fn), inverse=lambda held, value: held),
    ),
    "only integers count": (
        "exact_fold",
        lambda real: lambda fn: replace(real(fn), finish=lambda held: real(fn).finish((held[0], ([], [])))),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds_what_is_wrong(name, monkeypatch):
    attribute, make = MUTANTS[name]
    monkeypatch.setattr(folds, attribute, make(getattr(folds, attribute)))
    find = settings(max_examples=200, database=None, phases=[Phase.generate], report_multiple_bugs=False)(
        given(*CASES)(law)
    )
    with pytest.raises(AssertionError):
        find()
