"""Keeps rows sorted by a value that is compared with one changing value, and touches the rows between two of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.coders import PickleCoder, VarIntCoder
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    MapStateSpec,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
)
from penstock.machines.cells import MapCell
from penstock.machines.records import Together
from penstock.relations.changes import Change, compute_net
from penstock.scalars.row_functions import Projection
from penstock.scalars.tree import Column
from penstock.scalars.types import SqlType
from penstock.sql.execution.equality import CanonicalRow
from penstock.sql.execution.key_chains import elements_of
from penstock.sql.execution.row_order import RowOrder, SqlRow
from penstock.sql.execution.sorted_rows import SortedRows
from penstock.sql.plan.relations import Order
from penstock.utils.timestamp import Timestamp
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo, WindowedValue

Span = tuple[int, int]


class Comparing:
    """Says which of the sorted rows a comparison with a value lets through.

    Args:
        name: The comparison: ``<``, ``<=``, ``>=`` or ``>``, with the value of a row at its left.
        kind: The type of the value.
    """

    def __init__(self, name: str, kind: SqlType) -> None:
        self._name = name
        self._order = RowOrder((Order(Column(0, "bound", kind), False, True),), (kind,))

    def passing(self, rows: SortedRows, bound: object) -> Span:
        """Returns the span of the rows whose value passes; an empty one for NULL."""
        if bound is None:
            return 0, 0
        first, last = (
            rows.place_of(key) for key in (self._order.before((bound,)), self._order.behind((bound,)))
        )
        match self._name:
            case "<":
                return 0, first
            case "<=":
                return 0, last
            case ">=":
                return first, len(rows)
        return last, len(rows)


def change_border(
    comparing: Comparing,
    rows: SortedRows,
    change: Change,
    bounds: tuple[object, object],
    form: CanonicalRow | None,
) -> Change:
    """Changes the rows and the value that they are compared with; returns how the rows that pass change.

    Args:
        comparing: The comparison.
        rows: The rows so far; they are changed.
        change: The rows that go and the rows that come.
        bounds: The value before and after; None lets no row through.
        form: What brings a row into its canonical form, or None.
    """
    gone, come = change
    retracted, inserted = [], []
    for row in gone:
        taken = rows.remove(row, form)
        if taken is None:
            what = f"a row of type {type(row).__name__} is retracted, but it is not there"
            hint = "earlier steps must return the same for a row when it is added and when it is retracted"
            raise refusal(ValueError, what, hint=hint)
        # The row that was there may look different from its retraction.
        retracted.append(taken[0])
    retracted = _passing(comparing, rows.order, retracted, bounds[0])
    before, after = (comparing.passing(rows, bound) for bound in bounds)
    for span in _without(before, after):
        retracted += [row for row, _ in rows.entries(span)]
    for span in _without(after, before):
        inserted += [row for row, _ in rows.entries(span)]
    rows.insert(list(come))
    return retracted, inserted + _passing(comparing, rows.order, come, bounds[1])


def _passing(comparing: Comparing, order: RowOrder, rows: Iterable[SqlRow], bound: object) -> list[SqlRow]:
    """Returns the rows of a few whose value passes."""
    few = SortedRows(order)
    few.insert(list(rows))
    return [row for row, _ in few.entries(comparing.passing(few, bound))]


def _without(one: Span, other: Span) -> list[Span]:
    """Returns the places of a span that are not in another one."""
    (first, last), (start, end) = one, other
    if start >= end:
        return [one]
    return [(first, min(last, start)), (max(first, end), last)]


class BorderFn(DoFn):
    """Emits how the rows change whose value compares with one value, which changes also.

    Elements are pairs of a key, which is one for all, and a pair of 0 and a row, or of 1 and the one row.

    Args:
        comparing: The comparison.
        order: The order of rows by their values.
        bound: The value of the one row.
        form: What brings a row into its canonical form, or None.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
        emits_retractions: A row leaves when the value moves.
        accepts_simultaneous: The rows and the value change once for all that arrives together.
    """

    accepts_retractions = True
    emits_retractions = True
    accepts_simultaneous = True
    INDEX = ReadModifyWriteStateSpec("index", PickleCoder())
    BLOCKS = MapStateSpec("blocks", VarIntCoder(), PickleCoder())
    ONE = ReadModifyWriteStateSpec("one", PickleCoder())

    def __init__(
        self, comparing: Comparing, order: RowOrder, bound: Projection, form: CanonicalRow | None
    ) -> None:
        self._comparing = comparing
        self._order = order
        self._bound = bound
        self._form = form

    def process(
        self,
        element: tuple[Any, Any],
        at: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
        index: ReadModifyWriteRuntimeState = DoFn.StateParam(INDEX),
        blocks: MapCell = DoFn.StateParam(BLOCKS),
        one: ReadModifyWriteRuntimeState = DoFn.StateParam(ONE),
    ) -> Iterable[WindowedValue]:
        """Takes rows in, or out, and perhaps a new value."""
        _, value = element
        several = value.rows if isinstance(value, Together) else [(pane.kind.sign, value)]
        signed: tuple[list[Any], list[Any]] = [], []
        for sign, (side, row) in several:
            signed[side].append((sign, row))
        before = after = one.read() or []
        if signed[1]:
            held = [(1, row) for row in before] + signed[1]
            after = list(compute_net(held)[1])
            one.write(after)
        rows = SortedRows(self._order, index.read() or [], blocks)
        bounds = self._bound_of(before), self._bound_of(after)
        made = change_border(self._comparing, rows, compute_net(signed[0], self._form), bounds, self._form)
        if signed[0]:
            index.write(rows.save())
        return elements_of(made, at.micros, window) if any(made) else ()

    def _bound_of(self, rows: list[Any]) -> object:
        if len(rows) != 1:
            return None
        [bound] = self._bound.function(rows[0])
        return bound
