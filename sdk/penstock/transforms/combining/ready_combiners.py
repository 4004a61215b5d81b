"""The ready-made combiners: counts, means, the largest, the latest, samples, and everything in one collection."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

import copy
import heapq
import numbers
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self, Union

from penstock.base.chunks import split_into_chunks
from penstock.checks.whole_numbers import check_whole_number
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform, ptransform_fn, shown_as
from penstock.construction.pvalue import PCollection
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn, is_whole
from penstock.functions.dofn import DoFn, MapDoFn
from penstock.functions.folds import COUNT, Fold, accumulator_fold, combine_folds, fold_of, register_fold
from penstock.transforms.combining.combine import CombineGlobally, CombinePerKey
from penstock.transforms.elements.pardo import FlatMap, Map, ParDo
from penstock.typehints import KV, Dict, List, Set, Tuple, with_input_types, with_output_types
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.timestamp import MIN_TIMESTAMP, Timestamp


class CombinerWithoutDefaults(PTransform[Any, Any]):
    """A global combiner that can emit nothing, rather than a default, for empty input (Beam's name).

    Args:
        has_defaults: Whether an empty input in the global window has the value of an empty accumulator.
    """

    def __init__(self, has_defaults: bool = True) -> None:
        super().__init__()
        self.has_defaults = has_defaults

    def with_defaults(self, has_defaults: bool = True) -> Self:
        """Returns a copy that returns a default for empty input, or, with ``False``, nothing."""
        changed = copy.copy(self)
        changed.has_defaults = has_defaults
        return changed

    def without_defaults(self) -> Self:
        """Returns a copy that returns nothing for empty input; needed in windows other than the global one."""
        return self.with_defaults(False)

    def combined(self, fn: CombineFn, output_type: object) -> CombineGlobally:
        """``CombineGlobally(fn)`` with this transform's choice of defaults."""
        combine = CombineGlobally(fn).with_output_types(output_type)
        return combine if self.has_defaults else combine.without_defaults()


@with_input_types(Any)
@with_output_types(int)
class CountCombineFn(CombineFn):
    """Counts its inputs, whatever they are; the accumulator is the count (Beam's name).

    >>> CountCombineFn().apply(["a", "b", None])
    3
    """

    def create_accumulator(self) -> int:
        return 0

    def add_input(self, accumulator: int, element: Any) -> int:
        return accumulator + 1

    def add_inputs(self, accumulator: int, elements: Iterable[Any]) -> int:
        return accumulator + sum(map(len, split_into_chunks(elements)))

    def subtract_input(self, accumulator: int, element: object) -> int:
        """One less."""
        return accumulator - 1

    def merge_accumulators(self, accumulators: Iterable[int]) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator


@register_fold(CountCombineFn)
def _count(fn: CountCombineFn) -> Fold:
    return COUNT


# Real numbers of other kinds, such as NumPy's, are registered as such.
@with_input_types(Union[float, int, numbers.Real])
@with_output_types(float)
class MeanCombineFn(CombineFn):
    """The arithmetic mean; the accumulator is ``(sum, count)``, and an empty input has the mean NaN (Beam's name).

    >>> MeanCombineFn().apply([1, 2, 6]), MeanCombineFn().apply([])
    (3.0, nan)
    """

    def create_accumulator(self) -> tuple[Any, int]:
        return (0, 0)

    def add_input(self, accumulator: tuple[Any, int], element: object) -> tuple[Any, int]:
        return accumulator[0] + element, accumulator[1] + 1

    def add_inputs(self, accumulator: tuple[Any, int], elements: Iterable[Any]) -> tuple[Any, int]:
        total, count = accumulator
        for chunk in split_into_chunks(elements):
            total = sum(chunk, total)
            count += len(chunk)
        return total, count

    def subtract_input(self, accumulator: tuple[Any, int], element: object) -> tuple[Any, int]:
        """Subtracts a number, if it `subtracts` that."""
        return accumulator[0] - element, accumulator[1] - 1

    def subtracts(self, element: object) -> bool:
        """True if the sum is exact again after the number is subtracted."""
        return is_whole(element)

    def merge_accumulators(self, accumulators: Iterable[tuple[Any, int]]) -> tuple[Any, int]:
        total, count = self.create_accumulator()
        for one_total, one_count in accumulators:
            total += one_total
            count += one_count
        return total, count

    def extract_output(self, accumulator: tuple[Any, int]) -> float:
        total, count = accumulator
        return total / count if count else float("nan")


@register_fold(MeanCombineFn)
def _mean(fn: MeanCombineFn) -> Fold:
    # If few keys have many values, the CombineFn is faster than a loop, and from Python 3.12 on its sum of floats is
    # more exact.
    return replace(accumulator_fold(fn), name="mean", heeds_order=False)


class Mean:
    """Arithmetic means (Beam's ``combiners.Mean``).

    Example: ``scores | Mean.PerKey()`` takes KVs of numbers and emits a KV of a float for each key.
    """

    class Globally(CombinerWithoutDefaults):
        """Emits the mean of all elements, as a float; NaN for an empty input, unless ``without_defaults()``."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[float]:
            result: PCollection[float] = pcoll | self.combined(MeanCombineFn(), float)
            return result

    class PerKey(PTransform[Any, Any]):
        """Emits the mean of the values of each key, as a KV of the key and a float."""

        def expand(self, pcoll: PCollection[tuple[K, Any]]) -> PCollection[tuple[K, float]]:
            return pcoll | CombinePerKey(MeanCombineFn())


class Count:
    """Counts (Beam's ``combiners.Count``).

    Example: ``words | Count.PerElement()`` emits pairs such as ``("the", 42)``.
    """

    @with_input_types(T)
    @with_output_types(int)
    class Globally(CombinerWithoutDefaults):
        """Emits the number of elements; 0 for an empty input, unless ``without_defaults()``."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[int]:
            result: PCollection[int] = pcoll | self.combined(CountCombineFn(), int)
            return result

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, int])
    class PerKey(PTransform[Any, Any]):
        """Counts the values of each key, as KVs of the key and the count."""

        def expand(self, pcoll: PCollection[tuple[K, Any]]) -> PCollection[tuple[K, int]]:
            return pcoll | CombinePerKey(CountCombineFn())

    @with_input_types(T)
    @with_output_types(Tuple[T, int])
    class PerElement(PTransform[Any, Any]):
        """Counts how often each element occurs, as KVs of the element and the count."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[tuple[T, int]]:
            element_type = pcoll.element_type
            paired = ParDo(PairWithNone()).with_output_types(KV[element_type, Any])
            counted = CombinePerKey(CountCombineFn()).with_output_types(KV[element_type, int])
            result: PCollection[tuple[T, int]] = pcoll | f"{self.label}:PairWithVoid" >> paired | counted
            return result


class PairWithNone(MapDoFn):
    """Pairs each element with None; a runner that takes the pairs apart again need not make them."""

    def __init__(self) -> None:
        super().__init__(pair_with_none)


def pair_with_none(element: object) -> tuple[Any, None]:
    """Pairs an element with None."""
    return element, None


Key = Callable[[Any], Any] | None


@with_input_types(T)
@with_output_types(List[T])
class TopCombineFn(CombineFn):
    """The n largest inputs, largest first; with `reverse`, the n smallest, smallest first (Beam's name).

    The accumulator is a list of at most about 2n candidates in no particular order; memory does not
    grow with the input. Of inputs that compare equal, any may be kept.

    Args:
        n: How many to keep; 0 or less keeps none.
        key: From an element to what is compared, as in `sorted`; None compares the elements.
        reverse: Whether to keep the smallest.

    >>> TopCombineFn(2).apply([3, 1, 2]), TopCombineFn(2, reverse=True).apply([3, 1, 2])
    ([3, 2], [1, 2])
    >>> TopCombineFn(1, key=len).apply(["a", "ccc", "bb"])
    ['ccc']
    """

    def __init__(self, n: int, key: Key = None, reverse: bool = False) -> None:
        check_whole_number("n", n)
        self.n = n
        self.key = key
        self.reverse = reverse

    def display_data(self) -> dict[str, Any]:
        return {"n": self.n, "compare": "gt" if self.reverse else "lt"}

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        accumulator.append(element)
        return accumulator if len(accumulator) <= self._room() else self._best(accumulator)

    def add_inputs(self, accumulator: list[Any], elements: Iterable[Any]) -> list[Any]:
        for chunk in split_into_chunks(elements):
            accumulator.extend(chunk)
            if len(accumulator) > self._room():
                accumulator = self._best(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return self._best(chain.from_iterable(accumulators))

    def compact(self, accumulator: list[Any]) -> list[Any]:
        return self._best(accumulator)

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        return self._best(accumulator)

    def _room(self) -> int:
        # Twice n, so that the cost of dropping is shared by at least n additions.
        return 2 * self.n + 16 if self.n > 0 else 0

    def _best(self, candidates: Iterable[Any]) -> list[Any]:
        choose = heapq.nsmallest if self.reverse else heapq.nlargest
        return choose(self.n, candidates, key=self.key)


class Largest(TopCombineFn):
    """`TopCombineFn` with its own label (Beam's name)."""

    def default_label(self) -> str:
        return f"Largest({self.n})"


class Smallest(TopCombineFn):
    """`TopCombineFn` of the smallest (Beam's name)."""

    def __init__(self, n: int) -> None:
        super().__init__(n, reverse=True)

    def default_label(self) -> str:
        return f"Smallest({self.n})"


@register_fold(TopCombineFn, Largest, Smallest)
def _top(fn: TopCombineFn) -> Fold | None:
    # The CombineFn already compares many values at a time. A key is a function of the user's.
    return replace(accumulator_fold(fn), name="top") if fn.key is None else None


if TYPE_CHECKING:

    class ListOfElements(PTransform[Any, Any]):
        """Makes one list of all elements."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]: ...

    class ListsOfValues(PTransform[Any, Any]):
        """Makes a list for each key."""

        def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, list[V]]]: ...


class Top:
    """Emits the largest or smallest elements, as a list (Beam's ``combiners.Top``).

    Example: ``scores | Top.LargestPerKey(3)`` takes KVs and emits a KV of a list of up to three values per key.
    """

    @with_input_types(T)
    @with_output_types(List[T])
    class Of(CombinerWithoutDefaults):
        """Emits one list of the n largest elements, largest first; an empty list for an empty input.

        Args:
            n: How many.
            key: From an element to what is compared, as in `sorted`.
            reverse: Whether to emit the smallest, smallest first.
        """

        def __init__(self, n: int, key: Key = None, reverse: bool = False) -> None:
            super().__init__()
            self._fn = TopCombineFn(n, key, reverse)

        def default_label(self) -> str:
            return f"Top({self._fn.n})"

        def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]:
            return pcoll | self.combined(self._fn, List[pcoll.element_type])

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    class PerKey(PTransform[Any, Any]):
        """Emits, for each key, the list of its n largest values; the arguments are those of `Top.Of`."""

        def __init__(self, n: int, key: Key = None, reverse: bool = False) -> None:
            super().__init__()
            self._fn = TopCombineFn(n, key, reverse)

        def default_label(self) -> str:
            return f"TopPerKey({self._fn.n})"

        def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, list[V]]]:
            return pcoll | CombinePerKey(self._fn)

    @staticmethod
    @shown_as(lambda: ListOfElements())
    @ptransform_fn
    @with_input_types(T)
    @with_output_types(List[T])
    def Largest(
        pcoll: PCollection[Any], n: int, has_defaults: bool = True, key: Key = None
    ) -> PCollection[Any]:
        """Emits one list of the n largest elements; without `has_defaults`, nothing for an empty input."""
        return pcoll | Top.Of(n, key).with_defaults(has_defaults)

    @staticmethod
    @shown_as(lambda: ListOfElements())
    @ptransform_fn
    @with_input_types(T)
    @with_output_types(List[T])
    def Smallest(
        pcoll: PCollection[Any], n: int, has_defaults: bool = True, key: Key = None
    ) -> PCollection[Any]:
        """Emits one list of the n smallest elements; without `has_defaults`, nothing for an empty input."""
        return pcoll | Top.Of(n, key, reverse=True).with_defaults(has_defaults)

    @staticmethod
    @shown_as(lambda: ListsOfValues())
    @ptransform_fn
    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    def LargestPerKey(pcoll: PCollection[Any], n: int, key: Key = None) -> PCollection[Any]:
        """Emits, for each key, the list of its n largest values."""
        return pcoll | Top.PerKey(n, key)

    @staticmethod
    @shown_as(lambda: ListsOfValues())
    @ptransform_fn
    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    def SmallestPerKey(pcoll: PCollection[Any], n: int, *, key: Key = None) -> PCollection[Any]:
        """Emits, for each key, the list of its n smallest values."""
        return pcoll | Top.PerKey(n, key, reverse=True)


@with_input_types(T)
@with_output_types(List[T])
class SampleCombineFn(CombineFn):
    """A uniform random sample without replacement, of at most n inputs (Beam's name).

    Each input draws a random number, and the n highest win; so merging samples of parts results in a sample of the
    whole. The numbers come from Python's `random` module.

    >>> sorted(SampleCombineFn(5).apply("abc")), len(SampleCombineFn(2).apply("abc"))
    (['a', 'b', 'c'], 2)
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self._highest = TopCombineFn(n, key=itemgetter(0))

    def create_accumulator(self) -> list[tuple[float, Any]]:
        return []

    def add_input(self, accumulator: list[tuple[float, Any]], element: object) -> list[tuple[float, Any]]:
        return self._highest.add_input(accumulator, (random.random(), element))

    def add_inputs(self, accumulator: list[tuple[float, Any]], elements: Iterable[Any]) -> list[Any]:
        for chunk in split_into_chunks(elements):
            accumulator = self._highest.add_inputs(accumulator, [(random.random(), each) for each in chunk])
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[tuple[float, Any]]]) -> list[Any]:
        return self._highest.merge_accumulators(accumulators)

    def compact(self, accumulator: list[tuple[float, Any]]) -> list[Any]:
        return self._highest.compact(accumulator)

    def extract_output(self, accumulator: list[tuple[float, Any]]) -> list[Any]:
        return [element for _, element in self._highest.extract_output(accumulator)]


@with_input_types(T)
@with_output_types(List[T])
class AnySampleCombineFn(CombineFn):
    """Keeps the first n inputs that arrive, in any order; not a random sample.

    >>> AnySampleCombineFn(2).apply("abc")
    ['a', 'b']
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: object) -> list[Any]:
        if len(accumulator) < self.n:
            accumulator.append(element)
        return accumulator

    def add_inputs(self, accumulator: list[Any], elements: Iterable[Any]) -> list[Any]:
        """Adds inputs until the sample is full; does not look at the rest."""
        accumulator.extend(islice(elements, self.n - len(accumulator)))
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return list(islice(chain.from_iterable(accumulators), self.n))

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        """Returns a copy, since the accumulator may live on."""
        return list(accumulator)


class _OfSize(PTransform[Any, Any]):
    def __init__(self, n: int) -> None:
        super().__init__()
        check_whole_number("n", n)
        self._n = n

    def default_label(self) -> str:
        return f"{type(self).__name__}({self._n})"

    def display_data(self) -> dict[str, Any]:
        return {"n": self._n}


class Sample:
    """Samples without replacement (Beam's ``combiners.Sample``).

    Example: ``lines | Sample.FixedSizeGlobally(10)`` emits one list of ten lines.
    """

    @with_input_types(T)
    @with_output_types(List[T])
    class FixedSizeGlobally(_OfSize, CombinerWithoutDefaults):
        """Emits one list of n elements, or of all if there are fewer; all subsets of that size are equally likely."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]:
            return pcoll | self.combined(SampleCombineFn(self._n), List[pcoll.element_type])

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    class FixedSizePerKey(_OfSize):
        """Emits, for each key, a list of n of its values; all subsets of that size are equally likely."""

        def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, list[V]]]:
            return pcoll | CombinePerKey(SampleCombineFn(self._n))

    @with_input_types(T)
    @with_output_types(T)
    class Any(_OfSize):
        """Emits any n elements, or all of them if there are fewer; not a random sample."""

        def __init__(self, n: int) -> None:
            if n < 0:
                raise refusal(ValueError, f"Expected non-negative n, received {n}.", hint="use 0 or more")
            super().__init__(n)

        def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
            return _any_elements(pcoll, self._n)


def _any_elements(pcoll: PCollection[T], n: int) -> PCollection[T]:
    # Outside of `Sample`, where the name `Any` means the transform.
    picked = pcoll | CombineGlobally(AnySampleCombineFn(n)).without_defaults()
    return picked | FlatMap(iter).with_output_types(pcoll.element_type)


# Each CombineFn here returns a copy as its output: in accumulating panes the accumulator lives on and grows.


@with_input_types(T)
@with_output_types(List[T])
class ToListCombineFn(CombineFn):
    """Collects all inputs in a list, in any order (Beam's name).

    >>> ToListCombineFn().apply("ab")
    ['a', 'b']
    """

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        accumulator.append(element)
        return accumulator

    def add_inputs(self, accumulator: list[Any], elements: Iterable[Any]) -> list[Any]:
        accumulator.extend(elements)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return list(chain.from_iterable(accumulators))

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        return list(accumulator)


@with_input_types(T)
@with_output_types(T)
class ConcatListCombineFn(ToListCombineFn):
    """Concatenates lists, in any order (Beam's name).

    >>> ConcatListCombineFn().apply([[1], [2, 3]])
    [1, 2, 3]
    """

    def add_input(self, accumulator: list[Any], element: list[Any]) -> list[Any]:
        accumulator.extend(element)
        return accumulator

    def add_inputs(self, accumulator: list[Any], elements: Iterable[list[Any]]) -> list[Any]:
        accumulator.extend(chain.from_iterable(elements))
        return accumulator


@with_input_types(Tuple[K, V])
@with_output_types(Dict[K, V])
class ToDictCombineFn(CombineFn):
    """Collects all pairs in a dict, with one of the values of a key that occurs twice (Beam's name).

    >>> ToDictCombineFn().apply([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """

    def create_accumulator(self) -> dict[Any, Any]:
        return {}

    def add_input(self, accumulator: dict[Any, Any], element: tuple[Any, Any]) -> dict[Any, Any]:
        key, value = element
        accumulator[key] = value
        return accumulator

    def add_inputs(self, accumulator: dict[Any, Any], elements: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        accumulator.update(elements)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[dict[Any, Any]]) -> dict[Any, Any]:
        merged: dict[Any, Any] = {}
        for accumulator in accumulators:
            merged.update(accumulator)
        return merged

    def extract_output(self, accumulator: dict[Any, Any]) -> dict[Any, Any]:
        return dict(accumulator)


@with_input_types(T)
@with_output_types(Set[T])
class ToSetCombineFn(CombineFn):
    """Collects all inputs in a set (Beam's name).

    >>> sorted(ToSetCombineFn().apply([2, 1, 2]))
    [1, 2]
    """

    def create_accumulator(self) -> set[Any]:
        return set()

    def add_input(self, accumulator: set[Any], element: object) -> set[Any]:
        accumulator.add(element)
        return accumulator

    def add_inputs(self, accumulator: set[Any], elements: Iterable[Any]) -> set[Any]:
        accumulator.update(elements)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[set[Any]]) -> set[Any]:
        return set().union(*accumulators)

    def extract_output(self, accumulator: set[Any]) -> set[Any]:
        return set(accumulator)


@with_input_types(Tuple[T, Any])
@with_output_types(T)
class LatestCombineFn(CombineFn):
    """Combines ``(value, timestamp)`` pairs to the value with the latest timestamp; None for no pairs (Beam's name).

    >>> LatestCombineFn().apply([("old", Timestamp(1)), ("new", Timestamp(2))])
    'new'
    """

    def create_accumulator(self) -> tuple[Any, Any]:
        return (None, MIN_TIMESTAMP)

    def add_input(self, accumulator: tuple[Any, Any], element: tuple[Any, Any]) -> tuple[Any, Any]:
        """Returns the later one; of two at one time, the new one."""
        return accumulator if accumulator[1] > element[1] else element

    def merge_accumulators(self, accumulators: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
        return self.add_inputs(self.create_accumulator(), accumulators)

    def add_inputs(
        self, accumulator: tuple[Any, Any], elements: Iterable[tuple[Any, Any]]
    ) -> tuple[Any, Any]:
        for element in elements:
            if not accumulator[1] > element[1]:
                accumulator = element
        return accumulator

    def extract_output(self, accumulator: tuple[Any, Any]) -> object:
        return accumulator[0]


@with_input_types(T)
@with_output_types(List[T])
class ToList(CombinerWithoutDefaults):
    """Emits one list of all elements, in any order (Beam's ``combiners.ToList``)."""

    def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]:
        result: PCollection[list[T]] = pcoll | self.label >> self.combined(
            ToListCombineFn(), List[pcoll.element_type]
        )
        return result


@with_input_types(Tuple[K, V])
@with_output_types(Dict[K, V])
class ToDict(CombinerWithoutDefaults):
    """Emits one dict of all pairs, with one of the values of a key that occurs twice (Beam's ``combiners.ToDict``)."""

    def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[dict[K, V]]:
        key_type, value_type = key_value_types(pcoll.element_type)
        return pcoll | self.label >> self.combined(ToDictCombineFn(), Dict[key_type, value_type])


@with_input_types(T)
@with_output_types(Set[T])
class ToSet(CombinerWithoutDefaults):
    """Emits one set of all elements (Beam's ``combiners.ToSet``)."""

    def expand(self, pcoll: PCollection[T]) -> PCollection[set[T]]:
        return pcoll | self.label >> self.combined(ToSetCombineFn(), Set[pcoll.element_type])


class Latest:
    """Emits the element with the latest timestamp (Beam's ``combiners.Latest``).

    Example: ``readings | Latest.PerKey()`` takes KVs and emits each key with its latest value.
    """

    @with_input_types(T)
    @with_output_types(T)
    class Globally(CombinerWithoutDefaults):
        """Emits the latest of all elements; None for an empty input, unless ``without_defaults()``."""

        @staticmethod
        def add_timestamp(element: object, timestamp: Timestamp = DoFn.TimestampParam) -> tuple[Any, Any]:
            """Returns the element with its timestamp."""
            return element, timestamp

        def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
            timed = Map(self.add_timestamp).with_output_types(Tuple[pcoll.element_type, Timestamp])
            return pcoll | timed | self.combined(LatestCombineFn(), pcoll.element_type)

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, V])
    class PerKey(PTransform[Any, Any]):
        """Emits, for each key, its latest value."""

        @staticmethod
        def add_timestamp(
            element: tuple[Any, Any], timestamp: Timestamp = DoFn.TimestampParam
        ) -> tuple[Any, Any]:
            """Returns the key, and the value with the element's timestamp."""
            key, value = element
            return key, (value, timestamp)

        def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, V]]:
            key_type, value_type = key_value_types(pcoll.element_type)
            timed = Map(self.add_timestamp).with_output_types(KV[key_type, Tuple[value_type, Timestamp]])
            latest: PCollection[Any] = pcoll | timed | CombinePerKey(LatestCombineFn())
            return latest


class _SideBySide(CombineFn):
    """The base of the two tuple CombineFns, which differ only in how they deal out the inputs."""

    def __init__(self, *combiners: object, merge_accumulators_batch_size: int | None = None) -> None:
        super().__init__()
        self._named = combiners
        self.combiners = [CombineFn.maybe_from_callable(combiner) for combiner in combiners]
        self.accepts_retractions = all(combiner.accepts_retractions for combiner in self.combiners)
        # The more CombineFns there are, the fewer accumulators are in memory at a time.
        self._batch_size = merge_accumulators_batch_size or max(10, 1000 // max(1, len(combiners)))

    def display_data(self) -> dict[str, Any]:
        names = [getattr(combiner, "__name__", type(combiner).__name__) for combiner in self._named]
        return {"combiners": str(names), "merge_accumulators_batch_size": self._batch_size}

    def setup(self, *args: object, **kwargs: object) -> None:
        for combiner in self.combiners:
            combiner.setup(*args, **kwargs)

    def create_accumulator(self, *args: object, **kwargs: object) -> list[Any]:
        return [combiner.create_accumulator(*args, **kwargs) for combiner in self.combiners]

    def merge_accumulators(
        self, accumulators: Iterable[list[Any]], *args: object, **kwargs: object
    ) -> list[Any]:
        """Merges accumulators position by position, as many at a time as the constructor said."""
        rest = iter(accumulators)
        merged = next(rest, None)
        if merged is None:
            return self.create_accumulator(*args, **kwargs)
        while batch := list(islice(rest, self._batch_size)):
            merged = [
                combiner.merge_accumulators(parts, *args, **kwargs)
                for combiner, parts in zip(
                    self.combiners, zip(*chain((merged,), batch), strict=True), strict=True
                )
            ]
        return merged

    def compact(self, accumulator: list[Any], *args: object, **kwargs: object) -> list[Any]:
        pairs = zip(self.combiners, accumulator, strict=True)
        return [combiner.compact(part, *args, **kwargs) for combiner, part in pairs]

    def extract_output(self, accumulator: list[Any], *args: object, **kwargs: object) -> tuple[Any, ...]:
        pairs = zip(self.combiners, accumulator, strict=True)
        return tuple(combiner.extract_output(part, *args, **kwargs) for combiner, part in pairs)

    def teardown(self, *args: object, **kwargs: object) -> None:
        for combiner in reversed(self.combiners):
            combiner.teardown(*args, **kwargs)


class TupleCombineFn(_SideBySide):
    """Combines n-tuples: the k-th element of each with the k-th CombineFn (Beam's name).

    Args:
        *combiners: CombineFns, or callables that `CombineFn.from_callable` takes.
        merge_accumulators_batch_size: How many accumulators are merged at a time; None chooses.

    >>> TupleCombineFn(sum, max).apply([(1, 5), (2, 4)])
    (3, 5)
    """

    takes_lists = (
        False  # Whether each element is a list with one value for each CombineFn, and no other sequence.
    )

    @classmethod
    def of_lists(cls, combiners: Iterable[Any]) -> TupleCombineFn:
        """Returns the CombineFn of elements that are lists with one value for each of some CombineFns.

        >>> TupleCombineFn.of_lists([sum, max]).apply([[1, 5], [2, 4]])
        (3, 5)
        """
        made = cls(*combiners)
        made.takes_lists = True
        return made

    def add_input(
        self, accumulator: list[Any], element: tuple[Any, ...], *args: object, **kwargs: object
    ) -> list[Any]:
        trios = zip(self.combiners, accumulator, element, strict=False)
        return [combiner.add_input(part, each, *args, **kwargs) for combiner, part, each in trios]

    def add_inputs(
        self, accumulator: list[Any], elements: Iterable[tuple[Any, ...]], *args: object, **kwargs: object
    ) -> list[Any]:
        """Adds many tuples, column by column."""
        for chunk in split_into_chunks(elements):
            trios = zip(self.combiners, accumulator, zip(*chunk, strict=False), strict=False)
            accumulator = [fn.add_inputs(part, list(column), *args, **kwargs) for fn, part, column in trios]
        return accumulator

    def with_common_input(self) -> SingleInputTupleCombineFn:
        """Returns the CombineFn that passes each input, as a whole, to every one of these CombineFns."""
        return SingleInputTupleCombineFn(*self.combiners)


@register_fold(TupleCombineFn)
def _tuple(fn: TupleCombineFn) -> Fold | None:
    return combine_folds([fold_of(each) for each in fn.combiners]) if fn.takes_lists else None


class SingleInputTupleCombineFn(_SideBySide):
    """Gives every input to each of several CombineFns; the output is the tuple of their outputs (Beam's name).

    The arguments are as in `TupleCombineFn`.

    >>> SingleInputTupleCombineFn(min, max).apply([3, 1, 2])
    (1, 3)
    """

    def add_input(
        self, accumulator: list[Any], element: object, *args: object, **kwargs: object
    ) -> list[Any]:
        pairs = zip(self.combiners, accumulator, strict=True)
        return [combiner.add_input(part, element, *args, **kwargs) for combiner, part in pairs]

    def add_inputs(
        self, accumulator: list[Any], elements: Iterable[Any], *args: object, **kwargs: object
    ) -> list[Any]:
        for chunk in split_into_chunks(elements):
            pairs = zip(self.combiners, accumulator, strict=True)
            accumulator = [combiner.add_inputs(part, chunk, *args, **kwargs) for combiner, part in pairs]
        return accumulator
