"""The interfaces of splittable DoFns: trackers of the work on an element."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


class RestrictionTracker:
    """Tracks which part of the work on an element has been claimed (Beam's ``RestrictionTracker``)."""

    def current_restriction(self) -> Any:
        """Returns all of the work of the current call, including finished work."""
        raise NotImplementedError

    def current_progress(self) -> RestrictionProgress:
        """Returns the amounts of finished and remaining work."""
        raise NotImplementedError

    def check_done(self) -> None:
        """Raises a ValueError if unclaimed work is left."""
        raise NotImplementedError

    def try_split(self, fraction_of_remainder: float) -> Any:
        """Splits the rest; returns (primary, residual), or None if it refuses."""
        raise NotImplementedError

    def try_claim(self, position: Any) -> bool:
        """Claims a position; False means: stop here. A position out of order raises a ValueError."""
        raise NotImplementedError

    def is_bounded(self) -> bool:
        """True if the work ends."""
        raise NotImplementedError


class WatermarkEstimator:
    """Estimates the watermark of a splittable DoFn's output (Beam's ``WatermarkEstimator``)."""

    def get_estimator_state(self) -> object:
        """Returns the state from which another instance can continue."""
        raise NotImplementedError(type(self))

    def current_watermark(self) -> Any:
        """Returns the estimate, a ``Timestamp``; it never moves backwards."""
        raise NotImplementedError(type(self))

    def observe_timestamp(self, timestamp: Any) -> None:
        """Called with the timestamp of each output."""
        raise NotImplementedError(type(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class RestrictionProgress:
    """The progress of the work on a restriction (Beam's ``RestrictionProgress``).

    Args:
        fraction: The finished share, between 0 and 1.
        completed: The finished work, in any unit.
        remaining: The remaining work, in the same unit.

    >>> RestrictionProgress(fraction=0.25, remaining=6).total_work
    8.0
    """

    fraction: float | None = None
    completed: float | None = None
    remaining: float | None = None

    @property
    def completed_work(self) -> Any:
        """The finished work; a fraction if no amount is known."""
        if self.completed is not None:
            return self.completed
        if self.remaining is not None and self.fraction is not None:
            return self.remaining * self.fraction / (1 - self.fraction)
        return self.fraction

    @property
    def remaining_work(self) -> Any:
        """The remaining work; a fraction if no amount is known."""
        if self.remaining is not None:
            return self.remaining
        fraction = self.fraction or 0.0
        if self.completed is not None and fraction:
            return self.completed * (1 - fraction) / fraction
        return 1 - fraction

    @property
    def total_work(self) -> Any:
        """The finished and the remaining work."""
        return self.completed_work + self.remaining_work

    @property
    def fraction_completed(self) -> float:
        """The finished share; 1 if no work exists."""
        if self.fraction is not None:
            return self.fraction
        return float(self.completed_work / self.total_work) if self.total_work else 1.0

    @property
    def fraction_remaining(self) -> float:
        """The remaining share."""
        return 1 - self.fraction_completed

    def with_completed(self, completed: float) -> RestrictionProgress:
        """Returns a copy with another amount of finished work."""
        return replace(self, completed=completed)
