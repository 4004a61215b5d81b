"""Turns the description of a trigger into its state machine."""

from __future__ import annotations

from typing import Any

from penstock.coders.registered_pickles import dumps
from penstock.error import refusal
from penstock.machines import simple_triggers as simple
from penstock.machines.composite_triggers import AllOf, AnyOf, EarlyAndLate, InTurn, Repeat
from penstock.machines.custom_triggers import Custom
from penstock.machines.trigger_machine import TriggerMachine
from penstock.windows.custom_trigger import CustomTrigger
from penstock.windows.triggers import (
    AfterAlignedProcessingTime,
    AfterAll,
    AfterAny,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterEach,
    AfterPattern,
    AfterProcessingTime,
    AfterPunctuation,
    AfterSignal,
    AfterSynchronizedProcessingTime,
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    DefaultTrigger,
    Never,
    Repeatedly,
    TriggerFn,
    every_part,
)


def machine_of(trigger: TriggerFn) -> TriggerMachine:
    """The state machine of a trigger.

    >>> machine_of(Repeatedly(AfterCount(3)))
    Repeat(part=Total(enough=3, weight=None))
    """
    match trigger:
        case Repeatedly(underlying):
            return Repeat(machine_of(underlying))
        case AfterWatermark(early, late):
            return _after_watermark(early, late)
        case AfterEach(triggers):
            return InTurn(tuple(map(machine_of, triggers)))
        case AfterAll(triggers):
            return AllOf(tuple(map(machine_of, triggers)))
        case AfterAny(triggers):
            return AnyOf(tuple(map(machine_of, triggers)))
        case CustomTrigger():
            return Custom(trigger)
    return _simple(trigger)


def _after_watermark(early: TriggerFn | None, late: TriggerFn | None) -> TriggerMachine:
    if early is None and late is None:
        return simple.EndOfWindow()
    before = simple.Never() if early is None else machine_of(early)
    return EarlyAndLate(before, None if late is None else machine_of(late))


def _simple(trigger: TriggerFn) -> TriggerMachine:
    match trigger:
        case DefaultTrigger():
            return Repeat(simple.EndOfWindow())
        case AfterWatermarkPercentile(percentile):
            return simple.EndOfWindow(percentile)
        case AfterCount(count):
            return simple.Total(count)
        case AfterBytes(size_bytes, size_of):
            return simple.Total(size_bytes, size_of or _pickled_bytes)
        case AfterProcessingTime():
            return simple.ClockDelay(trigger.delay_micros)
        case AfterAlignedProcessingTime():
            return simple.ClockDelay(0, trigger.period_micros, trigger.offset_micros)
        case AfterSynchronizedProcessingTime():
            return simple.ClockDelay()
        case AfterPunctuation(predicate):
            return simple.Punctuation(predicate)
        case AfterPattern(predicates):
            return simple.Pattern(predicates, trigger.contiguous)
        case AfterDelta():
            return simple.Delta(trigger.threshold, trigger.initial, trigger.measure)
        case AfterSignal(name):
            return simple.ExternalSignal(name)
        case Always():
            return simple.Always()
        case Never():
            return simple.Never()
    what = f"the trigger {type(trigger).__name__} has no state machine"
    raise refusal(TypeError, what, hint="derive your own triggers from CustomTrigger")


def _pickled_bytes(value: Any) -> int:
    return len(dumps(value))


def looks_at_last_pane(trigger: TriggerFn) -> bool:
    """Whether a trigger, or a part of it, may ask what the last pane held.

    >>> looks_at_last_pane(AfterCount(3))
    False
    """
    return any(isinstance(part, AfterDelta | CustomTrigger) for part in every_part(trigger))
