"""Holds the values of a window that may come apart: all together, and by their windows before merging."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow
from penstock.functions.folds import Fold
from penstock.machines.folds import add_to_bag, merge_bags, retract_from_bag
from penstock.machines.records import Element

Pieces = dict[tuple[BoundedWindow, int], tuple[list[Any], list[Any]]]
"""The values that are there and the values that are owed, by an element's window before merging and its event time."""


class SeparableValues(NamedTuple):
    """The values of a window that may come apart."""

    whole: object
    pieces: Pieces
    owing: int = 0  # The number of values that it owes.


def separable_fold(together: Fold) -> Fold:
    """Returns the fold of values that are held together, beside the same by their windows before merging; see `put`."""

    def merge(held: SeparableValues, other: SeparableValues) -> SeparableValues:
        pieces = held.pieces
        for place, piece in other.pieces.items():
            pieces[place] = merge_bags(pieces[place], piece) if place in pieces else piece
        whole = together.merge(held.whole, other.whole)
        return _held(whole, {place: piece for place, piece in pieces.items() if any(piece)})

    return Fold(
        empty=lambda: SeparableValues(together.empty(), {}),
        lift=_needs_its_window,
        step=_needs_its_window,
        merge=merge,
        finish=lambda held: together.finish(held.whole),
        form=f"{together.form}, and all of them by the windows of each",
        copy=lambda held: held._replace(whole=together.copy(held.whole)),
        owed=lambda held: together.owed(held.whole),
        has_values=lambda held: together.has_values(held.whole),
    )


def _needs_its_window(*given: object) -> object:
    raise AssertionError("a value without its window came to a window that may come apart")


def put(together: Fold, held: SeparableValues, element: Element, window: BoundedWindow) -> SeparableValues:
    """Adds an element to what a window holds, or retracts it; `window` is its window before merging."""
    place = window, element.timestamp_micros
    piece = held.pieces.setdefault(place, ([], []))
    owed_before = len(piece[1])
    if element.kind.is_retraction:
        assert together.inverse is not None
        whole = together.inverse(held.whole, element.value)
        retract_from_bag(piece, element.value)
    else:
        whole = together.step(held.whole, element.value)
        add_to_bag(piece, element.value)
    if not any(piece):
        del held.pieces[place]
    return SeparableValues(whole, held.pieces, held.owing - owed_before + len(piece[1]))


def join_pieces(together: Fold, pieces: Pieces) -> SeparableValues:
    """Everything that a window holds if it consists of some pieces."""
    assert together.inverse is not None
    whole = together.empty()
    for there, owed in pieces.values():
        for value in there:
            whole = together.step(whole, value)
        for value in owed:
            whole = together.inverse(whole, value)
    return _held(whole, pieces)


def _held(whole: object, pieces: Pieces) -> SeparableValues:
    return SeparableValues(whole, pieces, sum(len(owed) for _, owed in pieces.values()))


def windows_of_pieces(held: SeparableValues) -> list[BoundedWindow]:
    """Returns the windows before merging of the values that are there."""
    return [window for (window, _), (there, _) in held.pieces.items() if there]
