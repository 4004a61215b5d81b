"""The fold: how values are combined in parts that merge, in the one form that every host of a grouping takes.

A `CombineFn` is what users write, and `fold_of` makes the fold of it. A CombineFn that is known, such as a sum, has a
fold of plain values, whose expressions a loop over many values can contain. Every other one is called as its author
wrote it.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from penstock.functions.combinefn import (
    CallableWrapperCombineFn,
    CombineFn,
    NoSideInputsCallableWrapperCombineFn,
)

ACCUMULATOR = "an accumulator"
"""The usual form of partial results, as text."""

_IMMUTABLE = frozenset((int, float, str, bytes, bool, complex, type(None)))


class Nothing(Enum):
    """The partial result of no values where nothing else stands for it; equal to its pickled copies."""

    NOTHING = "nothing"


NOTHING = Nothing.NOTHING


_NAMES = re.compile(r"\b(partial|other|value)\b")


@dataclass(frozen=True)
class FoldSource:
    """A fold as Python expressions; equal ones are compiled once."""

    lift: str  # The partial result of a first ``value``.
    step: str  # The partial result of ``partial`` and one more ``value``.
    merge: str  # The partial result of ``partial`` and ``other``, that of other values.
    finish: str = "partial"  # The result of ``partial``.
    # The functions that the expression of the result may name. The others may name none, since they are parts of loops.
    functions: tuple[Callable[..., Any], ...] = ()

    def renamed(self, value: str, partial: str, other: str) -> tuple[str, str, str, str]:
        """Returns `lift`, `step`, `merge` and `finish` with other expressions instead of the names in them.

        >>> FoldSource("value", "partial + value", "partial + other").renamed("v[0]", "p[0]", "o[0]")[:3]
        ('v[0]', 'p[0] + v[0]', 'p[0] + o[0]')
        """
        names = {"value": value, "partial": partial, "other": other}

        def renamed(text: str) -> str:
            return _NAMES.sub(lambda name: names[name[0]], text)

        return renamed(self.lift), renamed(self.step), renamed(self.merge), renamed(self.finish)


def is_immutable(partial: object) -> bool:
    """True if the type of a partial result shows that it cannot change."""
    return type(partial) in _IMMUTABLE or (
        type(partial) is tuple and _IMMUTABLE.issuperset(map(type, partial))
    )


def _same(partial: object) -> Any:
    return partial


def _copied(partial: object) -> object:
    return partial if is_immutable(partial) else copy.deepcopy(partial)


def _owes_nothing(partial: object) -> list[Any]:
    return []


def _may_have_values(partial: object) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class Fold:
    """The functions by which values become one.

    The methods `step`, `inverse` and `merge` may change a partial result in place.

    >>> total = fold_of(CombineFn.from_callable(sum))
    >>> total.finish(total.merge(total.step(total.lift(1), 2), total.lift(4)))
    7
    """

    empty: Callable[[], Any]  # The partial result of no values.
    lift: Callable[[Any], Any]  # The partial result of one value.
    step: Callable[[Any, Any], Any]  # A partial result with one more value.
    merge: Callable[[Any, Any], Any]  # One partial result of two; only the first may change.
    finish: Callable[[Any], Any]  # The result, which may be the partial result itself.
    # A partial result without a value, which may not have arrived yet; None if no value can be retracted.
    inverse: Callable[[Any, Any], Any] | None = None
    source: FoldSource | None = None  # Its expressions, if a loop can contain them.
    name: str = ""  # ``sum``, ``count``, ``mean``, ``min``, ``max``, ``top`` or ``tuple``; empty for others.
    heeds_order: bool = True  # Whether the result may depend on the order of the values.
    form: str = ACCUMULATOR  # The form of partial results, for people and for signatures of checkpoints.
    step_many: Callable[[Any, Iterable[Any]], Any] | None = None  # The same as `step`, for many values.
    merge_many: Callable[[Sequence[Any]], Any] | None = None  # The same as `merge`, for many partial results.
    compact: Callable[[Any], Any] = _same  # Makes a partial result smaller, before it travels.
    copy: Callable[[Any], Any] = _copied  # A copy of a partial result, which later changes do not reach.
    owed: Callable[[Any], list[Any]] = _owes_nothing  # The values that were retracted before they arrived.
    has_values: Callable[[Any], bool] = _may_have_values  # True if there may be others than those owed.

    @property
    def is_whole_number(self) -> bool:
        """True if the result is the sum of the partial results, where these are integers."""
        return self.name in ("sum", "count")

    @property
    def is_known(self) -> bool:
        """True if it calls no function of the user's."""
        return bool(self.name or self.source)

    def add(self, partial: object, values: Iterable[Any]) -> Any:
        """Returns a partial result with more values."""
        if self.step_many is not None:
            return self.step_many(partial, values)
        return functools.reduce(self.step, values, partial)

    def merged(self, several: Sequence[Any]) -> Any:
        """One partial result of several, at least one; only the first may change."""
        if len(several) == 1:
            return several[0]
        return functools.reduce(self.merge, several) if self.merge_many is None else self.merge_many(several)

    def result(self, partial: object, is_kept: bool) -> Any:
        """The value of a pane: of a copy, if the window keeps its partial result (`is_kept`) and may change it."""
        return self.finish(partial if not is_kept or type(partial) in _IMMUTABLE else self.copy(partial))

    @functools.cached_property
    def has_result_of_nothing(self) -> bool:
        """True if no values have a result: 0 for a sum, but none for a maximum."""
        try:
            self.finish(self.empty())
        except Exception:
            return False
        return True


def accumulator_fold(fn: CombineFn) -> Fold:
    """Returns the fold of a CombineFn that is called as its author wrote it.

    >>> longest = accumulator_fold(CombineFn.from_callable(max))
    >>> longest.finish(longest.merged([longest.lift(3), longest.lift(5)]))
    5
    """
    return Fold(
        empty=fn.create_accumulator,
        lift=lambda value: fn.add_input(fn.create_accumulator(), value),
        step=fn.add_input,
        merge=lambda partial, other: fn.merge_accumulators([partial, other]),
        finish=fn.extract_output,
        inverse=getattr(fn, "subtract_input", None),
        step_many=fn.add_inputs,
        merge_many=fn.merge_accumulators,
        compact=fn.compact,
    )


def fold_from(
    source: FoldSource,
    *,
    empty: object = NOTHING,
    nothing: Callable[[], Any] = lambda: None,
    inverse: Callable[[Any, Any], Any] | None = None,
    name: str = "",
) -> Fold:
    """Returns the fold of some expressions.

    Args:
        source: The expressions. A partial result is immutable, or a value of the user's, or a new list each time.
        empty: The partial result of no values; without it, `NOTHING` stands for that.
        nothing: Returns the result of `NOTHING`, or raises an error if there is none.
        inverse: A partial result without a value.
        name: The name that engines know.

    >>> longest = FoldSource("len(value)", "max(partial, len(value))", "max(partial, other)")
    >>> fold = fold_from(longest)
    >>> fold.finish(fold.add(fold.empty(), ["a", "abc", "ab"])), fold.finish(fold.empty())
    (3, None)
    """
    lift, step, merge, finish = _compiled(source, empty is NOTHING, nothing)
    return Fold(
        lambda: empty, lift, step, merge, finish, inverse, source=source, name=name, heeds_order=False
    )


@functools.cache
def _compiled(
    source: FoldSource, may_be_nothing: bool, nothing: Callable[[], Any]
) -> tuple[Callable[..., Any], ...]:
    """The functions lift, step, merge and finish."""
    step, merge, finish = source.step, source.merge, source.finish
    if may_be_nothing:
        step = f"({source.lift}) if partial is NOTHING else ({step})"
        merge = f"other if partial is NOTHING else partial if other is NOTHING else ({merge})"
        finish = f"nothing() if partial is NOTHING else ({finish})"
    # With the name of this module, its lines do not count as lines of the program in a traceback.
    names: dict[str, Any] = {"NOTHING": NOTHING, "nothing": nothing, "__name__": __name__}
    names |= {function.__name__: function for function in source.functions}
    expressions = (
        f"lambda value: {source.lift}",
        f"lambda partial, value: {step}",
        f"lambda partial, other: {merge}",
        f"lambda partial: {finish}",
    )
    return tuple(eval(compile(text, "<fold>", "eval"), names) for text in expressions)


_Maker = TypeVar("_Maker", bound=Callable[[Any], Any])

_MAKERS: dict[type[CombineFn], Callable[[Any], Fold | None]] = {}


def register_fold(*kinds: type[CombineFn]) -> Callable[[_Maker], _Maker]:
    """Registers how the CombineFns of some classes become folds; if the function returns None, their methods are
    called.

    Subclasses are not included, since they may override methods.
    """

    def register(make: _Maker) -> _Maker:
        _MAKERS.update(dict.fromkeys(kinds, make))
        return make

    return register


def fold_of(fn: CombineFn) -> Fold:
    """Returns the fold of a CombineFn: one of plain values if the CombineFn is known.

    >>> fold_of(CombineFn.from_callable(max)).lift(3), fold_of(CombineFn.from_callable(len)).lift(3)
    (3, [3])
    """
    make = _MAKERS.get(type(fn))
    found = None if make is None else make(fn)
    return accumulator_fold(fn) if found is None else found


def _least_of_nothing() -> object:
    return min(())


def _greatest_of_nothing() -> object:
    return max(())


# Not `+=`: that would change a value which belongs to the user.
SUM = fold_from(FoldSource("0 + value", "partial + value", "partial + other"), empty=0, name="sum")
COUNT = fold_from(
    FoldSource("1", "partial + 1", "partial + other"),
    empty=0,
    inverse=lambda partial, value: partial - 1,
    name="count",
)
MIN = fold_from(
    FoldSource("value", "value if value < partial else partial", "other if other < partial else partial"),
    nothing=_least_of_nothing,
    name="min",
)
MAX = fold_from(
    FoldSource("value", "value if value > partial else partial", "other if other > partial else partial"),
    nothing=_greatest_of_nothing,
    name="max",
)

_OF_FUNCTIONS = ((sum, SUM), (min, MIN), (max, MAX))


@register_fold(CallableWrapperCombineFn, NoSideInputsCallableWrapperCombineFn)
def _of_function(fn: CallableWrapperCombineFn) -> Fold | None:
    return next((fold for function, fold in _OF_FUNCTIONS if fn.fn is function), None)


def combine_folds(folds: Sequence[Fold]) -> Fold | None:
    """Returns the fold of lists with one value for each of some folds; None if a loop cannot contain one of them.

    >>> both = combine_folds([SUM, MAX])
    >>> both.source.step, both.finish(both.add(both.empty(), [[1, 5], [2, 3]]))
    ('[partial[0] + value[0], value[1] if value[1] > partial[1] else partial[1]]', (3, 5))
    """
    # The expressions of others may have a ``partial`` or a ``value`` that is not a name.
    return _side_by_side(tuple(folds)) if all(fold in (SUM, COUNT, MIN, MAX) for fold in folds) else None


@functools.cache
def _side_by_side(folds: tuple[Fold, ...]) -> Fold:
    sources = [fold.source for fold in folds if fold.source is not None]
    own = [
        source.renamed(f"value[{at}]", f"partial[{at}]", f"other[{at}]") for at, source in enumerate(sources)
    ]
    lift, step, merge, finish = (", ".join(parts[part] for parts in own) for part in range(4))

    def nothing() -> object:
        return tuple(fold.finish(fold.empty()) for fold in folds)

    source = FoldSource(f"[{lift}]", f"[{step}]", f"[{merge}]", f"({finish},)" if folds else "()")
    return fold_from(source, nothing=nothing, name="tuple")
