"""Turns the description of a trigger into its state machine."""

from __future__ import annotations

from penstock.coders.registered_pickles import dumps
from penstock.error import refusal
from penstock.machines import simple_triggers as simple
from penstock.machines.composite_triggers import (
    AfterAllMachine,
    AfterAnyMachine,
    AfterEachMachine,
    AfterWatermarkMachine,
    RepeatedlyMachine,
)
from penstock.machines.custom_triggers import CustomMachine
from penstock.machines.trigger_machine import TriggerMachine
from penstock.windows import triggers as descriptions
from penstock.windows.custom_trigger import CustomTrigger


def machine_of(trigger: descriptions.TriggerFn) -> TriggerMachine:
    """Returns the state machine of a trigger.

    >>> machine_of(descriptions.Repeatedly(descriptions.AfterCount(3)))
    RepeatedlyMachine(part=AfterCountMachine(enough=3, weight=None))
    """
    match trigger:
        case descriptions.Repeatedly(underlying):
            return RepeatedlyMachine(machine_of(underlying))
        case descriptions.AfterWatermark(early, late):
            return _after_watermark(early, late)
        case descriptions.AfterEach(triggers):
            return AfterEachMachine(tuple(map(machine_of, triggers)))
        case descriptions.AfterAll(triggers):
            return AfterAllMachine(tuple(map(machine_of, triggers)))
        case descriptions.AfterAny(triggers):
            return AfterAnyMachine(tuple(map(machine_of, triggers)))
        case CustomTrigger():
            return CustomMachine(trigger)
    return _simple(trigger)


def _after_watermark(
    early: descriptions.TriggerFn | None, late: descriptions.TriggerFn | None
) -> TriggerMachine:
    if early is None and late is None:
        return simple.EndOfWindowMachine()
    before = simple.NeverMachine() if early is None else machine_of(early)
    return AfterWatermarkMachine(before, None if late is None else machine_of(late))


def _simple(trigger: descriptions.TriggerFn) -> TriggerMachine:
    match trigger:
        case descriptions.DefaultTrigger():
            return RepeatedlyMachine(simple.EndOfWindowMachine())
        case descriptions.AfterWatermarkPercentile(percentile):
            return simple.EndOfWindowMachine(percentile)
        case descriptions.AfterCount(count):
            return simple.AfterCountMachine(count)
        case descriptions.AfterArrival():
            return simple.AfterArrivalMachine()
        case descriptions.AfterBytes(size_bytes, size_of):
            return simple.AfterCountMachine(size_bytes, size_of or _pickled_bytes)
        case descriptions.AfterProcessingTime():
            return simple.AfterProcessingTimeMachine(trigger.delay_micros)
        case descriptions.AfterAlignedProcessingTime():
            return simple.AfterProcessingTimeMachine(0, trigger.period_micros, trigger.offset_micros)
        case descriptions.AfterSynchronizedProcessingTime():
            return simple.AfterProcessingTimeMachine()
        case descriptions.AfterPunctuation(predicate):
            return simple.AfterPunctuationMachine(predicate)
        case descriptions.AfterPattern(predicates):
            return simple.AfterPatternMachine(predicates, trigger.contiguous)
        case descriptions.AfterDelta():
            return simple.AfterDeltaMachine(trigger.threshold, trigger.initial, trigger.measure)
        case descriptions.AfterSignal(name):
            return simple.AfterSignalMachine(name)
        case descriptions.Always():
            return simple.AlwaysMachine()
        case descriptions.Never():
            return simple.NeverMachine()
    what = f"the trigger {type(trigger).__name__} has no state machine"
    raise refusal(TypeError, what, hint="derive your own triggers from CustomTrigger")


def _pickled_bytes(value: object) -> int:
    return len(dumps(value))


_LOOKING = (descriptions.AfterDelta, CustomTrigger)


def looks_at_last_pane(trigger: descriptions.TriggerFn) -> bool:
    """True if a trigger, or a part of it, may ask what the last pane held.

    >>> looks_at_last_pane(descriptions.AfterCount(3))
    False
    """
    return any(isinstance(part, _LOOKING) for part in descriptions.walk_parts(trigger))


def waits_for_arrivals(trigger: descriptions.TriggerFn) -> bool:
    """True if a trigger, or a part of it, fires once for all elements of one logical time.

    >>> waits_for_arrivals(descriptions.Repeatedly(descriptions.AfterArrival()))
    True
    """
    return any(isinstance(part, descriptions.AfterArrival) for part in descriptions.walk_parts(trigger))


_CLOCKED = (
    descriptions.AfterProcessingTime,
    descriptions.AfterAlignedProcessingTime,
    descriptions.AfterSynchronizedProcessingTime,
    CustomTrigger,
)


def may_wait_for_clock(trigger: descriptions.TriggerFn) -> bool:
    """True if a trigger, or a part of it, may fire because the clock advances; a trigger of the user's own may.

    >>> from penstock.windows.triggers import AfterCount, AfterProcessingTime, AfterWatermark
    >>> may_wait_for_clock(AfterWatermark(early=AfterProcessingTime(5))), may_wait_for_clock(AfterCount(5))
    (True, False)
    """
    return any(isinstance(part, _CLOCKED) for part in descriptions.walk_parts(trigger))
