"""Watermarks of the user's own: a base class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from penstock.base.where import here
from penstock.error import three_parts
from penstock.io.watermark_policy import WatermarkPolicy
from penstock.utils.timestamp import Duration, DurationTypes, Timestamp, TimestampTypes

__all__ = ["CustomWatermark"]


class CustomWatermark(WatermarkPolicy, ABC):
    """The base of watermark policies of your own: subclass it and define the three abstract methods (penstock's own).

    Tasks that read the source *summarize* the elements of each step, summaries are *merged*, and the watermark
    *advances* by them, in several places that must agree. So what a method returns may depend on its arguments and on
    nothing else, and how elements were spread over summaries, or in which order these were merged, must not matter.
    Summaries and states are plain values that can be pickled; no method changes them in place. They are sent and kept
    with every step, so keep them small. A watermark that went back is raised to where it was before.

    Attributes:
        delay: For an ``IdleTimeout``: how far behind the clock the watermark usually is, in seconds.

    Raises:
        TypeError: The class lacks one of the methods.

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

    delay: DurationTypes = 0

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance of a subclass that is complete."""
        missing = sorted(cls.__abstractmethods__)
        if missing:
            what = f"the watermark policy {cls.__name__} lacks {', '.join(missing)}"
            raise TypeError(three_parts(what, where=here(), hint=f"define {missing[0]} in the class"))
        return super().__new__(cls)

    def start(self) -> Any:
        """The state before anything came; None, by default."""
        return None

    @abstractmethod
    def summarize(self, elements: list[tuple[Timestamp, Timestamp]]) -> Any:
        """What matters of some elements.

        Args:
            elements: Pairs of event time and arrival time, at least one.

        Returns:
            A summary; None if they do not matter.
        """

    @abstractmethod
    def merge(self, summaries: list[Any]) -> Any:
        """One summary for several, none of which is None."""

    @abstractmethod
    def advance(self, state: Any, summary: Any, clock: Timestamp) -> tuple[Any, TimestampTypes | None]:
        """A step forward.

        Args:
            state: The present state.
            summary: That of the step's elements; None if nothing came.
            clock: The step's processing time.

        Returns:
            The next state, and the watermark: a ``Timestamp`` or seconds since 1970, or None if nothing can be said.
        """

    @property
    def delay_micros(self) -> int:
        """The delay."""
        return Duration.of(self.delay).micros

    def __eq__(self, other: object) -> bool:
        # Not a dataclass, so that the user's subclass may be one, frozen or not, or none.
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))
