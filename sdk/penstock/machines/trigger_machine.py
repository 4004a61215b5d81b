"""The trigger as a state machine: what every trigger can be told and asked.

A trigger's state in one window is a plain value. No method changes it: each returns the next one. Whoever holds the
state can therefore store it, copy it and go back to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from penstock.base.bounded_window import BoundedWindow
from penstock.machines.records import Element, Times
from penstock.windows.triggers import FINISHED

CLOCK: Final = "clock"
"""The domain of alarms by processing time."""

WATERMARK: Final = 1.0
"""The domain of alarms by the watermark; any other percentile is a domain of its own."""

Domain = str | float
Alarm = tuple[Domain, int]
"""A domain and a moment in microseconds: ask again then."""


class WindowStatus:
    """What a trigger sees of its window while it is told or asked something.

    Attributes:
        times: The watermark and the clock.
        due_micros: Alarms of the clock up to this moment have rung. While elements and the watermark are at work,
            those of the present instant have not: they come last.
        window: The window.
        fresh: The number of elements since the last pane.
        keeps: Whether the window still holds its elements after a pane.
    """

    __slots__ = ("due_micros", "fresh", "keeps", "times", "window")
    times: Times
    due_micros: int
    window: BoundedWindow
    fresh: int
    keeps: bool

    @property
    def is_past_end(self) -> bool:
        """Whether the watermark has passed the end of the window."""
        return self.times.watermark_micros >= self.window.end_micros

    def value(self) -> Any:
        """What a pane would hold if it fired now."""
        raise NotImplementedError

    def last_value(self, default: Any) -> Any:
        """What the window's last pane held; `default` before the first one."""
        raise NotImplementedError


class TriggerMachine(ABC):
    """One kind of trigger, without state of its own: an interpreter of states.

    Attributes:
        heeds_elements: Whether an element can change its state, or its answer before the end of the window.
        fires_on_elements: Whether it may fire while the watermark and the clock stand still, as they do in batch.
        tells_one_from_many: Whether it matters to it how many elements arrive at one moment, or which. If not, no
            element makes it fire before the end of the window (before its percentile has passed it, if it waits for
            one), and several lead to the state that one leads to. After the end an element may make it fire at once.
    """

    heeds_elements: bool = False
    fires_on_elements: bool = False
    tells_one_from_many: bool = True

    def start(self) -> Any:
        """The state before the first element."""
        return None

    def element(self, state: Any, element: Element, status: WindowStatus) -> Any:
        """The state after one more element."""
        return state

    @abstractmethod
    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """The state of a window that others merged into, or that has grown; the window of `status` is the new one."""

    def signal(self, state: Any, name: str) -> Any:
        """The state after a signal from outside."""
        return state

    def wake(self, state: Any, status: WindowStatus) -> Any:
        """The state after the alarms that are due by now have rung."""
        return state

    @abstractmethod
    def should_fire(self, state: Any, status: WindowStatus) -> bool:
        """Whether it fires now."""

    @abstractmethod
    def fire(self, state: Any, status: WindowStatus) -> Any:
        """The state after it has fired; only called where `should_fire`."""

    def is_finished(self, state: Any) -> bool:
        """Whether it will not fire any more."""
        return state is FINISHED

    def alarms(self, state: Any, status: WindowStatus) -> Iterable[Alarm]:
        """When to ask again although nothing happens, besides the end of the window."""
        return ()


def unfinished(states: Iterable[Any]) -> Iterator[Any]:
    """Those states that are not `FINISHED`."""
    return (state for state in states if state is not FINISHED)
