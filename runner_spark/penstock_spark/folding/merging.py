"""Merging the windows of one key in batch, where all of them are known.

Session windows that come sorted by their starts merge by looking at neighbours. Any other merging WindowFn is asked
once, with all windows of the key. The values stay pickled, in a `Spool`, so that memory does not grow with the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.elements.bounded_window import IntervalWindow
from penstock.machines.merging import Merging
from penstock.windows.window_fn import GrowingSession, Sessions, WindowFn
from penstock_spark.worker.spool import Spool

Chunk = tuple[int, bytes]
Group = tuple[Any, Iterator[Chunk]]


def merge_groups(windowfn: Any, groups: Iterable[Group], one_pass: bool) -> Iterator[Group]:
    """Merges the windows of a key, sorted by start, with their chunks; the chunk of lowest rank comes first."""
    return _sessions(windowfn, groups) if one_pass else _by_asking(windowfn, groups)


def _sessions(windowfn: Sessions, groups: Iterable[Group]) -> Iterator[Group]:
    session, held = GrowingSession(windowfn.merge_touching), None
    for window, chunks in groups:
        if held is None or not session.takes(window.start_micros, window.end_micros):
            if held is not None:
                yield IntervalWindow.from_micros(*session.bounds), held.chunks()
            held = _Held()
            session.begin(window.start_micros, window.end_micros)
        held.extend(chunks)
    if held is not None:
        yield IntervalWindow.from_micros(*session.bounds), held.chunks()


def _by_asking(windowfn: WindowFn, groups: Iterable[Group]) -> Iterator[Group]:
    holds: dict[Any, _Held] = {}
    for window, chunks in groups:
        holds.setdefault(window, _Held()).extend(chunks)
    merged = Merging(windowfn, holds).sources
    for window, sources in sorted(merged.items(), key=lambda pair: (pair[0].end_micros, str(pair[0]))):
        held = _Held()
        for source in sources:
            held.extend(holds[source].chunks())
        yield window, held.chunks()


class _Held:
    """Chunks of one window, the one of lowest rank first."""

    def __init__(self) -> None:
        self._spool = Spool()
        self._ranks: list[int] = []

    def extend(self, chunks: Iterable[Chunk]) -> None:
        for rank, chunk in chunks:
            self._ranks.append(rank)
            self._spool.append(chunk)

    def chunks(self) -> Iterator[Chunk]:
        lowest = min(self._ranks)
        for chunk in self._spool:
            yield lowest, chunk
