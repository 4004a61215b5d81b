"""Approximate statistics in little memory: quantiles, and the number of distinct elements."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from penstock.base.chunks import split_into_chunks
from penstock.base.display import DisplayDataItem
from penstock.coders import registry
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.error import refusal, three_parts
from penstock.functions.combinefn import CombineFn
from penstock.transforms.combining.combine import CombineGlobally, CombinePerKey
from penstock.typehints import KV, List, Tuple, with_input_types, with_output_types
from penstock.typehints.trivial_inference import key_value_types

__all__ = [
    "ApproximateQuantiles",
    "ApproximateQuantilesCombineFn",
    "ApproximateUnique",
    "ApproximateUniqueCombineFn",
    "K",
    "T",
    "V",
]


@dataclass(frozen=True)
class SketchSettings:
    """The settings of a sketch, the same for all parts of it."""

    capacity: int
    """Half the number of entries that a level must have to be thinned; at least 2."""
    budget: int
    """The number of entries above which levels are thinned."""
    key: Callable[[Any], Any] | None = None
    """A function from a value to its sort key; None compares the values."""
    reverse: bool = False
    weighted: bool = False
    """True if entries are ``(value, weight)`` pairs rather than values."""

    def sort(self, entries: list[Any]) -> None:
        """Sorts entries in place by value."""
        key = self.key
        by_value: Callable[[Any], Any] | None = key
        if self.weighted:
            by_value = (lambda pair: pair[0]) if key is None else (lambda pair: key(pair[0]))
        entries.sort(key=by_value, reverse=self.reverse)

    def values(self, entries: Iterable[Any]) -> Iterable[Any]:
        """Returns the values of entries."""
        return (value for value, _ in entries) if self.weighted else entries

    def bounds(self, values: Iterable[Any]) -> tuple[Any, Any]:
        """Returns the first and the last value in the sketch's order; there must be a value."""
        held = list(values)
        ends = min(held, key=self.key), max(held, key=self.key)
        return ends[::-1] if self.reverse else ends


@dataclass
class Sketch:
    """A deterministic, mergeable summary of a multiset from which ranks can be read with a bounded error.

    It is a tower of levels. Level 0 holds inputs. When there are more entries than the budget, the lowest level
    with ``2 * capacity`` of them is sorted and thinned to half, which goes up one level. Unweighted entries of
    level i stand for 2**i inputs each, and thinning keeps every other one; so a rank moves by at most 2**i per
    thinning, and by at most ``inputs / (2 * capacity)`` per level in all. Weighted entries carry their weights,
    and thinning joins neighbours into groups of at most ``2 / (capacity - 1)`` of the present weight, each
    represented by its weighted median; so a rank moves by at most ``weight / (capacity - 1)`` per level in all.
    After: Munro and Paterson 1980; Manku, Rajagopalan and Lindsay 1998, section 3.

    A summary changes in place.
    """

    levels: list[list[Any]] = field(default_factory=lambda: [[]])
    thinned: list[int] = field(default_factory=lambda: [0])
    """The number of times each level was thinned; it decides which half is kept, so that errors cancel."""
    bounds: tuple[Any, ...] = ()
    """The first and last value ever seen; () before the first."""

    def add(self, entries: Sequence[Any], settings: SketchSettings) -> None:
        """Adds inputs: values, or pairs of value and weight if the sketch is weighted.

        >>> sketch, settings = Sketch(), SketchSettings(capacity=2, budget=4)
        >>> sketch.add(range(9), settings)
        >>> sketch.bounds, sum(weight for _, weight in sketch.entries(settings))
        ((0, 8), 9)
        """
        if entries:
            self.bounds = settings.bounds([*self.bounds, *settings.values(entries)])
            self.levels[0].extend(entries)
            self._thin(settings)

    def absorb(self, other: Sketch, settings: SketchSettings) -> None:
        """Adds the entries of another sketch, which stays unchanged."""
        if not other.bounds:
            return
        self.bounds = settings.bounds([*self.bounds, *other.bounds])
        while len(self.levels) < len(other.levels):
            self.levels.append([])
            self.thinned.append(0)
        for level, entries in enumerate(other.levels):
            self.levels[level].extend(entries)
            self.thinned[level] += other.thinned[level]
        self._thin(settings)

    def entries(self, settings: SketchSettings) -> Iterator[tuple[Any, Any]]:
        """Yields every value that is held, with the weight it stands for, in no order."""
        for level, entries in enumerate(self.levels):
            if settings.weighted:
                yield from entries
            else:
                yield from ((value, 1 << level) for value in entries)

    def _thin(self, settings: SketchSettings) -> None:
        while sum(map(len, self.levels)) > settings.budget:
            full = (level for level, held in enumerate(self.levels) if len(held) >= 2 * settings.capacity)
            level = next(full, None)
            if level is None:
                # Entries are few on every level, so there are at most as many as the levels allow.
                return
            if level + 1 == len(self.levels):
                self.levels.append([])
                self.thinned.append(0)
            self.levels[level] = self._push_up(self.levels[level], level, settings)
            self.thinned[level] += 1

    def _push_up(self, entries: list[Any], level: int, settings: SketchSettings) -> list[Any]:
        """Thins entries into the level above, and returns the rest, which stays on this level."""
        settings.sort(entries)
        if settings.weighted:
            self.levels[level + 1].extend(join_neighbours(entries, max(settings.capacity, len(entries) // 2)))
            return []
        # If the number is odd, one entry stays, or the weights would not add up.
        stays = entries[-1:] if len(entries) % 2 else []
        self.levels[level + 1].extend(entries[self.thinned[level] % 2 : len(entries) - len(stays) : 2])
        return stays


def join_neighbours(pairs: Sequence[tuple[Any, Any]], capacity: int) -> Iterator[tuple[Any, Any]]:
    """Yields sorted pairs of value and weight, with neighbours joined so that at most `capacity` remain.

    >>> list(join_neighbours([("a", 1), ("b", 1), ("c", 8), ("d", 2)], 4))
    [('a', 2), ('c', 8), ('d', 2)]
    """
    # Two neighbouring groups weigh more than the limit together, so there are at most capacity groups.
    limit = 2 * sum(weight for _, weight in pairs) / (capacity - 1)
    start = 0
    group_weight = pairs[0][1]
    for position in range(1, len(pairs)):
        weight = pairs[position][1]
        if group_weight + weight > limit:
            yield _median(pairs[start:position], group_weight), group_weight
            start, group_weight = position, weight
        else:
            group_weight += weight
    yield _median(pairs[start:], group_weight), group_weight


def _median(group: Sequence[tuple[Any, Any]], group_weight: object) -> object:
    below = 0
    for value, weight in group:
        below += weight
        if 2 * below >= group_weight:
            return value
    return group[-1][0]


Key = Callable[[Any], Any] | None


class ApproximateQuantilesCombineFn(CombineFn):
    """A list of quantiles: the smallest input, evenly spaced ones in between, and the largest (Beam's name).

    The quantiles of an input of up to ``buffer_size * num_buffers`` elements are exact. An empty input has an
    empty list. Use `create` to get the two sizes from the error that you allow.

    Args:
        num_quantiles: The length of the output, at least 2.
        buffer_size: Half the number of entries that a level of the sketch must have to be thinned.
        num_buffers: The sketch is thinned when it has more than `num_buffers` times `buffer_size` entries.
        key: A function from an element to its sort key, as in `sorted`.
        reverse: Whether the output descends.
        weighted: Whether inputs are pairs of an element and its weight.
        input_batched: Whether inputs are lists of elements, or, if weighted, pairs of a list of elements and
            a list of weights.

    >>> ApproximateQuantilesCombineFn.create(5).apply(range(101))
    [0, 25, 50, 75, 100]
    """

    _MAX_NUM_ELEMENTS = 1e9

    def __init__(
        self,
        num_quantiles: int,
        buffer_size: int,
        num_buffers: int,
        key: Key = None,
        reverse: bool = False,
        weighted: bool = False,
        input_batched: bool = False,
    ) -> None:
        super().__init__()
        if num_quantiles < 2:
            what = f"num_quantiles must be 2 or more, got {num_quantiles}"
            hint = "the smallest and the largest element are two of them"
            raise refusal(ValueError, what, hint=hint)
        self.num_quantiles = num_quantiles
        self.num_buffers = num_buffers
        self._settings = SketchSettings(
            max(2, buffer_size), max(2, buffer_size) * max(2, num_buffers), key, reverse, weighted
        )
        self._input_batched = input_batched

    @classmethod
    def create(
        cls,
        num_quantiles: int,
        epsilon: float | None = None,
        max_num_elements: float | None = None,
        key: Key = None,
        reverse: bool = False,
        weighted: bool = False,
        input_batched: bool = False,
    ) -> ApproximateQuantilesCombineFn:
        """Returns the CombineFn whose error is at most `epsilon`.

        Args:
            num_quantiles: See the constructor for this argument and all others without a description here.
            epsilon: The maximum distance, as a share of all inputs (or weight), of the rank of an output from the
                wanted rank; by default ``1 / num_quantiles``, and at most 0.01 if weighted.
            max_num_elements: The number of inputs up to which the error must hold; by default 10**9.
        """
        most = max_num_elements or cls._MAX_NUM_ELEMENTS
        wished = epsilon or (min(1e-2, 1 / num_quantiles) if weighted else 1 / num_quantiles)
        # A level of weighted entries may cost twice as much rank as one of entries that weigh the same.
        allowed = most * (wished / 2 if weighted else wished)
        levels = 1
        while (levels - 1) * 2.0 ** (levels - 1) < allowed:
            levels += 1
        buffer_size = max(2, math.ceil(most / 2.0 ** (levels - 1)))
        return cls(num_quantiles, buffer_size, levels, key, reverse, weighted, input_batched)

    def create_accumulator(self) -> Sketch:
        return Sketch()

    def add_input(self, accumulator: Sketch, element: object) -> Sketch:
        accumulator.add(list(self._entries([element])), self._settings)
        return accumulator

    def add_inputs(self, accumulator: Sketch, elements: Iterable[Any]) -> Sketch:
        for chunk in split_into_chunks(self._entries(elements)):
            accumulator.add(chunk, self._settings)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Sketch]) -> Sketch:
        merged = Sketch()
        for accumulator in accumulators:
            merged.absorb(accumulator, self._settings)
        return merged

    def extract_output(self, accumulator: Sketch) -> list[Any]:
        if not accumulator.bounds:
            return []
        first, last = accumulator.bounds
        return [first, *self._between(accumulator), last]

    def _entries(self, elements: Iterable[Any]) -> Iterator[Any]:
        if not self._input_batched:
            return iter(elements)
        if self._settings.weighted:
            return chain.from_iterable(zip(values, weights, strict=True) for values, weights in elements)
        return chain.from_iterable(elements)

    def _between(self, sketch: Sketch) -> Iterator[Any]:
        pairs = list(sketch.entries(self._settings))
        replace(self._settings, weighted=True).sort(pairs)
        total = sum(weight for _, weight in pairs)
        step = total / (self.num_quantiles - 1)
        # Of n inputs that weigh 1, those before the wanted rank weigh up to (total - 1) * share; lighter
        # inputs are finer steps, so that less than 1 is subtracted.
        offset = (total - min(1, total / len(pairs))) / (self.num_quantiles - 1)
        rest = iter(pairs)
        value, passed = next(rest)
        for number in range(self.num_quantiles - 2):
            while passed <= number * step + offset:
                following = next(rest, None)
                if following is None:
                    break
                value = following[0]
                passed += following[1]
            yield value


class _Quantiles(PTransform[Any, Any]):
    def __init__(
        self,
        num_quantiles: int,
        key: Key = None,
        reverse: bool = False,
        weighted: bool = False,
        input_batched: bool = False,
    ) -> None:
        super().__init__()
        self._arguments = {
            "num_quantiles": num_quantiles,
            "key": key,
            "reverse": reverse,
            "weighted": weighted,
            "input_batched": input_batched,
        }
        self._fn = ApproximateQuantilesCombineFn.create(
            num_quantiles, key=key, reverse=reverse, weighted=weighted, input_batched=input_batched
        )

    def value_type(self, input_type: object) -> Any:
        return Any if self._arguments["weighted"] or self._arguments["input_batched"] else input_type

    def display_data(self) -> dict[str, Any]:
        labels = {
            "num_quantiles": "Quantile Count",
            "key": "Record Comparer Key",
            "reverse": "Is Reversed",
            "weighted": "Is Weighted",
            "input_batched": "Is Input Batched",
        }
        shown: dict[str, Any] = dict(self._arguments)
        key = shown["key"]
        shown["key"] = getattr(key, "__name__", type(key).__name__)
        return {
            name: DisplayDataItem(value if name == "num_quantiles" else str(value), label=labels[name])
            for name, value in shown.items()
        }


class ApproximateQuantiles:
    """Estimates quantiles within a known error (Beam's ``ApproximateQuantiles``).

    Args:
        num_quantiles: The length of the output, at least 2: quartiles are 5.
        key: A function from an element to its sort key, as in `sorted`.
        reverse: Whether the output descends.
        weighted: Whether elements are pairs of a value and its weight.
        input_batched: Whether elements are lists of values, or, if weighted, pairs of a list of values and a
            list of weights.

    The rank of each output is within ``1 / num_quantiles`` of the wanted one (within 0.01, if that is less,
    when weighted), as a share of all elements, for up to 10**9 of them.

    Example: ``latencies | ApproximateQuantiles.Globally(5)`` over 0 to 100 emits ``[0, 25, 50, 75, 100]``.
    """

    class Globally(_Quantiles):
        """Emits one list of quantiles of all elements; an empty list for an empty input."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
            output_type = List[self.value_type(pcoll.element_type)]
            return pcoll | CombineGlobally(self._fn).with_output_types(output_type)

    @with_input_types(Tuple[K, V])
    class PerKey(_Quantiles):
        """Emits, for each key, a list of quantiles of its values."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
            key_type, value_type = key_value_types(pcoll.element_type)
            output_type = KV[key_type, List[self.value_type(value_type)]]
            return pcoll | CombinePerKey(self._fn).with_output_types(output_type)


_HASH_SPACE = 2.0**64
_SMALLEST_SAMPLE = 16


@with_input_types(Any)
@with_output_types(int)
class ApproximateUniqueCombineFn(CombineFn):
    """Estimates the number of distinct inputs (Beam's name).

    The accumulator is a set of 64-bit hashes, of which only the `sample_size` smallest matter ("k minimum values").
    They are the same however the input was split, and so is the estimate. With fewer distinct inputs than that it is
    exact; otherwise its error is about ``2 / sqrt(sample_size)``.

    Args:
        sample_size: How many hashes to keep.
        coder: The coder of the inputs, whose deterministic form is hashed; ValueError if it has none.

    >>> from penstock.coders import VarIntCoder
    >>> ApproximateUniqueCombineFn(16, VarIntCoder()).apply([7, 8, 7])
    2
    """

    def __init__(self, sample_size: int, coder: Any) -> None:
        super().__init__()
        self.sample_size = sample_size
        what = f'The key coder "{type(coder).__name__}" for ApproximateUniqueCombineFn is not deterministic.'
        text = three_parts(what, hint="give the elements a type hint whose coder is deterministic")
        self._coder = coder.as_deterministic_coder("ApproximateUniqueCombineFn", text)

    def display_data(self) -> dict[str, Any]:
        return {"sample_size": self.sample_size}

    def create_accumulator(self) -> set[int]:
        return set()

    def add_input(self, accumulator: set[int], element: object) -> set[int]:
        return self.add_inputs(accumulator, [element])

    def add_inputs(self, accumulator: set[int], elements: Iterable[Any]) -> set[int]:
        """Adds many hashes; now and then, drops those that can no longer be among the smallest."""
        encode = self._coder.encode
        for chunk in split_into_chunks(elements):
            try:
                accumulator.update([_hash(encode(element)) for element in chunk])
            except Exception as error:
                what = f"Runtime exception: {type(error).__name__} from the coder {self._coder}"
                where, hint = (
                    "at ApproximateUnique",
                    "give the previous step a type hint that fits its elements",
                )
                raise refusal(RuntimeError, what, where=where, hint=hint) from error
            if len(accumulator) > 4 * self.sample_size:
                accumulator = self.compact(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[set[int]]) -> set[int]:
        merged: set[int] = set()
        for accumulator in accumulators:
            merged |= accumulator
            merged = self.compact(merged)
        return merged

    def compact(self, accumulator: set[int]) -> set[int]:
        if len(accumulator) <= self.sample_size:
            return accumulator
        return set(heapq.nsmallest(self.sample_size, accumulator))

    def extract_output(self, accumulator: set[int]) -> int:
        """Returns the estimate.

        With s hashes in the lowest p of the hash space, p / space of all hashes are in the sample. The
        logarithms allow for distinct elements that share a hash.
        """
        least = self.compact(accumulator)
        size = self.sample_size
        if len(least) < size:
            return len(least)
        # The highest hash of the sample may be as low as size - 1, which log1p cannot take.
        covered = max(max(least) + 1.0, size + 1.0)
        return round(math.log1p(-size / covered) / math.log1p(-1 / covered) * _HASH_SPACE / covered)


class _Unique(PTransform[Any, Any]):
    def __init__(self, size: int | None = None, error: float | None = None) -> None:
        super().__init__()
        self._sample_size = ApproximateUnique.parse_input_params(size, error)


class ApproximateUnique:
    """Estimates the number of distinct elements (Beam's ``ApproximateUnique``).

    Example: ``users | ApproximateUnique.Globally(error=0.02)`` emits one int.
    """

    @staticmethod
    def parse_input_params(size: int | None = None, error: float | None = None) -> int:
        """Returns the sample's size, from exactly one of the size itself and the wanted error.

        Args:
            size: How many hashes to keep, at least 16.
            error: The relative error, from 0.01 to 0.5; the size is then ``4 / error²``.

        Raises:
            ValueError: If both or none are given, or one is out of range.

        >>> ApproximateUnique.parse_input_params(error=0.1)
        400
        """
        if size is not None and error is not None:
            raise _wrong(f"Either size or error should be set. Received {{size = {size}, error = {error}}}.")
        if size is not None:
            if isinstance(size, int) and size >= _SMALLEST_SAMPLE:
                return size
            raise _wrong(
                "ApproximateUnique needs a size >= 16 for an error <= 0.50. In general, the estimation error "
                f"is about 2 / sqrt(sample_size). Received {{size = {size}}}."
            )
        if error is None:
            raise _wrong("Either size or error should be set. Received {}.")
        if 0.01 <= error <= 0.5:
            return math.ceil(4.0 / (error * error))
        raise _wrong(
            "ApproximateUnique needs an estimation error between 0.01 and 0.50. "
            f"Received {{error = {error}}}."
        )

    @with_input_types(T)
    @with_output_types(int)
    class Globally(_Unique):
        """Emits the estimated number of distinct elements; arguments are as in `parse_input_params`."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
            fn = ApproximateUniqueCombineFn(self._sample_size, registry.get_coder(pcoll.element_type))
            return pcoll | "CountGlobalUniqueValues" >> CombineGlobally(fn)

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, int])
    class PerKey(_Unique):
        """Emits, for each key, the estimated number of its distinct values; see `parse_input_params`."""

        def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
            _, value_type = key_value_types(pcoll.element_type)
            fn = ApproximateUniqueCombineFn(self._sample_size, registry.get_coder(value_type))
            return pcoll | "CountPerKeyUniqueValues" >> CombinePerKey(fn)


def _hash(encoded: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")


def _wrong(what: str) -> ValueError:
    hint = "give size=16 or more, or error=0.01 to 0.5"
    return refusal(ValueError, what, hint=hint)
