"""Places boxes in ranks, each below the boxes that it reads, and routes a line for each link, without an overlap.

All lengths are whole cells. *Along* is the direction of the flow, and *across* is the other one: a writer that turns
them round draws from left to right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.diagrams.channels import Crossing, route_channel
from penstock.diagrams.ranks import Link, Slot, order_slots, place_slots, rank_items

Point = tuple[int, int]
"""A cell: its place across, and its place along."""


@dataclass(frozen=True)
class Item:
    """A box to place, or a group of items with a frame around them.

    Attributes:
        name: The name, unique among all items.
        breadth: Its length across; for a group the smallest one, which its title needs.
        depth: Its length along; a group's own depth is not used.
        inside: What is in it; empty for a box.
    """

    name: str
    breadth: int
    depth: int = 0
    inside: tuple[Item, ...] = ()

    def names(self) -> Iterable[str]:
        """The names of the boxes in it."""
        if not self.inside:
            yield self.name
        for item in self.inside:
            yield from item.names()


@dataclass(frozen=True)
class Spacing:
    """The room between things, in cells.

    Attributes:
        between: Between two boxes of a rank.
        track: Between two lines that run across.
        arrow: Before a box, for the arrow.
        dashes: More before a box with a dashed line, so that the dashes can be seen.
        beside: Within a frame, beside its boxes.
        title: Within a frame, above its boxes.
        end: Within a frame, below its boxes.
    """

    between: int
    track: int
    arrow: int
    dashes: int
    beside: int
    title: int
    end: int


class Placed(NamedTuple):
    """The place of a box or a frame."""

    across: int
    along: int
    breadth: int
    depth: int


@dataclass
class Layout:
    """The places of everything.

    Attributes:
        breadth: The length of all of it across.
        depth: The length of all of it along.
        boxes: The boxes by name.
        frames: The frames of groups by name, outer ones first.
        routes: The corners of each line, from the last cell of its source to the first cell of its target.
    """

    breadth: int = 0
    depth: int = 0
    boxes: dict[str, Placed] = field(default_factory=dict)
    frames: dict[str, Placed] = field(default_factory=dict)
    routes: dict[Link, list[Point]] = field(default_factory=dict)


def lay_out(items: Sequence[Item], links: Sequence[Link], spacing: Spacing) -> Layout:
    """Places items and routes links.

    Args:
        items: The items at the top. Links between them, and between the items of a group, form no circle.
        links: The links between boxes.
        spacing: The room between things.

    >>> room = Spacing(between=3, track=1, arrow=1, dashes=0, beside=2, title=1, end=1)
    >>> made = lay_out([Item("a", 5, 3), Item("b", 5, 3)], [Link("a", "b")], room)
    >>> made.boxes["b"], made.routes[Link("a", "b")]
    (Placed(across=0, along=4, breadth=5, depth=3), [(2, 2), (2, 4)])
    """
    return _Level(items, links, spacing).lay_out()


class _Level:
    """The items of one group, or those at the top, whose links may begin or end outside."""

    def __init__(self, items: Sequence[Item], links: Sequence[Link], spacing: Spacing) -> None:
        self._items = {item.name: item for item in items}
        self._spacing = spacing
        place = {name: item.name for item in items for name in item.names()}
        self._ends = {link: (place.get(link.source), place.get(link.target)) for link in links}
        self._groups = {
            item.name: _Level(item.inside, self._links_of(item.name), spacing).lay_out()
            for item in items
            if item.inside
        }
        self._slots: dict[str, Slot] = {}

    def _links_of(self, name: str) -> list[Link]:
        return [link for link, ends in self._ends.items() if name in ends]

    def lay_out(self) -> Layout:
        """Places the items and all that is in them; the routes of links from outside begin at the edge."""
        chains = self._chains()
        ranks = self._ranks(chains)
        order_slots(ranks, chains)
        place_slots(ranks, chains, self._spacing.between)
        made = self._route(ranks, chains)
        for name, slot in self._slots.items():
            self._add(name, slot, made)
        return made

    def _chains(self) -> dict[Link, list[Slot]]:
        """The slots of each link at this level, one in each rank from its source to its target."""
        outer = {link: ends for link, ends in self._ends.items() if ends[0] is None or ends[0] != ends[1]}
        pairs = [(source, target) for source, target in outer.values() if source and target]
        ranks = rank_items(list(self._items), pairs)
        # Lines from outside begin in a rank of their own, above all items.
        first = int(any(source is None for source, _ in outer.values()))
        last = first + max(ranks.values(), default=-1) + 1
        for name, rank in ranks.items():
            self._slots[name] = Slot(first + rank, *self._size(name), name)
        chains = {}
        for link, (source, target) in outer.items():
            begin = Slot(0, 1, 0) if source is None else self._slots[source]
            end = Slot(last, 1, 0) if target is None else self._slots[target]
            between = [Slot(rank, 1, 0) for rank in range(begin.rank + 1, end.rank)]
            chains[link] = [begin, *between, end]
            for slot in chains[link][:-1]:
                slot.leaving[link] = self._fixed(slot, link, is_entry=False)
            for slot in chains[link][1:]:
                slot.entering[link] = self._fixed(slot, link, is_entry=True)
        for name, slot in self._slots.items():
            if name not in self._groups:
                slot.breadth = max(slot.breadth, 2 * max(len(slot.entering), len(slot.leaving)) + 1)
        return chains

    def _size(self, name: str) -> tuple[int, int]:
        item, inner, room = self._items[name], self._groups.get(name), self._spacing
        if inner is None:
            return item.breadth, item.depth
        breadth = max(item.breadth, inner.breadth + 2 * room.beside)
        return breadth, inner.depth + room.title + room.end

    def _inset(self, name: str) -> int:
        """The distance of the content of a group from the beginning of its frame, across."""
        return (self._slots[name].breadth - self._groups[name].breadth) // 2

    def _fixed(self, slot: Slot, link: Link, is_entry: bool) -> int | None:
        """The column of a slot that a link must use: it crosses the frame of a group where it continues inside."""
        if slot.name is None:
            return 0
        inner = self._groups.get(slot.name)
        if inner is None:
            return None
        return self._inset(slot.name) + inner.routes[link][0 if is_entry else -1][0]

    def _ranks(self, chains: Mapping[Link, list[Slot]]) -> list[list[Slot]]:
        slots = dict.fromkeys([*self._slots.values(), *(slot for chain in chains.values() for slot in chain)])
        ranks: list[list[Slot]] = [[] for _ in range(max((slot.rank for slot in slots), default=-1) + 1)]
        for slot in slots:
            ranks[slot.rank].append(slot)
        return ranks

    def _route(self, ranks: Sequence[Sequence[Slot]], chains: Mapping[Link, list[Slot]]) -> Layout:
        """Sets where slots begin along, and returns the routes at this level."""
        room, made, along = self._spacing, Layout(), 0
        for number, rank in enumerate(ranks):
            for slot in rank:
                slot.along = along
                made.breadth = max(made.breadth, slot.left + slot.breadth)
            along += max((slot.depth for slot in rank), default=0)
            passing = {
                link: chain for link, chain in chains.items() if chain[0].rank <= number < chain[-1].rank
            }
            if number + 1 == len(ranks):
                break
            tracks, paths = route_channel(
                [
                    Crossing(link, *chain[number - chain[0].rank : number - chain[0].rank + 2])
                    for link, chain in passing.items()
                ]
            )
            for link, path in paths.items():
                begin = chains[link][0]
                route = made.routes.setdefault(link, [(path.start, begin.along + max(begin.depth - 1, 0))])
                for track, column in path.moves:
                    place = along + track * room.track + room.track // 2
                    route += [(route[-1][0], place), (column, place)]
                    made.breadth = max(made.breadth, column + 1)
            # Lines that leave the group have no arrow at its frame.
            has_arrows = any(slot.name is not None for slot in ranks[number + 1])
            has_dashes = any(link.is_side for link in passing)
            along += (
                tracks * room.track + (room.arrow if has_arrows else 0) + (room.dashes if has_dashes else 0)
            )
            for link, path in paths.items():
                if chains[link][-1].rank == number + 1:
                    made.routes[link].append((path.end, along))
        made.depth = along
        return made

    def _add(self, name: str, slot: Slot, made: Layout) -> None:
        """Adds the box of an item; or the frame of a group, with all that is in it."""
        placed = Placed(slot.left, slot.along, slot.breadth, slot.depth)
        inner = self._groups.get(name)
        if inner is None:
            made.boxes[name] = placed
            return
        made.frames[name] = placed
        across, along = slot.left + self._inset(name), slot.along + self._spacing.title
        for found, into in ((inner.boxes, made.boxes), (inner.frames, made.frames)):
            for each, (left, top, breadth, depth) in found.items():
                into[each] = Placed(left + across, top + along, breadth, depth)
        for link, route in inner.routes.items():
            moved = [(column + across, place + along) for column, place in route]
            match self._ends[link]:
                case source, target if source == target:
                    made.routes[link] = moved
                case source, _ if source == name:
                    made.routes[link] = _join(moved, made.routes[link])
                case _:
                    made.routes[link] = _join(made.routes[link], moved)


def _join(first: list[Point], second: list[Point]) -> list[Point]:
    """One route out of two: where they meet is not a corner."""
    return [*first[:-1], *second[1:]]
