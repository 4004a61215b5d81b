"""From a trigger's description to its state machine."""

from __future__ import annotations

from typing import Any

from penstock.coders.registered_pickles import dumps
from penstock.error import three_parts
from penstock.machines import simple_triggers as simple
from penstock.machines.composite_triggers import AllOf, AnyOf, EarlyAndLate, InTurn, Repeat
from penstock.machines.custom_triggers import Custom
from penstock.machines.trigger_machine import TriggerMachine
from penstock.windows import watermark_triggers as described
from penstock.windows.trigger_walks import every_part


def machine_of(trigger: described.TriggerFn) -> TriggerMachine:
    """The state machine of a trigger.

    Raises:
        TypeError: There is none for this class.

    >>> machine_of(described.Repeatedly(described.AfterCount(3)))
    Repeat(part=Total(enough=3, weight=None))
    """
    match trigger:
        case described.Repeatedly(underlying):
            return Repeat(machine_of(underlying))
        case described.AfterWatermark(early, late):
            return _after_watermark(early, late)
        case described.AfterEach(triggers):
            return InTurn(tuple(map(machine_of, triggers)))
        case described.AfterAll(triggers):
            return AllOf(tuple(map(machine_of, triggers)))
        case described.AfterAny(triggers):
            return AnyOf(tuple(map(machine_of, triggers)))
        case described.CustomTrigger():
            return Custom(trigger)
    return _simple(trigger)


def _after_watermark(early: described.TriggerFn | None, late: described.TriggerFn | None) -> TriggerMachine:
    if early is None and late is None:
        return simple.EndOfWindow()
    before = simple.Never() if early is None else machine_of(early)
    return EarlyAndLate(before, None if late is None else machine_of(late))


def _simple(trigger: described.TriggerFn) -> TriggerMachine:
    match trigger:
        case described.DefaultTrigger():
            return Repeat(simple.EndOfWindow())
        case described.AfterWatermarkPercentile(percentile):
            return simple.EndOfWindow(percentile)
        case described.AfterCount(count):
            return simple.Total(count)
        case described.AfterBytes(size_bytes, size_of):
            return simple.Total(size_bytes, size_of or _pickled_bytes)
        case described.AfterProcessingTime():
            return simple.ClockDelay(trigger.delay_micros)
        case described.AfterAlignedProcessingTime():
            return simple.ClockDelay(0, trigger.period_micros, trigger.offset_micros)
        case described.AfterSynchronizedProcessingTime():
            return simple.ClockDelay()
        case described.AfterPunctuation(predicate):
            return simple.Punctuation(predicate)
        case described.AfterPattern(predicates):
            return simple.Pattern(predicates, trigger.contiguous)
        case described.AfterDelta():
            return simple.Delta(trigger.threshold, trigger.initial, trigger.measure)
        case described.AfterSignal(name):
            return simple.ExternalSignal(name)
        case described.Always():
            return simple.Always()
        case described.Never():
            return simple.Never()
    raise TypeError(
        three_parts(
            f"there is no state machine for the trigger {type(trigger).__name__}",
            hint="derive triggers of your own from CustomTrigger",
        )
    )


def _pickled_bytes(value: Any) -> int:
    return len(dumps(value))


def looks_at_last_pane(trigger: described.TriggerFn) -> bool:
    """Whether a trigger, or a part of it, may ask what the last pane held.

    >>> looks_at_last_pane(described.AfterCount(3))
    False
    """
    return any(
        isinstance(part, described.AfterDelta | described.CustomTrigger) for part in every_part(trigger)
    )
