"""A change of rows: the rows that are retracted and inserted, the net of several changes, and their kinds.

A relation is a bag of rows (`penstock.relations.bags`) that changes. A retraction and an insertion of one row cancel
each other, in any order; `compute_net` returns what remains. So the net of two changes is the net of their nets, and
`compute_difference` is the smallest change from one bag to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from penstock.coders.deterministic import encode_key
from penstock.relations.bags import Form, are_copies, place_of_copy
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import ValueKind, WindowedValue, create, unknown_pane

Change = tuple[Sequence[Any], Sequence[Any]]
"""The rows that are retracted, and the rows that are inserted."""

NO_CHANGE: Change = (), ()

_UPDATE = ValueKind.UPDATE_BEFORE, ValueKind.UPDATE_AFTER
_NO_UPDATE = ValueKind.DELETE, ValueKind.INSERT


def kinds_of(change: Change) -> tuple[ValueKind, ValueKind]:
    """Returns the kind of the elements that retract, which come first, and of those that insert.

    >>> [kind.name for kind in kinds_of((["a"], ["b"]))], [kind.name for kind in kinds_of((["a"], []))]
    (['UPDATE_BEFORE', 'UPDATE_AFTER'], ['DELETE', 'INSERT'])
    """
    retracted, inserted = change
    return _UPDATE if retracted and inserted else _NO_UPDATE


def compute_net(signed_rows: Iterable[tuple[int, Any]], form: Form | None = None) -> Change:
    """Returns the net of several changes of rows.

    Args:
        signed_rows: Pairs of 1 and a row that is inserted, or of -1 and a row that is retracted.
        form: Maps rows to their form; None if rows are copies only of themselves.

    >>> compute_net([(1, "a"), (-1, "a"), (-1, "b"), (1, "c"), (1, "c")])
    (['b'], ['c', 'c'])
    """
    retracted: dict[bytes, list[Any]] = {}
    inserted: dict[bytes, list[Any]] = {}
    for sign, row in signed_rows:
        name = encode_key(row if form is None else form(row))
        own, opposite = (retracted, inserted) if sign < 0 else (inserted, retracted)
        if copies := opposite.get(name):
            exact = form is not None and len(copies) > 1
            del copies[place_of_copy(row, copies, form) or 0 if exact else -1]
        else:
            own.setdefault(name, []).append(row)
    return [*chain.from_iterable(retracted.values())], [*chain.from_iterable(inserted.values())]


def compute_difference(before: Sequence[Any], after: Sequence[Any]) -> Change:
    """Returns the smallest change from one bag of rows to another.

    >>> compute_difference(["a", "b", "b"], ["b", "c"])
    (['a', 'b'], ['c'])
    """
    if len(before) == len(after) == 1:
        return NO_CHANGE if are_copies(before[0], after[0]) else (before, after)
    if not before or not after:
        return before, after
    return compute_net(chain(((-1, row) for row in before), ((1, row) for row in after)))


def make_elements(windowed: WindowedValue, rows: Iterable[Any], kind: ValueKind) -> list[WindowedValue]:
    """Returns rows as elements of one kind, with the time, the windows and the pane of another element."""
    pane = windowed.pane_info
    if pane.kind is not kind:
        pane = replace(pane, kind=kind)
    return [create(row, windowed.timestamp_micros, windowed.windows, pane) for row in rows]


def emit_pairs(key: object, change: Change, window: BoundedWindow) -> list[WindowedValue]:
    """Returns the pairs of a key and each row of a change, whose rows are pairs of a row and its time in microseconds.

    >>> [(one.pane_info.kind.name, one.value) for one in emit_pairs("k", ([(1, 0)], [(2, 0)]), None)]
    [('UPDATE_BEFORE', ('k', 1)), ('UPDATE_AFTER', ('k', 2))]
    """
    windows = (window,)
    retracted, inserted = change
    retracts, inserts = kinds_of(change)
    pane = unknown_pane(inserts)
    emitted = [create((key, row), micros, windows, pane) for row, micros in inserted]
    if not retracted:
        return emitted
    pane = unknown_pane(retracts)
    return [create((key, row), micros, windows, pane) for row, micros in retracted] + emitted
