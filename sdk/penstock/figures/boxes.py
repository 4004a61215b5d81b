"""Panes as rectangles: from the processing time of what they refine up to their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.figures.recording import RecordedInput, RecordedPane


@dataclass(frozen=True)
class PaneBox:
    """A pane of one key, and the rectangle that stands for it.

    Attributes:
        pane: The pane.
        from_micros: The processing time at which its rectangle begins: that of the pane before it, or of the first
            element that is new in it.
        refinements: The number of earlier panes that it refines.
        is_taken_back: Whether a later pane takes its value back.
    """

    pane: RecordedPane
    from_micros: int
    refinements: int
    is_taken_back: bool


def boxes_of(panes: Sequence[RecordedPane], inputs: Sequence[RecordedInput]) -> list[PaneBox]:
    """The rectangles of all panes of one key that give a value, in their order.

    A pane refines earlier ones of its window, and of windows within it, which have become part of it.

    >>> inputs = [RecordedInput(3, 100, "", "7"), RecordedInput(4, 300, "", "8")]
    >>> panes = [RecordedPane(0, 10, 200, "", "7", 0, 0), RecordedPane(0, 10, 400, "", "15", 1, 1)]
    >>> [(box.from_micros, box.refinements) for box in boxes_of(panes, inputs)]
    [(100, 0), (200, 1)]
    """
    taken_back = _taken_back(panes)
    given: list[RecordedPane] = []
    boxes: list[PaneBox] = []
    for number, pane in enumerate(panes):
        if not pane.is_retraction:
            refined = [before for before in given if _is_within(before, pane)]
            boxes.append(PaneBox(pane, _begin(pane, refined, inputs), len(refined), number in taken_back))
            given.append(pane)
    return boxes


def _is_within(inner: RecordedPane, outer: RecordedPane) -> bool:
    return outer.start_micros <= inner.start_micros and inner.end_micros <= outer.end_micros


def _begin(pane: RecordedPane, refined: Sequence[RecordedPane], inputs: Sequence[RecordedInput]) -> int:
    """The latest of the panes before; an element that none of them has seen comes first, if it is earlier."""
    moments = [before.clock_micros for before in refined if before.clock_micros < pane.clock_micros]
    new = [
        each.clock_micros
        for each in inputs
        if pane.start_micros <= each.event_micros < pane.end_micros
        and each.clock_micros <= pane.clock_micros
        # Backwards, because the last one has seen most.
        and not any(_has_seen(before, each) for before in reversed(refined))
    ]
    return min([*moments[-1:], *new[:1]], default=pane.clock_micros)


def _has_seen(pane: RecordedPane, element: RecordedInput) -> bool:
    return (
        element.clock_micros <= pane.clock_micros
        and pane.start_micros <= element.event_micros < pane.end_micros
    )


def _taken_back(panes: Sequence[RecordedPane]) -> set[int]:
    """The numbers of the panes whose value is taken back: each retraction is of the latest that it fits."""
    standing: dict[tuple[int, int, str], list[int]] = {}
    found: set[int] = set()
    for number, pane in enumerate(panes):
        of_the_same = standing.setdefault((pane.start_micros, pane.end_micros, pane.value), [])
        if not pane.is_retraction:
            of_the_same.append(number)
        elif of_the_same:
            found.add(of_the_same.pop())
    return found
