"""The data of each kind of metric: how two of them combine, and the result of a query.

Every ``combine`` here is associative and commutative, so that the order in which workers report does not
matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = [
    "BoundedTrieData",
    "DistributionData",
    "DistributionResult",
    "GaugeData",
    "GaugeResult",
    "StringSetData",
]

STRING_SET_CHARACTERS = 1_000_000
TRIE_PATHS = 100
Path = tuple[str, ...]


@dataclass(frozen=True)
class DistributionData:
    """Sum, count, minimum and maximum (Beam's ``DistributionData``); the last two have no meaning at count 0.

    >>> DistributionData(3, 1, 3, 3).combine(DistributionData(9, 2, 4, 5))
    DistributionData(sum=12, count=3, min=3, max=5)
    """

    sum: int
    count: int
    min: int
    max: int

    def combine(self, other: DistributionData | None) -> DistributionData:
        """Returns the two combined."""
        if other is None or not other.count:
            return self
        if not self.count:
            return other
        return DistributionData(
            self.sum + other.sum,
            self.count + other.count,
            min(self.min, other.min),
            max(self.max, other.max),
        )


@dataclass(frozen=True)
class DistributionResult:
    """The result of a query for a distribution (Beam's ``DistributionResult``); None if it has no numbers."""

    data: DistributionData

    @property
    def sum(self) -> int:
        """The sum."""
        return self.data.sum

    @property
    def count(self) -> int:
        """The number of numbers."""
        return self.data.count

    @property
    def min(self) -> int | None:
        """The minimum."""
        return self.data.min if self.data.count else None

    @property
    def max(self) -> int | None:
        """The maximum."""
        return self.data.max if self.data.count else None

    @property
    def mean(self) -> float | None:
        """The mean."""
        return self.data.sum / self.data.count if self.data.count else None

    def __repr__(self) -> str:
        return (
            f"DistributionResult(sum={self.sum}, count={self.count}, min={self.min}, max={self.max}, "
            f"mean={self.mean})"
        )


@dataclass(frozen=True)
class GaugeData:
    """The latest number, and the time when it was set, in seconds since 1970 (Beam's ``GaugeData``).

    >>> GaugeData(7, 1.0).combine(GaugeData(3, 2.0))
    GaugeData(value=3, timestamp=2.0)
    """

    value: int
    timestamp: float = 0.0

    def combine(self, other: GaugeData | None) -> GaugeData:
        """Returns the later of both; the greater number of two that were set at the same time."""
        if other is None:
            return self
        return max(self, other, key=lambda data: (data.timestamp, data.value))


@dataclass(frozen=True)
class GaugeResult:
    """The result of a query for a gauge (Beam's ``GaugeResult``)."""

    data: GaugeData

    @property
    def value(self) -> int:
        """The latest number."""
        return self.data.value

    @property
    def timestamp(self) -> float:
        """The time when it was set, in seconds since 1970."""
        return self.data.timestamp


@dataclass(frozen=True)
class StringSetData:
    """Different strings, together at most `STRING_SET_CHARACTERS` long (Beam's ``StringSetData``).

    If there are too many, the first in sorted order are kept. `first_dropped` is the smallest string that was
    dropped, and later strings in this order are not added again; so the result does not depend on the order of arrival.

    >>> sorted(StringSetData.of(["a", "b"]).combine(StringSetData.of(["b", "c"])).string_set)
    ['a', 'b', 'c']
    """

    string_set: frozenset[str] = frozenset()
    first_dropped: str | None = None

    @classmethod
    def of(cls, strings: Iterable[str], first_dropped: str | None = None) -> StringSetData:
        """Returns the strings, cut to the limit."""
        given = frozenset(strings)
        if first_dropped is None and sum(map(len, given)) <= STRING_SET_CHARACTERS:
            return cls(given)
        kept: set[str] = set()
        room = STRING_SET_CHARACTERS
        for string in sorted(given):
            if first_dropped is not None and string >= first_dropped:
                break
            if len(string) > room:
                first_dropped = string
                break
            room -= len(string)
            kept.add(string)
        return cls(frozenset(kept), first_dropped)

    def combine(self, other: StringSetData | None) -> StringSetData:
        """Returns the two combined."""
        if other is None:
            return self
        bounds = [bound for bound in (self.first_dropped, other.first_dropped) if bound is not None]
        return StringSetData.of(self.string_set | other.string_set, min(bounds, default=None))

    def get_result(self) -> set[str]:
        """Returns the result of a query."""
        return set(self.string_set)


@dataclass(frozen=True)
class BoundedTrieData:
    """Different paths; if there are more than `TRIE_PATHS`, all are shortened (Beam's ``BoundedTrieData``).

    Beam cuts the fullest branch first; here every branch is shortened to one depth, so that the outcome does not
    depend on the order in which workers report.

    >>> data = BoundedTrieData.of([("a", "b"), ("a",)])
    >>> data.get_result()
    {('a', 'b', False)}
    """

    paths: frozenset[Path] = frozenset()
    cut: frozenset[Path] = frozenset()
    """The paths that stand for longer ones."""
    depth: int | None = None
    """The maximum number of segments kept; None for all."""

    @classmethod
    def of(cls, paths: Iterable[Iterable[str]]) -> BoundedTrieData:
        """Returns paths, cut if there are too many."""
        return cls(frozenset(tuple(path) for path in paths))._bounded()

    def _bounded(self) -> BoundedTrieData:
        data = self
        while len(data.paths) > TRIE_PATHS:
            data = data._at_depth(max(map(len, data.paths)) - 1)
        return data

    def _at_depth(self, depth: int) -> BoundedTrieData:
        longer = {path[:depth] for path in self.paths if len(path) > depth}
        kept_cut = {path for path in self.cut if len(path) <= depth}
        return BoundedTrieData(
            frozenset(path[:depth] for path in self.paths), frozenset(longer | kept_cut), depth
        )

    def combine(self, other: BoundedTrieData | None) -> BoundedTrieData:
        """Returns the two combined."""
        if other is None:
            return self
        both = BoundedTrieData(self.paths | other.paths, self.cut | other.cut)
        depths = [depth for depth in (self.depth, other.depth) if depth is not None]
        return (both._at_depth(min(depths)) if depths else both)._bounded()

    def size(self) -> int:
        """Returns the number of paths that `flattened` yields."""
        return len(list(self.flattened()))

    def contains(self, value: Iterable[str]) -> bool:
        """True if the path was seen, or if it begins with a cut path."""
        path = tuple(value)
        seen = any(known[: len(path)] == path for known in self.paths)
        return seen or any(path[: len(known)] == known for known in self.cut)

    def flattened(self) -> Iterator[tuple[str | bool, ...]]:
        """Yields the paths in order, each followed by whether it was cut; beginnings of other paths are left out."""
        beginnings = {path[:length] for path in self.paths for length in range(len(path))}
        for path in sorted(self.paths):
            if path in self.cut or path not in beginnings:
                yield (*path, path in self.cut)

    def get_result(self) -> set[tuple[str | bool, ...]]:
        """Returns the result of `flattened` as a set."""
        return set(self.flattened())
