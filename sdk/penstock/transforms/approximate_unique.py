"""An estimate of how many distinct elements there are, from a fixed-size sample of their hashes."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterable
from typing import Any, TypeVar

from penstock.base.chunks import in_chunks
from penstock.coders import registry
from penstock.construction.ptransform import PTransform
from penstock.error import three_parts
from penstock.functions.combinefn import CombineFn
from penstock.transforms.combine import CombineGlobally, CombinePerKey
from penstock.typehints import Tuple, with_input_types, with_output_types
from penstock.typehints.trivial_inference import key_value_types

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_HASH_SPACE = 2.0**64
_SMALLEST_SAMPLE = 16


@with_input_types(Any)
@with_output_types(int)
class ApproximateUniqueCombineFn(CombineFn):
    """Estimates the number of distinct inputs (Beam's name).

    The accumulator is a set of 64-bit hashes, of which only the `sample_size` least matter ("k minimum
    values"). They are the same however the input was split, and so is the estimate. With fewer distinct
    inputs than that it is exact; otherwise its error is about ``2 / sqrt(sample_size)``.

    Args:
        sample_size: How many hashes to keep.
        coder: The coder of the inputs; its deterministic form is what is hashed.

    Raises:
        ValueError: If the coder has no deterministic form.

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

    def add_input(self, accumulator: set[int], element: Any) -> set[int]:
        """Adds one hash.

        Raises:
            RuntimeError: If the coder cannot encode the element.
        """
        return self.add_inputs(accumulator, [element])

    def add_inputs(self, accumulator: set[int], elements: Iterable[Any]) -> set[int]:
        """Adds many hashes; now and then, drops those that cannot be among the least any more."""
        encode = self._coder.encode
        for chunk in in_chunks(elements):
            try:
                accumulator.update([_hash(encode(element)) for element in chunk])
            except Exception as error:
                what = f"Runtime exception: {type(error).__name__} from the coder {self._coder}"
                where, hint = (
                    "at ApproximateUnique",
                    "give the step before it a type hint that fits its elements",
                )
                raise RuntimeError(three_parts(what, where=where, hint=hint)) from error
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
        """Drops all but the least hashes."""
        if len(accumulator) <= self.sample_size:
            return accumulator
        return set(heapq.nsmallest(self.sample_size, accumulator))

    def extract_output(self, accumulator: set[int]) -> int:
        """The estimate.

        With s hashes within the lowest p of the hash space, p / space of all hashes are in the sample. The
        logarithms allow for distinct elements that share a hash.
        """
        least = self.compact(accumulator)
        size = self.sample_size
        if len(least) < size:
            return len(least)
        # The highest hash of the sample may be as low as size - 1, which log1p cannot take.
        covered = max(max(least) + 1.0, size + 1.0)
        return round(math.log1p(-size / covered) / math.log1p(-1 / covered) * _HASH_SPACE / covered)


class ApproximateUnique:
    """Estimates of the number of distinct elements (Beam's ``ApproximateUnique``).

    Example: ``users | ApproximateUnique.Globally(error=0.02)`` gives one int.

    >>> ApproximateUnique.parse_input_params(error=0.1)
    400
    """

    @staticmethod
    def parse_input_params(size: int | None = None, error: float | None = None) -> int:
        """The sample's size, from exactly one of the size itself and the wished error.

        Args:
            size: How many hashes to keep, at least 16.
            error: The wished relative error, from 0.01 to 0.5; the size is then ``4 / error²``.

        Raises:
            ValueError: If both or none are given, or one is out of range.
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
    class Globally(PTransform[Any, Any]):
        """The estimated number of distinct elements.

        Args:
            size: How many hashes to keep, at least 16.
            error: Instead, the wished relative error, from 0.01 to 0.5.

        Raises:
            ValueError: If both or none are given, or one is out of range.
        """

        def __init__(self, size: int | None = None, error: float | None = None) -> None:
            super().__init__()
            self._sample_size = ApproximateUnique.parse_input_params(size, error)

        def expand(self, pcoll: Any) -> Any:
            fn = ApproximateUniqueCombineFn(self._sample_size, registry.get_coder(pcoll.element_type))
            return pcoll | "CountGlobalUniqueValues" >> CombineGlobally(fn)

    @with_input_types(Tuple[K, V])
    @with_output_types(Tuple[K, int])
    class PerKey(PTransform[Any, Any]):
        """For each key, the estimated number of its distinct values; arguments as in `Globally`."""

        def __init__(self, size: int | None = None, error: float | None = None) -> None:
            super().__init__()
            self._sample_size = ApproximateUnique.parse_input_params(size, error)

        def expand(self, pcoll: Any) -> Any:
            _, value_type = key_value_types(pcoll.element_type)
            fn = ApproximateUniqueCombineFn(self._sample_size, registry.get_coder(value_type))
            return pcoll | "CountPerKeyUniqueValues" >> CombinePerKey(fn)


def _hash(encoded: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little")


def _wrong(what: str) -> ValueError:
    return ValueError(
        three_parts(what, where="at ApproximateUnique", hint="give size=16 or more, or error=0.01 to 0.5")
    )
