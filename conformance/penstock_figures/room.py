"""The free and the occupied room of a drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_CELL = 40


class Area(NamedTuple):
    """A rectangle of a drawing; y goes down.

    >>> Area(0, 0, 10, 10).meets(Area(9, 9, 20, 20)), Area(0, 0, 10, 10).meets(Area(10, 0, 20, 10))
    (True, False)
    """

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        """True if two areas share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def is_within(self, other: Area) -> bool:
        """True if another area contains it."""
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.top <= self.top
            and self.bottom <= other.bottom
        )


@dataclass
class Room:
    """The occupied areas of a drawing.

    >>> room = Room(Area(0, 0, 100, 100))
    >>> room.take(Area(0, 0, 50, 50))
    >>> room.first_free([Area(10, 10, 20, 20), Area(90, 0, 110, 9), Area(60, 0, 70, 9)])
    2
    """

    bounds: Area
    _cells: dict[tuple[int, int], list[Area]] = field(default_factory=lambda: defaultdict(list))

    def take(self, area: Area) -> None:
        """Occupies an area."""
        for cell in _cells_of(area):
            self._cells[cell].append(area)

    def is_free(self, area: Area) -> bool:
        """True if an area is inside the drawing, and empty."""
        return area.is_within(self.bounds) and not any(
            area.meets(taken) for cell in _cells_of(area) for taken in self._cells.get(cell, ())
        )

    def first_free(self, areas: Iterable[Area]) -> int | None:
        """Returns the number of the first area that is free; None if none is."""
        return next((number for number, area in enumerate(areas) if self.is_free(area)), None)


def _cells_of(area: Area) -> Iterator[tuple[int, int]]:
    for column in range(int(area.left // _CELL), int(area.right // _CELL) + 1):
        for row in range(int(area.top // _CELL), int(area.bottom // _CELL) + 1):
            yield column, row
