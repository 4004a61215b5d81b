"""The bounded history of a stream for its figure: watermarks over processing time, and the windows that fired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

POINTS_MAX = 240
"""So many points has the line of a watermark at most; older ones are thinned out, so that the line stays whole."""

FIRINGS_MAX = 400
"""So many firings are kept: the last ones."""

LINES_MAX = 12
"""So many groupings have a line: the first ones of the pipeline."""

_RECENT = POINTS_MAX // 3


@dataclass(frozen=True)
class Firing:
    """A window that fired: when, and for how many keys, but not its panes.

    Attributes:
        label: The grouping.
        clock_micros: When it fired, in processing time.
        start_micros: Where the window begins in event time; None where it has no beginning.
        end_micros: Where it ends.
        timing: ``early``, ``on_time``, ``late``, ``retracted``, or ``dropped`` for elements that it no longer took.
        count: How many panes, retractions or elements.
    """

    label: str
    clock_micros: int
    start_micros: int | None
    end_micros: int | None
    timing: str
    count: int


@dataclass(frozen=True)
class Line:
    """The output watermark of a grouping: pairs of a processing time and the event time from then on."""

    label: str
    points: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True)
class History:
    """The data of a stream's figure.

    Attributes:
        lines: A line for each grouping.
        firings: The last firings, in order of processing time.
        left_out: How many earlier firings are left out.
    """

    lines: tuple[Line, ...] = ()
    firings: tuple[Firing, ...] = ()
    left_out: int = 0


def extend_history(
    history: History,
    clock_micros: int | None,
    watermarks: Mapping[str, int | None],
    firings: Iterable[Firing] = (),
) -> History:
    """Returns the history with the changes of a micro-batch.

    >>> before = extend_history(History(), 1_000_000, {"Sum": None})
    >>> after = extend_history(before, 2_000_000, {"Sum": 500_000})
    >>> after.lines
    (Line(label='Sum', points=((1000000, None), (2000000, 500000))),)
    """
    lines = history.lines
    if clock_micros is not None:
        before = {line.label: line.points for line in lines}
        labels = list(dict.fromkeys([*before, *watermarks]))[:LINES_MAX]
        lines = tuple(
            Line(label, _longer(before.get(label, ()), clock_micros, watermarks.get(label)))
            for label in labels
        )
    every = [*history.firings, *firings]
    return replace(
        history,
        lines=lines,
        firings=tuple(every[-FIRINGS_MAX:]),
        left_out=history.left_out + max(0, len(every) - FIRINGS_MAX),
    )


def _longer(
    points: tuple[tuple[int, int | None], ...], clock_micros: int, micros: int | None
) -> tuple[tuple[int, int | None], ...]:
    """Returns a line with one more point; where a watermark does not move, its first and last points are enough."""
    kept = [point for point in points if point[0] < clock_micros]
    if len(kept) > 1 and kept[-1][1] == kept[-2][1] == micros:
        kept.pop()
    kept.append((clock_micros, micros))
    if len(kept) > POINTS_MAX:
        kept = [*kept[:-_RECENT:2], *kept[-_RECENT:]]
    return tuple(kept)
