"""The sorted rows of a partition in blocks, of which a change opens only those that it touches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

from penstock.relations.bags import Form, are_copies
from penstock.sql.execution.row_order import Key, RowOrder, SqlRow

BLOCK_ROWS = 128
"""The number of rows of a new block; a block with twice as many is divided."""

Entry = list[Any]
"""A row, and its results; None for a row whose results are not computed yet."""
Index = list[tuple[int, int, SqlRow, Any]]
"""For each block its number, how many rows it has, the first of them, and the sums of the rows before it, or None."""


class BlockStore(Protocol):
    """Keeps blocks by their numbers."""

    def get(self, key: int) -> list[Entry]:
        """Returns a block."""

    def put(self, key: int, value: list[Entry]) -> None:
        """Keeps a block."""

    def remove(self, key: int) -> None:
        """Forgets a block."""


class _Block:
    __slots__ = ("entries", "first", "is_changed", "keys", "length", "number", "sums")

    def __init__(
        self, number: int, length: int, first: SqlRow, sums: object, entries: list[Entry] | None = None
    ) -> None:
        self.sums = sums
        self.number = number
        self.length = length
        self.first = first
        self.entries = entries
        self.keys: list[Key] | None = None
        self.is_changed = entries is not None


class SortedRows:
    """The rows of a partition in order, each with its results.

    Args:
        order: The order of the rows.
        index: The blocks that are there, as `save` has returned it.
        store: Where the blocks are.

    >>> from penstock.scalars.tree import Column
    >>> from penstock.scalars.types import BIGINT
    >>> from penstock.sql.plan.relations import Order
    >>> rows = SortedRows(RowOrder((Order(Column(0, "a", BIGINT), False, True),), (BIGINT,)))
    >>> rows.insert([(3,), (1,), (2,)])
    >>> rows.remove((2,), None), [row for row, _ in rows.entries((0, 2))]
    ([(2,), None], [(1,), (3,)])
    """

    def __init__(self, order: RowOrder, index: Index | None = None, store: BlockStore | None = None) -> None:
        self.order = order
        self._store = store
        self._blocks = [_Block(*each) for each in index or ()]
        self._next = max((block.number for block in self._blocks), default=-1) + 1
        self._gone: list[int] = []
        self._starts: list[int] | None = None

    def __len__(self) -> int:
        return self._bounds()[-1]

    def row(self, place: int) -> SqlRow:
        """Returns the row at a place."""
        found: SqlRow = self.entry(place)[0]
        return found

    def entry(self, place: int) -> Entry:
        """Returns the row at a place and its results; a caller that changes them calls `touch`."""
        block, at = self._find(place)
        return self._open(block)[at]

    def entries(self, span: tuple[int, int]) -> Iterator[Entry]:
        """Returns the rows of a span, and their results."""
        first, last = span
        if first >= last:
            return
        starts = self._bounds()
        at = bisect_right(starts, first) - 1
        while first < last:
            block, start = self._blocks[at], starts[at]
            yield from self._open(block)[first - start : last - start]
            first = starts[at + 1]
            at += 1

    def place_of(self, key: Key) -> int:
        """Returns the place of the first row whose key is not less than a key."""
        at = self._block_of(key)
        if at < 0:
            return 0
        return self._bounds()[at] + bisect_left(self._keys(self._blocks[at]), key)

    def copies_of(self, row: SqlRow) -> tuple[int, int]:
        """Returns the span of a row and its copies; one without rows at its place, if it is not there."""
        first = last = self.place_of(self.order.key(row))
        while last < len(self) and are_copies(self.row(last), row):
            last += 1
        return first, last

    def replace_results(
        self, span: tuple[int, int], results: Sequence[Any]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Gives the rows of a span new results; yields each row whose results differ, with the old and the new ones."""
        first, last = span
        starts, given = self._bounds(), iter(results)
        at = bisect_right(starts, first) - 1
        while first < last:
            block, start = self._blocks[at], starts[at]
            for entry in self._open(block)[first - start : last - start]:
                row, before = entry
                after = next(given)
                if before is None or before != after or _may_look_different(after):
                    if before is not None and are_copies(before, after):
                        continue
                    entry[1] = after
                    block.is_changed = True
                    yield row, before, after
            first = starts[at + 1]
            at += 1

    def insert(self, rows: list[Any]) -> None:
        """Inserts rows, which have no results yet."""
        if len(rows) * 4 > len(self):
            entries = [*self.entries((0, len(self))), *([row, None] for row in rows)]
            self._rebuild(sorted(entries, key=lambda entry: self.order.key(entry[0])))
            return
        for row in rows:
            key = self.order.key(row)
            at = max(0, self._block_of(key))
            block = self._blocks[at]
            keys, entries = self._keys(block), self._open(block)
            place = bisect_right(keys, key)
            keys.insert(place, key)
            entries.insert(place, [row, None])
            self._note(block)
            if block.length >= 2 * BLOCK_ROWS:
                self._divide(at)

    def remove(self, row: SqlRow, form: Form | None) -> Entry | None:
        """Takes a row out, or a row in the same form; returns it with its results, or None if there is none."""
        key = self.order.key(row)
        found = self._copy(row, key, form)
        if found is None:
            return None
        block, at = self._find(found)
        entries, keys = self._open(block), self._keys(block)
        del keys[at]
        entry = entries.pop(at)
        self._note(block)
        if not entries:
            self._blocks.remove(block)
            self._gone.append(block.number)
            self._starts = None
        return entry

    def _copy(self, row: SqlRow, key: Key, form: Form | None) -> int | None:
        place = self.place_of(key)
        if place < len(self) and are_copies(self.row(place), row):
            return place
        if form is None:
            return None
        wanted, first = form(row), self.place_of(self.order.before(row))
        last = self.place_of(self.order.behind(row))
        for at, (each, _) in enumerate(self.entries((first, last)), first):
            if are_copies(form(each), wanted):
                return at
        return None

    def clear_results(self, span: tuple[int, int]) -> Iterator[tuple[Any, Any]]:
        """Takes the results of a span away; yields each row that had some, with them."""
        first, last = span
        for place in range(first, last):
            block, at = self._find(place)
            entry = self._open(block)[at]
            if entry[1] is not None:
                block.is_changed = True
                row, before = entry
                entry[1] = None
                yield row, before

    def cut(self, length: int) -> None:
        """Forgets all rows but the first ones."""
        while self._blocks and (start := self._bounds()[-2]) + self._blocks[-1].length > length:
            block = self._blocks[-1]
            if start >= length:
                self._gone.append(self._blocks.pop().number)
                self._starts = None
                continue
            del self._open(block)[length - start :]
            block.keys = None
            self._note(block)

    def save(self) -> Index:
        """Stores the blocks that have changed, and returns the new index."""
        assert self._store is not None
        for number in self._gone:
            self._store.remove(number)
        for block in self._blocks:
            if block.is_changed:
                self._store.put(block.number, self._open(block))
        return [(block.number, block.length, block.first, block.sums) for block in self._blocks]

    # Sums of the rows before a block

    def sums_before(self, place: int) -> tuple[int, Any]:
        """Returns the sums of the rows before the last block with sums that begins before a place.

        A block that begins at the place may have begun behind a row that has gone.

        Returns:
            The place where the block begins, and the sums; 0 and None if no such block has sums.
        """
        starts = self._bounds()
        for at in range(bisect_left(starts, place, 0, len(self._blocks)) - 1, 0, -1):
            if (sums := self._blocks[at].sums) is not None:
                return starts[at], sums
        return 0, None

    def starts_within(self, first: int, last: int) -> list[int]:
        """Returns the places where blocks begin, behind a first place and until a last one."""
        return [start for start in self._bounds()[:-1] if first < start <= last]

    def keep_sums(self, sums: Mapping[int, Any]) -> None:
        """Keeps the sums of the rows before blocks, by the places where these begin."""
        for start, block in zip(self._bounds(), self._blocks, strict=False):
            if start in sums:
                block.sums = sums[start]

    # Blocks

    def _rebuild(self, entries: list[Entry]) -> None:
        self._gone += [block.number for block in self._blocks]
        self._blocks = []
        for start in range(0, len(entries), BLOCK_ROWS):
            self._blocks.append(self._made(entries[start : start + BLOCK_ROWS]))
        self._starts = None

    def _made(self, entries: list[Entry]) -> _Block:
        number = self._next
        self._next += 1
        return _Block(number, len(entries), entries[0][0], None, entries)

    def _divide(self, at: int) -> None:
        block = self._blocks[at]
        entries, keys = self._open(block), self._keys(block)
        other = self._made(entries[BLOCK_ROWS:])
        other.keys = keys[BLOCK_ROWS:]
        del entries[BLOCK_ROWS:], keys[BLOCK_ROWS:]
        self._note(block)
        self._blocks.insert(at + 1, other)

    def _note(self, block: _Block) -> None:
        """Notes that rows of a block have come or gone."""
        assert block.entries is not None
        block.length = len(block.entries)
        if block.entries:
            block.first = block.entries[0][0]
        block.is_changed = True
        self._starts = None

    def _bounds(self) -> list[int]:
        if self._starts is None:
            self._starts = list(accumulate((block.length for block in self._blocks), initial=0))
        return self._starts

    def _find(self, place: int) -> tuple[_Block, int]:
        starts = self._bounds()
        at = bisect_right(starts, place) - 1
        return self._blocks[at], place - starts[at]

    def _block_of(self, key: Key) -> int:
        """Returns the last block whose first row comes before a key; -1 if there is none."""
        return bisect_left(self._blocks, key, key=lambda block: self.order.key(block.first)) - 1

    def _open(self, block: _Block) -> list[Entry]:
        if block.entries is None:
            assert self._store is not None
            block.entries = self._store.get(block.number)
        assert block.entries is not None
        return block.entries

    def _keys(self, block: _Block) -> list[Key]:
        if block.keys is None:
            block.keys = [self.order.key(row) for row, _ in self._open(block)]
        return block.keys


_PLAIN = frozenset([int, str, bool, type(None), bytes])


def _may_look_different(results: Sequence[Any]) -> bool:
    """True if some values may be equal to others in Python that look different."""
    return not all(type(value) in _PLAIN for value in results)
