"""The frames of rows that window functions see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Protocol


class Comparable(Protocol):
    """A value that is compared with others of its type."""

    def __lt__(self, other: Any, /) -> bool: ...


Offset = int | float | Decimal | timedelta
"""The distance of a bound from the current row: below zero before it, above zero after it."""


@dataclass(frozen=True)
class Frame:
    """The rows of a partition that a window function sees for a row.

    Attributes:
        unit: ``ROWS`` counts rows; ``RANGE`` compares the values of ORDER BY.
        start: The first row; None for the first one of the partition. For RANGE, 0 is the first row that is equal to
            the current one in ORDER BY.
        end: The last row; None for the last one of the partition.
    """

    unit: str
    start: Offset | None
    end: Offset | None

    def __str__(self) -> str:
        return (
            f"{self.unit} BETWEEN {_spelled(self.start, 'PRECEDING')} AND {_spelled(self.end, 'FOLLOWING')}"
        )

    @property
    def is_whole(self) -> bool:
        """True if every row sees the whole partition."""
        return self.start is None and self.end is None


def _spelled(offset: Offset | None, side: str) -> str:
    if offset is None:
        return f"UNBOUNDED {side}"
    if not offset:
        return "CURRENT ROW"
    is_before = is_negative(offset)
    return f"{-offset if is_before else offset} {'PRECEDING' if is_before else 'FOLLOWING'}"


def is_negative(offset: Offset) -> bool:
    """True if a bound comes before the current row."""
    return offset < timedelta() if isinstance(offset, timedelta) else offset < 0


def count_rows(offset: Offset) -> int:
    """Returns how many rows a bound of ROWS is away from the current one."""
    assert isinstance(offset, int)
    return offset
