"""The n greatest or least elements."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, TypeVar

from penstock.base.chunks import in_chunks
from penstock.construction.ptransform import PTransform, ptransform_fn
from penstock.functions.combinefn import CombineFn
from penstock.transforms.combine import CombinePerKey
from penstock.transforms.counting import CombinerWithoutDefaults
from penstock.typehints import List, Tuple, with_input_types, with_output_types

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Key = Callable[[Any], Any] | None


@with_input_types(T)
@with_output_types(List[T])
class TopCombineFn(CombineFn):
    """The n greatest inputs, greatest first; with `reverse` the n least, least first (Beam's name).

    The accumulator is a list of at most about 2n candidates, in no order that means anything; memory does not
    grow with the input. Of inputs that compare equal, any may be kept.

    Args:
        n: How many to keep; 0 or less keeps none.
        key: From an element to what is compared, as in `sorted`; None compares the elements.
        reverse: Whether the least are wanted.

    >>> TopCombineFn(2).apply([3, 1, 2]), TopCombineFn(2, reverse=True).apply([3, 1, 2])
    ([3, 2], [1, 2])
    >>> TopCombineFn(1, key=len).apply(["a", "ccc", "bb"])
    ['ccc']
    """

    def __init__(self, n: int, key: Key = None, reverse: bool = False) -> None:
        self.n = n
        self.key = key
        self.reverse = reverse

    def display_data(self) -> dict[str, Any]:
        """`n`, and whether ``gt`` or ``lt`` orders the elements."""
        return {"n": self.n, "compare": "gt" if self.reverse else "lt"}

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        """Adds a candidate; now and then, drops those that cannot win any more."""
        accumulator.append(element)
        return accumulator if len(accumulator) <= self._room() else self._best(accumulator)

    def add_inputs(self, accumulator: list[Any], elements: Iterable[Any]) -> list[Any]:
        for chunk in in_chunks(elements):
            accumulator.extend(chunk)
            if len(accumulator) > self._room():
                accumulator = self._best(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return self._best(chain.from_iterable(accumulators))

    def compact(self, accumulator: list[Any]) -> list[Any]:
        """Drops all but the n best, before they travel."""
        return self._best(accumulator)

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        """The n best, the best first."""
        return self._best(accumulator)

    def _room(self) -> int:
        # Twice n, so that the cost of dropping is shared by at least n additions.
        return 2 * self.n + 16 if self.n > 0 else 0

    def _best(self, candidates: Iterable[Any]) -> list[Any]:
        choose = heapq.nsmallest if self.reverse else heapq.nlargest
        return choose(self.n, candidates, key=self.key)


class Largest(TopCombineFn):
    """`TopCombineFn` under the label that says so (Beam's name).

    >>> Largest(2).default_label(), Largest(2).apply([5, 9, 7])
    ('Largest(2)', [9, 7])
    """

    def default_label(self) -> str:
        return f"Largest({self.n})"


class Smallest(TopCombineFn):
    """`TopCombineFn` of the least (Beam's name).

    >>> Smallest(2).default_label(), Smallest(2).apply([5, 9, 7])
    ('Smallest(2)', [5, 7])
    """

    def __init__(self, n: int) -> None:
        super().__init__(n, reverse=True)

    def default_label(self) -> str:
        return f"Smallest({self.n})"


class Top:
    """The greatest or least elements, as a list (Beam's ``combiners.Top``).

    Example: ``scores | Top.LargestPerKey(3)`` takes KVs and gives a KV of a list of up to three values per
        key.

    >>> Top.Of(3).default_label()
    'Top(3)'
    """

    @with_input_types(T)
    @with_output_types(List[T])
    class Of(CombinerWithoutDefaults):
        """One list of the n greatest elements, greatest first; an empty input gives an empty list.

        Args:
            n: How many.
            key: From an element to what is compared, as in `sorted`.
            reverse: Whether the least are wanted, least first.
        """

        def __init__(self, n: int, key: Key = None, reverse: bool = False) -> None:
            super().__init__()
            self._fn = TopCombineFn(n, key, reverse)

        def default_label(self) -> str:
            return f"Top({self._fn.n})"

        def expand(self, pcoll: Any) -> Any:
            return pcoll | self.combined(self._fn, List[pcoll.element_type])

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    class PerKey(PTransform[Any, Any]):
        """For each key, the list of its n greatest values; the arguments are those of `Top.Of`."""

        def __init__(self, n: int, key: Key = None, reverse: bool = False) -> None:
            super().__init__()
            self._fn = TopCombineFn(n, key, reverse)

        def default_label(self) -> str:
            return f"TopPerKey({self._fn.n})"

        def expand(self, pcoll: Any) -> Any:
            return pcoll | CombinePerKey(self._fn)

    @staticmethod
    @ptransform_fn
    @with_input_types(T)
    @with_output_types(List[T])
    def Largest(pcoll: Any, n: int, has_defaults: bool = True, key: Key = None) -> Any:
        """One list of the n greatest elements; without `has_defaults`, none of an empty input."""
        return pcoll | Top.Of(n, key).with_defaults(has_defaults)

    @staticmethod
    @ptransform_fn
    @with_input_types(T)
    @with_output_types(List[T])
    def Smallest(pcoll: Any, n: int, has_defaults: bool = True, key: Key = None) -> Any:
        """One list of the n least elements; without `has_defaults`, none of an empty input."""
        return pcoll | Top.Of(n, key, reverse=True).with_defaults(has_defaults)

    @staticmethod
    @ptransform_fn
    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    def LargestPerKey(pcoll: Any, n: int, key: Key = None) -> Any:
        """For each key, the list of its n greatest values."""
        return pcoll | Top.PerKey(n, key)

    @staticmethod
    @ptransform_fn
    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    def SmallestPerKey(pcoll: Any, n: int, *, key: Key = None) -> Any:
        """For each key, the list of its n least values."""
        return pcoll | Top.PerKey(n, key, reverse=True)
