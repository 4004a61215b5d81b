"""Defines a window: it ends; `penstock.elements.bounded_window` has the windows of intervals and the global one."""

from __future__ import annotations

from penstock.utils.timestamp import Timestamp, TimestampTypes


class BoundedWindow:
    """A window that ends (Beam's ``BoundedWindow``); subclasses define ``__eq__`` and ``__hash__``.

    Windows are ordered by their ends, then in some fixed way. The end is not part of a window.
    """

    __slots__ = ("end_micros",)
    end_micros: int

    def __init__(self, end: TimestampTypes) -> None:
        self.end_micros = Timestamp.of(end).micros

    @property
    def start(self) -> Timestamp:
        """The start of the window."""
        raise NotImplementedError

    @property
    def end(self) -> Timestamp:
        """The end of the window, which is not part of it."""
        return Timestamp.from_micros(self.end_micros)

    def max_timestamp(self) -> Timestamp:
        """Returns the latest timestamp in the window: a microsecond before its end."""
        return Timestamp.from_micros(self.end_micros - 1)

    def _order(self) -> tuple[int, str, int]:
        return self.end_micros, type(self).__qualname__, hash(self)

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError

    def __hash__(self) -> int:
        raise NotImplementedError

    def __lt__(self, other: BoundedWindow) -> bool:
        return self._order() < other._order()

    def __le__(self, other: BoundedWindow) -> bool:
        return self._order() <= other._order()

    def __gt__(self, other: BoundedWindow) -> bool:
        return self._order() > other._order()

    def __ge__(self, other: BoundedWindow) -> bool:
        return self._order() >= other._order()

    def __repr__(self) -> str:
        return f"[?, {float(self.end)})"
