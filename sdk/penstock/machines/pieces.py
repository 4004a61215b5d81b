"""What a window holds if it may come apart: all values together, and by their windows before merging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.base.bounded_window import BoundedWindow
from penstock.machines.contents import Bag, Contents
from penstock.machines.records import Element

_BAG = Bag()

Pieces = dict[tuple[BoundedWindow, int], tuple[list[Any], list[Any]]]
"""The values that are there and the values that are owed, by an element's window before merging and its event time."""


class Held(NamedTuple):
    """What a window holds if it may come apart."""

    whole: Any
    pieces: Pieces
    owing: int = 0  # The number of values that it owes.


class Separable(Contents):
    """Contents that hold all values as one (`together`), beside the values by their windows before merging."""

    def __init__(self, together: Contents) -> None:
        self.together = together

    def empty(self) -> Held:
        return Held(self.together.empty(), {})

    def add(self, held: Held, value: Any) -> Held:
        """Never called: see `put`."""
        raise NotImplementedError

    def subtract(self, held: Held, value: Any) -> Held:
        """Never called: see `put`."""
        raise NotImplementedError

    def put(self, held: Held, element: Element, window: BoundedWindow) -> Held:
        """Adds an element, or takes it back; `window` is its window before merging."""
        place = window, element.timestamp_micros
        piece = held.pieces.setdefault(place, ([], []))
        owed_before = len(piece[1])
        if element.kind.is_retraction:
            whole = self.together.subtract(held.whole, element.value)
            _BAG.subtract(piece, element.value)
        else:
            whole = self.together.add(held.whole, element.value)
            _BAG.add(piece, element.value)
        if not any(piece):
            del held.pieces[place]
        return Held(whole, held.pieces, held.owing - owed_before + len(piece[1]))

    def merge(self, several: Sequence[Held]) -> Held:
        pieces: Pieces = {}
        for held in several:
            for place, piece in held.pieces.items():
                pieces[place] = _BAG.merge([pieces[place], piece]) if place in pieces else piece
        whole = self.together.merge([held.whole for held in several])
        return _held(whole, {place: piece for place, piece in pieces.items() if any(piece)})

    def result(self, held: Held, is_kept: bool) -> Any:
        return self.together.result(held.whole, is_kept)

    def owed(self, held: Held) -> list[Any]:
        return self.together.owed(held.whole)

    def has_values(self, held: Held) -> bool:
        return self.together.has_values(held.whole)

    def of_pieces(self, pieces: Pieces) -> Held:
        """What a window that consists of some pieces holds."""
        whole = self.together.empty()
        for there, owed in pieces.values():
            for value in there:
                whole = self.together.add(whole, value)
            for value in owed:
                whole = self.together.subtract(whole, value)
        return _held(whole, pieces)


def _held(whole: Any, pieces: Pieces) -> Held:
    return Held(whole, pieces, sum(len(owed) for _, owed in pieces.values()))


def own_windows(held: Held) -> list[BoundedWindow]:
    """The windows before merging of the values that are there."""
    return [window for (window, _), (there, _) in held.pieces.items() if there]
