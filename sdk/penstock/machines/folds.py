"""The folds of windows between two panes: lists of values, and partial results from which values can be retracted.

Memory follows the partial result, not the elements, wherever the CombineFn allows it: always while nothing is
retracted, and otherwise if the CombineFn has ``subtract_input`` (the paper's ``uncombine``) and says that it subtracts
the value exactly. Other values are kept, and combined again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import Fold, accumulator_fold, fold_of
from penstock.machines.long_lists import AnyList, LongList, join_lists

Bag = tuple[list[Any], list[Any]]
"""Values that can be retracted: those that are there, and those that were retracted before they arrived."""


def _append(partial: AnyList, value: object) -> AnyList:
    partial.append(value)
    return partial


def _extend(partial: AnyList, values: Iterable[Any]) -> AnyList:
    partial.extend(values)
    return partial


def _concatenate(partial: AnyList, other: AnyList) -> AnyList:
    return join_lists(partial, other) if isinstance(other, LongList) else _extend(partial, other)


def _as_list(partial: AnyList) -> list[Any]:
    return list(partial) if isinstance(partial, LongList) else partial


LIST = Fold(
    empty=list,
    lift=lambda value: [value],
    step=_append,
    merge=_concatenate,
    finish=_as_list,
    form="a list of values",
    step_many=_extend,
    copy=list,
)
"""A raw group: the list of values, in order of arrival."""


def add_to_bag(partial: Bag, value: object) -> Bag:
    """Settles a debt with the value, or keeps it."""
    there, owed = partial
    if not _remove(owed, value):
        there.append(value)
    return partial


def retract_from_bag(partial: Bag, value: object) -> Bag:
    """Drops the value, or owes it."""
    there, owed = partial
    if not _remove(there, value):
        owed.append(value)
    return partial


def merge_bags(partial: Bag, other: Bag) -> Bag:
    """Settles what one window owes with what another holds."""
    there, owed = other
    for value in there:
        add_to_bag(partial, value)
    for value in owed:
        retract_from_bag(partial, value)
    return partial


def bag_fold(fn: CombineFn | None = None) -> Fold:
    """Returns the fold of values that can be retracted: a CombineFn combines all values for each pane.

    Without a CombineFn, panes hold the list.
    """
    finish: Callable[[list[Any]], Any] = list if fn is None else fn.apply
    return Fold(
        empty=lambda: ([], []),
        lift=lambda value: ([value], []),
        step=lambda partial, value: add_to_bag(partial, value),
        merge=lambda partial, other: merge_bags(partial, other),
        finish=lambda partial: finish(partial[0]),
        inverse=retract_from_bag,
        form="values, some of which may be retracted",
        # A pane has a list of its own, and no CombineFn changes the values that it is given.
        copy=lambda partial: partial,
        owed=lambda partial: partial[1],
        has_values=lambda partial: bool(partial[0]),
    )


def exact_fold(fn: Any) -> Fold:
    """Returns the fold of a CombineFn with ``subtract_input`` and ``subtracts``: an accumulator, beside a bag.

    The accumulator has the values that the CombineFn subtracts exactly, and the bag all others. So a sum of integers
    stays one number, whatever is retracted, and the floats that are there are added up again.
    """
    numbers, others = accumulator_fold(fn), bag_fold(fn)
    retracted = numbers.inverse
    assert retracted is not None

    def step(partial: tuple[Any, Bag], value: object) -> tuple[Any, Bag]:
        accumulator, bag = partial
        if fn.subtracts(value):
            return numbers.step(accumulator, value), bag
        return accumulator, others.step(bag, value)

    def inverse(partial: tuple[Any, Bag], value: object) -> tuple[Any, Bag]:
        accumulator, bag = partial
        if fn.subtracts(value):
            return retracted(accumulator, value), bag
        return accumulator, retract_from_bag(bag, value)

    def finish(partial: tuple[Any, Bag]) -> object:
        accumulator, (there, _) = partial
        if there:
            # Merging may change only its first argument.
            accumulator = numbers.merge(numbers.add(numbers.empty(), there), accumulator)
        return numbers.finish(accumulator)

    def empty() -> tuple[Any, Bag]:
        return numbers.empty(), others.empty()

    return Fold(
        empty=empty,
        lift=lambda value: step(empty(), value),
        step=step,
        merge=lambda partial, other: (
            numbers.merge(partial[0], other[0]),
            others.merge(partial[1], other[1]),
        ),
        finish=finish,
        inverse=inverse,
        form="an accumulator of integers, and other values, some of which may be retracted",
        copy=lambda partial: (numbers.copy(partial[0]), partial[1]),
        # An accumulator that owes something is below zero instead.
        owed=lambda partial: others.owed(partial[1]),
    )


def fold_for(combine: Any, input_retracts: bool, keeps: bool = False) -> Fold:
    """Returns the fold that suits a grouping.

    Args:
        combine: The CombineFn; None for a raw group.
        input_retracts: Whether elements may retract earlier ones.
        keeps: Whether windows keep their elements after a pane.
    """
    if not input_retracts:
        return LIST if combine is None else fold_of(combine)
    if not hasattr(combine, "subtract_input"):
        return bag_fold(combine)
    if not hasattr(combine, "subtracts"):
        fold = fold_of(combine)
        return accumulator_fold(combine) if fold.inverse is None else fold
    # If windows do not keep elements, inserted and retracted values need panes of their own: they have no mean.
    return exact_fold(combine) if keeps else bag_fold(combine)


def _remove(values: list[Any], value: object) -> bool:
    """Removes the last equal value of the same type (True is not 1), and says whether it found one."""
    for number in reversed(range(len(values))):
        if type(values[number]) is type(value) and values[number] == value:
            del values[number]
            return True
    return False
