"""Sums and counts over sessions, merged as far as one task sees them before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.transforms.window import IntervalWindow, Sessions

Spans = tuple[list[int], list[int]]
"""The starts and the ends of elements' windows, in microseconds."""


def spans_of(windows: Any, count: int) -> Spans | None:
    """The spans of elements that are in one interval each; None if some are not.

    >>> from penstock.transforms.window import IntervalWindow
    >>> spans_of((IntervalWindow(0, 1),), 2)
    ([0, 0], [1000000, 1000000])
    """
    own = windows if isinstance(windows, list) else [windows] * count
    if set(map(len, own)) != {1} or {type(window) for (window,) in own} != {IntervalWindow}:
        return None
    return [window.start_micros for (window,) in own], [window.end_micros for (window,) in own]


class SessionTable:
    """The sums of values by name and session.

    Of each name the latest session is open: what overlaps it widens it. An element that is later opens the next one;
    one that is earlier stays a session of its own, which the reader merges with others, as it does with what other
    tasks have seen.

    >>> table = SessionTable(Sessions(10))
    >>> table.add(["a", "b", "a", "a"], [0, 0, 5, 90], [10, 10, 15, 100], [1, 1, 2, 4])
    >>> list(table.rows())
    [('a', 0, 15, 3), ('a', 90, 100, 4), ('b', 0, 10, 1)]
    """

    def __init__(self, windowfn: Sessions) -> None:
        # Whole microseconds: to touch is to overlap by one more.
        self._reach = int(windowfn.merge_touching)
        self._open: dict[Any, list[Any]] = {}
        self._closed: list[tuple[Any, int, int, Any]] = []

    def __len__(self) -> int:
        """The number of sessions."""
        return len(self._open) + len(self._closed)

    def add(self, names: list[Any], starts: list[int], ends: list[int], values: Iterable[Any]) -> None:
        """Takes one value, in the window from a start to an end in microseconds, for each name; names repeat."""
        opened, closed, reach = self._open, self._closed, self._reach
        for name, start, end, value in zip(names, starts, ends, values, strict=True):
            held = opened.get(name)
            if held is None:
                opened[name] = [start, end, 0 + value]
            elif start >= held[1] + reach:
                closed.append((name, *held))
                opened[name] = [start, end, 0 + value]
            elif end + reach <= held[0]:
                closed.append((name, start, end, 0 + value))
            else:
                if start < held[0]:
                    held[0] = start
                if end > held[1]:
                    held[1] = end
                # Not `+=`: that would change a value which belongs to the user.
                held[2] = held[2] + value

    def rows(self) -> Iterable[tuple[Any, int, int, Any]]:
        """Name, start, end and sum of each session."""
        yield from self._closed
        for name, held in self._open.items():
            yield name, *held
