"""Joins of rows by key, whose result is updated at each change of a row: `JoinRows`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

from penstock.checks.similar_names import hint_at_name
from penstock.coders import VarIntCoder
from penstock.construction import pvalue
from penstock.construction.ptransform import PTransform, where_of
from penstock.construction.pvalue import PCollection
from penstock.error import noun_for, refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import MapStateSpec, on_window_expiration
from penstock.machines.cells import MapCell
from penstock.relations.bags import ROW_CODER, Form, Forms, place_of_copy
from penstock.relations.changes import NO_CHANGE, Change, emit_pairs
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.co_group_by_key import merge_numbered
from penstock.typehints import KV, Optional, Tuple, Union
from penstock.typehints.trivial_inference import key_value_types
from penstock.utils.timestamp import Timestamp
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo, WindowedValue

AT_ONCE, AT_END = "at_once", "at_end"
LEFT, RIGHT = 0, 1


class _Kind(NamedTuple):
    """The rows in the result of a kind of join."""

    pairs: bool
    """True if it returns pairs of a left and a right row, or else left rows alone."""
    matched: bool
    """True if it returns rows that have a match."""
    unmatched: tuple[bool, bool]
    """True if it returns rows without a match, of the left and of the right side."""


_KINDS = {
    "full": _Kind(True, True, (True, True)),
    "left": _Kind(True, True, (True, False)),
    "right": _Kind(True, True, (False, True)),
    "inner": _Kind(True, True, (False, False)),
    "anti": _Kind(True, False, (True, True)),
    "left_anti": _Kind(False, False, (True, False)),
    "semi": _Kind(False, True, (False, False)),
}


class JoinOfKind(PTransform[Any, Any]):
    """The base of joins of two PCollections of KVs, of which there are several kinds."""

    noun: ClassVar[str]
    kinds: ClassVar[Collection[str]]

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__()
        if kind not in self.kinds:
            what = f"there is no kind of {self.noun} {kind!r}"
            hint = hint_at_name(str(kind), self.kinds, f"one of {', '.join(self.kinds)}")
            raise refusal(ValueError, what, where=self._where(), hint=hint)

    def default_label(self) -> str:
        return f"{type(self).__name__}({self.kind})"

    def _extract_input_pvalues(self, pvalueish: Any) -> tuple[Any, tuple[Any, ...]]:
        is_pair = isinstance(pvalueish, tuple | list) and len(pvalueish) == 2
        if not is_pair or not all(isinstance(each, pvalue.PCollection) for each in pvalueish):
            what = f"a join is applied to two PCollections, and not to {_described(pvalueish)}"
            hint = "write (lefts, rights) | JoinRows()"
            raise refusal(TypeError, what, where=self._where(), hint=hint)
        return tuple(pvalueish), tuple(pvalueish)


class JoinRows(JoinOfKind):
    """Joins the rows of two PCollections of KVs by key and window, row by row (Streaming Systems, chapter 9).

    It is applied to a pair ``(lefts, rights)``. Whenever a row is added or retracted, it retracts the results that no
    longer hold, then emits those that hold now. A row of the result has the latest event time of its parts. (Penstock's
    own.)

    Args:
        kind: ``"full"``, ``"left"``, ``"right"`` or ``"inner"`` emit KVs of the key and a pair of a left and a right
            row, with None for a row that is missing; ``"anti"`` emits, in such pairs, the rows of both sides that have
            no match. ``"semi"`` emits each left row that has a match, and ``"left_anti"`` each left row that does not.
        unjoined: When rows without a match are emitted: ``"at_once"``, and retracted when a match arrives; or
            ``"at_end"``, once, when the watermark passes their window's end and the allowed lateness.
        matching: A function of a left row and a right row of one key that returns whether they match; by default, all
            do.
        forms: For the left and for the right rows, a function from a row to the part that it shares with its copies;
            None if that is the whole row. If a retracted row is not there, a copy of it is removed.

    Raises:
        ValueError: An argument has an unknown value; `unjoined` is set for a kind that has no such rows; or, when it is
            applied, the two sides have different windows. TypeError: When it is not applied to two PCollections.

    Example: ``(orders_by_user, visits_by_user) | JoinRows("left")``.
    """

    noun = "join"
    kinds = _KINDS

    def __init__(
        self,
        kind: str = "full",
        unjoined: str = AT_ONCE,
        matching: Callable[[Any, Any], bool] | None = None,
        forms: Forms = (None, None),
    ) -> None:
        super().__init__(kind)
        if unjoined not in (AT_ONCE, AT_END):
            what = f"unjoined is {unjoined!r}"
            raise refusal(ValueError, what, where=self._where(), hint=f"pass {AT_ONCE!r} or {AT_END!r}")
        if unjoined == AT_END and not any(_KINDS[kind].unmatched):
            what = f"a join of the kind {kind!r} emits no rows without a match"
            raise refusal(ValueError, what, where=self._where(), hint="leave unjoined out")
        self.unjoined = unjoined
        self.matching = matching
        self.forms = forms

    def expand(self, pcolls: tuple[PCollection[Any], PCollection[Any]]) -> PCollection[Any]:
        check_windows(self, pcolls)
        types = [key_value_types(pcoll.element_type) for pcoll in pcolls]
        join = (JoinFn if self.unjoined == AT_ONCE else JoinAtEndFn)(self.kind, self.matching, self.forms)
        return join_sides(pcolls, types) | "Join" >> ParDo(join).with_output_types(self._output_type(types))

    def _output_type(self, types: list[tuple[Any, Any]]) -> object:
        (left_key, left), (right_key, right) = types
        kind = _KINDS[self.kind]
        if not kind.pairs:
            return KV[left_key, left]
        lefts_unmatched, rights_unmatched = kind.unmatched
        first = Optional[left] if rights_unmatched else left
        second = Optional[right] if lefts_unmatched else right
        return KV[Union[left_key, right_key], Tuple[first, second]]


def _described(pvalueish: object) -> str:
    if isinstance(pvalueish, tuple | list):
        return f"({', '.join(type(each).__name__ for each in pvalueish)})"
    return noun_for(pvalueish)


def check_windows(transform: JoinOfKind, pcolls: tuple[Any, Any]) -> None:
    """Refuses sides with different windows: no row of one side would ever match a row of the other."""
    left, right = (pcoll.windowing.windowfn for pcoll in pcolls)
    if left != right:
        what = f"the sides of a join have different windows: {left} and {right}"
        hint = "put both into the same with WindowInto"
        raise refusal(ValueError, what, where=where_of(transform), hint=hint)


def join_sides(pcolls: tuple[Any, Any], types: list[tuple[Any, Any]]) -> PCollection[Any]:
    """Merges both sides into KVs of the key and a pair of the side and the row."""
    return merge_numbered(("Mark lefts", "Mark rights"), pcolls, types)


Timed = tuple[Any, int]
"""A row and its event time in microseconds, of one side or of the result."""


def _rows_in(counts: Any) -> Iterator[Timed]:
    """The rows of a side, whose cell has the number of copies of each pair of a row and its event time."""
    for timed, count in counts.entries():
        if count == 1:
            yield timed
        else:
            yield from repeat(timed, count)


def _put(counts: MapCell, timed: Timed) -> None:
    if not counts.put_if_absent(timed, 1):
        counts.put(timed, counts.get(timed) + 1)


def _take(counts: MapCell, timed: Timed, form: Form | None) -> Timed:
    """Takes a copy of a row out, if possible the copy with the same event time; ValueError if there is no copy."""
    count = counts.get(timed, 0)
    if not count:
        timed = _other_copy(counts, timed, form)
        count = counts.get(timed)
    if count > 1:
        counts.put(timed, count - 1)
    else:
        counts.remove(timed)
    return timed


def _other_copy(counts: MapCell, timed: Timed, form: Form | None) -> Timed:
    """A copy of a row with another event time or, if need be, in another form."""
    value, micros = timed
    rows: list[Timed] = sorted((own for own, _ in counts.entries()), key=lambda own: own[1] != micros)
    place = place_of_copy(value, [own for own, _ in rows], form)
    if place is not None:
        return rows[place]
    what = f"a row of type {type(value).__name__} is retracted, but it is not there"
    hint = "earlier steps must return the same for a row when it is added and when it is retracted"
    raise refusal(ValueError, what, hint=hint)


class JoinFn(DoFn):
    """Joins the rows of a key and window."""

    accepts_retractions = True

    LEFTS = MapStateSpec("lefts", ROW_CODER, VarIntCoder())
    RIGHTS = MapStateSpec("rights", ROW_CODER, VarIntCoder())

    def __init__(
        self,
        kind: str,
        matching: Callable[[Any, Any], bool] | None = None,
        forms: Forms = (None, None),
    ) -> None:
        self._name = kind
        self._forms = forms
        self._kind = self._at_once = _KINDS[kind]
        self._matching = matching
        self.emits_retractions = any(self._at_once.unmatched)

    def process(
        self,
        element: tuple[Any, Any],
        at: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
        lefts: MapCell = DoFn.StateParam(LEFTS),
        rights: MapCell = DoFn.StateParam(RIGHTS),
    ) -> Iterable[WindowedValue]:
        key, (side, value) = element
        if value is None:
            self._check(side)
        own, other = (lefts, rights) if side == LEFT else (rights, lefts)
        timed = value, at.micros
        if pane.kind.is_retraction:
            timed = _take(own, timed, self._forms[side])
            # The inverse of an insertion.
            inserted, retracted = self._effect(side, timed, own, other)
        else:
            retracted, inserted = self._effect(side, timed, own, other)
            _put(own, timed)
        return emit_pairs(key, (retracted, inserted), window) if retracted or inserted else ()

    def _effect(self, side: int, timed: Timed, own: MapCell, other: MapCell) -> Change:
        if self._matching is None:
            return _effect(self._at_once, side, timed, own, other)
        return self._effect_of_matching(side, timed, own, other)

    def _effect_of_matching(self, side: int, timed: Timed, own: object, other: object) -> Change:
        """`_effect`, where not all rows of a key match."""
        kind = self._at_once
        partners = [one for one in _rows_in(other) if self._match(side, timed, one)]
        if not partners:
            return (), _unmatched(kind, side, [timed])
        if not kind.pairs and side == LEFT:
            return ((), [timed]) if kind.matched else NO_CHANGE
        lonely: list[Timed] = []
        if not kind.pairs or kind.unmatched[1 - side]:
            # A partner that no other row of this side matches is without a match when this row is not there.
            lonely = [
                one for one in partners if not any(self._match(side, each, one) for each in _rows_in(own))
            ]
        if kind.pairs:
            joined = [_pair(side, timed, one) for one in partners] if kind.matched else ()
            return _unmatched(kind, 1 - side, lonely), joined
        return ((), lonely) if kind.matched else (_unmatched(kind, LEFT, lonely), ())

    def _match(self, side: int, timed: Timed, other: Timed) -> bool:
        assert self._matching is not None
        (value, _), (partner, _) = timed, other
        return self._matching(value, partner) if side == LEFT else self._matching(partner, value)

    def _check(self, side: int) -> None:
        """Refuses a row None if None means that a row is missing."""
        if self._kind.pairs and self._kind.unmatched[1 - side]:
            name = "left" if side == LEFT else "right"
            what = (
                f"a {name} row is None, which in a join of the kind {self._name!r} means that there is none"
            )
            raise refusal(ValueError, what, hint="make a tuple of each row, or use 'inner'")


class JoinAtEndFn(JoinFn):
    """Like `JoinFn`, but emits rows without a match when their window ends."""

    def __init__(
        self,
        kind: str,
        matching: Callable[[Any, Any], bool] | None = None,
        forms: Forms = (None, None),
    ) -> None:
        super().__init__(kind, matching, forms)
        self._at_once = self._kind._replace(unmatched=(False, False))
        self.emits_retractions = False

    @on_window_expiration
    def end(
        self,
        key: object = DoFn.KeyParam,
        lefts: MapCell = DoFn.StateParam(JoinFn.LEFTS),
        rights: MapCell = DoFn.StateParam(JoinFn.RIGHTS),
    ) -> Iterator[Any]:
        """Yields the rows without a match."""
        sides = lefts, rights
        for side in (LEFT, RIGHT):
            own, other = sides[side], sides[1 - side]
            if self._matching is not None:
                others = list(_rows_in(other))
                alone = [
                    one for one in _rows_in(own) if not any(self._match(side, one, each) for each in others)
                ]
            else:
                alone = [*_rows_in(own)] if other.is_empty() else []
            for value, _ in _unmatched(self._kind, side, alone):
                yield key, value


def _effect(kind: _Kind, side: int, timed: Timed, own: MapCell, other: MapCell) -> Change:
    """The change of the result when a row is inserted; `own` has the other rows of its side."""
    if other.is_empty():
        return (), _unmatched(kind, side, [timed])
    if kind.pairs:
        joined = [_pair(side, timed, one) for one in _rows_in(other)] if kind.matched else ()
        if not kind.unmatched[1 - side] or not own.is_empty():
            return (), joined
        return _unmatched(kind, 1 - side, _rows_in(other)), joined
    # Left rows alone: a right row matters only if it is the first, or the last.
    if side == LEFT:
        return ((), [timed]) if kind.matched else NO_CHANGE
    if not own.is_empty():
        return NO_CHANGE
    lefts = [*_rows_in(other)]
    return ((), lefts) if kind.matched else (_unmatched(kind, LEFT, lefts), ())


def _unmatched(kind: _Kind, side: int, rows: Iterable[Timed]) -> Sequence[Timed]:
    """Returns rows of a side as they appear in the result if the other side has no rows."""
    if not kind.unmatched[side]:
        return ()
    return [_pair(side, timed, None) for timed in rows] if kind.pairs else [*rows]


def _pair(side: int, timed: Timed, other: Timed | None) -> Timed:
    """Returns a row of the result; its event time, the latest of its parts, is the same when it is retracted."""
    (value, micros), matching = timed, None
    if other is not None:
        matching, other_micros = other
        micros = max(micros, other_micros)
    return (value, matching) if side == LEFT else (matching, value), micros
