"""Triggers without parts, as state machines: each fires once, and is then finished, unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.machines.records import Element
from penstock.machines.trigger_machine import (
    CLOCK,
    WATERMARK,
    Alarm,
    TriggerMachine,
    WindowStatus,
    unfinished,
)
from penstock.windows.triggers import FINISHED


@dataclass(frozen=True)
class Never(TriggerMachine):
    """Does not fire: what is there comes when the window closes."""

    tells_one_from_many = False

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Nothing to keep."""
        return None

    def should_fire(self, state: Any, status: WindowStatus) -> bool:
        """No."""
        return False

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """The same."""
        return state


@dataclass(frozen=True)
class Always(Never):
    """Fires whenever it is asked, without end."""

    heeds_elements = True
    fires_on_elements = True
    tells_one_from_many = True

    def should_fire(self, state: Any, status: WindowStatus) -> bool:
        """Yes."""
        return True


@dataclass(frozen=True)
class EndOfWindow(TriggerMachine):
    """Fires when the watermark, or that of a percentile, passes the end of the window (paper, section 2.3).

    Attributes:
        percentile: In (0, 1]; 1 for the watermark itself.
    """

    percentile: float = WATERMARK
    tells_one_from_many = False

    def __post_init__(self) -> None:
        # A percentile may have passed the end long before the watermark, and then an element fires at once.
        object.__setattr__(self, "heeds_elements", self.percentile != WATERMARK)

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Finished if all are and the new end has been passed as well."""
        finished = all(state is FINISHED for state in states) and self.should_fire(None, status)
        return FINISHED if finished else None

    def should_fire(self, state: Any, status: WindowStatus) -> bool:
        """Whether that watermark has passed the end."""
        return status.times.percentile(self.percentile) >= status.window.end_micros

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """Finished."""
        return FINISHED

    def alarms(self, state: Any, status: WindowStatus) -> Iterable[Alarm]:
        """The end of the window, where a percentile may come to it before the watermark."""
        return () if self.percentile == WATERMARK else ((self.percentile, status.window.end_micros),)


@dataclass(frozen=True)
class Total(TriggerMachine):
    """Fires when its elements weigh enough together: counts and bytes. The state is the total.

    Attributes:
        enough: The least total that fires.
        weight: The weight of a value; 1 without it.
    """

    enough: int
    weight: Callable[[Any], int] | None = None
    heeds_elements = True
    fires_on_elements = True

    def start(self) -> int:
        """0."""
        return 0

    def element(self, state: int, element: Element, status: WindowStatus) -> int:
        """The total with one more element; a retraction is an element like any other."""
        return state + (1 if self.weight is None else self.weight(element.value))

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """The sum, of those that have not fired."""
        totals = list(unfinished(states))
        return sum(totals) if totals else FINISHED

    def should_fire(self, state: int, status: WindowStatus) -> bool:
        """Whether the total is enough."""
        return state >= self.enough

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """Finished."""
        return FINISHED


@dataclass(frozen=True)
class ClockDelay(TriggerMachine):
    """Fires some processing time after the first element. The state is the moment it is due, or None.

    Attributes:
        delay_micros: How long after.
        period_micros: With 0, just then; otherwise at the next multiple of this period, or at that moment if it is one.
        offset_micros: What the multiples are counted from.
    """

    delay_micros: int = 0
    period_micros: int = 0
    offset_micros: int = 0
    heeds_elements = True
    tells_one_from_many = False

    def element(self, state: int | None, element: Element, status: WindowStatus) -> int:
        """The first element sets the moment."""
        return self.due_micros(status.times.clock_micros) if state is None else state

    def due_micros(self, clock_micros: int) -> int:
        """The moment that a first element sets, from when it arrives."""
        due = clock_micros + self.delay_micros
        return due + (self.offset_micros - due) % self.period_micros if self.period_micros else due

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """The earliest moment, of those that have not fired."""
        waiting = list(unfinished(states))
        if not waiting:
            return FINISHED
        return min((due for due in waiting if due is not None), default=None)

    def should_fire(self, state: int | None, status: WindowStatus) -> bool:
        """Whether the moment has come."""
        return state is not None and state <= status.due_micros

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """Finished."""
        return FINISHED

    def alarms(self, state: int | None, status: WindowStatus) -> Iterable[Alarm]:
        """The moment."""
        return () if state is None else ((CLOCK, state),)


@dataclass(frozen=True)
class Punctuation(TriggerMachine):
    """Fires when an element satisfies a predicate. The state is whether one has.

    Attributes:
        predicate: Asked about each value.
    """

    predicate: Callable[[Any], Any]
    heeds_elements = True
    fires_on_elements = True

    def start(self) -> bool:
        """Not yet."""
        return False

    def element(self, state: bool, element: Element, status: WindowStatus) -> bool:
        """Whether this element or one before does; retractions punctuate nothing."""
        return state or (not element.kind.is_retraction and bool(self.predicate(element.value)))

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Whether any has, of those that have not fired."""
        waiting = list(unfinished(states))
        return any(waiting) if waiting else FINISHED

    def should_fire(self, state: bool, status: WindowStatus) -> bool:
        """Whether an element did."""
        return state

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """Finished."""
        return FINISHED


@dataclass(frozen=True)
class Pattern(TriggerMachine):
    """Fires when elements satisfy predicates one after the other, in the order they arrive.

    The state is a number whose bit n says that the first n + 1 predicates have been satisfied: by the elements just
    before if they must be `contiguous`, otherwise by any before.

    Attributes:
        predicates: Asked about values.
        contiguous: Whether no other element may come between.
    """

    predicates: tuple[Callable[[Any], Any], ...]
    contiguous: bool = False
    heeds_elements = True
    fires_on_elements = True

    def start(self) -> int:
        """No predicate is satisfied."""
        return 0

    def element(self, state: int, element: Element, status: WindowStatus) -> int:
        """Each beginning of the pattern grows by this element, if its next predicate is satisfied."""
        if element.kind.is_retraction or self.should_fire(state, status):
            return state
        begun = state << 1 | 1
        grown = sum(
            1 << number
            for number, predicate in enumerate(self.predicates)
            if begun >> number & 1 and predicate(element.value)
        )
        return grown if self.contiguous else state | grown

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """What any has come to, of those that have not fired."""
        waiting = list(unfinished(states))
        if not waiting:
            return FINISHED
        merged = 0
        for state in waiting:
            merged |= state
        return merged

    def should_fire(self, state: int, status: WindowStatus) -> bool:
        """Whether the last predicate is satisfied."""
        return bool(state >> (len(self.predicates) - 1))

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """Finished."""
        return FINISHED


@dataclass(frozen=True)
class Delta(TriggerMachine):
    """Fires whenever the accumulated value is more than a threshold away from that of the last pane, without end.

    Attributes:
        threshold: That distance.
        initial: Stands in for the last pane's value before the first one, and where windows keep nothing.
        distance: Of two values.
    """

    threshold: Any
    initial: Any
    distance: Callable[[Any, Any], Any]
    heeds_elements = True
    fires_on_elements = True

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Nothing to keep: values are the window's."""
        return None

    def should_fire(self, state: Any, status: WindowStatus) -> bool:
        """Whether the value has moved that far."""
        if not status.fresh:
            return False
        # A window that keeps nothing starts from the initial value again.
        before = status.last_value(self.initial) if status.keeps else self.initial
        return bool(self.distance(before, status.value()) > self.threshold)

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """The same: it goes on."""
        return state


@dataclass(frozen=True)
class ExternalSignal(TriggerMachine):
    """Fires when a named signal has come from outside. The state is whether it has.

    Attributes:
        name: The signal's name.
    """

    name: str
    tells_one_from_many = False

    def start(self) -> bool:
        """Not yet."""
        return False

    def signal(self, state: bool, name: str) -> bool:
        """Whether it has come by now."""
        return state or name == self.name

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Whether it has come to any, of those that have not fired."""
        waiting = list(unfinished(states))
        return any(waiting) if waiting else FINISHED

    def should_fire(self, state: bool, status: WindowStatus) -> bool:
        """Whether it has come."""
        return state

    def fire(self, state: Any, status: WindowStatus) -> Any:
        """Finished."""
        return FINISHED
