"""Transforms that put an element's timestamp or window into the element, or convert it to a string."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.bounded_window import TimestampedValue
from penstock.functions.dofn import DoFn
from penstock.transforms.elements.pardo import Map
from penstock.typehints import KV, Tuple, with_input_types
from penstock.typehints import Iterable as IterableHint
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.timestamp import Timestamp


class Reify:
    """Makes the implicit parts of an element explicit (Beam's ``Reify``).

    ``Reify.Timestamp()`` wraps each element in a `TimestampedValue`. Example: ``events | Reify.Window()`` emits
    ``(event, timestamp, window)``.
    """

    class Timestamp(PTransform[Any, Any]):
        """Emits each element as a `TimestampedValue` of itself; the next step receives the original element."""

        @staticmethod
        def add_timestamp_info(
            element: object, timestamp: Timestamp = DoFn.TimestampParam
        ) -> TimestampedValue[Any]:
            """Returns the element at its timestamp."""
            return TimestampedValue(element, timestamp)

        def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
            return pcoll | Map(self.add_timestamp_info).with_output_types(pcoll.element_type)

    class Window(PTransform[Any, Any]):
        """Emits a triple of each element, its timestamp and its window."""

        @staticmethod
        def add_window_info(
            element: object, timestamp: Timestamp = DoFn.TimestampParam, window: object = DoFn.WindowParam
        ) -> TimestampedValue[Any]:
            """Returns the triple, at the element's timestamp."""
            return TimestampedValue((element, timestamp, window), timestamp)

        def expand(self, pcoll: PCollection[T]) -> PCollection[tuple[T, Timestamp, Any]]:
            output_type = Tuple[pcoll.element_type, Timestamp, Any]
            return pcoll | Map(self.add_window_info).with_output_types(output_type)

    @with_input_types(Tuple[K, V])
    class TimestampInValue(PTransform[Any, Any]):
        """Emits each KV with its value as a `TimestampedValue` with the element's timestamp."""

        @staticmethod
        def add_timestamp_info(
            element: tuple[Any, Any], timestamp: Timestamp = DoFn.TimestampParam
        ) -> tuple[Any, Any]:
            """Returns the key, and the value at the element's timestamp."""
            key, value = element
            return key, TimestampedValue(value, timestamp)

        def expand(self, pcoll: PCollection[tuple[K, Any]]) -> PCollection[tuple[K, Any]]:
            key_type, _ = key_value_types(pcoll.element_type)
            return pcoll | Map(self.add_timestamp_info).with_output_types(KV[key_type, Any])

    @with_input_types(Tuple[K, V])
    class WindowInValue(PTransform[Any, Any]):
        """Emits each KV with its value as a triple of the value, the element's timestamp and its window."""

        @staticmethod
        def add_window_info(
            element: tuple[Any, Any],
            timestamp: Timestamp = DoFn.TimestampParam,
            window: object = DoFn.WindowParam,
        ) -> TimestampedValue[Any]:
            """Returns the key and the triple, at the element's timestamp."""
            key, value = element
            return TimestampedValue((key, (value, timestamp, window)), timestamp)

        def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, tuple[V, Timestamp, Any]]]:
            key_type, value_type = key_value_types(pcoll.element_type)
            output_type = KV[key_type, Tuple[value_type, Timestamp, Any]]
            return pcoll | Map(self.add_window_info).with_output_types(output_type)


class ToString:
    """Converts elements to strings (Beam's ``ToString``).

    Example: ``pairs | ToString.Kvs()`` over ``("amy", 30)`` emits ``"amy,30"``.
    """

    @staticmethod
    def Element() -> PTransform[Any, Any]:
        """Converts each element with `str`."""
        return "ElementToString" >> Map(str).with_output_types(str)

    @staticmethod
    def Iterables(delimiter: str | None = None) -> Any:
        """Returns the parts of each element, an iterable, as text with a delimiter in between; by default a comma."""
        joined = Map(_joined_by("," if delimiter is None else delimiter))
        return "IterablesToString" >> joined.with_input_types(IterableHint[Any]).with_output_types(str)

    @staticmethod
    def Kvs(delimiter: str | None = None) -> Any:
        """Emits the key and the value as a string with a delimiter in between; the same as `Iterables`."""
        return ToString.Iterables(delimiter)


def _joined_by(delimiter: str) -> Callable[[Iterable[Any]], str]:
    return lambda parts: delimiter.join(map(str, parts))
