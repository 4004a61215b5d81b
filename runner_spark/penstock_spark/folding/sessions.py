"""The values of sessions folded as far as one task sees them, before anything is written."""

from __future__ import annotations

from itertools import chain
from typing import Any

from penstock.elements.bounded_window import IntervalWindow
from penstock.functions.folds import FoldSource
from penstock.windows.window_fn import Sessions
from penstock_spark.folding.loops import loop_of
from penstock_spark.worker.batch import Windows

Spans = tuple[list[int], list[int]]
"""The starts and the ends of elements' windows, in microseconds."""


def spans_of(windows: Windows | list[Windows], count: int) -> Spans | None:
    """Returns the spans of elements that are in one interval each; None if some are not.

    >>> from penstock.transforms.window import IntervalWindow
    >>> spans_of((IntervalWindow(0, 1),), 2)
    ([0, 0], [1000000, 1000000])
    """
    own = windows if isinstance(windows, list) else [windows] * count
    if set(map(len, own)) != {1} or {type(window) for (window,) in own} != {IntervalWindow}:
        return None
    return [window.start_micros for (window,) in own], [window.end_micros for (window,) in own]


class SessionTable:
    """Partial results by name and session.

    The latest session of each name is open: an overlapping element widens it, and a later element opens the
    next session. An earlier element becomes a session of its own, which the reader merges with other
    sessions, as it merges the sessions of other tasks.

    >>> from penstock.functions.folds import SUM
    >>> table = SessionTable(SUM.source, Sessions(10))
    >>> table.add(([0, 0, 5, 90], [10, 10, 15, 100]), [("a", 1), ("b", 1), ("a", 2), ("a", 4)], str)
    4
    >>> list(zip(*table.columns()))
    [('a', 0, 15, 3), ('a', 90, 100, 4), ('b', 0, 10, 1)]
    """

    def __init__(self, source: FoldSource, windowfn: Sessions) -> None:
        # Whole microseconds: to touch is to overlap by one more. Where it counts, sessions here end one later.
        self._reach = int(windowfn.merge_touching)
        self._add = loop_of(source, "session")
        self._open: dict[Any, list[Any]] = {}
        self._closed: tuple[list[Any], list[int], list[int], list[Any]] = ([], [], [], [])

    def __len__(self) -> int:
        return len(self._open) + len(self._closed[0])

    def add(self, spans: Spans, pairs: list[Any], kind: type) -> int:
        """Takes the value of each pair for its key, up to the first pair with another type of key; returns
        how many.

        `spans` has the window of each pair.
        """
        starts, ends = spans
        if self._reach:
            ends = [end + self._reach for end in ends]
        taken: int = self._add(self._open, self._close, starts, ends, pairs, kind)
        return taken

    def _close(self, name: object, start: int, end: int, held: object) -> None:
        names, starts, ends, helds = self._closed
        names.append(name)
        starts.append(start)
        ends.append(end)
        helds.append(held)

    def columns(self) -> tuple[list[Any], list[int], list[int], list[Any]]:
        names, starts, ends, helds = self._closed
        latest = self._open.values()
        return (
            [*names, *self._open],
            [*starts, *(start for start, _, _ in latest)],
            [end - self._reach for end in chain(ends, (end for _, end, _ in latest))],
            [*helds, *(held for _, _, held in latest)],
        )
