"""Samples: n elements picked at random, or n of any kind."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeVar

from penstock.base.chunks import in_chunks
from penstock.construction.ptransform import PTransform
from penstock.error import three_parts
from penstock.functions.combinefn import CombineFn
from penstock.transforms.combine import CombineGlobally, CombinePerKey
from penstock.transforms.counting import CombinerWithoutDefaults
from penstock.transforms.pardo import FlatMap
from penstock.transforms.top import TopCombineFn
from penstock.typehints import List, Tuple, with_input_types, with_output_types

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@with_input_types(T)
@with_output_types(List[T])
class SampleCombineFn(CombineFn):
    """A uniform random sample without replacement, of at most n inputs (Beam's name).

    Each input draws a random number, and the n highest win; so merging samples of parts gives a sample of the
    whole. The numbers come from Python's `random` module.

    Args:
        n: The size of the sample; a smaller input is taken whole.

    >>> sorted(SampleCombineFn(5).apply("abc")), len(SampleCombineFn(2).apply("abc"))
    (['a', 'b', 'c'], 2)
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self._highest = TopCombineFn(n, key=itemgetter(0))

    def create_accumulator(self) -> list[tuple[float, Any]]:
        return []

    def add_input(self, accumulator: list[tuple[float, Any]], element: Any) -> list[tuple[float, Any]]:
        return self._highest.add_input(accumulator, (random.random(), element))

    def add_inputs(self, accumulator: list[tuple[float, Any]], elements: Iterable[Any]) -> list[Any]:
        for chunk in in_chunks(elements):
            accumulator = self._highest.add_inputs(accumulator, [(random.random(), each) for each in chunk])
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[tuple[float, Any]]]) -> list[Any]:
        """The n highest of all draws."""
        return self._highest.merge_accumulators(accumulators)

    def compact(self, accumulator: list[tuple[float, Any]]) -> list[Any]:
        return self._highest.compact(accumulator)

    def extract_output(self, accumulator: list[tuple[float, Any]]) -> list[Any]:
        return [element for _, element in self._highest.extract_output(accumulator)]


@with_input_types(T)
@with_output_types(List[T])
class AnySampleCombineFn(CombineFn):
    """The first n inputs that come along, in no promised order and with no promise of chance.

    >>> AnySampleCombineFn(2).apply("abc")
    ['a', 'b']
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: Any) -> list[Any]:
        """Picks the element if there is room."""
        if len(accumulator) < self.n:
            accumulator.append(element)
        return accumulator

    def add_inputs(self, accumulator: list[Any], elements: Iterable[Any]) -> list[Any]:
        """Picks while there is room; the rest is not even looked at."""
        accumulator.extend(islice(elements, self.n - len(accumulator)))
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        """Any n of what was picked."""
        return list(islice(chain.from_iterable(accumulators), self.n))

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        """What was picked; a copy, since the accumulator may live on."""
        return list(accumulator)


class Sample:
    """Samples without replacement (Beam's ``combiners.Sample``).

    Example: ``lines | Sample.FixedSizeGlobally(10)`` gives one list of ten lines.

    >>> Sample.FixedSizePerKey(3).default_label()
    'FixedSizePerKey(3)'
    """

    @with_input_types(T)
    @with_output_types(List[T])
    class FixedSizeGlobally(CombinerWithoutDefaults):
        """One list of n elements, each subset of that size being as likely; of all, if there are fewer."""

        def __init__(self, n: int) -> None:
            super().__init__()
            self._n = n

        def default_label(self) -> str:
            return f"FixedSizeGlobally({self._n})"

        def display_data(self) -> dict[str, Any]:
            return {"n": self._n}

        def expand(self, pcoll: Any) -> Any:
            return pcoll | self.combined(SampleCombineFn(self._n), List[pcoll.element_type])

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, List[V]])
    class FixedSizePerKey(PTransform[Any, Any]):
        """For each key, a list of n of its values, each subset of that size being as likely."""

        def __init__(self, n: int) -> None:
            super().__init__()
            self._n = n

        def default_label(self) -> str:
            return f"FixedSizePerKey({self._n})"

        def display_data(self) -> dict[str, Any]:
            return {"n": self._n}

        def expand(self, pcoll: Any) -> Any:
            return pcoll | CombinePerKey(SampleCombineFn(self._n))

    @with_input_types(T)
    @with_output_types(T)
    class Any(PTransform[Any, Any]):
        """Any n elements, as elements; not a random sample, and all of them if there are fewer.

        Raises:
            ValueError: If n is negative.
        """

        def __init__(self, n: int) -> None:
            if n < 0:
                raise ValueError(
                    three_parts(
                        f"Expected non-negative n, received {n}.", where="at Sample.Any", hint="use 0 or more"
                    )
                )
            super().__init__()
            self._n = n

        def default_label(self) -> str:
            return f"Any({self._n})"

        def display_data(self) -> dict[str, Any]:
            return {"n": self._n}

        def expand(self, pcoll: Any) -> Any:
            """Combines the elements with `AnySampleCombineFn`, and takes the list apart again."""
            return _any_elements(pcoll, self._n)


def _any_elements(pcoll: Any, n: int) -> Any:
    # Out here, because inside of `Sample` the name `Any` means the transform.
    picked = pcoll | CombineGlobally(AnySampleCombineFn(n)).without_defaults()
    return picked | FlatMap(iter).with_output_types(pcoll.element_type)
