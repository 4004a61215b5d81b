"""Values that are valid until the next one by event time, and joins with them: `ValidFrom`, `ValidityJoin`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BaseTimer,
    OrderedListRuntimeState,
    OrderedListStateSpec,
    TimerSpec,
    on_timer,
)
from penstock.relations.bags import ROW_CODER, Form, Forms, place_of_copy
from penstock.relations.changes import compute_difference, emit_pairs
from penstock.relations.joins import JoinOfKind, check_windows, join_sides
from penstock.transforms.elements.pardo import ParDo
from penstock.typehints import KV, Optional, Tuple, Union
from penstock.typehints import Any as AnyHint
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Duration, Timestamp
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo, WindowedValue
from penstock.windows.time_domain import TimeDomain

ROWS, VALUES = 0, 1
_KINDS = ("inner", "left", "full")
_INSTANT = Duration(micros=1)


class Valid(NamedTuple):
    """A value and the period in which it is valid."""

    value: Any
    start: Timestamp
    """The event time of its row."""
    end: Timestamp
    """The end of its time: the event time of the next row of its key, or ``MAX_TIMESTAMP`` if there is none."""


Timed = tuple[Timestamp, Any]
"""A row with its event time."""


def list_validities(values: Iterable[Timed], end: Timestamp = MAX_TIMESTAMP) -> list[Valid]:
    """Returns each value with the period in which it is valid, the last until `end`; of values of one time, the last.

    >>> values = [(Timestamp(1), "a"), (Timestamp(3), "b")]
    >>> [(one.value, float(one.end)) for one in list_validities(values, Timestamp(9))]
    [('a', 3.0), ('b', 9.0)]
    """
    rows = list(values)
    ends = [*(start for start, _ in rows[1:]), end]
    return [
        Valid(value, start, until) for (start, value), until in zip(rows, ends, strict=False) if start < until
    ]


class ValidFrom(PTransform[Any, Any]):
    """Emits each value of a key with the period in which it is valid (Streaming Systems, chapter 9).

    A value is valid from its event time until the event time of the next value of its key. When a value arrives, the
    period of the previous value becomes shorter: that value is retracted, and emitted again. The results are KVs of the
    key and a `Valid`, at the start of its period. Each window has its own timeline. (Penstock's own.)

    Args:
        form: A function from a value to the part that it shares with its copies, as in `JoinRows`.

    Example: ``rates_by_currency | ValidFrom()``.
    """

    def __init__(self, form: Form | None = None) -> None:
        super().__init__()
        self.form = form

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        key_type, _ = key_value_types(pcoll.element_type)
        return pcoll | ParDo(ValidFromFn(self.form)).with_output_types(KV[key_type, AnyHint])


class ValidityJoin(JoinOfKind):
    """Joins each row with the value that is valid at its event time (Streaming Systems, chapter 9).

    It is applied to a pair ``(rows, values)`` of KVs. Rows and values may arrive in any order: a result that no longer
    holds is retracted. It emits KVs of the key and a pair of the row and the value. (Penstock's own.)

    Args:
        kind: ``"inner"``; or ``"left"`` to also emit rows without a valid value, with None as the value; or ``"full"``
            to also emit values without a row in their period, with None as the row.
        with_validity: Whether the second of a pair is a `Valid` instead of the bare value. The pair is then emitted
            again whenever the period of the value becomes shorter.
        final: Whether a row is emitted once, when the watermark has passed its event time, so that all values that
            matter are known. Then no result is retracted, and the input must not contain retractions.

    Raises:
        ValueError: The kind is unknown; the kind ``"full"`` cannot be final; or, when it is applied, the two inputs
            have different windows, or may hold retractions and the join is final.
        TypeError: When it is not applied to two PCollections.

    Example: ``(orders_by_currency, rates_by_currency) | ValidityJoin()``.
    """

    noun = "validity join"
    kinds = _KINDS

    def __init__(
        self,
        kind: str = "inner",
        with_validity: bool = False,
        final: bool = False,
        forms: Forms = (None, None),
    ) -> None:
        super().__init__(kind)
        if final and kind == "full":
            what = "a full validity join is never final: a row may still come for the last value"
            raise refusal(ValueError, what, where=self._where(), hint="use the kind 'left'")
        self.with_validity = with_validity
        self.final = final
        self.forms = forms

    def expand(self, pcolls: tuple[PCollection[Any], PCollection[Any]]) -> PCollection[Any]:
        check_windows(self, pcolls)
        if self.final and any(map(may_retract, pcolls)):
            what = "a final validity join emits no retractions, and its input may contain some"
            raise refusal(ValueError, what, where=self._where(), hint="leave final out")
        types = [key_value_types(pcoll.element_type) for pcoll in pcolls]
        (key, row), (other_key, value) = types
        fn = (
            ValidAtWatermarkFn(self.kind, self.with_validity)
            if self.final
            else ValidityFn(self.kind, self.with_validity, self.forms)
        )
        value = AnyHint if self.with_validity else value
        pair = Tuple[
            Optional[row] if self.kind == "full" else row, value if self.kind == "inner" else Optional[value]
        ]
        join = ParDo(fn).with_output_types(KV[Union[key, other_key], pair])
        return join_sides(pcolls, types) | "Join" >> join


def _around(values: OrderedListRuntimeState, at: Timestamp) -> tuple[Timestamp, Timestamp]:
    """Returns the time that a value at an instant may change: from the value before it to the value after it."""
    first, limit = MIN_TIMESTAMP, MAX_TIMESTAMP
    for time, _ in values.read():
        if time < at:
            first = time
        elif time > at:
            return first, time
    return first, limit


def _keep(
    cell: OrderedListRuntimeState, at: Timestamp, row: object, is_retraction: bool, form: Form | None
) -> None:
    """Puts a row into a cell, or takes a copy of it out."""
    if not is_retraction:
        cell.add((at, row))
        return
    rows = [each for _, each in cell.read_range(at, at + _INSTANT)]
    place = place_of_copy(row, rows, form)
    if place is None:
        what = f"a row of type {type(row).__name__} is retracted, but none like it has its event time"
        hint = "have earlier steps emit the same row and time for a row and for its retraction"
        raise refusal(ValueError, what, hint=hint)
    del rows[place]
    cell.clear_range(at, at + _INSTANT)
    for each in rows:
        cell.add((at, each))


class ValidFromFn(DoFn):
    """Pairs each value with its time."""

    accepts_retractions = True
    emits_retractions = True

    VALUES = OrderedListStateSpec("values", ROW_CODER)

    def __init__(self, form: Form | None = None) -> None:
        self._form = form

    def process(
        self,
        element: tuple[Any, Any],
        at: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
        values: OrderedListRuntimeState = DoFn.StateParam(VALUES),
    ) -> Iterable[WindowedValue]:
        key, value = element
        first, limit = _around(values, at)

        def near() -> list[tuple[Valid, int]]:
            found = list_validities(values.read_range(first, limit), limit)
            return [(one, one.start.micros) for one in found]

        before = near()
        _keep(values, at, value, pane.kind.is_retraction, self._form)
        return emit_pairs(key, compute_difference(before, near()), window)


class ValidityFn(DoFn):
    """Joins the rows and values of a key and window."""

    accepts_retractions = True
    emits_retractions = True

    ROWS = OrderedListStateSpec("rows", ROW_CODER)
    VALUES = OrderedListStateSpec("values", ROW_CODER)

    def __init__(self, kind: str, with_validity: bool, forms: Forms = (None, None)) -> None:
        self._kind = kind
        self._with_validity = with_validity
        self._forms = forms

    def process(
        self,
        element: tuple[Any, Any],
        at: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
        rows: OrderedListRuntimeState = DoFn.StateParam(ROWS),
        values: OrderedListRuntimeState = DoFn.StateParam(VALUES),
    ) -> Iterable[WindowedValue]:
        key, (side, row) = element
        _check_none(self._kind, side, row)
        first, limit = stretch = _around(values, at)
        if side == ROWS and self._kind != "full":
            # No other row is touched.
            stretch = at, at + _INSTANT

        def near() -> list[tuple[Any, int]]:
            valid = list_validities(values.read_range(first, limit), limit)
            return match_rows(self._kind, self._with_validity, list(rows.read_range(*stretch)), valid)

        before = near()
        _keep((rows, values)[side], at, row, pane.kind.is_retraction, self._forms[side])
        return emit_pairs(key, compute_difference(before, near()), window)


def _check_none(kind: str, side: int, row: object) -> None:
    """Refuses None if None means that a row or a value is missing."""
    if row is None and kind in (("full",), ("left", "full"))[side]:
        what = f"a {('row', 'value')[side]} is None, which means a missing one in a join of the kind {kind!r}"
        raise refusal(ValueError, what, hint="make a tuple of it, or use 'inner'")


def match_rows(
    kind: str, with_validity: bool, rows: list[Timed], valid: list[Valid]
) -> list[tuple[Any, int]]:
    """Returns the pairs of a join of rows and values, both in the order of their times, with their event times.

    >>> a = Valid("a", Timestamp(2), Timestamp(9))
    >>> [pair for pair, _ in match_rows("left", False, [(Timestamp(1), "x"), (Timestamp(2), "y")], [a])]
    [('x', None), ('y', 'a')]
    """
    found: list[tuple[Any, int]] = []
    early = [row for row in rows if not valid or row[0] < valid[0].start]
    if kind != "inner":
        found += [((row, None), at.micros) for at, row in early]
    waiting = iter(rows[len(early) :])
    following = next(waiting, None)
    for one in valid:
        shown = one if with_validity else one.value
        if kind == "full" and (following is None or following[0] >= one.end):
            found.append(((None, shown), one.start.micros))
        while following is not None and following[0] < one.end:
            found.append(((following[1], shown), following[0].micros))
            following = next(waiting, None)
    return found


class ValidAtWatermarkFn(DoFn):
    """Joins each row when the watermark has passed its event time."""

    ROWS = OrderedListStateSpec("rows", ROW_CODER)
    VALUES = OrderedListStateSpec("values", ROW_CODER)
    PASSED = TimerSpec("passed", TimeDomain.WATERMARK)

    def __init__(self, kind: str, with_validity: bool) -> None:
        self._kind = kind
        self._with_validity = with_validity

    def process(
        self,
        element: tuple[Any, Any],
        at: Timestamp = DoFn.TimestampParam,
        rows: OrderedListRuntimeState = DoFn.StateParam(ROWS),
        values: OrderedListRuntimeState = DoFn.StateParam(VALUES),
        passed: BaseTimer = DoFn.TimerParam(PASSED),
    ) -> None:
        _, (side, row) = element
        _check_none(self._kind, side, row)
        (rows, values)[side].add((at, row))
        if side == ROWS:
            # While the watermark is at the row's own time, values of that time may still come.
            passed.set(at + _INSTANT, dynamic_timer_tag=str(at.micros), output_timestamp=at)

    @on_timer(PASSED)
    def give(
        self,
        key: object = DoFn.KeyParam,
        micros: str = DoFn.DynamicTimerTagParam,
        rows: OrderedListRuntimeState = DoFn.StateParam(ROWS),
        values: OrderedListRuntimeState = DoFn.StateParam(VALUES),
    ) -> Iterator[Any]:
        """Yields the rows of one event time, with the value that is valid then."""
        at = Timestamp(micros=int(micros))
        until = at + _INSTANT
        first, limit = _around(values, until)
        valid = list_validities(values.read_range(first, limit), limit)
        for pair, _ in match_rows(self._kind, self._with_validity, list(rows.read_range(at, until)), valid):
            yield key, pair
        rows.clear_range(at, until)
