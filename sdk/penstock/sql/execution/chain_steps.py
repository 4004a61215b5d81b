"""Computes the relations of a chain for one key: each takes the changes of its inputs, and returns its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.coders.deterministic import encode_key
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.functions.folds import Fold
from penstock.machines.folds import fold_for
from penstock.relations.bags import place_of_copy
from penstock.relations.changes import Change, compute_difference, compute_net
from penstock.scalars.row_functions import Pairing, Predicate, Projection
from penstock.sql.execution.equality import CanonicalRow
from penstock.sql.execution.first_rows import SqlRow
from penstock.sql.execution.generating import GeneratedRows

Changes = Sequence[tuple[int, Any]]
"""Rows, each with 1 if it is inserted, or -1 if it is retracted."""


class ChainStep:
    """One relation of a chain.

    Attributes:
        inputs: The places of the relations that it is made of.
    """

    def __init__(self, inputs: tuple[int, ...]) -> None:
        self.inputs = inputs

    def start(self) -> dict[Any, Any] | None:
        """Returns what it holds of a key without rows; None if it never holds anything."""
        return None

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        """Returns how the relation changes when its inputs change, in the order of `inputs`."""
        raise NotImplementedError


class SelectRows(ChainStep):
    """Computes rows from rows, one by one."""

    def __init__(self, inputs: tuple[int, ...], projection: Projection) -> None:
        super().__init__(inputs)
        self._projection = projection

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        function = self._projection.function
        return [(sign, function(row)) for sign, row in changes[0]]


class FilterChanges(ChainStep):
    """Lets the rows through for which a condition is true."""

    def __init__(self, inputs: tuple[int, ...], condition: Predicate) -> None:
        super().__init__(inputs)
        self._condition = condition

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        function = self._condition.function
        return [change for change in changes[0] if function(change[1])]


class GenerateChanges(ChainStep):
    """Makes any number of rows of each row."""

    def __init__(self, inputs: tuple[int, ...], generated: GeneratedRows) -> None:
        super().__init__(inputs)
        self._generated = generated

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        generated = self._generated
        return [(sign, made) for sign, row in changes[0] for made in generated(row)]


class FoldStep(ChainStep):
    """A relation that folds the rows of each of its own keys.

    Args:
        inputs: The place of the input.
        pairing: From a row to a pair of its key and the value.
        combine: The CombineFn of the values of a key.
        retracts: Whether rows may be retracted.
        rows_of: From a pair of a key and a result to the rows of the relation.
    """

    def __init__(
        self,
        inputs: tuple[int, ...],
        pairing: Pairing,
        combine: CombineFn,
        retracts: bool,
        rows_of: Callable[[Any, int, int], list[SqlRow]],
    ) -> None:
        super().__init__(inputs)
        self._pairing = pairing
        self._combine = combine
        self._retracts = retracts
        self._rows_of = rows_of

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "fold"}

    @functools.cached_property
    def fold(self) -> Fold:
        """Returns the fold of the values of a key."""
        return fold_for(self._combine, self._retracts, keeps=True)

    def start(self) -> dict[Any, Any]:
        return {}

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        found: list[tuple[int, Any]] = []
        pair = self._pairing.function
        for name, (key, own) in _by_key((pair(row), sign) for sign, row in changes[0]).items():
            found += self.advance_key(held, name, key, own)
        return found

    def advance_key(self, held: dict[Any, Any], name: object, key: object, changes: Changes) -> Changes:
        """Returns how the rows of one key change when its values change."""
        raise NotImplementedError

    def folded(self, partial: object, changes: Changes) -> object:
        """Returns a partial result after changes of values."""
        fold = self.fold
        for sign, value in changes:
            if sign > 0:
                partial = fold.step(partial, value)
            else:
                assert fold.inverse is not None
                partial = fold.inverse(partial, value)
        return partial


class RankRows(FoldStep):
    """The first rows in an order."""

    def advance_key(self, held: dict[Any, Any], name: object, key: object, changes: Changes) -> Changes:
        partial = held[name] if name in held else self.fold.empty()
        before = list(self.fold.finish(partial))
        held[name] = partial = self.folded(partial, changes)
        after = self.fold.finish(partial)
        if len(before) == len(after) and all(map(_is, before, after)):
            return ()
        if not after and partial == self.fold.empty():
            del held[name]
        return _changes_of(
            compute_difference(self._rows_of((key, before), 0, 0), self._rows_of((key, after), 0, 0))
        )


class AggregateRows(FoldStep):
    """One row for each group."""

    def advance_key(self, held: dict[Any, Any], name: object, key: object, changes: Changes) -> Changes:
        partial, count, before = held.get(name) or (self.fold.empty(), 0, [])
        partial = self.folded(partial, changes)
        count += sum(sign for sign, _ in changes)
        after = self._rows_of((key, self.fold.result(partial, True)), 0, 0) if count > 0 else []
        if count or after:
            held[name] = partial, count, after
        else:
            held.pop(name, None)
        return _changes_of(compute_difference(before, after))


class JoinPairs(ChainStep):
    """The pairs of rows with equal keys, or what another kind of join makes of them.

    Args:
        inputs: The places of the left and of the right input.
        kind: ``inner``, ``left``, ``semi`` or ``left_anti``.
        missing: What stands for a right row that is missing.
        keys: For each side, from a row to a pair of its key and the row.
        has_key: For each side, whether a row has a key, which NULL is not; None if all have.
        retracts: For each side, whether rows may be retracted.
        forms: For each side, what brings a row into its canonical form, or None.
        condition: What must hold besides, of a left row and a right row in one tuple; None if nothing must.
    """

    def __init__(
        self,
        inputs: tuple[int, ...],
        kind: str,
        missing: SqlRow,
        keys: tuple[Pairing, Pairing],
        has_key: tuple[Predicate | None, Predicate | None],
        retracts: tuple[bool, bool],
        forms: tuple[CanonicalRow | None, CanonicalRow | None],
        condition: Predicate | None,
    ) -> None:
        super().__init__(inputs)
        self._kind = kind
        self._missing = missing
        self._keys = keys
        self._has_key = has_key
        self._retracts = retracts
        self._forms = forms
        self._condition = condition

    def start(self) -> dict[Any, Any]:
        return {0: {}, 1: {}}

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        found: list[tuple[int, Any]] = []
        for side, own in enumerate(changes):
            has_key, pair = self._has_key[side], self._keys[side].function
            for sign, row in own:
                if has_key is not None and not has_key.function(row):
                    continue
                key = _name_of(pair(row)[0])
                if sign < 0:
                    row = self._take(held[side], key, row, self._forms[side])
                elif self._retracts[side]:
                    held[side].setdefault(key, {}).setdefault(encode_key(row), []).append(row)
                else:
                    held[side].setdefault(key, []).append(row)
                if self._kind == "inner":
                    found += self._pairs(held, key, side, sign, row)
                elif side:
                    found += self._changes_of_lefts(held, key, sign, row)
                else:
                    found += self._changes_of_left(held, key, sign, row)
        return found

    def _pairs(self, held: dict[Any, Any], key: object, side: int, sign: int, row: SqlRow) -> Changes:
        """Returns the pairs of a row with the rows of the other side."""
        rows = _rows_of_bag(held[1 - side].get(key, ()))
        pairs = [(sign, other + row) for other in rows] if side else [(sign, row + other) for other in rows]
        if self._condition is None:
            return pairs
        function = self._condition.function
        return [change for change in pairs if function(change[1])]

    def _changes_of_left(self, held: dict[Any, Any], key: object, sign: int, row: SqlRow) -> Changes:
        pairs = self._pairs(held, key, 0, sign, row)
        if self._kind == "left":
            return pairs or [(sign, row + self._missing)]
        return [(sign, row)] if bool(pairs) == (self._kind == "semi") else ()

    def _changes_of_lefts(self, held: dict[Any, Any], key: object, sign: int, row: SqlRow) -> Changes:
        """Returns how the left rows of a key change when a right row, which is in its bag or has left it, changes."""
        width, found = len(row), list[tuple[int, Any]]()
        for _, pair in self._pairs(held, key, 1, sign, row):
            left = pair[: len(pair) - width]
            if self._kind == "left":
                found.append((sign, pair))
            # A row that came is in the bag itself.
            if len(self._pairs(held, key, 0, 1, left)) == (sign > 0):
                match self._kind:
                    case "left":
                        found.append((-sign, left + self._missing))
                    case "semi":
                        found.append((sign, left))
                    case "left_anti":
                        found.append((-sign, left))
        return found

    def _take(self, held: dict[Any, Any], key: object, row: SqlRow, form: CanonicalRow | None) -> SqlRow:
        """Takes a row out; returns the very row, which may have another form."""
        bag = held.get(key, {})
        name = encode_key(row)
        if name not in bag and form is not None:
            names = list(bag)
            place = place_of_copy(row, [bag[each][0] for each in names], form)
            name = name if place is None else names[place]
        if name not in bag:
            what = f"a row of type {type(row).__name__} is retracted, but it is not there"
            hint = "earlier steps must return the same for a row when it is added and when it is retracted"
            raise refusal(ValueError, what, hint=hint)
        row = bag[name].pop()
        if not bag[name]:
            del bag[name]
            if not bag:
                del held[key]
        return row


def _rows_of_bag(bag: Sequence[SqlRow] | dict[bytes, list[SqlRow]]) -> Iterable[SqlRow]:
    return [row for rows in bag.values() for row in rows] if isinstance(bag, dict) else bag


def _is(one: object, other: object) -> bool:
    return one is other


def _name_of(key: object) -> object:
    """Returns what equal keys have in common: the key itself, if that is quick and distinguishes it from all others."""
    return key if type(key) is int or type(key) is str else encode_key(key)


def _by_key(pairs: Iterable[tuple[tuple[Any, Any], int]]) -> dict[Any, tuple[Any, list[tuple[int, Any]]]]:
    """Changes of values, of pairs of a key and a value, by the names of the keys, with the keys."""
    found: dict[Any, tuple[Any, list[tuple[int, Any]]]] = {}
    for (key, value), sign in pairs:
        found.setdefault(_name_of(key), (key, []))[1].append((sign, value))
    return found


def _changes_of(change: Change) -> Changes:
    retracted, inserted = change
    return [*((-1, row) for row in retracted), *((1, row) for row in inserted)]


def net_of(changes: Changes) -> Change:
    """Returns what is left of some changes."""
    if len(changes) == 1:
        [(sign, row)] = changes
        return ((), (row,)) if sign > 0 else ((row,), ())
    return compute_net(changes)
