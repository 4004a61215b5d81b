"""A deterministic, mergeable summary of a multiset from which ranks can be read with a bounded error.

It is a tower of levels. Level 0 holds inputs. When there are more entries than the budget, the lowest level
with ``2 * capacity`` of them is sorted and thinned to half, which goes up one level. Unweighted entries of
level i stand for 2**i inputs each, and thinning keeps every other one; so a rank moves by at most 2**i per
thinning, and by at most ``inputs / (2 * capacity)`` per level in all. Weighted entries carry their weights,
and thinning joins neighbours into groups of at most ``2 / (capacity - 1)`` of the weight at hand, each
represented by its weighted median; so a rank moves by at most ``weight / (capacity - 1)`` per level in all.
After: Munro and Paterson 1980; Manku, Rajagopalan and Lindsay 1998, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SketchSettings:
    """What all parts of one sketch share.

    Attributes:
        capacity: Half the number of entries that a level must have to be thinned; at least 2.
        budget: The number of entries above which levels are thinned.
        key: From a value to what is compared; None compares the values.
        reverse: Whether the order is descending.
        weighted: Whether entries are ``(value, weight)`` pairs rather than values.
    """

    capacity: int
    budget: int
    key: Callable[[Any], Any] | None = None
    reverse: bool = False
    weighted: bool = False

    def sort(self, entries: list[Any]) -> None:
        """Sorts entries in place by value."""
        key = self.key
        by_value: Callable[[Any], Any] | None = key
        if self.weighted:
            by_value = (lambda pair: pair[0]) if key is None else (lambda pair: key(pair[0]))
        entries.sort(key=by_value, reverse=self.reverse)

    def values(self, entries: Iterable[Any]) -> Iterable[Any]:
        """The values of entries."""
        return (value for value, _ in entries) if self.weighted else entries

    def bounds(self, values: Iterable[Any]) -> tuple[Any, Any]:
        """The first and the last value in the sketch's order; there must be one."""
        held = list(values)
        ends = min(held, key=self.key), max(held, key=self.key)
        return ends[::-1] if self.reverse else ends


@dataclass
class Sketch:
    """The summary; it changes in place.

    Attributes:
        levels: The entries of each level.
        thinned: How often each level was thinned; it decides which half is kept, so that errors cancel.
        bounds: The first and last value ever seen; () before the first.
    """

    levels: list[list[Any]] = field(default_factory=lambda: [[]])
    thinned: list[int] = field(default_factory=lambda: [0])
    bounds: tuple[Any, ...] = ()

    def add(self, entries: Sequence[Any], settings: SketchSettings) -> None:
        """Adds inputs: values, or pairs of value and weight if the sketch is weighted.

        >>> sketch, settings = Sketch(), SketchSettings(capacity=2, budget=4)
        >>> sketch.add(range(9), settings)
        >>> sketch.bounds, sum(weight for _, weight in sketch.entries(settings))
        ((0, 8), 9)
        """
        if entries:
            self.bounds = settings.bounds([*self.bounds, *settings.values(entries)])
            self.levels[0].extend(entries)
            self._thin(settings)

    def absorb(self, other: Sketch, settings: SketchSettings) -> None:
        """Adds all that another sketch has seen; the other stays as it is."""
        if not other.bounds:
            return
        self.bounds = settings.bounds([*self.bounds, *other.bounds])
        while len(self.levels) < len(other.levels):
            self.levels.append([])
            self.thinned.append(0)
        for level, entries in enumerate(other.levels):
            self.levels[level].extend(entries)
            self.thinned[level] += other.thinned[level]
        self._thin(settings)

    def entries(self, settings: SketchSettings) -> Iterator[tuple[Any, Any]]:
        """Every value that is held, with the weight it stands for, in no order."""
        for level, entries in enumerate(self.levels):
            if settings.weighted:
                yield from entries
            else:
                yield from ((value, 1 << level) for value in entries)

    def _thin(self, settings: SketchSettings) -> None:
        while sum(map(len, self.levels)) > settings.budget:
            full = (level for level, held in enumerate(self.levels) if len(held) >= 2 * settings.capacity)
            level = next(full, None)
            if level is None:
                # Entries are few on every level, so there are at most as many as the levels allow.
                return
            if level + 1 == len(self.levels):
                self.levels.append([])
                self.thinned.append(0)
            self.levels[level] = self._push_up(self.levels[level], level, settings)
            self.thinned[level] += 1

    def _push_up(self, entries: list[Any], level: int, settings: SketchSettings) -> list[Any]:
        """Thins entries into the level above; what stays on this level is given back."""
        settings.sort(entries)
        if settings.weighted:
            self.levels[level + 1].extend(joined(entries, max(settings.capacity, len(entries) // 2)))
            return []
        # An odd entry out stays, or the weights would not add up.
        stays = entries[-1:] if len(entries) % 2 else []
        self.levels[level + 1].extend(entries[self.thinned[level] % 2 : len(entries) - len(stays) : 2])
        return stays


def joined(pairs: Sequence[tuple[Any, Any]], capacity: int) -> Iterator[tuple[Any, Any]]:
    """Sorted pairs of value and weight, neighbours joined so that at most `capacity` are left.

    >>> list(joined([("a", 1), ("b", 1), ("c", 8), ("d", 2)], 4))
    [('a', 2), ('c', 8), ('d', 2)]
    """
    # Two groups in a row weigh more than the limit together, so there are at most capacity groups.
    limit = 2 * sum(weight for _, weight in pairs) / (capacity - 1)
    start = 0
    group_weight = pairs[0][1]
    for position in range(1, len(pairs)):
        weight = pairs[position][1]
        if group_weight + weight > limit:
            yield _median(pairs[start:position], group_weight), group_weight
            start, group_weight = position, weight
        else:
            group_weight += weight
    yield _median(pairs[start:], group_weight), group_weight


def _median(group: Sequence[tuple[Any, Any]], group_weight: Any) -> Any:
    below = 0
    for value, weight in group:
        below += weight
        if 2 * below >= group_weight:
            return value
    return group[-1][0]
