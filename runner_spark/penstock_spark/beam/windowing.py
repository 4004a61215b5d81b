"""Beam's windows and triggers in penstock's terms; an adapter calls a WindowFn of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from apache_beam.transforms import core as beam_core
from apache_beam.transforms import trigger as beam_trigger
from apache_beam.transforms import window as beam_window

from penstock.elements.bounded_window import BoundedWindow
from penstock.error import UnsupportedByRunner
from penstock.utils.timestamp import Timestamp
from penstock.windows import triggers
from penstock.windows.output_times import TimestampCombiner
from penstock.windows.window_fn import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    WindowFn,
)
from penstock.windows.windowing import Windowing
from penstock_spark.beam.values import (
    beam_time_of,
    beam_window_of,
    duration_of,
    time_of,
    window_of,
)

_COMBINERS: Mapping[Any, Any] = {
    beam_window.TimestampCombiner.OUTPUT_AT_EOW: TimestampCombiner.OUTPUT_AT_EOW,
    beam_window.TimestampCombiner.OUTPUT_AT_EARLIEST: TimestampCombiner.OUTPUT_AT_EARLIEST,
    beam_window.TimestampCombiner.OUTPUT_AT_LATEST: TimestampCombiner.OUTPUT_AT_LATEST,
    beam_window.TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED: (
        TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED
    ),
}
_MODES: Mapping[Any, triggers.AccumulationMode] = {
    beam_trigger.AccumulationMode.DISCARDING: triggers.AccumulationMode.DISCARDING,
    beam_trigger.AccumulationMode.ACCUMULATING: triggers.AccumulationMode.ACCUMULATING,
}


class WindowFnAdapter(WindowFn):
    """A WindowFn of a class that Beam does not define, or of a subclass of one that it does."""

    def __init__(self, windowfn: beam_window.WindowFn) -> None:
        self.windowfn = windowfn

    def __repr__(self) -> str:
        return type(self.windowfn).__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowFnAdapter) and bool(self.windowfn == other.windowfn)

    def __hash__(self) -> int:
        return hash(type(self.windowfn))

    def assign(self, assign_context: WindowFn.AssignContext) -> list[BoundedWindow]:
        window = None if assign_context.window is None else beam_window_of(assign_context.window)
        time = beam_time_of(assign_context.timestamp)
        context = beam_window.WindowFn.AssignContext(time, assign_context.element, window)
        return list(map(window_of, self.windowfn.assign(context)))

    def is_merging(self) -> bool:
        return bool(self.windowfn.is_merging())

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        self.windowfn.merge(_Merging(merge_context))

    def get_transformed_output_time(self, window: BoundedWindow, input_timestamp: Timestamp) -> Timestamp:
        time = self.windowfn.get_transformed_output_time(
            beam_window_of(window), beam_time_of(input_timestamp)
        )
        return time_of(time)


class _Merging(beam_window.WindowFn.MergeContext):  # type: ignore[misc]
    """The context that a Beam WindowFn sees while it merges."""

    def __init__(self, context: WindowFn.MergeContext) -> None:
        super().__init__(list(map(beam_window_of, context.windows)))
        self._context = context

    def merge(self, to_be_merged: Iterable[Any], merge_result: object) -> None:
        self._context.merge(list(map(window_of, to_be_merged)), window_of(merge_result))


def windowfn_of(windowfn: WindowFn) -> WindowFn:
    """Penstock's WindowFn for a Beam WindowFn."""
    match windowfn:
        case beam_window.GlobalWindows() if type(windowfn) is beam_window.GlobalWindows:
            return GlobalWindows()
        case beam_window.FixedWindows() if type(windowfn) is beam_window.FixedWindows:
            return FixedWindows(duration_of(windowfn.size), Timestamp.from_micros(windowfn.offset.micros))
        case beam_window.SlidingWindows() if type(windowfn) is beam_window.SlidingWindows:
            size, period = duration_of(windowfn.size), duration_of(windowfn.period)
            return SlidingWindows(size, period, Timestamp.from_micros(windowfn.offset.micros))
        case beam_window.Sessions() if type(windowfn) is beam_window.Sessions:
            return Sessions(duration_of(windowfn.gap_size))
    return WindowFnAdapter(windowfn)


_Translate = Callable[[Any, str], triggers.TriggerFn]


def _after_watermark(trigger: beam_trigger.TriggerFn, where: str) -> triggers.TriggerFn:
    # Beam keeps the triggers of early and late panes in `Repeatedly`, and takes False for none as well.
    parts = (trigger.early, trigger.late)
    early, late = (trigger_of(part.underlying, where) if part else None for part in parts)
    return triggers.AfterWatermark(early, late)


def _all_of(kind: Callable[..., triggers.TriggerFn]) -> _Translate:
    return lambda trigger, where: kind(*(trigger_of(part, where) for part in trigger.triggers))


def _after_all(trigger: beam_trigger.TriggerFn, where: str) -> triggers.TriggerFn:
    # In Beam, all of no triggers are always ready. Its tutorial says so for late panes.
    return _all_of(triggers.AfterAll)(trigger, where) if trigger.triggers else triggers.AfterCount(1)


_TRIGGERS: Mapping[type, _Translate] = {
    beam_trigger.DefaultTrigger: lambda *_: triggers.DefaultTrigger(),
    beam_trigger.Always: lambda *_: triggers.Always(),
    beam_trigger._Never: lambda *_: triggers._Never(),
    beam_trigger.AfterWatermark: _after_watermark,
    beam_trigger.AfterCount: lambda trigger, _: triggers.AfterCount(trigger.count),
    beam_trigger.AfterProcessingTime: lambda trigger, _: triggers.AfterProcessingTime(trigger.delay),
    beam_trigger._AfterSynchronizedProcessingTime: lambda *_: triggers.AfterSynchronizedProcessingTime(),
    beam_trigger.Repeatedly: lambda trigger, where: triggers.Repeatedly(
        trigger_of(trigger.underlying, where)
    ),
    beam_trigger.AfterAny: _all_of(triggers.AfterAny),
    beam_trigger.AfterAll: _after_all,
    beam_trigger.AfterEach: _all_of(triggers.AfterEach),
    beam_trigger.OrFinally: _all_of(triggers.OrFinally),
}


def trigger_of(trigger: beam_trigger.TriggerFn, where: str) -> triggers.TriggerFn:
    """Penstock's trigger for a Beam trigger; `where` says whose it is.

    Raises:
        UnsupportedByRunner: If Beam does not define the trigger's class.

    >>> trigger_of(beam_trigger.Repeatedly(beam_trigger.AfterCount(3)), "here")
    Repeatedly(AfterCount(3))
    """
    translate = _TRIGGERS.get(type(trigger))
    if translate is None:
        what = f"the runner does not know the trigger {type(trigger).__name__}"
        hint = (
            "combine Beam's own triggers, or write the pipeline with penstock and derive from CustomTrigger"
        )
        raise UnsupportedByRunner(what, where=where, hint=hint)
    return translate(trigger, where)


def windowing_of(windowing: beam_core.Windowing, where: str) -> Windowing:
    """Penstock's windowing for a Beam windowing; `where` says whose it is."""
    return Windowing(
        windowfn_of(windowing.windowfn),
        trigger_of(windowing.triggerfn, where),
        _MODES.get(windowing.accumulation_mode),
        _COMBINERS[windowing.timestamp_combiner],
        duration_of(windowing.allowed_lateness),
    )
