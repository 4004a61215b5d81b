"""A pane in words that can be compared: what Beam and penstock both say about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

TIMINGS = ("EARLY", "ON_TIME", "LATE", "UNKNOWN")


class Shown(NamedTuple):
    """A pane: all times are microseconds."""

    step: int
    key: Any
    window: tuple[int, int]
    value: Any
    timestamp: int
    timing: str
    index: int
    nonspeculative_index: int
    is_first: bool
    is_last: bool

    def __str__(self) -> str:
        begin, end = map(in_seconds, self.window)
        flags = " first" * self.is_first + " last" * self.is_last
        return (
            f"{self.step}: {self.key} [{begin}, {end}) {self.value} at {in_seconds(self.timestamp)} "
            f"{self.timing} {self.index}/{self.nonspeculative_index}{flags}"
        )


def in_seconds(micros: int) -> str:
    """Microseconds as seconds, without a zero too many."""
    return f"{micros / 1_000_000:.6f}".rstrip("0").rstrip(".")


def shown(step: int, key: Any, value: Any, timestamp: Any, window: Any, info: Any) -> Shown:
    """A pane of either package. The values of a group are sorted: neither package promises an order."""
    return Shown(
        step,
        key,
        (window.start.micros, window.end.micros),
        value if isinstance(value, int) else tuple(sorted(value)),
        timestamp.micros,
        TIMINGS[info.timing],
        info.index,
        info.nonspeculative_index,
        info.is_first,
        info.is_last,
    )


def in_order(panes: Iterable[Shown]) -> list[Shown]:
    """Panes by step, key and window: neither package promises an order of windows; a window's own panes keep theirs."""
    return sorted(panes, key=lambda pane: (pane.step, pane.key, pane.window))
