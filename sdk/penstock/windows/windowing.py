"""Describes how a PCollection is windowed and triggered: where in event time, when, and how results refine."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from penstock.error import refusal
from penstock.utils.timestamp import Duration
from penstock.windows.output_times import TimestampCombiner, output_times_of
from penstock.windows.triggers import (
    AccumulationMode,
    AfterWatermark,
    ClosingBehavior,
    DefaultTrigger,
    OnTimeBehavior,
    TriggerFn,
)
from penstock.windows.window_fn import GlobalWindows, WindowFn


@dataclass(frozen=True, init=False)
class Windowing:
    """Describes where in event time results are computed, when they are emitted, and how they refine each other.

    Attributes:
        windowfn: Assigns elements to windows.
        triggerfn: When results are emitted; by default when the watermark passes the window's end.
        accumulation_mode: How a later pane relates to earlier ones; discarding for the default trigger.
        timestamp_combiner: The timestamp of a result; by default the end of its window.
        allowed_lateness: How long after its end a window takes elements, as a `Duration`; given in seconds.
        on_time_behavior: Whether a window without new elements fires a pane at its end; by default it does.
        closing_behavior: Whether it fires one at the time at which it closes; by default it does not.

    >>> default_windowing().is_default()
    True
    """

    windowfn: Any
    triggerfn: TriggerFn
    accumulation_mode: Any
    timestamp_combiner: Any
    allowed_lateness: Duration
    on_time_behavior: OnTimeBehavior
    closing_behavior: ClosingBehavior

    def __init__(
        self,
        windowfn: WindowFn,
        triggerfn: TriggerFn | None = None,
        accumulation_mode: object = None,
        timestamp_combiner: Any = None,
        allowed_lateness: Any = 0,
        environment_id: str | None = None,
        *,
        on_time_behavior: OnTimeBehavior | None = None,
        closing_behavior: ClosingBehavior | None = None,
    ) -> None:
        triggerfn = DefaultTrigger() if triggerfn is None else triggerfn
        _check_is(triggerfn, TriggerFn, "the trigger", "AfterCount(100)")
        lateness = Duration.of(allowed_lateness)
        if lateness.micros < 0:
            what = f"the allowed lateness is {allowed_lateness!r} seconds"
            raise refusal(ValueError, what, hint="pass 0 or more")
        on_time_behavior = on_time_behavior or OnTimeBehavior.FIRE_ALWAYS
        _check_is(
            on_time_behavior, OnTimeBehavior, "the on-time behavior", "OnTimeBehavior.FIRE_IF_NON_EMPTY"
        )
        closing_behavior = closing_behavior or ClosingBehavior.FIRE_IF_NON_EMPTY
        _check_is(closing_behavior, ClosingBehavior, "the closing behavior", "ClosingBehavior.FIRE_ALWAYS")
        set_field = functools.partial(object.__setattr__, self)
        set_field("windowfn", windowfn)
        set_field("triggerfn", triggerfn)
        set_field("accumulation_mode", _accumulation_mode(accumulation_mode, triggerfn))
        timestamp_combiner = timestamp_combiner or TimestampCombiner.OUTPUT_AT_EOW
        output_times_of(timestamp_combiner, windowfn)  # Refuses what is not a constant.
        set_field("timestamp_combiner", timestamp_combiner)
        set_field("allowed_lateness", lateness)
        set_field("on_time_behavior", on_time_behavior)
        set_field("closing_behavior", closing_behavior)

    @property
    def fires_once(self) -> bool:
        """True if each window fires one pane, if a run waits for the watermark.

        In the mode ``micro_batch`` every round that changes a window fires it.

        >>> Windowing(GlobalWindows()).fires_once, Windowing(GlobalWindows(), allowed_lateness=60).fires_once
        (True, False)
        """
        return self.triggerfn in (DefaultTrigger(), AfterWatermark()) and not self.allowed_lateness.micros

    def is_default(self) -> bool:
        """True if everything is at its default, in global windows."""
        return self == default_windowing()

    def after_grouping(self) -> Windowing:
        """Returns the windowing of a grouping's output: the same, with the trigger's continuation."""
        continuation = self.triggerfn.get_continuation_trigger()
        if continuation == self.triggerfn:
            return self
        return replace(self, triggerfn=continuation)


def _check_is(value: object, expected: type, name: str, example: str) -> None:
    if not isinstance(value, expected):
        what = f"{name} must be of type {expected.__name__}, not {value!r}"
        raise refusal(TypeError, what, hint=f"write {example}")


def _accumulation_mode(mode: Any, trigger: TriggerFn) -> AccumulationMode:
    """The given mode, or the default, which only the default trigger has."""
    if mode is None and trigger == DefaultTrigger():
        return AccumulationMode.DISCARDING
    if mode not in tuple(AccumulationMode):
        what = "accumulation_mode must be provided for non-trivial triggers"
        what = what if mode is None else f"the accumulation mode {mode!r} is unknown"
        hint = "pass AccumulationMode.DISCARDING or AccumulationMode.ACCUMULATING"
        raise refusal(ValueError, what, hint=hint)
    return AccumulationMode(mode)


@functools.cache
def default_windowing() -> Windowing:
    """Returns the global window, the default trigger, discarding, results at the window's end, no lateness."""
    return Windowing(GlobalWindows())
