"""The step that computes a chain of relations key by key, and may hold its result back until the watermark passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.coders import PickleCoder
from penstock.functions.dofn import DoFn
from penstock.functions.userstate import (
    BaseTimer,
    ObjectStateSpec,
    ReadModifyWriteRuntimeState,
    TimerSpec,
    on_timer,
)
from penstock.machines.records import Together
from penstock.metrics.metric import Metrics
from penstock.relations.changes import Change, compute_net, kinds_of
from penstock.scalars.casting import whole_micros
from penstock.scalars.row_functions import Projection
from penstock.sql.execution.chain_steps import ChainStep, Changes, net_of
from penstock.sql.execution.equality import CanonicalRow
from penstock.sql.execution.first_rows import SqlRow
from penstock.utils.timestamp import Timestamp
from penstock.utils.window import BoundedWindow
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue, create, unknown_pane
from penstock.windows.time_domain import TimeDomain

_HELD_BACK = "held back"
_LATE = Metrics.counter("penstock", "elements_dropped_as_late")
"""The counter of what any grouping drops because it comes too late."""


class ChainDoFn(DoFn):
    """Computes the relations of a chain for one key.

    Elements are pairs of a key and a pair of the number of an input and a row, or the key and several such pairs.

    Args:
        inputs: The place of each input in the chain.
        steps: The relations, by their places.

    Attributes:
        accepts_retractions: True, because retractions are also changes.
        accepts_simultaneous: What arrives together changes each relation once.
    """

    accepts_retractions = True
    accepts_simultaneous = True
    ROWS = ObjectStateSpec("rows", PickleCoder())

    def __init__(self, inputs: tuple[int, ...], steps: dict[int, ChainStep]) -> None:
        self._inputs = inputs
        self._steps = tuple(sorted(steps.items()))

    def _held(self, rows: ReadModifyWriteRuntimeState) -> dict[Any, Any]:
        """Returns the state of all relations for the key, which changes in place."""
        held: dict[Any, Any] | None = rows.read()
        if held is None:
            held = {place: start for place, step in self._steps if (start := step.start()) is not None}
            rows.write(held)
        return held

    def _advance(self, held: dict[Any, Any], value: Together | tuple[int, SqlRow], sign: int) -> Changes:
        """The change of the last relation when inputs change."""
        several = value.rows if isinstance(value, Together) else [(sign, value)]
        changes: dict[int, list[tuple[int, Any]]] = {}
        for own_sign, (number, row) in several:
            changes.setdefault(self._inputs[number], []).append((own_sign, row))
        return self._advance_steps(held, changes)

    def _advance_steps(self, held: dict[Any, Any], of_inputs: Mapping[int, Changes]) -> Changes:
        changes = dict(of_inputs)
        last: Changes = ()
        for place, step in self._steps:
            own = [changes.get(each, ()) for each in step.inputs]
            last = step.advance(held.get(place, {}), own) if any(own) else ()
            if last:
                changes[place] = last
        return last


class ChainFn(ChainDoFn):
    """Emits what is left of the changes of the last relation of a chain.

    Args:
        inputs: The place of each input in the chain.
        steps: The relations, by their places.
        retracts: Whether the last relation may retract rows.
    """

    def __init__(self, inputs: tuple[int, ...], steps: dict[int, ChainStep], retracts: bool) -> None:
        super().__init__(inputs, steps)
        self.emits_retractions = retracts

    def process(
        self,
        element: tuple[Any, Any],
        at: Timestamp = DoFn.TimestampParam,
        window: BoundedWindow = DoFn.WindowParam,
        pane: PaneInfo = DoFn.PaneInfoParam,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ChainDoFn.ROWS),
    ) -> Iterable[WindowedValue]:
        """Takes a row in, or out."""
        changes = self._advance(self._held(rows), element[1], pane.kind.sign)
        return elements_of(net_of(changes), at.micros, window) if changes else ()


def elements_of(change: Change, micros: int, window: BoundedWindow) -> list[WindowedValue]:
    """Returns the rows of a change as elements, those that are retracted first."""
    return [
        create(row, micros, (window,), unknown_pane(kind))
        for rows, kind in zip(change, kinds_of(change), strict=True)
        for row in rows
    ]


class HeldChainFn(ChainDoFn):
    """Holds the changes of the last relation of a chain back until the watermark has passed the time of each row.

    Args:
        inputs: The place of each input in the chain.
        steps: The relations, by their places.
        past: The time that the watermark must pass.
        form: What brings a row into its canonical form, or None.
        is_one_time: Whether all rows of a key have the same time, after which the key is forgotten.

    Attributes:
        emits_insertions_only: What comes later is dropped and counted, so that nothing is retracted.
    """

    emits_insertions_only = True
    PASSED = TimerSpec("passed", TimeDomain.WATERMARK)

    def __init__(
        self,
        inputs: tuple[int, ...],
        steps: dict[int, ChainStep],
        past: Projection,
        form: CanonicalRow | None,
        is_one_time: bool,
    ) -> None:
        super().__init__(inputs, steps)
        self._past = past
        self._form = form
        self._is_one_time = is_one_time

    def process(
        self,
        element: tuple[Any, Any],
        pane: PaneInfo = DoFn.PaneInfoParam,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ChainDoFn.ROWS),
        passed: BaseTimer = DoFn.TimerParam(PASSED),
    ) -> None:
        """Takes a row in, or out, and notes what changes."""
        held = self._held(rows)
        for sign, changed in self._advance(held, element[1], pane.kind.sign):
            [time] = self._past.function(changed)
            if time is None:
                # The watermark never passes NULL.
                continue
            micros = whole_micros(time)
            end = Timestamp.from_micros(micros)
            if self._is_late(passed, end):
                _LATE.inc()
                continue
            waiting = held.setdefault(_HELD_BACK, {})
            if micros not in waiting:
                waiting[micros] = []
                passed.set(end, str(micros), Timestamp.from_micros(micros - 1))
            waiting[micros].append((sign, changed))

    def _is_late(self, passed: BaseTimer, end: Timestamp) -> bool:
        return passed.has_passed(end)

    @on_timer(PASSED)
    def emit(
        self,
        window: BoundedWindow = DoFn.WindowParam,
        micros: str = DoFn.DynamicTimerTagParam,
        rows: ReadModifyWriteRuntimeState = DoFn.StateParam(ChainDoFn.ROWS),
    ) -> Iterator[WindowedValue]:
        """Emits what is left of the changes until now."""
        held = rows.read()
        _, inserted = compute_net(held[_HELD_BACK].pop(int(micros)), self._form)
        if not held[_HELD_BACK]:
            del held[_HELD_BACK]
        if self._is_one_time:
            rows.clear()
        kind = kinds_of(((), inserted))[1]
        pane = PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0, kind)
        for row in inserted:
            yield create(row, int(micros) - 1, (window,), pane)
