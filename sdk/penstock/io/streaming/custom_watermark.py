"""The base class of custom watermark policies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from penstock.error import refusal
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.utils.timestamp import Duration, DurationTypes, Timestamp, TimestampTypes

__all__ = ["CustomWatermark"]


class CustomWatermark(WatermarkPolicy, ABC):
    """The base class of custom watermark policies: derive from it and define its methods (penstock's own).

    Tasks that read the source *summarize* the elements of each step, summaries are *merged*, and the watermark
    *advances* by them, in several places that must agree. So the result of a method must depend only on its arguments,
    not on the distribution of elements over summaries or the order of merges. Summaries and states are plain values
    that can be pickled; no method changes them in place. They are sent and kept with every step, so keep them small. A
    watermark that moves back is raised to its earlier value.

    Attributes:
        delay: For an ``IdleTimeout``: the usual distance of the watermark behind the clock, in seconds.

    >>> class SmallestYet(CustomWatermark):
    ...     def summarize(self, elements):
    ...         return min(event_time for event_time, arrival_time in elements)
    ...
    ...     def merge(self, summaries):
    ...         return min(summaries)
    ...
    ...     def advance(self, state, summary, clock):
    ...         return state, summary
    >>> policy = SmallestYet()
    >>> policy.summarize([(Timestamp(5), Timestamp(9)), (Timestamp(3), Timestamp(9))])
    Timestamp(3)
    """

    needs_event_times: ClassVar[bool | None] = True
    delay: DurationTypes = 0

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuses a subclass without one of the methods."""
        missing = sorted(cls.__abstractmethods__)
        if missing:
            what = f"the watermark policy {cls.__name__} does not define {', '.join(missing)}"
            raise refusal(TypeError, what, hint=f"define {missing[0]} in the class")
        return super().__new__(cls)

    def start(self) -> Any:
        """Returns the state before any elements; by default None."""
        return None

    @abstractmethod
    def summarize(self, elements: list[tuple[Timestamp, Timestamp]]) -> object:
        """Returns a summary of one or more pairs of event time and arrival time; None if they do not matter."""

    @abstractmethod
    def merge(self, summaries: list[Any]) -> Any:
        """Returns one summary for several, none of which is None."""

    @abstractmethod
    def advance(self, state: Any, summary: Any, clock: Timestamp) -> tuple[Any, TimestampTypes | None]:
        """Returns the next state and the watermark after a step.

        Args:
            state: The current state.
            summary: The summary of the step's elements; None without elements.
            clock: The step's processing time.

        Returns:
            The next state, and the watermark: a ``Timestamp`` or seconds since 1970, or None if it is unknown.
        """

    @property
    def delay_micros(self) -> int:
        return Duration.of(self.delay).micros

    def __eq__(self, other: object) -> bool:
        # This class is not a dataclass: so the user's subclass may be one, frozen or not.
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))
