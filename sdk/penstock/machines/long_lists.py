"""A list whose beginning may be kept elsewhere, in sealed segments that are read only when values are needed.

Adding to it touches nothing but its end. So a runner that keeps state between two calls writes what is new, however
long the list is. Until a runner seals some of it, a list is a plain list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Union

_AT_ONCE_BYTES = 4 << 20

AnyList = Union[list[Any], "LongList"]


class Segment(NamedTuple):
    """Values of a list that are kept elsewhere."""

    number: int  # Its name there.
    length: int  # The number of its values.
    size_bytes: int


class SegmentStore(Protocol):
    """A store of segments."""

    def read(self, segments: Sequence[Segment]) -> Iterable[list[Any]]:
        """Returns the values of each segment."""

    def lend(self, snapshot: Snapshot) -> None:
        """Notes that a snapshot may be read, even when its segments are not needed any more."""


class LongList:
    """A list with sealed segments; the last of its parts is in memory, and takes what is added.

    >>> some = LongList([["a", "b"]])
    >>> some.append("c")
    >>> some.seal(lambda values: Segment(-1, len(values), 30))
    >>> some.extend(["d"])
    >>> len(some), some.parts
    (4, [Segment(number=-1, length=3, size_bytes=30), ['d']])
    """

    __slots__ = ("keeper", "parts")

    def __init__(self, parts: list[Any], keeper: SegmentStore | None = None) -> None:
        self.parts: list[Any] = parts  # Segments and lists.
        self.keeper = keeper

    def append(self, value: object) -> None:
        """Adds a value; reads nothing."""
        self.parts[-1].append(value)

    def extend(self, values: Iterable[Any]) -> None:
        """Adds values; reads nothing, even if they are a long list themselves."""
        if isinstance(values, LongList):
            self.parts = _joined(self.parts, values.parts)
            self.keeper = self.keeper or values.keeper
        else:
            self.parts[-1].extend(values)

    def __len__(self) -> int:
        return sum(part.length if type(part) is Segment else len(part) for part in self.parts)

    def __iter__(self) -> Iterator[Any]:
        waiting: list[Segment] = []
        waiting_bytes = 0
        for part in [*self.parts]:
            is_sealed = type(part) is Segment
            if is_sealed:
                waiting.append(part)
                waiting_bytes += part.size_bytes
            if waiting and (not is_sealed or waiting_bytes >= _AT_ONCE_BYTES):
                assert self.keeper is not None, "a restored long list knows where its segments are"
                for values in self.keeper.read(waiting):
                    yield from values
                waiting, waiting_bytes = [], 0
            if not is_sealed:
                yield from part

    @property
    def segments(self) -> list[Segment]:
        """The sealed segments."""
        return [part for part in self.parts if type(part) is Segment]

    @property
    def unsealed(self) -> list[list[Any]]:
        """The parts that are in memory."""
        return [part for part in self.parts if type(part) is not Segment]

    def seal(self, seal: Callable[[list[Any]], Segment]) -> None:
        """Lets a function keep all values that are in memory."""
        self.parts = [part if type(part) is Segment else seal(part) for part in self.parts if part]
        self.parts.append([])

    def snapshot(self) -> Snapshot:
        """Returns the present values, which later changes of the list leave alone."""
        snapshot = Snapshot([part if type(part) is Segment else [*part] for part in self.parts], self.keeper)
        if self.keeper is not None:
            self.keeper.lend(snapshot)
        return snapshot

    def __reduce__(self) -> tuple[Any, ...]:
        return LongList, (self.parts,)


class Snapshot(LongList):
    """The content of a long list at one time; pickled, it is a tuple of values."""

    __slots__ = ("__weakref__",)

    def read(self) -> None:
        """Takes all values into memory: the segments are about to go."""
        self.parts = [[*self]]

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def join_lists(one: AnyList, other: LongList) -> LongList:
    """Joins two lists; reads nothing.

    >>> join_lists(["a"], LongList([Segment(-1, 5, 60), ["b"]])).parts
    [['a'], Segment(number=-1, length=5, size_bytes=60), ['b']]
    """
    both = one if isinstance(one, LongList) else LongList([one])
    both.extend(other)
    return both


def _joined(parts: list[Any], others: list[Any]) -> list[Any]:
    *before, last = parts
    if not last:
        return [*before, *others]
    first, *rest = others
    return [*parts, *others] if type(first) is Segment else [*before, [*last, *first], *(rest)]
