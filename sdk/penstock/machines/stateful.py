"""The machine of a stateful DoFn, one key at a time: what its cells hold, and when its timers fire.

Like a grouping's machine it knows no engine and no clock: time is an argument (Streaming Systems, chapter 7).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from penstock.coders.registered_pickles import dumps
from penstock.elements.bounded_window import BoundedWindow
from penstock.error import refusal
from penstock.functions.userstate import UserStateContext
from penstock.machines.cells import is_bag
from penstock.machines.long_lists import AnyList
from penstock.machines.records import (
    MAX_MICROS,
    Dropped,
    DropReason,
    Element,
    MethodOutput,
    Times,
    Together,
)
from penstock.machines.stateful_keys import PlainWindow, StatefulKey, plain_window, window_of
from penstock.machines.timers import END_OF_WINDOW, HOLDS_NOTHING, NextTimers
from penstock.machines.trigger_machine import CLOCK, Domain
from penstock.machines.user_state import UserState
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, unknown_pane

_VERSION: Final = b"\x04"

Reaction = MethodOutput | Dropped


class TimerFiring(NamedTuple):
    """A timer that fires."""

    name: str  # The name of the TimerSpec.
    tag: str  # The dynamic timer tag.
    fire_micros: int  # When it was due.
    output_micros: int  # The event time of its results.


class StatefulInvoker(Protocol):
    """The methods of a stateful DoFn; each returns the results of a user's method, in order."""

    has_expiration: bool
    """True if it has a method for the expiration of windows."""

    def process(
        self, key: object, element: Element, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        """Processes an element in one of its windows."""
        ...

    def on_timer(
        self, key: object, ring: TimerFiring, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        """Fires a timer."""
        ...

    def on_window_expiration(
        self, key: object, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        """Reports that the state of a window is about to be dropped."""
        ...


class StatefulMachine:
    """The machine of one stateful DoFn, which keeps a window's state for `lateness_micros` after its end."""

    def __init__(self, code: StatefulInvoker, lateness_micros: int = 0) -> None:
        self._code = code
        self._lateness_micros = lateness_micros

    def new_key(self, key: object = None) -> StatefulKey:
        """Returns the state of a key without elements."""
        return StatefulKey(key)

    @property
    def answers_together(self) -> bool:
        """True if it takes all elements of a key that arrive together at once, as a `Together`."""
        return bool(getattr(self._code, "accepts_simultaneous", False))

    def elements(self, state: StatefulKey, elements: Sequence[Element], times: Times) -> list[Reaction]:
        """Adds elements of one logical time, which are all in the global window, as one."""
        rows = Together([(each.kind.sign, each.value) for each in elements])
        last_micros = max(each.timestamp_micros for each in elements)
        return self.element(state, Element(rows, last_micros, elements[0].windows), times)

    def renew_lists(self, state: StatefulKey, renewed: Callable[[AnyList], AnyList]) -> None:
        """Replaces each bag by the result of a function of it."""
        for cells in state.windows.values():
            for name, content in cells.items():
                if is_bag(content):
                    cells[name] = renewed(content)

    def element(self, state: StatefulKey, element: Element, times: Times) -> list[Reaction]:
        """Adds an element to its windows; returns the results, and a `Dropped` for each window that has expired.

        Timers that the element sets to a time in the past fire at once.
        """
        reactions: list[Reaction] = []
        value, timestamp_micros, windows, kind = element
        now_micros, clock_micros, timers = times.horizon_micros, times.clock_micros, state.timers
        for window in windows:
            expiry_micros = self._expiry_micros(window)
            if now_micros >= expiry_micros:
                lost = Element(value, timestamp_micros, (window,), kind)
                reactions.append(Dropped(lost, DropReason.EXPIRED))
                continue
            plain = plain_window(window)
            cells = state.windows.get(plain)
            if cells is None:
                cells = state.windows[plain] = {}
            context = UserState(
                plain, cells, timers, timestamp_micros, expiry_micros, clock_micros, now_micros
            )
            results = tuple(self._code.process(state.key, element, window, context))
            if results:
                reactions.append(MethodOutput(results, timestamp_micros, window, unknown_pane(kind)))
            if not cells or (plain, END_OF_WINDOW, "") not in timers.settings:
                self._keep_if_used(state, plain, expiry_micros)
        first_micros = timers.earliest(True)
        if first_micros is not None and first_micros <= now_micros:
            self._ring(state, True, now_micros, times, reactions)
        return reactions

    def advance_watermark(self, state: StatefulKey, times: Times) -> list[Reaction]:
        """Advances the watermark to `times`: event-time timers that are due fire, and windows end."""
        reactions: list[Reaction] = []
        self._ring(state, True, times.horizon_micros, times, reactions)
        return reactions

    def advance_clock(self, state: StatefulKey, times: Times) -> list[Reaction]:
        """Advances the clock to `times`: processing-time timers that are due fire."""
        reactions: list[Reaction] = []
        self._ring(state, False, times.clock_micros, times, reactions)
        self._ring(state, True, times.horizon_micros, times, reactions)
        return reactions

    def signal(self, state: StatefulKey, name: str, times: Times) -> list[Reaction]:
        """Ignores signals: only triggers use them."""
        return []

    def end_micro_batch(self, state: StatefulKey, times: Times) -> list[Reaction]:
        """Ignores rounds: timers follow the watermark of the source."""
        return []

    def hold_micros(self, state: StatefulKey) -> int | None:
        """Returns the event time that the output watermark must not pass; None if nothing holds it."""
        return state.timers.hold_micros()

    def next_timers(self, state: StatefulKey) -> NextTimers:
        """Returns the `alarm_micros` of each domain in which something is due, and `hold_micros`."""
        return state.timers.next_timers()

    def alarm_micros(self, state: StatefulKey, domain: Domain) -> int | None:
        """Returns a time before which nothing is due in a domain; None if nothing will ever be due."""
        return state.timers.earliest(domain != CLOCK)

    def snapshot(self, state: StatefulKey) -> bytes:
        """Returns the state of a key as bytes."""
        return _VERSION + dumps((state.key, state.plain()))

    def restore(self, data: bytes) -> StatefulKey:
        """Returns the state of a key from the bytes of `snapshot`."""
        if data[:1] != _VERSION:
            what = f"the state of a key has the format {data[:1]!r}, not {_VERSION!r}"
            raise refusal(ValueError, what, hint="restore it with the version of penstock that wrote it")
        return StatefulKey(*pickle.loads(data[1:]))

    def _expiry_micros(self, window: BoundedWindow) -> int:
        micros = window.end_micros + self._lateness_micros
        return micros if micros < MAX_MICROS else MAX_MICROS

    def _keep_if_used(self, state: StatefulKey, plain: PlainWindow, expiry_micros: int) -> None:
        """Closes a window that keeps nothing and waits for nothing, so that it takes no room."""
        timers = state.timers
        if not (state.windows[plain] or timers.has_any(plain)):
            state.close(plain)
            return
        end = plain, END_OF_WINDOW, ""
        if end not in timers.settings:
            timers.set(end, (True, expiry_micros, HOLDS_NOTHING))

    def _ring(
        self,
        state: StatefulKey,
        is_event_time: bool,
        until_micros: int,
        times: Times,
        reactions: list[Reaction],
    ) -> None:
        """Fires due timers, earliest first, including those that are set meanwhile."""
        timers = state.timers
        while (due := timers.take(is_event_time, until_micros)) is not None:
            place, setting = due
            plain, name, tag = place
            _, fire_micros, output_micros = setting
            if name == END_OF_WINDOW:
                if timers.are_due(plain, fire_micros):
                    # Timers that are due at the same time fire before the window ends.
                    timers.set(place, setting)
                else:
                    self._end(state, plain, times, reactions)
                continue
            if output_micros is None:
                output_micros = fire_micros
            window = window_of(plain)
            expiry_micros, cells = self._expiry_micros(window), state.windows[plain]
            clock_micros, now_micros = times.clock_micros, times.horizon_micros
            context = UserState(plain, cells, timers, output_micros, expiry_micros, clock_micros, now_micros)
            ring = TimerFiring(name, tag, fire_micros, output_micros)
            results = tuple(self._code.on_timer(state.key, ring, window, context))
            if results:
                reactions.append(MethodOutput(results, output_micros, window, PANE_INFO_UNKNOWN))
            self._keep_if_used(state, plain, expiry_micros)

    def _end(self, state: StatefulKey, plain: PlainWindow, times: Times, reactions: list[Reaction]) -> None:
        """Drops the state of a window, after the DoFn's method for its expiration."""
        if self._code.has_expiration:
            window = window_of(plain)
            last_micros, cells = window.end_micros - 1, state.windows[plain]
            clock_micros, now_micros = times.clock_micros, times.horizon_micros
            context = UserState(plain, cells, state.timers, last_micros, None, clock_micros, now_micros)
            results = tuple(self._code.on_window_expiration(state.key, window, context))
            if results:
                reactions.append(MethodOutput(results, last_micros, window, PANE_INFO_UNKNOWN))
        state.close(plain)
