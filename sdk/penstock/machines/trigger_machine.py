"""The trigger as a state machine: the events and the questions that every trigger answers.

A trigger's state in one window is a plain value. No method changes it: each returns the next one. So the owner of the
state can store it, copy it and go back to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.records import Element, Times
from penstock.windows.triggers import FINISHED

CLOCK: Final = "clock"
"""The domain of alarms in processing time."""

WATERMARK: Final = 1.0
"""The domain of alarms by the watermark; each other percentile has its own domain."""

Domain = str | float
Alarm = tuple[Domain, int]
"""A domain, and the time in microseconds when the trigger must be asked again."""


class WindowStatus:
    """A trigger's view of its window."""

    __slots__ = ("due_micros", "fresh", "keeps", "times", "window")
    times: Times
    # The time up to which alarms of the clock have fired. At each instant they come last, after elements and
    # watermarks.
    due_micros: int
    window: BoundedWindow
    fresh: int  # The number of elements since the last pane.
    keeps: bool  # Whether the window keeps its elements after a pane.

    @property
    def is_past_end(self) -> bool:
        """True if the watermark has passed the end of the window."""
        return self.times.watermark_micros >= self.window.end_micros

    def value(self) -> object:
        """Returns the value that a pane would hold if it fired now."""
        raise NotImplementedError

    def last_value(self, default: object) -> object:
        """Returns the value of the window's last pane; `default` before the first one."""
        raise NotImplementedError


class TriggerMachine(ABC):
    """One kind of trigger. It has no state itself, but interprets states."""

    heeds_elements: bool = False
    """True if an element can change its state, or its answer before the end of the window."""
    fires_on_elements: bool = False
    """True if it may fire while the watermark and the clock do not advance, as in batch."""
    tells_one_from_many: bool = True
    """True if it matters how many elements arrive at one logical time, or which. If not, several elements lead to the
    same state as one. No element fires it before the end of the window (or before its percentile has passed the end,
    if it waits for one), unless all of one logical time fire it together. After the end an element may fire it at
    once."""

    def start(self) -> Any:
        """Returns the state before the first element."""
        return None

    def element(self, state: Any, element: Element, status: WindowStatus) -> Any:
        """Returns the state after one more element."""
        return state

    def merge(self, states: Sequence[Any], status: WindowStatus) -> Any:
        """Returns the state of a window into which others merged, or that has grown: the window of `status`."""
        waiting = [state for state in states if state is not FINISHED]
        return self.merged(waiting) if waiting else FINISHED

    def merged(self, states: list[Any]) -> object:
        """Returns the state that several unfinished ones merge into; needed for triggers with a state."""
        return None

    def signal(self, state: Any, name: str) -> Any:
        """Returns the state after a signal from outside."""
        return state

    def wake(self, state: Any, status: WindowStatus) -> Any:
        """Returns the state after the alarms that are due have fired."""
        return state

    @abstractmethod
    def should_fire(self, state: Any, status: WindowStatus) -> bool:
        """True if it fires now."""

    def fire(self, state: Any, status: WindowStatus) -> object:
        """Returns the state after it has fired, which is finished unless the trigger repeats. Needs `should_fire`."""
        return FINISHED

    def is_finished(self, state: Any) -> bool:
        """True if it will not fire again."""
        return state is FINISHED

    def alarms(self, state: Any, status: WindowStatus) -> Iterable[Alarm]:
        """Returns the times, other than the window's end, at which to ask again although nothing happens."""
        return ()


def select_unfinished(states: Iterable[Any]) -> Iterator[Any]:
    """Returns the states that are not `FINISHED`."""
    return (state for state in states if state is not FINISHED)
