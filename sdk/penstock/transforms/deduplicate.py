"""Dropping duplicates within a window: `Deduplicate` and `DeduplicatePerKey` (Beam's module)."""

# These CombineFns take no further arguments, so their methods are narrower than those they override.
# mypy: disable-error-code="override"

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from penstock.coders import BooleanCoder
from penstock.construction.applicable import K, T, V
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.elements.bounded_window import TimestampedValue
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BaseTimer,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
)
from penstock.transforms.combining.combine import CombinePerKey
from penstock.transforms.combining.ready_combiners import pair_with_none
from penstock.transforms.elements.pardo import Map, ParDo
from penstock.typehints import KV, Tuple, with_input_types, with_output_types
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.timestamp import DurationTypes, Timestamp
from penstock.windows.time_domain import TimeDomain

__all__ = ["Deduplicate", "DeduplicatePerKey"]


class _WithDurations(PTransform[Any, Any]):
    def __init__(
        self,
        processing_time_duration: DurationTypes | None = None,
        event_time_duration: DurationTypes | None = None,
    ) -> None:
        super().__init__()
        if processing_time_duration is None and event_time_duration is None:
            name = type(self).__name__
            what = f"{name} requires at least processing_time_duration or event_time_duration."
            raise refusal(ValueError, what, hint="for example event_time_duration=3600")
        self.processing_time_duration = processing_time_duration
        self.event_time_duration = event_time_duration


@with_input_types(Tuple[K, V])
@with_output_types(Tuple[K, V])
class DeduplicatePerKey(_WithDurations):
    """Keeps one KV of each key and window: the earliest, with its timestamp (Beam's name).

    The durations say how long a key is remembered. While bounded input is read, neither clock moves, so a key is
    remembered until the end of its window. Of unbounded input, the KV that arrives first is kept.

    Args:
        processing_time_duration: For how long, by the wall clock, in seconds.
        event_time_duration: For how long, by event time, in seconds.

    Raises:
        ValueError: If both are missing.

    Example: ``events_by_id | DeduplicatePerKey(event_time_duration=3600)``.
    """

    def expand(self, pcoll: PCollection[tuple[K, V]]) -> PCollection[tuple[K, V]]:
        if not pcoll.is_bounded:
            kept = _First(self.processing_time_duration, self.event_time_duration)
            return pcoll | "First" >> ParDo(kept).with_output_types(pcoll.element_type)
        key_type, value_type = key_value_types(pcoll.element_type)
        timed_type = KV[key_type, Tuple[value_type, Timestamp]]
        return (
            pcoll
            | "AddTimestamp" >> Map(_with_timestamp).with_output_types(timed_type)
            | "Earliest" >> CombinePerKey(EarliestCombineFn()).with_output_types(timed_type)
            | "RestoreTimestamp" >> Map(_at_timestamp).with_output_types(KV[key_type, value_type])
        )


@with_input_types(T)
@with_output_types(T)
class Deduplicate(_WithDurations):
    """Keeps one of each element and window; arguments and limits are as in `DeduplicatePerKey` (Beam's name).

    Example: ``events | Deduplicate(processing_time_duration=600)``.
    """

    def expand(self, pcoll: PCollection[T]) -> PCollection[T]:
        element_type = pcoll.element_type
        per_key = DeduplicatePerKey(self.processing_time_duration, self.event_time_duration)
        return (
            pcoll
            | "Use Value as Key" >> Map(pair_with_none).with_output_types(KV[element_type, Any])
            | "DeduplicatePerKey" >> per_key
            | "Output Value" >> Map(itemgetter(0)).with_output_types(element_type)
        )


class EarliestCombineFn(CombineFn):
    """Combines pairs of a value and its timestamp to a pair with the earliest timestamp; None for no pairs."""

    def create_accumulator(self) -> tuple[Any, Any] | None:
        return None

    def add_input(self, accumulator: tuple[Any, Any] | None, element: tuple[Any, Any]) -> tuple[Any, Any]:
        return element if accumulator is None or element[1] < accumulator[1] else accumulator

    def merge_accumulators(self, accumulators: Iterable[tuple[Any, Any] | None]) -> tuple[Any, Any] | None:
        merged = None
        for accumulator in accumulators:
            if accumulator is not None:
                merged = self.add_input(merged, accumulator)
        return merged

    def extract_output(self, accumulator: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
        return accumulator


class _First(DoFn):
    """Passes the first KV of each key on, and the first after each time that the key is forgotten."""

    SEEN = ReadModifyWriteStateSpec("seen", BooleanCoder())
    BY_CLOCK = TimerSpec("forget by the clock", TimeDomain.REAL_TIME)
    BY_WATERMARK = TimerSpec("forget by the watermark", TimeDomain.WATERMARK)

    def __init__(
        self, processing_time_duration: DurationTypes | None, event_time_duration: DurationTypes | None
    ) -> None:
        self._processing_time_duration = processing_time_duration
        self._event_time_duration = event_time_duration

    def process(
        self,
        element: object,
        seen: ReadModifyWriteRuntimeState = DoFn.StateParam(SEEN),
        by_clock: BaseTimer = DoFn.TimerParam(BY_CLOCK),
        by_watermark: BaseTimer = DoFn.TimerParam(BY_WATERMARK),
    ) -> Iterator[Any]:
        if seen.read():
            return
        seen.write(True)
        if self._processing_time_duration is not None:
            by_clock.set_relative(self._processing_time_duration)
        if self._event_time_duration is not None:
            by_watermark.set_relative(self._event_time_duration)
        yield element

    @on_timer(BY_CLOCK)
    @on_timer(BY_WATERMARK)
    def forget(self, seen: ReadModifyWriteRuntimeState = DoFn.StateParam(SEEN)) -> None:
        seen.clear()


def _with_timestamp(element: tuple[Any, Any], timestamp: Timestamp = DoFn.TimestampParam) -> tuple[Any, Any]:
    key, value = element
    return key, (value, timestamp)


def _at_timestamp(element: tuple[Any, tuple[Any, Any]]) -> TimestampedValue[Any]:
    key, (value, timestamp) = element
    return TimestampedValue((key, value), timestamp)
