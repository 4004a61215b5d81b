"""Turns a collection of pairs into the changes of a table with one row for each key: `Upserts`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from penstock.coders import FastPrimitivesCoder
from penstock.coders.deterministic import encode_key
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PCollection
from penstock.construction.retractions import may_retract
from penstock.error import refusal
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BagRuntimeState,
    BagStateSpec,
    BaseTimer,
    ReadModifyWriteRuntimeState,
    ReadModifyWriteStateSpec,
    TimerSpec,
    on_timer,
    on_window_expiration,
)
from penstock.relations.changes import compute_net
from penstock.transforms.elements.pardo import MapTuple, ParDo
from penstock.transforms.grouping.group_by_key import key_value_types
from penstock.transforms.grouping.windowing import WindowInto
from penstock.typehints import KV, Tuple
from penstock.typehints import Any as AnyHint
from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp
from penstock.utils.windowed_value import PaneInfo
from penstock.windows.time_domain import TimeDomain
from penstock.windows.window_fn import GlobalWindows


class Upsert(NamedTuple):
    """A change of one row of a table."""

    key: Any
    value: Any
    """The new value of the row, which replaces any other; None if the row is deleted."""
    is_deleted: bool = False
    """True if the key no longer has a row. (The value of a row may also be None.)"""


def keep_last_upserts(upserts: Iterable[Upsert]) -> list[Upsert]:
    """Returns the last upsert of each key: several changes as one, for tables that take a key once per write."""
    return list({encode_key(upsert.key): upsert for upsert in upserts}.values())


class Upserts(PTransform[Any, Any]):
    """Turns KVs into `Upsert` changes of a table with one row for each key (penstock's own).

    A key emits one upsert at the end of each logical time in which its row has changed: once in each micro-batch of a
    live stream, whenever the clock of a recorded stream advances, and once in a batch. The upserts of a key are emitted
    in order.

    If elements may retract earlier ones, the row is the remaining value. Otherwise, each value replaces the previous
    one: by event time, and for equal event times by the number of the pane; with `by_window`, the pane counts first.

    Args:
        by_window: Whether the row's key is the pair of the key and its window, so that each window has its own row.

    Raises:
        ValueError: When it is applied to windows other than the global one without `by_window`; or to windows that
            merge, such as sessions, if no step retracts the results of windows that were merged.
        TypeCheckError: When it is applied to elements that are not pairs.

    Example: ``totals_by_team | Upserts() | ForEachBatch(write_to_table)``.
    """

    def __init__(self, by_window: bool = False) -> None:
        self.by_window = by_window
        super().__init__()

    def default_label(self) -> str:
        return "Upserts(by_window)" if self.by_window else "Upserts"

    def expand(self, pcoll: PCollection[Any]) -> PCollection[Any]:
        self._check_pcollection(pcoll)
        retracts = may_retract(pcoll)
        self._check_windows(pcoll.windowing.windowfn, retracts)
        key_type, _ = key_value_types(self, pcoll.element_type)
        row_key = Tuple[key_type, AnyHint] if self.by_window else key_type
        changes = MapTuple(_change_of_window if self.by_window else _change)
        gather = UpsertFn(retracts, pcoll.windowing.allowed_lateness.micros if self.by_window else None)
        return (
            pcoll
            | "Changes" >> changes.with_output_types(KV[row_key, AnyHint])
            # All merging has happened before: a window is only a part of the key from now on.
            | "One table" >> WindowInto(GlobalWindows())
            | "Gather" >> ParDo(gather).with_output_types(Upsert)
        )

    def _check_windows(self, windowfn: Any, retracts: bool) -> None:
        if not self.by_window and not isinstance(windowfn, GlobalWindows):
            what = f"a key has a value for each of its windows, {windowfn}, and a table one row for each key"
            hint = "use Upserts(by_window=True)"
            if not retracts:
                hint += "; or WindowInto(GlobalWindows()) first, to keep the latest value"
            raise refusal(ValueError, what, where=self._where(), hint=hint)
        if windowfn.is_merging() and not retracts:
            what = f"windows of {windowfn} merge, and no step retracts the rows of windows that are gone"
            hint = "group in the mode ACCUMULATING_AND_RETRACTING"
            raise refusal(ValueError, what, where=self._where(), hint=hint)


def _change(
    key: object, value: object, at: Timestamp = DoFn.TimestampParam, pane: PaneInfo = DoFn.PaneInfoParam
) -> tuple[Any, Any]:
    return key, ((at.micros, pane.index), value)


def _change_of_window(
    key: object,
    value: object,
    at: Timestamp = DoFn.TimestampParam,
    pane: PaneInfo = DoFn.PaneInfoParam,
    window: object = DoFn.WindowParam,
) -> tuple[Any, Any]:
    return (key, window), ((pane.index, at.micros), value)


Arrival = tuple[int, tuple[int, int], Any]
"""1 for a value that is inserted and -1 for one that is retracted; the order of values if none is; and the value."""

Settled = tuple[Any, Upsert | None]
"""The knowledge to keep of a key, and the change of its row."""


def settle_newest(key: object, known: Any, arrivals: Iterable[Arrival]) -> Settled:
    """Returns the change at one timestamp if each value replaces the previous one; the highest order is known."""
    upsert = None
    for _, order, value in arrivals:
        if known is None or order >= known:
            known, upsert = order, Upsert(key, value)
    return known, upsert


def settle_balance(key: object, known: int | None, arrivals: Iterable[Arrival]) -> Settled:
    """Returns the change at one timestamp if elements retract earlier ones; the number of a key's values is known.

    Raises:
        ValueError: More than one value remains.

    >>> settle_balance("amy", 1, [(1, (0, 0), "new"), (-1, (0, 0), "old")])
    (1, Upsert(key='amy', value='new', is_deleted=False))
    """
    retracted, inserted = compute_net((sign, value) for sign, _, value in arrivals)
    # The value that is retracted may have been forgotten with its window.
    left = max(0, (known or 0) - len(retracted)) + len(inserted)
    if left > 1:
        what = f"a key of type {type(key).__name__} has {left} values at once, but a table has one row for each key"
        hint = "add what distinguishes the values to the key, or combine them"
        raise refusal(ValueError, what, hint=hint)
    if inserted:
        return left, Upsert(key, inserted[0])
    return left or None, Upsert(key, None, is_deleted=True) if retracted and not left else None


class UpsertFn(DoFn):
    """Gathers the changes of a key's row, and emits the resulting change at the end of the logical time.

    Between logical times it keeps only an order, or a number, of a key, and not its value. `lateness_micros` is how
    long after the end of the window in its key a row may change; None if a key has no window.
    """

    accepts_retractions = True
    emits_insertions_only = True

    ARRIVALS = BagStateSpec("arrivals", FastPrimitivesCoder())
    KNOWN = ReadModifyWriteStateSpec("known", FastPrimitivesCoder())
    LOGICAL_TIME = TimerSpec("end of the logical time", TimeDomain.REAL_TIME)
    WINDOW = TimerSpec("end of the window", TimeDomain.WATERMARK)

    def __init__(self, retracts: bool, lateness_micros: int | None) -> None:
        self._settle: Callable[[Any, Any, Iterable[Arrival]], Settled] = (
            settle_balance if retracts else settle_newest
        )
        self._lateness_micros = lateness_micros

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        arrivals: BagRuntimeState = DoFn.StateParam(ARRIVALS),
        time_end: BaseTimer = DoFn.TimerParam(LOGICAL_TIME),
        window_end: BaseTimer = DoFn.TimerParam(WINDOW),
    ) -> None:
        key, (order, value) = element
        arrivals.add((pane.kind.sign, order, value))
        time_end.set_relative(0)
        if self._lateness_micros is not None:
            _, window = key
            end_micros = min(window.end_micros + self._lateness_micros, MAX_TIMESTAMP.micros)
            window_end.set(Timestamp.from_micros(end_micros))

    @on_window_expiration
    @on_timer(LOGICAL_TIME)
    def end_of_logical_time(
        self,
        key: object = DoFn.KeyParam,
        arrivals: BagRuntimeState = DoFn.StateParam(ARRIVALS),
        known: ReadModifyWriteRuntimeState = DoFn.StateParam(KNOWN),
    ) -> Iterator[Upsert]:
        """Yields the change of the row; at the end of the input, one that no later timestamp has followed."""
        settled, upsert = self._settle(key, known.read(), arrivals.read())
        arrivals.clear()
        if settled is None:
            known.clear()
        else:
            known.write(settled)
        if upsert is not None:
            yield upsert

    @on_timer(WINDOW)
    def end_of_window(
        self,
        key: object = DoFn.KeyParam,
        arrivals: BagRuntimeState = DoFn.StateParam(ARRIVALS),
        known: ReadModifyWriteRuntimeState = DoFn.StateParam(KNOWN),
    ) -> Iterator[Upsert]:
        """Yields the last change of a row whose window is over; then it is forgotten."""
        yield from self.end_of_logical_time(key, arrivals, known)
        known.clear()
