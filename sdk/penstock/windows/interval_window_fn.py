"""What the ready-made WindowFns have in common: they are values, and their windows are intervals."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from penstock.base.bounded_window import IntervalWindow
from penstock.coders.coders import IntervalWindowCoder
from penstock.windows.window_fn import WindowFn

if TYPE_CHECKING:
    from penstock.coders.coders import Coder


class ByFields:
    """Equality by exact class and all attributes, those of a user's subclass included."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, repr(self)))


class IntervalWindowFn(ByFields, WindowFn):
    """A WindowFn that assigns intervals."""

    def get_window_coder(self) -> Coder:
        """The coder of intervals."""
        return IntervalWindowCoder()


class ByTimestamp(IntervalWindowFn):
    """A WindowFn that assigns intervals by the timestamp alone."""

    @abstractmethod
    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The windows of a timestamp in microseconds (penstock's own)."""

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        """The windows of an element."""
        return list(self.assign_micros(assign_context.timestamp.micros))


def fixed_window(timestamp_micros: int, size_micros: int, offset_micros: int) -> IntervalWindow:
    """The window around a timestamp, of those of one size that follow each other from an offset on.

    >>> fixed_window(-1, 60_000_000, 5_000_000)
    [-55.0, 5.0)
    """
    start_micros = timestamp_micros - (timestamp_micros - offset_micros) % size_micros
    return IntervalWindow.from_micros(start_micros, start_micros + size_micros)
