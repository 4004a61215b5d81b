"""Ranks of boxes: which boxes stand side by side, in which order, and how far across.

The method is Sugiyama's: the longest way to a box is its rank, the order in a rank follows the middles of what a box is
linked to, and places come close to these middles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import floor

_SWEEPS = 8
_SWEPT_MAX = 4_000
"""With more slots, fewer sweeps must do."""


@dataclass(frozen=True)
class Link:
    """A line from one box to another one.

    Attributes:
        source: The name of the box where it begins.
        target: The name of the box where it ends.
        is_side: True if it is drawn dashed.
        number: Its number among links of the same boxes.
    """

    source: str
    target: str
    is_side: bool = False
    number: int = 0


@dataclass(eq=False)
class Slot:
    """The place of a box, of a group, or of a line that passes a rank.

    Attributes:
        rank: The rank.
        breadth: The length across.
        depth: The length along; 0 for a line.
        name: The name of the item; None for a line.
        leaving: The links that leave it, each with its column from the left; None if the column is free to choose.
        entering: The links that enter it, likewise.
        left: Where it begins, across.
        along: Where it begins, along.
    """

    rank: int
    breadth: int
    depth: int
    name: str | None = None
    leaving: dict[Link, int | None] = field(default_factory=dict)
    entering: dict[Link, int | None] = field(default_factory=dict)
    left: int = 0
    along: int = 0

    def offset(self, link: Link, is_entry: bool) -> int:
        """The column at which a link meets it, from its left; about that if it is free to choose: its middle."""
        fixed = (self.entering if is_entry else self.leaving)[link]
        return self.breadth // 2 if fixed is None else fixed

    def column(self, link: Link, is_entry: bool) -> int:
        """The column at which a link meets it, across, or about that."""
        return self.left + self.offset(link, is_entry)


Chain = Sequence[Slot]
"""The slots of a link, one in each rank from its source to its target."""


def rank_items(names: Sequence[str], pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Returns the rank of each item: the length of the longest way to it; a source stands just before its first reader.

    >>> rank_items(["a", "b", "c", "late"], [("a", "b"), ("b", "c"), ("late", "c")])
    {'a': 0, 'b': 1, 'c': 2, 'late': 1}
    """
    before: dict[str, set[str]] = {name: set() for name in names}
    after: dict[str, set[str]] = {name: set() for name in names}
    for source, target in pairs:
        before[target].add(source)
        after[source].add(target)
    ranks: dict[str, int] = {}
    waiting = {name: len(before[name]) for name in names}
    ready = [name for name in names if not waiting[name]]
    for name in ready:
        ranks[name] = 1 + max((ranks[each] for each in before[name]), default=-1)
        for each in after[name]:
            waiting[each] -= 1
            if not waiting[each]:
                ready.append(each)
    for name in names:
        if not before[name] and after[name]:
            ranks[name] = min(ranks[each] for each in after[name]) - 1
    return {name: ranks[name] for name in names}


def find_circles(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Returns the names that lie on circles, and those on the ways between circles.

    >>> sorted(find_circles([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]))
    ['b', 'c']
    """
    left = {pair for pair in pairs if pair[0] != pair[1]}
    while True:
        sources, targets = {source for source, _ in left}, {target for _, target in left}
        kept = {pair for pair in left if pair[0] in targets and pair[1] in sources}
        if len(kept) == len(left):
            return sources
        left = kept


def order_slots(ranks: list[list[Slot]], chains: Mapping[Link, Chain]) -> None:
    """Orders the slots of each rank, so that few lines cross."""
    pairs = [pair for chain in chains.values() for pair in pairwise(chain)]
    above, below = _neighbours(pairs)
    best, fewest = [list(rank) for rank in ranks], _crossings(ranks, pairs)
    sweeps = _SWEEPS if sum(map(len, ranks)) < _SWEPT_MAX else 1
    for sweep in range(sweeps):
        if not fewest:
            break
        is_down = sweep % 2 == 0
        places = {slot: place for rank in ranks for place, slot in enumerate(rank)}
        for rank in ranks if is_down else reversed(ranks):
            near = above if is_down else below
            middles = {
                slot: sum(places[each] for each in near[slot]) / len(near[slot])
                if near[slot]
                else float(places[slot])
                for slot in rank
            }
            rank.sort(key=middles.__getitem__)
            places.update((slot, place) for place, slot in enumerate(rank))
        crossings = _crossings(ranks, pairs)
        if crossings < fewest:
            best, fewest = [list(rank) for rank in ranks], crossings
    ranks[:] = best


def _neighbours(
    pairs: Iterable[tuple[Slot, Slot]],
) -> tuple[Mapping[Slot, list[Slot]], Mapping[Slot, list[Slot]]]:
    above: dict[Slot, list[Slot]] = defaultdict(list)
    below: dict[Slot, list[Slot]] = defaultdict(list)
    for source, target in pairs:
        above[target].append(source)
        below[source].append(target)
    return above, below


def _crossings(ranks: Sequence[Sequence[Slot]], pairs: Iterable[tuple[Slot, Slot]]) -> int:
    """The number of pairs of lines that cross."""
    places = {slot: place for rank in ranks for place, slot in enumerate(rank)}
    channels: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for source, target in pairs:
        channels[source.rank].append((places[source], places[target]))
    count = 0
    for lines in channels.values():
        seen: list[int] = []
        for _, end in sorted(lines):
            place = bisect_right(seen, end)
            count += len(seen) - place
            seen.insert(place, end)
    return count


def place_slots(ranks: Sequence[Sequence[Slot]], chains: Mapping[Link, Chain], between: int) -> None:
    """Sets where each slot begins across: lines are nearly straight, and slots keep their distance.

    Args:
        ranks: The slots in their order.
        chains: The slots of each link.
        between: The cells between two boxes; a line needs one less.
    """
    above: dict[Slot, list[tuple[Slot, Link]]] = defaultdict(list)
    below: dict[Slot, list[tuple[Slot, Link]]] = defaultdict(list)
    for link, chain in chains.items():
        for source, target in pairwise(chain):
            above[target].append((source, link))
            below[source].append((target, link))
    distances = [_distances(rank, between) for rank in ranks]
    for rank, starts in zip(ranks, distances, strict=True):
        for slot, start in zip(rank, starts, strict=True):
            slot.left = start
    for sweep in range(_SWEEPS):
        order = range(len(ranks)) if sweep % 2 == 0 else reversed(range(len(ranks)))
        for number in order:
            rank = ranks[number]
            wishes = []
            for slot in rank:
                wished = [each.column(link, False) - slot.offset(link, True) for each, link in above[slot]]
                # The sweep follows the side from which it comes; the last ones follow both.
                if sweep >= _SWEEPS - 2 or not wished or sweep % 2:
                    lower = [each.column(link, True) - slot.offset(link, False) for each, link in below[slot]]
                    wished = lower if sweep % 2 and lower and sweep < _SWEEPS - 2 else wished + lower
                wishes.append((sum(wished) / len(wished), len(wished)) if wished else (float(slot.left), 0.1))
            for slot, left in zip(rank, _spread(wishes, distances[number]), strict=True):
                slot.left = left
    first = min((slot.left for rank in ranks for slot in rank), default=0)
    for rank in ranks:
        for slot in rank:
            slot.left -= first


def _distances(rank: Sequence[Slot], between: int) -> list[int]:
    """The places of the slots of a rank if they stand as close together as they may."""
    starts, start = [], 0
    for number, slot in enumerate(rank):
        starts.append(start)
        is_by_line = slot.name is None or (number + 1 < len(rank) and rank[number + 1].name is None)
        start += slot.breadth + (max(between - 1, 1) if is_by_line else between)
    return starts


def _spread(wishes: Sequence[tuple[float, float]], distances: Sequence[int]) -> list[int]:
    """Returns places that keep distances and are as near to weighted wishes as they can be.

    >>> _spread([(0, 1), (0, 1)], [0, 4]), _spread([(0, 1), (9, 1)], [0, 4])
    ([-2, 2], [0, 9])
    """
    blocks: list[tuple[float, float, int]] = []
    for (wish, weight), distance in zip(wishes, distances, strict=True):
        blocks.append((wish - distance, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (last, last_weight, last_count), (one, one_weight, one_count) = blocks.pop(), blocks.pop()
            both = one_weight + last_weight
            blocks.append(((one * one_weight + last * last_weight) / both, both, one_count + last_count))
    moved = [floor(value + 0.5) for value, _, count in blocks for _ in range(count)]
    return [value + distance for value, distance in zip(moved, distances, strict=True)]
