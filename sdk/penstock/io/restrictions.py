"""The interfaces of splittable DoFns: what is tracked while an element is worked off."""

from __future__ import annotations

from typing import Any


class RestrictionTracker:
    """Keeps which part of an element's work has been claimed (Beam's ``RestrictionTracker``)."""

    def current_restriction(self) -> Any:
        """All of the work of the current call, also what is already done."""
        raise NotImplementedError

    def current_progress(self) -> RestrictionProgress:
        """How much of it is done."""
        raise NotImplementedError

    def check_done(self) -> None:
        """Raises ValueError if work is left that nobody claimed."""
        raise NotImplementedError

    def try_split(self, fraction_of_remainder: float) -> Any:
        """Splits the rest; gives (primary, residual), or None if that is refused."""
        raise NotImplementedError

    def try_claim(self, position: Any) -> bool:
        """Claims a position; False means: stop here."""
        raise NotImplementedError

    def is_bounded(self) -> bool:
        """Whether the work ends."""
        raise NotImplementedError


class WatermarkEstimator:
    """Estimates the watermark of a splittable DoFn's output (Beam's ``WatermarkEstimator``)."""

    def get_estimator_state(self) -> Any:
        """What another instance can go on from."""
        raise NotImplementedError(type(self))

    def current_watermark(self) -> Any:
        """The estimate, a ``Timestamp``; it never goes back."""
        raise NotImplementedError(type(self))

    def observe_timestamp(self, timestamp: Any) -> None:
        """Called with the timestamp of each output."""
        raise NotImplementedError(type(self))


class RestrictionProgress:
    """How far a restriction is worked off (Beam's ``RestrictionProgress``).

    Args:
        fraction: The part that is done, between 0 and 1.
        completed: The work that is done, in a unit of its own.
        remaining: The work that is left, in the same unit.

    >>> RestrictionProgress(fraction=0.25, remaining=6).total_work
    8.0
    """

    def __init__(
        self, *, fraction: float | None = None, completed: float | None = None, remaining: float | None = None
    ) -> None:
        self._fraction = fraction
        self._completed = completed
        self._remaining = remaining

    def __repr__(self) -> str:
        parts = f"fraction={self._fraction}, completed={self._completed}, remaining={self._remaining}"
        return f"RestrictionProgress({parts})"

    @property
    def completed_work(self) -> Any:
        """The work that is done; a fraction if no amount is known."""
        if self._completed is not None:
            return self._completed
        if self._remaining is not None and self._fraction is not None:
            return self._remaining * self._fraction / (1 - self._fraction)
        return self._fraction

    @property
    def remaining_work(self) -> Any:
        """The work that is left; a fraction if no amount is known."""
        if self._remaining is not None:
            return self._remaining
        fraction = self._fraction or 0.0
        if self._completed is not None and fraction:
            return self._completed * (1 - fraction) / fraction
        return 1 - fraction

    @property
    def total_work(self) -> Any:
        """What is done and what is left."""
        return self.completed_work + self.remaining_work

    @property
    def fraction_completed(self) -> float:
        """The part that is done; all of it if there is no work."""
        if self._fraction is not None:
            return self._fraction
        return float(self.completed_work / self.total_work) if self.total_work else 1.0

    @property
    def fraction_remaining(self) -> float:
        """The part that is left."""
        return 1 - self.fraction_completed

    def with_completed(self, completed: float) -> RestrictionProgress:
        """The same with another amount of work done."""
        return RestrictionProgress(fraction=self._fraction, remaining=self._remaining, completed=completed)
