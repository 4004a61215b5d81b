"""Routes lines between two ranks: each line has its own columns, and its own part of a track across."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise

from penstock.diagrams.ranks import Link, Slot

Columns = range
"""The columns that a line may use at a slot."""


@dataclass(frozen=True, eq=False)
class Crossing:
    """A link on its way from a slot of one rank to a slot of the next one."""

    link: Link
    above: Slot
    below: Slot


@dataclass
class Path:
    """A way through a channel.

    Attributes:
        start: The column where it begins.
        moves: Its tracks, counted from the top, each with the column to which it goes there.
    """

    start: int
    moves: list[tuple[int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The column where it ends."""
        return self.moves[-1][1] if self.moves else self.start


@dataclass
class _Piece:
    """A line that goes down a column, across a track, and down another column."""

    start: int
    end: int
    track: int = -1

    @property
    def span(self) -> tuple[int, int]:
        return min(self.start, self.end), max(self.start, self.end)


def route_channel(crossings: Sequence[Crossing]) -> tuple[int, dict[Link, Path]]:
    """Returns the number of tracks, and the path of each link; no two paths share more than a cell where they cross.

    >>> a, b, c = Slot(0, 5, 3, "a"), Slot(1, 5, 3, "b"), Slot(1, 5, 3, "c", left=8)
    >>> links = Link("a", "b"), Link("a", "c")
    >>> for slot, link in zip((b, c), links):
    ...     a.leaving[link] = slot.entering[link] = None
    >>> tracks, paths = route_channel([Crossing(links[0], a, b), Crossing(links[1], a, c)])
    >>> tracks, paths[links[0]], paths[links[1]]
    (1, Path(start=1, moves=[]), Path(start=3, moves=[(0, 10)]))
    """
    ends = _choose_columns(crossings)
    pieces = {
        crossing.link: [_Piece(*ends[crossing.link])]
        for crossing in crossings
        if ends[crossing.link][0] != ends[crossing.link][1]
    }
    tracks = _give_tracks(pieces, [column for pair in ends.values() for column in pair])
    return tracks, {
        link: Path(start, [(piece.track, piece.end) for piece in pieces.get(link, ())])
        for link, (start, _) in ends.items()
    }


def _choose_columns(crossings: Sequence[Crossing]) -> dict[Link, tuple[int, int]]:
    """The columns where each link begins and ends: lines are straight if possible, and do not meet."""
    uppers, lowers = _Ports(crossings, is_entry=False), _Ports(crossings, is_entry=True)
    ends: dict[Link, tuple[int, int]] = {}
    # Lines without a choice come first, and then those that are nearly straight.
    for crossing in sorted(crossings, key=lambda one: _distance(one, uppers, lowers)):
        link = crossing.link
        upper, lower = uppers.choices(link), lowers.choices(link)
        wish = uppers.wish(link), lowers.wish(link)
        both = range(max(upper.start, lower.start), min(upper.stop, lower.stop))
        free = [column for column in both if uppers.is_free(column, link) and lowers.is_free(column, link)]
        if free:
            start = end = _nearest(free, sum(wish) // 2)
        else:
            start = _nearest([column for column in upper if lowers.is_free(column, link)] or upper, wish[0])
            end = _nearest([column for column in lower if uppers.is_free(column, link)] or lower, wish[1])
        uppers.take(link, start)
        lowers.take(link, end)
        ends[link] = start, end
    return {crossing.link: ends[crossing.link] for crossing in crossings}


def _distance(crossing: Crossing, uppers: _Ports, lowers: _Ports) -> tuple[int, int]:
    choices = len(uppers.choices(crossing.link)), len(lowers.choices(crossing.link))
    return -choices.count(1), abs(uppers.wish(crossing.link) - lowers.wish(crossing.link))


def _nearest(columns: Sequence[int], wish: int) -> int:
    return min(columns, key=lambda column: abs(column - wish))


class _Ports:
    """The columns on one side of a channel: the columns of a box keep the order of the other ends of their links."""

    def __init__(self, crossings: Sequence[Crossing], is_entry: bool) -> None:
        self._columns: dict[Link, int] = {}
        self._owners: dict[int, Link] = {}
        self._places: dict[Link, tuple[Slot, list[Link], int]] = {}
        self._is_entry = is_entry
        at: dict[Slot, list[Crossing]] = defaultdict(list)
        for crossing in crossings:
            at[crossing.below if is_entry else crossing.above].append(crossing)
        for slot, own in at.items():
            own.sort(key=lambda one: (one.above if is_entry else one.below).column(one.link, not is_entry))
            links = [crossing.link for crossing in own]
            for place, link in enumerate(links):
                self._places[link] = slot, links, place
                fixed = (slot.entering if is_entry else slot.leaving)[link]
                if fixed is not None:
                    self.take(link, slot.left + fixed)

    def wish(self, link: Link) -> int:
        """The column that divides the box evenly."""
        if link in self._columns:
            return self._columns[link]
        slot, links, place = self._places[link]
        return slot.left + (place + 1) * slot.breadth // (len(links) + 1)

    def choices(self, link: Link) -> Columns:
        """The columns that keep the order, and leave room for the links that have none yet."""
        if link in self._columns:
            return range(self._columns[link], self._columns[link] + 1)
        slot, links, place = self._places[link]
        first, last = slot.left + 1 + place, slot.left + slot.breadth - 2 - (len(links) - 1 - place)
        for other, each in enumerate(links):
            column = self._columns.get(each)
            if column is not None and other < place:
                first = max(first, column + place - other)
            elif column is not None and other > place:
                last = min(last, column - (other - place))
        return range(first, last + 1)

    def take(self, link: Link, column: int) -> None:
        """Gives a column to a link."""
        self._columns[link] = column
        self._owners[column] = link

    def is_free(self, column: int, link: Link) -> bool:
        """True if no other link has a column."""
        return self._owners.get(column, link) == link


def _give_tracks(pieces: dict[Link, list[_Piece]], columns: Sequence[int]) -> int:
    """Gives each piece a track: a line that comes down a column leaves it above the one that takes it from there."""
    while (order := _order(pieces, columns)) is None:
        pass
    tracks: list[list[tuple[int, int]]] = []
    for piece, after in order:
        track = 1 + max((each.track for each in after), default=-1)
        while track < len(tracks) and any(_meet(piece.span, span) for span in tracks[track]):
            track += 1
        tracks += [[]] if track == len(tracks) else []
        tracks[track].append(piece.span)
        piece.track = track
    return len(tracks)


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _order(
    pieces: dict[Link, list[_Piece]], columns: Sequence[int]
) -> list[tuple[_Piece, list[_Piece]]] | None:
    """The pieces, each with those that are above it, and after them; None if a piece of a circle had to be divided."""
    every = [piece for own in pieces.values() for piece in own]
    above: dict[int, list[_Piece]] = defaultdict(list)
    below: dict[int, list[_Piece]] = defaultdict(list)
    starts = {piece.start: piece for own in pieces.values() for piece in own[:1]}
    for own in pieces.values():
        for first, second in pairwise(own):
            _set_above(first, second, above, below)
        other = starts.get(own[-1].end)
        if other is not None and other is not own[0]:
            _set_above(other, own[-1], above, below)
    waiting = {id(piece): len(above[id(piece)]) for piece in every}
    ready: list[tuple[tuple[int, int], int, _Piece]] = []
    for number, piece in enumerate(every):
        if not waiting[id(piece)]:
            heappush(ready, (_priority(piece), number, piece))
    order: list[tuple[_Piece, list[_Piece]]] = []
    numbers = {id(piece): number for number, piece in enumerate(every)}
    while ready:
        _, _, piece = heappop(ready)
        order.append((piece, above[id(piece)]))
        for each in below[id(piece)]:
            waiting[id(each)] -= 1
            if not waiting[id(each)]:
                heappush(ready, (_priority(each), numbers[id(each)], each))
    if len(order) == len(every):
        return order
    _divide(pieces, columns, {id(piece) for piece in every} - {id(piece) for piece, _ in order})
    return None


def _set_above(
    one: _Piece, other: _Piece, above: Mapping[int, list[_Piece]], below: Mapping[int, list[_Piece]]
) -> None:
    above[id(other)].append(one)
    below[id(one)].append(other)


def _priority(piece: _Piece) -> tuple[int, int]:
    """Lines to the right nest with the rightmost one above, and lines to the left with the leftmost one above."""
    return (0, -piece.start) if piece.end > piece.start else (1, piece.start)


def _divide(pieces: dict[Link, list[_Piece]], columns: Sequence[int], stuck: set[int]) -> None:
    """Lets one line of a circle go round by a column that no other line uses."""
    used = {*columns, *(piece.end for own in pieces.values() for piece in own)}
    link = next(link for link, own in pieces.items() if len(own) == 1 and id(own[0]) in stuck)
    [piece] = pieces[link]
    aside = max(used) + 2
    pieces[link] = [_Piece(piece.start, aside), _Piece(aside, piece.end)]
