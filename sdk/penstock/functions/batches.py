"""Batches as DoFns with a ``process_batch`` take them, and how elements become one (Beam's ``typehints.batch``).

Lists are at home here. Batches of NumPy, pandas and Arrow come with the runner, which has these libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any, Generic, TypeVar

from penstock.base.engine import batches_of_the_runner
from penstock.coders.typecoders import registry
from penstock.error import three_parts
from penstock.typehints import typehints

B = TypeVar("B")
E = TypeVar("E")
Constructor = Callable[[Any, Any], "BatchConverter[Any, Any]"]

N = "ARBITRARY LENGTH DIMENSION"
"""In the shape of a ``NumpyArray``: the dimension along which the elements are (Beam's name)."""

BATCH_CONVERTER_REGISTRY: dict[str, Constructor] = {}
"""What tries to make a converter, by name (Beam's name)."""

_OF_THE_RUNNER = ("NumpyArray", "NumpyBatchConverter", "NumpyTypeHint")
_SAMPLED = 100


class BatchConverter(Generic[B, E]):
    """Makes a batch of elements, and elements of a batch (Beam's name).

    Two converters are equal if batches of the one can be given to whoever asks for those of the other.

    Args:
        batch_type: The type hint of the batch.
        element_type: The type hint of its elements.
    """

    def __init__(self, batch_type: Any, element_type: Any) -> None:
        self._batch_type = batch_type
        self._element_type = element_type

    @property
    def batch_type(self) -> Any:
        """The type hint of the batch."""
        return self._batch_type

    @property
    def element_type(self) -> Any:
        """The type hint of the elements."""
        return self._element_type

    def produce_batch(self, elements: Sequence[E]) -> B:
        """A batch of some elements, in their order."""
        raise NotImplementedError

    def explode_batch(self, batch: B) -> Iterator[E]:
        """The elements of a batch, in their order."""
        raise NotImplementedError

    def combine_batches(self, batches: Sequence[B]) -> B:
        """One batch of several."""
        raise NotImplementedError

    def get_length(self, batch: B) -> int:
        """The number of elements of a batch."""
        raise NotImplementedError

    def estimate_byte_size(self, batch: B) -> int:
        """About how many bytes a batch takes."""
        raise NotImplementedError

    @staticmethod
    def register(*, name: str) -> Callable[[Constructor], Constructor]:
        """A decorator for a function from (element type, batch type) to a converter.

        The function raises a TypeError, which says why, for types that it has no converter for.

        Args:
            name: A name of its own, for errors.

        Raises:
            AssertionError: If the name is taken, as in Beam.
        """

        def registered(constructor: Constructor) -> Constructor:
            if name in BATCH_CONVERTER_REGISTRY:
                raise AssertionError(
                    three_parts(
                        f"Attempted to register two batch converters with name {name}",
                        hint="give each a name of its own",
                    )
                )
            BATCH_CONVERTER_REGISTRY[name] = constructor
            return constructor

        return registered

    @staticmethod
    def from_typehints(*, element_type: Any, batch_type: Any) -> BatchConverter[Any, Any]:
        """The converter for two type hints.

        Raises:
            TypeError: If no registered constructor has one.

        >>> converter = BatchConverter.from_typehints(element_type=int, batch_type=list[int])
        >>> converter.produce_batch((1, 2)), converter.get_length([1, 2])
        ([1, 2], 2)
        """
        element_type, batch_type = typehints.normalize(element_type), typehints.normalize(batch_type)
        if not isinstance(batch_type, typehints.ListConstraint):
            batches_of_the_runner()
        reasons = []
        for name, constructor in BATCH_CONVERTER_REGISTRY.items():
            try:
                return constructor(element_type, batch_type)
            except TypeError as error:
                reasons.append(f"{name}: {str(error).partition(chr(10))[0]}")
        types = f"element_type={_shown(element_type)} and batch_type={_shown(batch_type)}"
        raise TypeError(
            three_parts(f"Unable to find BatchConverter for {types} ({'; '.join(reasons)})", hint=_HINT)
        )

    def _key(self) -> tuple[Any, ...]:
        return type(self), self._element_type, self._batch_type

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, BatchConverter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


_HINT = "annotate process_batch with batches of the input's elements, and say what the elements are: with_output_types"


class ListBatchConverter(BatchConverter[list[Any], Any]):
    """Batches that are lists, of a type ``List[T]`` for elements of type ``T`` (Beam's name)."""

    @staticmethod
    @BatchConverter.register(name="list")
    def from_typehints(element_type: Any, batch_type: Any) -> BatchConverter[Any, Any]:  # type: ignore[override]
        """The converter; TypeError if the batch type is no list of these elements."""
        if (
            not isinstance(batch_type, typehints.ListConstraint)
            or typehints.normalize(batch_type.inner_type) != element_type
        ):
            raise TypeError("batch type must be List[T] for element type T")
        return ListBatchConverter(batch_type, element_type)

    def produce_batch(self, elements: Sequence[Any]) -> list[Any]:
        """A new list, which its receiver may change."""
        return list(elements)

    def explode_batch(self, batch: list[Any]) -> Iterator[Any]:
        """The elements."""
        return iter(batch)

    def combine_batches(self, batches: Sequence[list[Any]]) -> list[Any]:
        """One list.

        >>> BatchConverter.from_typehints(element_type=int, batch_type=list[int]).combine_batches([[1], [2]])
        [1, 2]
        """
        return [element for batch in batches for element in batch]

    def get_length(self, batch: list[Any]) -> int:
        """The list's length; TypeError for what can be iterated over, but is hardly meant as a list."""
        if isinstance(batch, str | bytes | dict):
            raise TypeError(f"{type(batch).__name__} is not a list")
        return len(batch)

    def estimate_byte_size(self, batch: list[Any]) -> int:
        """The size of some elements as their coder writes them, taken for all."""
        import random

        if not batch:
            return 0
        coder = registry.get_coder(self._element_type)
        some = random.sample(batch, min(len(batch), _SAMPLED))
        return ceil(sum(coder.estimate_size(element) for element in some) / len(some) * len(batch))


def _shown(hint: Any) -> str:
    return str(typehints.show_type(hint))


def __getattr__(name: str) -> Any:
    if name in _OF_THE_RUNNER:
        return getattr(batches_of_the_runner().with_numpy(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
