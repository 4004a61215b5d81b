"""Triggers without parts, as state machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from penstock.machines.records import Element
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Alarm, TriggerMachine, WindowStatus
from penstock.windows.triggers import FINISHED


@dataclass(frozen=True)
class NeverMachine(TriggerMachine):
    """Does not fire: the elements come out when the window closes."""

    tells_one_from_many = False

    def should_fire(self, state: object, status: WindowStatus) -> bool:
        return False


@dataclass(frozen=True)
class AlwaysMachine(NeverMachine):
    """Fires whenever it is asked, forever."""

    heeds_elements = True
    fires_on_elements = True
    tells_one_from_many = True

    def should_fire(self, state: object, status: WindowStatus) -> bool:
        return True

    def fire(self, state: object, status: WindowStatus) -> object:
        return state


@dataclass(frozen=True)
class EndOfWindowMachine(TriggerMachine):
    """Fires when the watermark, or the one of a percentile, passes the end of the window (paper, section 2.3)."""

    percentile: float = WATERMARK
    tells_one_from_many = False

    def __post_init__(self) -> None:
        # A percentile may have passed the end long before the watermark, and then an element fires at once.
        object.__setattr__(self, "heeds_elements", self.percentile != WATERMARK)

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Returns FINISHED if all states are finished and the merged window has also ended."""
        finished = all(state is FINISHED for state in states) and self.should_fire(None, status)
        return FINISHED if finished else None

    def should_fire(self, state: object, status: WindowStatus) -> bool:
        return status.times.percentile(self.percentile) >= status.window.end_micros

    def alarms(self, state: object, status: WindowStatus) -> Iterable[Alarm]:
        """The end of the window, if a percentile may reach it before the watermark."""
        return () if self.percentile == WATERMARK else ((self.percentile, status.window.end_micros),)


@dataclass(frozen=True)
class AfterCountMachine(TriggerMachine):
    """Fires when the weights of its elements, by default 1 each, add up to enough. The state is the total."""

    enough: int
    weight: Callable[[Any], int] | None = None
    heeds_elements = True
    fires_on_elements = True

    def start(self) -> int:
        return 0

    def element(self, state: int, element: Element, status: WindowStatus) -> int:
        """Adds the weight of the element; a retraction is an element like any other."""
        return state + (1 if self.weight is None else self.weight(element.value))

    def merged(self, states: list[int]) -> int:
        return sum(states)

    def should_fire(self, state: int, status: WindowStatus) -> bool:
        return state >= self.enough


@dataclass(frozen=True)
class AfterArrivalMachine(AfterCountMachine):
    """Fires when something has arrived, once for all elements of one logical time."""

    enough: int = 1
    tells_one_from_many = False


@dataclass(frozen=True)
class AfterProcessingTimeMachine(TriggerMachine):
    """Fires some processing time after the first element. The state is the time when it is due, or None.

    With a period, it fires at the first multiple of the period, counted from the offset, that is not earlier.
    """

    delay_micros: int = 0
    period_micros: int = 0
    offset_micros: int = 0
    heeds_elements = True
    tells_one_from_many = False

    def element(self, state: int | None, element: Element, status: WindowStatus) -> int:
        return self.due_micros(status.times.clock_micros) if state is None else state

    def due_micros(self, clock_micros: int) -> int:
        """Returns when the trigger is due after a first element that arrives at `clock_micros`."""
        due = clock_micros + self.delay_micros
        return due + (self.offset_micros - due) % self.period_micros if self.period_micros else due

    def merged(self, states: list[int | None]) -> int | None:
        """Returns the earliest time."""
        return min((due for due in states if due is not None), default=None)

    def should_fire(self, state: int | None, status: WindowStatus) -> bool:
        return state is not None and state <= status.due_micros

    def alarms(self, state: int | None, status: WindowStatus) -> Iterable[Alarm]:
        return () if state is None else ((CLOCK, state),)


@dataclass(frozen=True)
class _Event(TriggerMachine):
    """Fires when something has happened. The state is whether it has."""

    def start(self) -> bool:
        return False

    def merged(self, states: list[bool]) -> bool:
        return any(states)

    def should_fire(self, state: bool, status: WindowStatus) -> bool:
        return state


@dataclass(frozen=True)
class AfterPunctuationMachine(_Event):
    """Fires when the value of an element satisfies a predicate."""

    predicate: Callable[[Any], Any]
    heeds_elements = True
    fires_on_elements = True

    def element(self, state: bool, element: Element, status: WindowStatus) -> bool:
        """Asks the predicate; a retraction does not punctuate."""
        return state or (not element.kind.is_retraction and bool(self.predicate(element.value)))


@dataclass(frozen=True)
class AfterPatternMachine(TriggerMachine):
    """Fires when values satisfy predicates one after the other, in the order of arrival.

    The state is a number whose bit n says that the first n + 1 predicates have been satisfied: by the elements just
    before if the pattern is `contiguous`, otherwise by any before.
    """

    predicates: tuple[Callable[[Any], Any], ...]
    contiguous: bool = False  # Whether no other element may come between.
    heeds_elements = True
    fires_on_elements = True

    def start(self) -> int:
        return 0

    def element(self, state: int, element: Element, status: WindowStatus) -> int:
        """Extends each begun pattern by this element, if it satisfies the pattern's next predicate."""
        if element.kind.is_retraction or self.should_fire(state, status):
            return state
        begun = state << 1 | 1
        grown = sum(
            1 << number
            for number, predicate in enumerate(self.predicates)
            if begun >> number & 1 and predicate(element.value)
        )
        return grown if self.contiguous else state | grown

    def merged(self, states: list[int]) -> int:
        """Everything that any of the windows has seen."""
        return reduce(or_, states)

    def should_fire(self, state: int, status: WindowStatus) -> bool:
        return bool(state >> (len(self.predicates) - 1))


@dataclass(frozen=True)
class AfterDeltaMachine(TriggerMachine):
    """Fires whenever the value is more than a threshold away from the last pane's value, forever.

    The initial value stands in for the last pane's before the first pane, and where windows keep nothing.
    """

    threshold: object
    initial: object
    distance: Callable[[Any, Any], Any]
    heeds_elements = True
    fires_on_elements = True

    def should_fire(self, state: object, status: WindowStatus) -> bool:
        if not status.fresh:
            return False
        before = status.last_value(self.initial) if status.keeps else self.initial
        return bool(self.distance(before, status.value()) > self.threshold)

    def fire(self, state: object, status: WindowStatus) -> object:
        return state


@dataclass(frozen=True)
class AfterSignalMachine(_Event):
    """Fires when a named signal has arrived from outside."""

    name: str
    tells_one_from_many = False

    def signal(self, state: bool, name: str) -> bool:
        return state or name == self.name
