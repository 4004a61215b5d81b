"""What a window holds that may come apart: its values together, and by the windows that they have by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.base.bounded_window import BoundedWindow
from penstock.machines.contents import Bag, Contents
from penstock.machines.records import Element

_BAG = Bag()

Pieces = dict[tuple[BoundedWindow, int], tuple[list[Any], list[Any]]]
"""By the window that an element has by itself and its event time in microseconds: the values that are there, and those
that are owed."""


class Held(NamedTuple):
    """What a window holds that may come apart.

    Attributes:
        whole: What it holds as one.
        pieces: What it is made of.
        owing: How many values it owes.
    """

    whole: Any
    pieces: Pieces
    owing: int = 0


class Separable(Contents):
    """What a window holds as one, beside the values by the windows that they would have without the others.

    Args:
        together: The operations on what it holds as one.
    """

    def __init__(self, together: Contents) -> None:
        self.together = together

    def empty(self) -> Held:
        """No values."""
        return Held(self.together.empty(), {})

    def add(self, held: Held, value: Any) -> Held:
        """Not asked for: see `put`."""
        raise NotImplementedError

    def subtract(self, held: Held, value: Any) -> Held:
        """Not asked for: see `put`."""
        raise NotImplementedError

    def put(self, held: Held, element: Element, window: BoundedWindow) -> Held:
        """With one element more, or less, that has a window by itself."""
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
        """What several windows hold, together."""
        pieces: Pieces = {}
        for held in several:
            for place, piece in held.pieces.items():
                pieces[place] = _BAG.merge([pieces[place], piece]) if place in pieces else piece
        whole = self.together.merge([held.whole for held in several])
        return _held(whole, {place: piece for place, piece in pieces.items() if any(piece)})

    def result(self, held: Held, is_kept: bool) -> Any:
        """Of all together."""
        return self.together.result(held.whole, is_kept)

    def owed(self, held: Held) -> list[Any]:
        """Those of all together."""
        return self.together.owed(held.whole)

    def has_values(self, held: Held) -> bool:
        """Whether there may be values besides those that are owed."""
        return self.together.has_values(held.whole)

    def of_pieces(self, pieces: Pieces) -> Held:
        """What a window holds that is made of some pieces."""
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
    """The windows that the values that are there have by themselves."""
    return [window for (window, _), (there, _) in held.pieces.items() if there]
