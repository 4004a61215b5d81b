"""Counts and means, and the base of the combiners that can go without a default for empty input."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterable
from typing import Any, TypeVar, Union

from penstock.base.chunks import in_chunks
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.functions.combinefn import CombineFn, is_whole
from penstock.functions.dofn import MapDoFn
from penstock.transforms.combine import CombineGlobally, CombinePerKey
from penstock.transforms.pardo import ParDo
from penstock.typehints import KV, Tuple, with_input_types, with_output_types

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class CombinerWithoutDefaults(PTransform[Any, Any]):
    """A global combiner that can give nothing, rather than a default, for empty input (Beam's name).

    Args:
        has_defaults: Whether an empty input in the global window gives the value of an empty accumulator.

    >>> ToNothing = CombinerWithoutDefaults
    >>> ToNothing().without_defaults().has_defaults, ToNothing().has_defaults
    (False, True)
    """

    def __init__(self, has_defaults: bool = True) -> None:
        super().__init__()
        self.has_defaults = has_defaults

    def with_defaults(self, has_defaults: bool = True) -> Any:
        """A copy that gives a default for empty input, or, with ``False``, nothing."""
        changed = copy.copy(self)
        changed.has_defaults = has_defaults
        return changed

    def without_defaults(self) -> Any:
        """A copy that gives nothing for empty input; needed in windows other than the global one."""
        return self.with_defaults(False)

    def combined(self, fn: CombineFn, output_type: Any) -> Any:
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
        """As many more as there are elements; one pass, nothing is kept."""
        return accumulator + sum(map(len, in_chunks(elements)))

    def subtract_input(self, accumulator: int, element: Any) -> int:
        """One less."""
        return accumulator - 1

    def merge_accumulators(self, accumulators: Iterable[int]) -> int:
        return sum(accumulators)

    def extract_output(self, accumulator: int) -> int:
        return accumulator


# Real numbers of other kinds, such as NumPy's, are registered as such.
@with_input_types(Union[float, int, numbers.Real])
@with_output_types(float)
class MeanCombineFn(CombineFn):
    """The arithmetic mean; the accumulator is ``(sum, count)``, and nothing has the mean NaN (Beam's name).

    >>> MeanCombineFn().apply([1, 2, 6]), MeanCombineFn().apply([])
    (3.0, nan)
    """

    def create_accumulator(self) -> tuple[Any, int]:
        return (0, 0)

    def add_input(self, accumulator: tuple[Any, int], element: Any) -> tuple[Any, int]:
        return accumulator[0] + element, accumulator[1] + 1

    def add_inputs(self, accumulator: tuple[Any, int], elements: Iterable[Any]) -> tuple[Any, int]:
        """Adds many numbers, in order, in one pass."""
        total, count = accumulator
        for chunk in in_chunks(elements):
            total = sum(chunk, total)
            count += len(chunk)
        return total, count

    def subtract_input(self, accumulator: tuple[Any, int], element: Any) -> tuple[Any, int]:
        """Takes one number out; asked for those that it `subtracts`."""
        return accumulator[0] - element, accumulator[1] - 1

    def subtracts(self, element: Any) -> bool:
        """Whether a number can be taken out again and leave what was there before: a whole one."""
        return is_whole(element)

    def merge_accumulators(self, accumulators: Iterable[tuple[Any, int]]) -> tuple[Any, int]:
        """The sums of the sums and of the counts."""
        total, count = self.create_accumulator()
        for one_total, one_count in accumulators:
            total += one_total
            count += one_count
        return total, count

    def extract_output(self, accumulator: tuple[Any, int]) -> float:
        total, count = accumulator
        return total / count if count else float("nan")


class Mean:
    """Arithmetic means (Beam's ``combiners.Mean``).

    Example: ``scores | Mean.PerKey()`` takes KVs of numbers and gives a KV of a float for each key.

    >>> Mean.Globally().without_defaults().has_defaults
    False
    """

    class Globally(CombinerWithoutDefaults):
        """The mean of all elements, as a float; of an empty input NaN, unless ``without_defaults()``."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[float]:
            result: PCollection[float] = pcoll | self.combined(MeanCombineFn(), float)
            return result

    class PerKey(PTransform[Any, Any]):
        """The mean of the values of each key, as a KV of the key and a float."""

        def expand(self, pcoll: PCollection[tuple[K, Any]]) -> PCollection[tuple[K, float]]:
            return pcoll | CombinePerKey(MeanCombineFn())


class Count:
    """Counts (Beam's ``combiners.Count``).

    Example: ``words | Count.PerElement()`` gives pairs such as ``("the", 42)``.

    >>> Count.Globally().has_defaults
    True
    """

    @with_input_types(T)
    @with_output_types(int)
    class Globally(CombinerWithoutDefaults):
        """The number of elements; of an empty input 0, unless ``without_defaults()``."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[int]:
            result: PCollection[int] = pcoll | self.combined(CountCombineFn(), int)
            return result

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, int])
    class PerKey(PTransform[Any, Any]):
        """How many values each key has, as KVs of the key and the count."""

        def expand(self, pcoll: PCollection[tuple[K, Any]]) -> PCollection[tuple[K, int]]:
            return pcoll | CombinePerKey(CountCombineFn())

    @with_input_types(T)
    @with_output_types(Tuple[T, int])
    class PerElement(PTransform[Any, Any]):
        """How often each element occurs, as KVs of the element and the count."""

        def expand(self, pcoll: PCollection[T]) -> PCollection[tuple[T, int]]:
            """Makes each element a key, then counts per key."""
            element_type = pcoll.element_type
            with_nothing = ParDo(PairWithNothing()).with_output_types(KV[element_type, Any])
            counted = CombinePerKey(CountCombineFn()).with_output_types(KV[element_type, int])
            result: PCollection[tuple[T, int]] = (
                pcoll | f"{self.label}:PairWithVoid" >> with_nothing | counted
            )
            return result


class PairWithNothing(MapDoFn):
    """Pairs each element with None; a runner that takes the pairs apart again need not make them.

    >>> PairWithNothing().process("a")
    [('a', None)]
    """

    def __init__(self) -> None:
        super().__init__(_with_nothing)


def _with_nothing(element: Any) -> tuple[Any, None]:
    return element, None
