"""A custom trigger as a state machine: the user's state, and its timers beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from penstock.elements.bounded_window import BoundedWindow
from penstock.error import refusal
from penstock.machines.records import Element
from penstock.machines.trigger_machine import (
    CLOCK,
    WATERMARK,
    Alarm,
    Domain,
    TriggerMachine,
    WindowStatus,
    select_unfinished,
)
from penstock.utils.timestamp import Timestamp, TimestampTypes
from penstock.windows.custom_trigger import CustomTrigger, TriggerContext, TriggerElement, TriggerTimer
from penstock.windows.time_domain import TimeDomain
from penstock.windows.triggers import FINISHED

_TIME_DOMAINS: dict[Domain, str] = {CLOCK: TimeDomain.REAL_TIME, WATERMARK: TimeDomain.WATERMARK}

Timers = tuple[Alarm, ...]
_State = tuple[Any, Timers]
"""The value that the user's methods return, and the timers that are set."""


class _Context(TriggerContext):
    """The context that the user's methods see, and in which they set timers."""

    def __init__(self, status: WindowStatus, timers: Timers) -> None:
        self.status = status
        self.timers = dict(timers)

    @property
    def window(self) -> BoundedWindow:
        return self.status.window

    @property
    def watermark(self) -> Timestamp:
        return Timestamp.from_micros(self.status.times.watermark_micros)

    @property
    def clock(self) -> Timestamp:
        return Timestamp.from_micros(self.status.times.clock_micros)

    @property
    def count(self) -> int:
        return self.status.fresh

    @property
    def value(self) -> object:
        return self.status.value()

    @property
    def last_value(self) -> object:
        return self.status.last_value(None)

    def set_timer(self, timestamp: TimestampTypes, time_domain: str = TimeDomain.REAL_TIME) -> None:
        """Sets the domain's timer; a timer in the past fires as soon as its clock advances."""
        domain = WATERMARK if TimeDomain.is_event_time(time_domain) else CLOCK
        now = self.status.due_micros if domain == CLOCK else self.status.times.watermark_micros
        self.timers[domain] = max(Timestamp.of(timestamp).micros, now + 1)

    def and_timers(self, state: object) -> _State:
        """Returns a state of the user's and the present timers; refuses FINISHED, which would lose unfired elements."""
        if state is FINISHED:
            what = "a custom trigger has finished, but has not fired"
            raise refusal(ValueError, what, hint="return FINISHED from on_fire only")
        return state, tuple(self.timers.items())


@dataclass(frozen=True)
class CustomMachine(TriggerMachine):
    """A `CustomTrigger` as a state machine."""

    trigger: CustomTrigger
    heeds_elements = True
    fires_on_elements = True

    def start(self) -> _State:
        return self.trigger.start(), ()

    def element(self, state: _State, element: Element, status: WindowStatus) -> _State:
        context = _Context(status, state[1])
        seen = TriggerElement(element.value, Timestamp.from_micros(element.timestamp_micros), element.kind)
        return context.and_timers(self.trigger.on_element(state[0], seen, context))

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """The user's ``on_merge`` of the states that have not finished; keeps the earliest timer of each domain."""
        waiting: list[_State] = list(select_unfinished(states))
        if not waiting:
            return FINISHED
        alarms = (alarm for _, timers in waiting for alarm in timers)
        latest_first = sorted(alarms, key=itemgetter(1), reverse=True)
        context = _Context(status, tuple(dict(latest_first).items()))
        return context.and_timers(self.trigger.on_merge([state for state, _ in waiting], context))

    def wake(self, state: _State, status: WindowStatus) -> _State:
        own, timers = state
        context = _Context(status, timers)
        for domain, micros in timers:
            now = status.due_micros if domain == CLOCK else status.times.watermark_micros
            if micros <= now:
                del context.timers[domain]
                timer = TriggerTimer(Timestamp.from_micros(micros), _TIME_DOMAINS[domain])
                own = self.trigger.on_timer(own, timer, context)
        return context.and_timers(own)

    def should_fire(self, state: _State, status: WindowStatus) -> bool:
        return bool(self.trigger.should_fire(state[0], _Context(status, state[1])))

    def fire(self, state: _State, status: WindowStatus) -> object:
        context = _Context(status, state[1])
        fired = self.trigger.on_fire(state[0], context)
        return FINISHED if fired is FINISHED else context.and_timers(fired)

    def alarms(self, state: _State, status: WindowStatus) -> Iterable[Alarm]:
        return state[1]
