"""Everything in one collection (list, set, dict), and the latest element."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, TypeVar

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.transforms.combine import CombinePerKey
from penstock.transforms.counting import CombinerWithoutDefaults
from penstock.transforms.pardo import Map
from penstock.typehints import KV, Dict, List, Set, Tuple, with_input_types, with_output_types
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.timestamp import MIN_TIMESTAMP, Timestamp

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

# Each CombineFn here gives a copy as its output: in accumulating panes the accumulator lives on and grows.


@with_input_types(T)
@with_output_types(List[T])
class ToListCombineFn(CombineFn):
    """All inputs in a list, in no promised order (Beam's name).

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
class ConcatListCombineFn(CombineFn):
    """Concatenates lists, in no promised order (Beam's name).

    >>> ConcatListCombineFn().apply([[1], [2, 3]])
    [1, 2, 3]
    """

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], element: list[Any]) -> list[Any]:
        accumulator.extend(element)
        return accumulator

    def add_inputs(self, accumulator: list[Any], elements: Iterable[list[Any]]) -> list[Any]:
        """Appends the elements of all lists."""
        accumulator.extend(chain.from_iterable(elements))
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return list(chain.from_iterable(accumulators))

    def extract_output(self, accumulator: list[Any]) -> list[Any]:
        return list(accumulator)


@with_input_types(Tuple[K, V])
@with_output_types(Dict[K, V])
class ToDictCombineFn(CombineFn):
    """All pairs in a dict; of a key that comes twice, one of the values (Beam's name).

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
    """All inputs in a set (Beam's name).

    >>> sorted(ToSetCombineFn().apply([2, 1, 2]))
    [1, 2]
    """

    def create_accumulator(self) -> set[Any]:
        return set()

    def add_input(self, accumulator: set[Any], element: Any) -> set[Any]:
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
    """Of ``(value, timestamp)`` pairs, the value with the latest timestamp; of nothing, None (Beam's name).

    >>> LatestCombineFn().apply([("old", Timestamp(1)), ("new", Timestamp(2))])
    'new'
    """

    def create_accumulator(self) -> tuple[Any, Any]:
        return (None, MIN_TIMESTAMP)

    def add_input(self, accumulator: tuple[Any, Any], element: tuple[Any, Any]) -> tuple[Any, Any]:
        """The later one; of two at one time, the new one."""
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

    def extract_output(self, accumulator: tuple[Any, Any]) -> Any:
        return accumulator[0]


@with_input_types(T)
@with_output_types(List[T])
class ToList(CombinerWithoutDefaults):
    """One list of all elements, in no promised order (Beam's ``combiners.ToList``).

    >>> ToList().has_defaults
    True
    """

    def expand(self, pcoll: PCollection[T]) -> PCollection[list[T]]:
        result: PCollection[list[T]] = pcoll | self.label >> self.combined(
            ToListCombineFn(), List[pcoll.element_type]
        )
        return result


@with_input_types(Tuple[K, V])
@with_output_types(Dict[K, V])
class ToDict(CombinerWithoutDefaults):
    """One dict of all pairs; of a key that comes twice, one of the values (Beam's ``combiners.ToDict``).

    >>> ToDict(has_defaults=False).has_defaults
    False
    """

    def expand(self, pcoll: Any) -> Any:
        key_type, value_type = key_value_types(pcoll.element_type)
        return pcoll | self.label >> self.combined(ToDictCombineFn(), Dict[key_type, value_type])


@with_input_types(T)
@with_output_types(Set[T])
class ToSet(CombinerWithoutDefaults):
    """One set of all elements (Beam's ``combiners.ToSet``).

    >>> ToSet().without_defaults().has_defaults
    False
    """

    def expand(self, pcoll: Any) -> Any:
        return pcoll | self.label >> self.combined(ToSetCombineFn(), Set[pcoll.element_type])


class Latest:
    """The element with the latest timestamp (Beam's ``combiners.Latest``).

    Example: ``readings | Latest.PerKey()`` takes KVs and gives each key with its latest value.

    >>> Latest.Globally().has_defaults
    True
    """

    @with_input_types(T)
    @with_output_types(T)
    class Globally(CombinerWithoutDefaults):
        """The latest of all elements; of an empty input None, unless ``without_defaults()``."""

        @staticmethod
        def add_timestamp(element: Any, timestamp: Any = DoFn.TimestampParam) -> tuple[Any, Any]:
            """The element with its timestamp."""
            return element, timestamp

        def expand(self, pcoll: Any) -> Any:
            """Combines the elements and their timestamps with `LatestCombineFn`."""
            timed = Map(self.add_timestamp).with_output_types(Tuple[pcoll.element_type, Timestamp])
            return pcoll | timed | self.combined(LatestCombineFn(), pcoll.element_type)

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, V])
    class PerKey(PTransform[Any, Any]):
        """For each key, its latest value."""

        @staticmethod
        def add_timestamp(element: tuple[Any, Any], timestamp: Any = DoFn.TimestampParam) -> tuple[Any, Any]:
            """The key, and the value with the element's timestamp."""
            key, value = element
            return key, (value, timestamp)

        def expand(self, pcoll: Any) -> Any:
            """Combines the values and their timestamps with `LatestCombineFn`."""
            key_type, value_type = key_value_types(pcoll.element_type)
            timed = Map(self.add_timestamp).with_output_types(KV[key_type, Tuple[value_type, Timestamp]])
            return pcoll | timed | CombinePerKey(LatestCombineFn())
