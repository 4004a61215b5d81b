"""Cells and timers as the methods of a stateful DoFn see them."""

from __future__ import annotations

from typing import Any

from penstock.error import refusal
from penstock.functions.userstate import BaseTimer, RuntimeState, StateSpec, TimerSpec, UserStateContext
from penstock.machines.cells import Cells, cell_of
from penstock.machines.stateful_keys import PlainWindow, window_of
from penstock.machines.timers import Timers
from penstock.utils.timestamp import Duration, Timestamp, TimestampTypes
from penstock.windows.time_domain import TimeDomain


class UserState(UserStateContext):
    """The cells and timers of one key and window, while a method of the DoFn is called for it."""

    __slots__ = (
        "cells",
        "clock_micros",
        "expiry_micros",
        "timers",
        "timestamp_micros",
        "watermark_micros",
        "window",
    )

    def __init__(
        self,
        window: PlainWindow,
        cells: Cells,
        timers: Timers,
        timestamp_micros: int,
        expiry_micros: int | None,
        clock_micros: int,
        watermark_micros: int,
    ) -> None:
        self.window = window
        self.cells = cells
        self.timers = timers
        self.timestamp_micros = timestamp_micros  # The event time of what the method works on.
        self.expiry_micros = (
            expiry_micros  # The watermark at which the state is dropped; None if that is now.
        )
        self.clock_micros = clock_micros
        self.watermark_micros = watermark_micros

    def get_state(self, state_spec: StateSpec, key: object = None, window: object = None) -> RuntimeState:
        return cell_of(state_spec, self.cells)

    def get_timer(
        self,
        timer_spec: TimerSpec,
        key: object = None,
        window: object = None,
        timestamp: object = None,
        pane: object = None,
    ) -> BaseTimer:
        return UserTimer(timer_spec, self)

    def commit(self) -> None:
        """Does nothing: each write has already stored its value."""


class UserTimer(BaseTimer):
    """A timer as a method sees it."""

    __slots__ = ("_context", "_is_event_time", "_spec")

    def __init__(self, spec: TimerSpec, context: UserState) -> None:
        self._spec = spec
        self._context = context
        self._is_event_time = spec.time_domain == TimeDomain.WATERMARK

    def clear(self, dynamic_timer_tag: str = "") -> None:
        self._context.timers.clear((self._context.window, self._spec.name, dynamic_timer_tag))

    def set_relative(self, duration: Any, dynamic_timer_tag: str = "") -> None:
        context = self._context
        fire_micros = self.get_current_relative_time().micros + Duration.of(duration).micros
        if self._is_event_time and context.expiry_micros is not None:
            fire_micros = min(fire_micros, context.expiry_micros)
        self.set(Timestamp.from_micros(fire_micros), dynamic_timer_tag)

    def get_current_relative_time(self) -> Timestamp:
        """Returns what `set_relative` counts from; see `BaseTimer`."""
        context = self._context
        return Timestamp.from_micros(
            context.timestamp_micros if self._is_event_time else context.clock_micros
        )

    def has_passed(self, timestamp: Timestamp) -> bool:
        return self._context.watermark_micros >= timestamp.micros

    def set(self, timestamp: Any, dynamic_timer_tag: str = "", output_timestamp: Any = None) -> None:
        context, is_event_time = self._context, self._is_event_time
        fire_micros = timestamp.micros if type(timestamp) is Timestamp else Timestamp.of(timestamp).micros
        if context.expiry_micros is None:
            raise self._refused(
                timestamp, "is set while the state of its window is dropped", "set timers earlier"
            )
        if is_event_time and fire_micros > context.expiry_micros:
            hint = "set it to the window's end at most, or allow more lateness"
            raise self._refused(timestamp, "is due after the state of its window is dropped", hint)
        output_micros = None if is_event_time else context.timestamp_micros
        if output_timestamp is not None:
            output_micros = Timestamp.of(output_timestamp).micros
            if is_event_time and output_micros > fire_micros:
                what = "has an output timestamp later than the time when it is due"
                raise self._refused(timestamp, what, "pass an earlier output_timestamp")
        place = context.window, self._spec.name, dynamic_timer_tag
        context.timers.set(place, (is_event_time, fire_micros, output_micros))

    def _refused(self, timestamp: TimestampTypes, what: str, hint: str) -> ValueError:
        text = f"{self._spec!r} at {Timestamp.of(timestamp)!r} {what}"
        return refusal(ValueError, text, where=f"in the window {window_of(self._context.window)}", hint=hint)
