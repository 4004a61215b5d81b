"""Computes the relations of a chain for one key: each takes the changes of its inputs, and returns its own."""

from __future__ import annotations

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

Changes = Sequence[tuple[int, Any]]
"""Rows, each with 1 if it is inserted, or -1 if it is taken back."""


class ChainStep:
    """One relation of a chain.

    Attributes:
        inputs: The places of the relations that it is made of.
    """

    def __init__(self, inputs: tuple[int, ...]) -> None:
        self.inputs = inputs

    def start(self) -> Any:
        """Returns what it holds of a key without rows; None if it never holds anything."""
        return None

    def advance(self, held: Any, changes: Sequence[Changes]) -> Changes:
        """Returns how the relation changes when its inputs change, in the order of `inputs`."""
        raise NotImplementedError


class SelectRows(ChainStep):
    """Computes rows from rows, one by one."""

    def __init__(self, inputs: tuple[int, ...], projection: Projection) -> None:
        super().__init__(inputs)
        self._projection = projection

    def advance(self, held: Any, changes: Sequence[Changes]) -> Changes:
        function = self._projection.function
        return [(sign, function(row)) for sign, row in changes[0]]


class FilterChanges(ChainStep):
    """Lets the rows through for which a condition is true."""

    def __init__(self, inputs: tuple[int, ...], condition: Predicate) -> None:
        super().__init__(inputs)
        self._condition = condition

    def advance(self, held: Any, changes: Sequence[Changes]) -> Changes:
        function = self._condition.function
        return [change for change in changes[0] if function(change[1])]


class RankRows(ChainStep):
    """The first rows in an order.

    Args:
        inputs: The place of the input.
        partition: From a row to a pair of what tells partitions apart, and of the row.
        first: The CombineFn of the first rows.
        rows_of: From a pair of a key and the first rows to the rows of the relation.
    """

    def __init__(
        self,
        inputs: tuple[int, ...],
        partition: Pairing,
        first: CombineFn,
        rows_of: Callable[[Any, int, int], list[Any]],
    ) -> None:
        super().__init__(inputs)
        self._partition = partition
        self._first: Any = first
        self._rows_of = rows_of

    def start(self) -> dict[Any, Any]:
        return {}

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        found: list[tuple[int, Any]] = []
        pair = self._partition.function
        for name, (_, own) in _by_key((pair(row), sign) for sign, row in changes[0]).items():
            found += self._advance(held, name, own)
        return found

    def _advance(self, held: dict[Any, Any], partition: object, changes: Changes) -> Changes:
        first = self._first
        rows = held.get(partition)
        if rows is None:
            rows = first.create_accumulator()
        before = list(first.extract_output(rows))
        for sign, row in changes:
            rows = first.add_input(rows, row) if sign > 0 else first.subtract_input(rows, row)
        held[partition] = rows
        after = first.extract_output(rows)
        if len(before) == len(after) and all(map(_is, before, after)):
            return ()
        if not any(rows):
            del held[partition]
        return _changes_of(
            compute_difference(self._rows_of((None, before), 0, 0), self._rows_of((None, after), 0, 0))
        )


class AggregateRows(ChainStep):
    """One row for each group.

    Args:
        inputs: The place of the input.
        pairing: From a row to a pair of its group's key and the values.
        combine: The CombineFn of the group.
        retracts: Whether rows may be taken back.
        rows_of: From a pair of a key and a result to the rows of the relation.
    """

    def __init__(
        self,
        inputs: tuple[int, ...],
        pairing: Pairing,
        combine: CombineFn,
        retracts: bool,
        rows_of: Callable[[Any, int, int], list[Any]],
    ) -> None:
        super().__init__(inputs)
        self._pairing = pairing
        self._combine = combine
        self._retracts = retracts
        self._rows_of = rows_of
        self._fold: Fold | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fold": None}

    def start(self) -> dict[Any, Any]:
        return {}

    def advance(self, held: dict[Any, Any], changes: Sequence[Changes]) -> Changes:
        if self._fold is None:
            self._fold = fold_for(self._combine, self._retracts, keeps=True)
        found: list[tuple[int, Any]] = []
        pair = self._pairing.function
        for name, (key, own) in _by_key((pair(row), sign) for sign, row in changes[0]).items():
            found += self._advance(self._fold, held, name, key, own)
        return found

    def _advance(
        self, fold: Fold, held: dict[Any, Any], name: object, key: object, changes: Changes
    ) -> Changes:
        partial, count, before = held.get(name) or (fold.empty(), 0, [])
        for sign, value in changes:
            count += sign
            if sign > 0:
                partial = fold.step(partial, value)
            else:
                assert fold.inverse is not None
                partial = fold.inverse(partial, value)
        after = self._rows_of((key, fold.result(partial, True)), 0, 0) if count > 0 else []
        if count or after:
            held[name] = partial, count, after
        else:
            held.pop(name, None)
        return _changes_of(compute_difference(before, after))


class JoinPairs(ChainStep):
    """The pairs of rows with equal keys.

    Args:
        inputs: The places of the left and of the right input.
        keys: For each side, from a row to a pair of its key and the row.
        has_key: For each side, whether a row has a key, which NULL is not; None if all have.
        retracts: For each side, whether rows may be taken back.
        forms: For each side, what brings a row into its canonical form, or None.
        condition: What must hold besides, of a left row and a right row in one tuple; None if nothing must.
    """

    def __init__(
        self,
        inputs: tuple[int, ...],
        keys: tuple[Pairing, Pairing],
        has_key: tuple[Predicate | None, Predicate | None],
        retracts: tuple[bool, bool],
        forms: tuple[CanonicalRow | None, CanonicalRow | None],
        condition: Predicate | None,
    ) -> None:
        super().__init__(inputs)
        self._keys = keys
        self._has_key = has_key
        self._retracts = retracts
        self._forms = forms
        self._condition = condition

    def start(self) -> tuple[dict[Any, Any], dict[Any, Any]]:
        return {}, {}

    def advance(self, held: tuple[dict[Any, Any], dict[Any, Any]], changes: Sequence[Changes]) -> Changes:
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
                others = held[1 - side].get(key)
                if others:
                    rows = _rows_of_bag(others)
                    if side:
                        found += [(sign, other + row) for other in rows]
                    else:
                        found += [(sign, row + other) for other in rows]
        if self._condition is None:
            return found
        function = self._condition.function
        return [change for change in found if function(change[1])]

    def _take(self, held: dict[Any, Any], key: object, row: Any, form: CanonicalRow | None) -> Any:
        """Takes a row out; returns the very row, which may have another form."""
        bag = held.get(key, {})
        name = encode_key(row)
        if name not in bag and form is not None:
            names = list(bag)
            place = place_of_copy(row, [bag[each][0] for each in names], form)
            name = name if place is None else names[place]
        if name not in bag:
            what = f"a row of type {type(row).__name__} is retracted, but it is not there"
            hint = "steps before must make the same of a row when it comes and when it is retracted"
            raise refusal(ValueError, what, hint=hint)
        row = bag[name].pop()
        if not bag[name]:
            del bag[name]
            if not bag:
                del held[key]
        return row


def _rows_of_bag(bag: Any) -> Iterable[Any]:
    return bag if type(bag) is list else [row for rows in bag.values() for row in rows]


def _is(one: object, other: object) -> bool:
    return one is other


def _name_of(key: object) -> object:
    """Returns what equal keys have in common: the key itself, if that is quick and tells it from all others."""
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
