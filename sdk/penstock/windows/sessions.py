"""Sessions: windows that follow the activity of a key, as long as it lasts or up to a greatest length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.base.bounded_window import BoundedWindow, IntervalWindow
from penstock.base.where import here
from penstock.base.window_lengths import positive_micros
from penstock.error import three_parts
from penstock.utils.timestamp import Duration, DurationTypes
from penstock.windows.window_fn import ByTimestamp, MergeScope, WindowFn


@dataclass(frozen=True, init=False, eq=False)
class Sessions(ByTimestamp):
    """A window for each run of elements of a key without a long gap between them (Beam's ``Sessions``).

    Args:
        gap_size: An element this many seconds after the one before, or more, starts a new session.
        merge_touching: Whether an element exactly `gap_size` after the one before still joins its session
            (penstock's own; in Beam it never does).

    Raises:
        TypeError: An argument is of another type.
        ValueError: `gap_size` is less than a microsecond, or not finite.

    >>> Sessions(10).assign_micros(5_000_000)
    ([5.0, 15.0),)
    """

    merge_scope: ClassVar[MergeScope] = MergeScope.NEIGHBOURS

    gap_size: Duration
    merge_touching: bool
    gap_micros: int = field(repr=False)

    def __init__(self, gap_size: DurationTypes, merge_touching: bool = False) -> None:
        gap_micros = positive_micros("gap_size parameter", gap_size)
        vars(self).update(
            gap_size=Duration.from_micros(gap_micros),
            merge_touching=_flag(merge_touching),
            gap_micros=gap_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The session of an element alone, from its timestamp in microseconds (penstock's own)."""
        return (IntervalWindow.from_micros(timestamp_micros, timestamp_micros + self.gap_micros),)

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges each run of sessions that overlap (or touch, with `merge_touching`)."""
        _merge_runs(merge_context, self.merge_touching)


@dataclass(frozen=True, init=False, eq=False)
class BoundedSessions(ByTimestamp):
    """Sessions that never grow longer than a bound (Streaming Systems, chapter 4; Beam has none).

    A run of elements that goes on for longer is several sessions, one after the other; a later one may begin before
    the one before it has ended. Where a run is cut depends on what has merged before, and so on the order in which
    elements come and results are given. In batch, where all are known, it is cut from its start on.

    Args:
        gap_size: An element this many seconds after the one before, or more, starts a new session.
        max_size: No session is longer, its last gap included; in seconds.
        merge_touching: Whether an element exactly `gap_size` after the one before still joins its session.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A length is less than a microsecond or not finite, or `max_size` is less than `gap_size`.

    >>> BoundedSessions(60, max_size=180).assign_micros(5_000_000)
    ([5.0, 65.0),)
    """

    merge_scope: ClassVar[MergeScope] = MergeScope.OVERLAPPING

    gap_size: Duration
    max_size: Duration
    merge_touching: bool
    gap_micros: int = field(repr=False)
    max_micros: int = field(repr=False)

    def __init__(
        self, gap_size: DurationTypes, max_size: DurationTypes, merge_touching: bool = False
    ) -> None:
        gap_micros = positive_micros("gap_size parameter", gap_size)
        max_micros = positive_micros("max_size parameter", max_size)
        if max_micros < gap_micros:
            what = f"the max_size parameter is {max_size!r}, less than the gap_size parameter, {gap_size!r}"
            hint = "a session of one element is already as long as the gap; give at least that"
            raise ValueError(three_parts(what, where=here(), hint=hint))
        vars(self).update(
            gap_size=Duration.from_micros(gap_micros),
            max_size=Duration.from_micros(max_micros),
            merge_touching=_flag(merge_touching),
            gap_micros=gap_micros,
            max_micros=max_micros,
        )

    def assign_micros(self, timestamp_micros: int) -> tuple[IntervalWindow, ...]:
        """The session of an element alone, from its timestamp in microseconds (penstock's own)."""
        return (IntervalWindow.from_micros(timestamp_micros, timestamp_micros + self.gap_micros),)

    def merge(self, merge_context: WindowFn.MergeContext) -> None:
        """Merges runs of sessions that overlap (or touch, with `merge_touching`), each only up to `max_size`."""
        _merge_runs(merge_context, self.merge_touching, self.max_micros)


def _merge_runs(
    merge_context: WindowFn.MergeContext, merge_touching: bool, max_micros: float = math.inf
) -> None:
    for run, whole in _runs(merge_context.windows, merge_touching, max_micros):
        if len(run) > 1:
            merge_context.merge(run, whole)


def _runs(
    windows: Iterable[Any], merge_touching: bool, max_micros: float
) -> Iterator[tuple[list[BoundedWindow], IntervalWindow]]:
    """Each run of windows that become one session, with that session, in order of time."""
    reach_micros = 1 if merge_touching else 0
    run: list[BoundedWindow] = []
    start_micros = end_micros = 0
    for window in sorted(windows, key=lambda window: (window.start_micros, window.end_micros)):
        later_micros = max(end_micros, window.end_micros)
        # The bound is tested before a window joins: a session that has merged cannot be taken apart again.
        if run and (
            window.start_micros >= end_micros + reach_micros or later_micros - start_micros > max_micros
        ):
            yield run, IntervalWindow.from_micros(start_micros, end_micros)
            run = []
        if not run:
            start_micros, later_micros = window.start_micros, window.end_micros
        run.append(window)
        end_micros = later_micros
    if run:
        yield run, IntervalWindow.from_micros(start_micros, end_micros)


def _flag(merge_touching: bool) -> bool:
    if isinstance(merge_touching, bool):
        return merge_touching
    what = f"the merge_touching parameter must be True or False, but is {merge_touching!r}"
    hint = "sessions of a greatest length are BoundedSessions(gap_size, max_size)"
    raise TypeError(three_parts(what, where=here(), hint=hint))
