"""Translates the state and timers that a Beam DoFn declares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apache_beam.transforms import userstate as beam_state

from penstock.coders.coders import PickleCoder
from penstock.functions import userstate
from penstock.functions.userstate import (
    BaseTimer,
    OrderedListRuntimeState,
    SetRuntimeState,
    StateSpec,
    TimerSpec,
)
from penstock.windows.time_domain import TimeDomain
from penstock_spark.beam.coders import make_adapter_class
from penstock_spark.beam.combining import combine_fn_of
from penstock_spark.beam.values import beam_time_of, time_of

_KINDS: dict[type, type[StateSpec]] = {
    beam_state.ReadModifyWriteStateSpec: userstate.ReadModifyWriteStateSpec,
    beam_state.BagStateSpec: userstate.BagStateSpec,
    beam_state.SetStateSpec: userstate.SetStateSpec,
    beam_state.OrderedListStateSpec: userstate.OrderedListStateSpec,
}


def state_of(spec: beam_state.StateSpec) -> StateSpec:
    """Penstock's description of a cell for Beam's description.

    The program's coder encodes what is in the cell, except accumulators: they may be penstock's own, and are pickled.
    """
    if isinstance(spec, beam_state.CombiningValueStateSpec):
        return userstate.CombiningValueStateSpec(spec.name, PickleCoder(), combine_fn_of(spec.combine_fn))
    return _KINDS[type(spec)](spec.name, make_adapter_class(spec.coder)())


def timer_of(spec: beam_state.TimerSpec) -> TimerSpec:
    """Penstock's description of a timer for Beam's description."""
    domain = str(spec.time_domain)
    is_watermark = domain == str(beam_state.TimeDomain.WATERMARK)
    name = spec.name.removeprefix(TimerSpec.prefix)
    return TimerSpec(name, TimeDomain.WATERMARK if is_watermark else TimeDomain.REAL_TIME)


class TimerAdapter(beam_state.BaseTimer):  # type: ignore[misc]
    """A timer as a method of a Beam DoFn sees it."""

    def __init__(self, timer: BaseTimer) -> None:
        self._timer = timer

    def set(self, timestamp: object, dynamic_timer_tag: str = "") -> None:
        self._timer.set(time_of(timestamp), dynamic_timer_tag)

    def clear(self, dynamic_timer_tag: str = "") -> None:
        self._timer.clear(dynamic_timer_tag)


class SetStateAdapter(beam_state.SetRuntimeState):  # type: ignore[misc]
    """Distinct values, as a method of a Beam DoFn sees them: equal ones are one, even if a coder distinguishes them."""

    def __init__(self, cell: SetRuntimeState) -> None:
        self._cell = cell

    def read(self) -> set[Any]:
        return set(self._cell.read())

    def add(self, value: object) -> None:
        self._cell.add(value)

    def clear(self) -> None:
        self._cell.clear()

    def commit(self) -> None:
        self._cell.commit()


class OrderedListStateAdapter(beam_state.OrderedListRuntimeState):  # type: ignore[misc]
    """Values in the order of their times, as a method of a Beam DoFn sees them."""

    def __init__(self, cell: OrderedListRuntimeState) -> None:
        self._cell = cell

    def read(self) -> Iterable[tuple[Any, Any]]:
        return _pairs(self._cell.read())

    def add(self, value: tuple[Any, Any]) -> None:
        time, item = value
        self._cell.add((time_of(time), item))

    def read_range(self, min_time_stamp: object, limit_time_stamp: object) -> Iterable[tuple[Any, Any]]:
        return _pairs(self._cell.read_range(time_of(min_time_stamp), time_of(limit_time_stamp)))

    def clear_range(self, min_time_stamp: object, limit_time_stamp: object) -> None:
        self._cell.clear_range(time_of(min_time_stamp), time_of(limit_time_stamp))

    def clear(self) -> None:
        self._cell.clear()

    def commit(self) -> None:
        self._cell.commit()


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    return ((beam_time_of(time), item) for time, item in pairs)
