"""Ranges of offsets as the work of a splittable DoFn (Beam's ``apache_beam.io.restriction_trackers``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.error import refusal
from penstock.io.custom.restrictions import RestrictionProgress, RestrictionTracker
from penstock.io.range_trackers import OffsetRangeTracker

__all__ = ["OffsetRange", "OffsetRestrictionTracker", "UnsplittableRestrictionTracker"]


@dataclass(frozen=True)
class OffsetRange:
    """The offsets from `start` up to, but not including, `stop` (Beam's ``OffsetRange``).

    >>> list(OffsetRange(0, 10).split(4))
    [OffsetRange(start=0, stop=4), OffsetRange(start=4, stop=8), OffsetRange(start=8, stop=10)]
    """

    start: int
    stop: float

    def __post_init__(self) -> None:
        if self.start > self.stop:
            what = f"Start offset must be not be larger than the stop offset. Received {self.start} and {self.stop}"
            raise refusal(ValueError, what, hint="exchange them")

    def split(
        self, desired_num_offsets_per_split: float, min_num_offsets_per_split: int = 1
    ) -> Iterator[OffsetRange]:
        """Yields pieces with that number of offsets; a small rest joins the piece before it."""
        size = max(desired_num_offsets_per_split, min_num_offsets_per_split)
        start: Any = self.start
        while start < self.stop:
            stop = min(start + size, self.stop)
            rest = self.stop - stop
            if rest < desired_num_offsets_per_split // 4 or rest < min_num_offsets_per_split:
                stop = self.stop
            yield OffsetRange(start, stop)
            start = stop

    def split_at(self, split_pos: int) -> tuple[OffsetRange, OffsetRange]:
        """Returns the ranges before, and from, an offset."""
        return OffsetRange(self.start, split_pos), OffsetRange(split_pos, self.stop)

    def new_tracker(self) -> OffsetRangeTracker:
        """Returns a tracker of this range for a ``BoundedSource``."""
        return OffsetRangeTracker(self.start, self.stop)

    def size(self) -> float:
        """Returns the number of offsets."""
        return self.stop - self.start


class OffsetRestrictionTracker(RestrictionTracker):
    """Tracks an `OffsetRange` (Beam's name).

    >>> tracker = OffsetRestrictionTracker(OffsetRange(0, 10))
    >>> tracker.try_claim(1), tracker.try_split(0.5)
    (True, (OffsetRange(start=0, stop=5), OffsetRange(start=5, stop=10)))
    """

    def __init__(self, offset_range: OffsetRange) -> None:
        if not isinstance(offset_range, OffsetRange):
            what = f"{offset_range!r} is not an OffsetRange"
            raise refusal(TypeError, what, hint="write OffsetRange(start, stop)")
        self._range = offset_range
        self._claimed: int | None = None
        self._attempted: int | None = None
        self._checkpointed = False

    def check_done(self) -> None:
        last = self._range.start - 1 if self._attempted is None else self._attempted
        if self._range.size() and last < self._range.stop - 1:
            rest = f"[{max(last, self._range.start)}, {self._range.stop})"
            what = f"OffsetRestrictionTracker is not done since work in range {rest} has not been claimed."
            raise refusal(ValueError, what, hint="claim offsets until try_claim returns False")

    def current_restriction(self) -> OffsetRange:
        return self._range

    def current_progress(self) -> RestrictionProgress:
        if self._claimed is None:
            return RestrictionProgress(fraction=0.0)
        size = self._range.size()
        return RestrictionProgress(fraction=(self._claimed - self._range.start) / size if size else 1.0)

    def start_position(self) -> int:
        """Returns the first offset."""
        return self._range.start

    def stop_position(self) -> float:
        """Returns the offset after the last."""
        return self._range.stop

    def try_claim(self, position: int) -> bool:
        if position < self._range.start or (self._attempted is not None and position <= self._attempted):
            what = (
                f"Positions claimed should strictly increase, from {self._range.start} on. "
                f"Trying to claim position {position} while last claim attempt was {self._attempted}."
            )
            raise refusal(ValueError, what, hint="claim offsets in increasing order, each once")
        self._attempted = position
        if position >= self._range.stop:
            return False
        self._claimed = position
        return True

    def try_split(self, fraction_of_remainder: float) -> tuple[OffsetRange, OffsetRange] | None:
        if self._checkpointed:
            return None
        current = self._range.start - 1 if self._attempted is None else self._attempted
        split = current + int(max(1, (self._range.stop - current) * fraction_of_remainder))
        if split >= self._range.stop:
            return None
        self._checkpointed = fraction_of_remainder == 0
        self._range, residual = self._range.split_at(split)
        return self._range, residual

    def is_bounded(self) -> bool:
        return True


class UnsplittableRestrictionTracker(RestrictionTracker):
    """Wraps another tracker, and refuses to split it (Beam's name)."""

    def __init__(self, underling_tracker: RestrictionTracker) -> None:
        self._underling_tracker = underling_tracker

    def try_split(self, fraction_of_remainder: float) -> Any:
        return False

    def __getattribute__(self, name: str) -> Any:
        # The base class defines every method, and so `__getattr__` would never be called.
        if name.startswith("_") or name == "try_split":
            return super().__getattribute__(name)
        return getattr(self._underling_tracker, name)
