"""The calls of window functions, and the frames of rows that they see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.scalars.tree import Scalar
from penstock.scalars.types import SqlType

if TYPE_CHECKING:
    from penstock.sql.plan.relations import AggregateCall

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


@dataclass(frozen=True)
class OverCall:
    """One call of a window function.

    Attributes:
        name: Its name in small letters; ``aggregate`` for an aggregate.
        type: The type of the result.
        arguments: The values of a row that it reads: for ``lag`` and ``lead``, perhaps also the value where there is
            no row.
        frame: The rows that it sees; None for functions that see the place of the row only.
        count: The offset of ``lag`` and ``lead``, the number of ``ntile`` and ``nth_value``.
        ignores_nulls: Whether NULLs are left out.
        aggregate: The aggregate.
    """

    name: str
    type: SqlType
    arguments: tuple[Scalar, ...] = ()
    frame: Frame | None = None
    count: int = 0
    ignores_nulls: bool = False
    aggregate: AggregateCall | None = None

    def __str__(self) -> str:
        name = self.name if self.aggregate is None else self.aggregate.name
        shown = [*map(str, self.arguments), *([str(self.count)] if self.count else [])]
        if self.aggregate is not None:
            shown = [str(each) for each in (self.aggregate.argument,) if each is not None]
        nulls = " IGNORE NULLS" if self.ignores_nulls else ""
        frame = "" if self.frame is None else f" {self.frame}"
        return f"{name.upper()}({', '.join(shown)}){nulls}{frame}"
