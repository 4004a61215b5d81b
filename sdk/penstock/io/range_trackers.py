"""Trackers of ranges of positions (Beam's ``apache_beam.io.range_trackers``)."""

from __future__ import annotations

import math
import threading
from typing import Any

from penstock.error import refusal
from penstock.io.custom.bounded import RangeTracker

__all__ = [
    "LexicographicKeyRangeTracker",
    "OffsetRangeTracker",
    "OrderedPositionRangeTracker",
    "UnsplittableRangeTracker",
]


class OffsetRangeTracker(RangeTracker):
    """Tracks offsets: integers from `start` up to, but not including, `end` (Beam's name).

    >>> tracker = OffsetRangeTracker(0, 10)
    >>> tracker.try_claim(3), tracker.try_split(8), tracker.try_claim(8)
    (True, (8, 0.8), False)
    """

    OFFSET_INFINITY = float("inf")

    def __init__(self, start: int, end: float) -> None:
        if start is None or end is None:
            what = f"the offsets of a range are {start!r} and {end!r}"
            raise refusal(ValueError, what, hint="pass both; OFFSET_INFINITY is a possible end")
        if start > end:
            what = f"the range [{start}, {end}) ends before it starts"
            raise refusal(ValueError, what, hint="exchange the offsets")
        self._start, self._stop = start, end
        self._last_record = self._last_attempt = -1
        self._split_points_seen = 0
        self._unclaimed: Any = None
        self._lock = threading.Lock()

    def start_position(self) -> int:
        return self._start

    def stop_position(self) -> float:
        return self._stop

    @property
    def last_record_start(self) -> int:
        """The offset of the last claimed record; -1 before the first."""
        return self._last_record

    @property
    def last_attempted_record_start(self) -> int:
        """The last offset of `try_claim`; -1 before the first."""
        return self._last_attempt

    def try_claim(self, position: int) -> bool:
        with self._lock:
            if position <= self._last_attempt:
                last = f"last-attempted record [starting at {self._last_attempt}]"
                what = (
                    f"Trying to return a record [starting at {position}] which is not greater than the {last}"
                )
                raise refusal(ValueError, what, hint="claim offsets in increasing order, each once")
            self._last_attempt = position
            if position >= self._stop:
                return False
            self._last_record = position
            self._split_points_seen += 1
            return True

    def set_current_position(self, position: int) -> None:
        with self._lock:
            if self._last_record == -1 or position < self._last_record:
                what = f"the record at offset {position} comes before a claimed one"
                hint = "claim the first record with try_claim, and continue in order"
                raise refusal(ValueError, what, hint=hint)
            self._last_record = position

    def try_split(self, position: int) -> tuple[float, float] | None:
        with self._lock:
            started = self._last_record != -1
            inside = max(self._start, self._last_record + 1) <= position < self._stop
            if self._stop == self.OFFSET_INFINITY or not started or not inside:
                return None
            fraction = (position - self._start) / (self._stop - self._start)
            self._stop = position
            return position, fraction

    def fraction_consumed(self) -> float:
        with self._lock:
            return self.position_to_fraction(self._last_record, self._start, self._stop)

    def position_to_fraction(self, pos: float, start: float, stop: float) -> float:
        """Returns the place of a position in the range, between 0 and 1."""
        return max(0.0, min(1.0, (pos - start) / (stop - start) if start != stop else 0.0))

    def position_at_fraction(self, fraction: float) -> int:
        if self._stop == self.OFFSET_INFINITY:
            what = "a range that never ends has no fractions"
            raise refusal(ValueError, what, hint="use a range with an end")
        return math.ceil(self._start + fraction * (self._stop - self._start))

    def split_points(self) -> tuple[int, Any]:
        with self._lock:
            unclaimed: Any = self._unclaimed(self._stop) if self._unclaimed else self.SPLIT_POINTS_UNKNOWN
            ahead = unclaimed if unclaimed is self.SPLIT_POINTS_UNKNOWN else unclaimed + 1
            return max(0, self._split_points_seen - 1), ahead

    def set_split_points_unclaimed_callback(self, callback: Any) -> None:
        self._unclaimed = callback


class OrderedPositionRangeTracker(RangeTracker):
    """Tracks positions of any ordered type; a subclass defines fractions of a range (Beam's name)."""

    UNSTARTED = object()

    def __init__(self, start_position: object = None, stop_position: object = None) -> None:
        self._start_position = start_position
        self._stop_position = stop_position
        self._last_claim: object = self.UNSTARTED
        self._lock = threading.Lock()

    def start_position(self) -> Any:
        return self._start_position

    def stop_position(self) -> Any:
        with self._lock:
            return self._stop_position

    def try_claim(self, position: Any) -> bool:
        with self._lock:
            behind = self._last_claim is not self.UNSTARTED and position < self._last_claim
            if behind or (self._start_position is not None and position < self._start_position):
                what = f"position {position!r} was claimed after {self._last_claim!r}, or before the start"
                raise refusal(ValueError, what, hint="claim positions in order")
            if self._stop_position is not None and position >= self._stop_position:
                return False
            self._last_claim = position
            return True

    def position_at_fraction(self, fraction: float) -> Any:
        return self.fraction_to_position(fraction, self._start_position, self._stop_position)

    def try_split(self, position: Any) -> tuple[Any, float] | None:
        with self._lock:
            late = self._stop_position is not None and position >= self._stop_position
            early = self._start_position is not None and position <= self._start_position
            claimed = self._last_claim is not self.UNSTARTED and self._last_claim >= position
            if late or early or claimed:
                return None
            fraction = self.position_to_fraction(position, self._start_position, self._stop_position)
            self._stop_position = position
            return position, fraction

    def fraction_consumed(self) -> float:
        if self._last_claim is self.UNSTARTED:
            return 0
        return self.position_to_fraction(self._last_claim, self._start_position, self._stop_position)

    def fraction_to_position(self, fraction: float, start: Any, end: Any) -> Any:
        """Returns the position at a fraction between two positions."""
        raise NotImplementedError

    def position_to_fraction(self, position: object, start: object, end: object) -> float:
        """Returns the fraction of a position between two others."""
        raise NotImplementedError


class UnsplittableRangeTracker(RangeTracker):
    """Wraps another tracker, and refuses to split it (Beam's name).

    >>> UnsplittableRangeTracker(OffsetRangeTracker(0, 10)).try_split(5) is None
    True
    """

    def __init__(self, range_tracker: RangeTracker) -> None:
        self._tracker = range_tracker

    def __getattribute__(self, name: str) -> Any:
        # The base class defines every method, and so `__getattr__` would never be called.
        if name.startswith("_") or name in ("split_points", "try_split"):
            return super().__getattribute__(name)
        return getattr(self._tracker, name)

    def try_split(self, position: object) -> None:
        return

    def split_points(self) -> tuple[int, int]:
        # Reading can start only at the beginning.
        return 0, 1


class LexicographicKeyRangeTracker(OrderedPositionRangeTracker):
    """Tracks keys in the order of their bytes (Beam's name).

    >>> LexicographicKeyRangeTracker(b"a", b"c").position_at_fraction(0.5)
    b'b'
    """

    @classmethod
    def fraction_to_position(cls, fraction: float, start: object = None, end: object = None) -> object:
        first = b"" if start is None else start
        if fraction in (0, 1):
            return end if fraction else first
        digits = _common_prefix(first, end) + int(-math.log(fraction, 256)) + 7
        low = _number(first, digits)
        high = _number(end, digits) if end else 1 << (digits * 8)
        key = low + int((high - low) * fraction)
        # Rounding must not return one of the ends.
        key += (key == low) - (key == high)
        position = key.to_bytes(digits, "big").rstrip(b"\0")
        return position if isinstance(first, bytes) else position.decode("unicode_escape", errors="replace")

    @classmethod
    def position_to_fraction(cls, key: Any = None, start: Any = None, end: object = None) -> float:
        if not key:
            return 0
        first = key[:0] if start is None else start
        digits = max(len(first), len(key)) + 7
        low = _number(first, digits)
        high = _number(end, digits) if end else 1 << (digits * 8)
        return (_number(key, digits) - low) / (high - low)


def _common_prefix(start: Any, end: Any) -> int:
    if not end:
        data = start.encode() if isinstance(start, str) else start
        return len(data) - len(data.lstrip(b"\xff"))
    return next(
        (at for at, (a, b) in enumerate(zip(start, end, strict=False)) if a != b), min(len(start), len(end))
    )


def _number(key: Any, digits: int) -> int:
    """Returns the key as a number in base 256 with that number of digits."""
    data = key.encode() if isinstance(key, str) else key
    return int.from_bytes(data[:digits].ljust(digits, b"\0"), "big")
