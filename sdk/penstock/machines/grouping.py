"""The machine of a grouping, one key at a time: ``(element | watermark | clock | signal) -> panes, hold``.

It answers the paper's questions where, when and how. It knows no engine and no clock: time is an argument.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from penstock.coders.registered_pickles import dumps
from penstock.elements.bounded_window import BoundedWindow
from penstock.error import refusal
from penstock.machines import merging, splitting
from penstock.machines.folds import LIST
from penstock.machines.long_lists import AnyList
from penstock.machines.program import program_of
from penstock.machines.records import MAX_MICROS, Arrival, Dropped, DropReason, Element, Emitted, Pane, Times
from penstock.machines.separable_values import put
from penstock.machines.states import KeyState, WindowState
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.machines.visiting import (
    end_micro_batch,
    hold_of,
    is_expired,
    note_hold,
    note_hold_anew,
    set_alarms,
    visit,
)
from penstock.machines.window_status import StoredWindowStatus
from penstock.utils.timestamp import Timestamp
from penstock.windows.window_fn import WindowFn
from penstock.windows.windowing import Windowing

_VERSION: Final = b"\x02"


class GroupingMachine:
    """The machine of one grouping; the state of each key is apart from it.

    Panes hold the result of the CombineFn `combine`; without one, the list of the values. If `input_retracts`,
    elements may be retractions.

    >>> from penstock.transforms.window import FixedWindows
    >>> machine = GroupingMachine(Windowing(FixedWindows(10)))
    >>> state = machine.new_key()
    >>> machine.element(state, Element("a", 3_000_000, machine.assign(3_000_000)), Times())
    []
    >>> machine.hold_micros(state)
    9999999
    >>> [pane] = machine.advance(state, Times(watermark_micros=10_000_000))
    >>> pane.value, pane.window, pane.info.is_last
    (['a'], [0.0, 10.0), True)
    """

    def __init__(self, windowing: Windowing, combine: object = None, input_retracts: bool = False) -> None:
        self.windowing = windowing
        self.program = program_of(windowing, combine, input_retracts)

    @property
    def answers_together(self) -> bool:
        """True if it takes all elements of a key that arrive together at once."""
        return self.program.answers_together

    def assign(self, timestamp_micros: int, element: object = None) -> tuple[BoundedWindow, ...]:
        """Returns the windows of an element, for callers without a step that assigns them."""
        context = WindowFn.AssignContext(Timestamp.from_micros(timestamp_micros), element=element)
        return tuple(self.windowing.windowfn.assign(context))

    def new_key(self, key: object = None) -> KeyState:
        """Returns the state of a key without elements."""
        return KeyState()

    def renew_lists(self, key: KeyState, renewed: Callable[[AnyList], AnyList]) -> None:
        """Replaces each list to which values are only ever added by what a function returns for it."""
        if self.program.fold is LIST:
            for state in key.windows.values():
                # A window that takes no more elements holds nothing at all.
                if state.held:
                    state.held = renewed(state.held)

    def element(self, key: KeyState, element: Element, times: Times) -> list[Emitted]:
        """Adds an element to its windows; returns panes, and a `Dropped` for each window that has expired or
        finished.
        """
        program = self.program
        status = StoredWindowStatus(program, times, times.clock_micros - 1)
        emitted: list[Emitted] = []
        for window in element.windows:
            state = self._window(key, window, status, emitted)
            if isinstance(state, DropReason):
                dropped = Element(element.value, element.timestamp_micros, (window,), element.kind)
                emitted.append(Dropped(dropped, state))
                continue
            self._take(state, element, window, status)
            for one in self._left(key, state, element, window, status):
                emitted += self._answer(key, one, status)
        return emitted

    def elements(self, key: KeyState, elements: Iterable[Element], times: Times) -> list[Emitted]:
        """Elements of one logical time arrive together, some of which may be retractions: a window answers them once.

        It is for windows that do not merge.
        """
        program = self.program
        status = StoredWindowStatus(program, times, times.clock_micros - 1)
        emitted: list[Emitted] = []
        touched: dict[BoundedWindow, WindowState] = {}
        for element in elements:
            for window in element.windows:
                state = self._window(key, window, status, emitted)
                if isinstance(state, DropReason):
                    dropped = Element(element.value, element.timestamp_micros, (window,), element.kind)
                    emitted.append(Dropped(dropped, state))
                    continue
                self._take(state, element, window, status)
                touched[window] = state
        for state in touched.values():
            emitted += self._answer(key, state, status)
        return emitted

    def arrival(self, key: KeyState, arrival: Arrival, times: Times) -> list[Emitted]:
        """Elements of one logical time and one window arrive together, combined.

        The output is the same as if they came one by one, except that late elements fire a window once, not several
        times. If the window takes no more elements, one `Dropped` counts them all.
        """
        program = self.program
        if not program.takes_arrivals:
            what = "combined elements arrive at a grouping that needs them one by one"
            raise refusal(ValueError, what, hint="ask program.takes_arrivals first")
        status = StoredWindowStatus(program, times, times.clock_micros - 1)
        emitted: list[Emitted] = []
        state = self._window(key, arrival.window, status, emitted)
        if isinstance(state, DropReason):
            emitted.append(Dropped(_as_element(arrival), state, arrival.count))
        else:
            self._take_together(state, arrival, status)
            emitted += self._answer(key, state, status)
        return emitted

    def advance(self, key: KeyState, times: Times) -> list[Emitted]:
        """The watermark and the clock advance to `times`: what is due fires, first by the watermark."""
        return self.advance_watermark(key, times) + self.advance_clock(key, times)

    def advance_watermark(self, key: KeyState, times: Times) -> list[Emitted]:
        """The watermark advances to `times`: what is due by it fires."""
        emitted: list[Emitted] = []
        status = StoredWindowStatus(self.program, times, times.clock_micros - 1)
        for percentile in sorted(float(domain) for domain in key.agendas if domain != CLOCK):
            is_watermark = percentile == WATERMARK
            now_micros = times.horizon_micros if is_watermark else times.percentile(percentile)
            self._ring(key, percentile, now_micros, status, emitted)
        return emitted

    def advance_clock(self, key: KeyState, times: Times) -> list[Emitted]:
        """The clock advances to `times`, after everything else at this time: what is due fires."""
        emitted: list[Emitted] = []
        status = StoredWindowStatus(self.program, times, times.clock_micros)
        self._ring(key, CLOCK, times.clock_micros, status, emitted)
        return emitted

    def signal(self, key: KeyState, name: str, times: Times) -> list[Emitted]:
        """A named signal from outside arrives, for all windows of the key."""
        emitted: list[Emitted] = []
        status = StoredWindowStatus(self.program, times, times.clock_micros - 1)
        for state in sorted(key.windows.values(), key=_by_window):
            if not state.is_closed:
                state.trigger = self.program.trigger.signal(state.trigger, name)
                emitted += visit(self.program, key, state, status, has_moved=False)
        return emitted

    def end_micro_batch(self, key: KeyState, times: Times) -> list[Emitted]:
        """Ends a micro-batch: its watermark becomes infinite, and every window that changed fires and starts again.

        The watermark of the source (``expiry_micros`` of `times`) decides which windows expire.
        """
        emitted: list[Emitted] = []
        end = times._replace(watermark_micros=MAX_MICROS, expiry_micros=times.horizon_micros)
        status = StoredWindowStatus(self.program, end, times.clock_micros)
        changed = sorted((key.numbered[number] for number in key.changed), key=_by_window)
        key.changed = {}
        for state in changed:
            emitted += end_micro_batch(self.program, key, state, status)
        return emitted

    def hold_micros(self, key: KeyState) -> int | None:
        """Returns the event time that the output watermark must not pass; None if nothing holds it."""
        while (noted := key.holds.earliest()) is not None:
            micros, number = noted
            state = key.numbered.get(number)
            if state is not None and (
                hold_of(self.program, state) == micros or key.owed.get(number) == micros
            ):
                return micros
            key.holds.take(micros)
            if state is not None and state.noted_micros == micros:
                note_hold_anew(self.program, key, state)
        return None

    def alarm_micros(self, key: KeyState, domain: Domain) -> int | None:
        """Returns a time before which nothing is due in a domain; None if nothing will ever be due."""
        agenda = key.agendas.get(domain)
        earliest = None if agenda is None else agenda.earliest()
        return None if earliest is None else earliest[0]

    def snapshot(self, key: KeyState) -> bytes:
        """Returns the state of a key as bytes."""
        return _VERSION + dumps(key)

    def restore(self, data: bytes) -> KeyState:
        """Returns the state of a key from the bytes of `snapshot`."""
        if data[:1] != _VERSION:
            what = f"the state of a key has the format {data[:1]!r}, not {_VERSION!r}"
            raise refusal(ValueError, what, hint="restore it with the version of penstock that wrote it")
        key: KeyState = pickle.loads(data[1:])
        return key

    def _window(
        self, key: KeyState, window: BoundedWindow, status: StoredWindowStatus, emitted: list[Emitted]
    ) -> WindowState | DropReason:
        """The window that takes an element, or the reason why none does."""
        state = key.windows.get(window)
        if state is not None and not state.is_closed:
            return state
        if self.program.merges:
            return self._merged(key, window, status, emitted)
        return self._opened(key, window, status)

    def _opened(
        self, key: KeyState, window: BoundedWindow, status: StoredWindowStatus
    ) -> WindowState | DropReason:
        """A new window, or the reason why it takes no elements."""
        program = self.program
        if window in key.windows:
            return DropReason.FINISHED
        if is_expired(program, window, status.times):
            return DropReason.EXPIRED
        state = WindowState(key.next_number, window, program.fold.empty(), program.trigger.start())
        state.is_past_end = status.times.watermark_micros >= window.end_micros
        key.next_number += 1
        merging.add(program, key, state)
        set_alarms(program, key, state, status)
        return state

    def _merged(
        self, key: KeyState, window: BoundedWindow, status: StoredWindowStatus, emitted: list[Emitted]
    ) -> WindowState | DropReason:
        """The window that a new one merges into; other windows may merge at the same time."""
        candidates = merging.find_merge_candidates(self.program, key, window)
        if not candidates and self.program.merges_in_order:
            return self._opened(key, window, status)
        if merging.is_surrounded(self.program, window, candidates):
            state = key.windows[candidates[0]]
            if self.program.together is None or not splitting.is_hollow(state):
                return state
        merged = merging.Merging(self.program.windowfn, [*candidates, window]).sources
        into = next(into for into, sources in merged.items() if window in sources)
        states = [key.windows[source] for source in merged.pop(into) if source != window]
        for other, sources in merged.items():
            if len(sources) > 1:
                state = self._united(key, [key.windows[source] for source in sources], other, status)
                emitted += visit(self.program, key, state, status, has_moved=False)
        if self.program.together is not None and any(map(splitting.is_hollow, states)):
            into = splitting.window_of(self.program, states, window)
        return self._united(key, states, into, status) if states else self._opened(key, into, status)

    def _united(
        self, key: KeyState, states: list[WindowState], window: BoundedWindow, status: StoredWindowStatus
    ) -> WindowState:
        united = merging.unite_states(self.program, key, states, window, status)
        set_alarms(self.program, key, united, status)
        return united

    def _left(
        self,
        key: KeyState,
        state: WindowState,
        element: Element,
        window: BoundedWindow,
        status: StoredWindowStatus,
    ) -> Sequence[WindowState]:
        """The windows of what remains in a window after it has taken an element."""
        if self.program.together is None:
            return (state,)
        states = splitting.split_window(self.program, key, state, element, window, status)
        for one in states:
            set_alarms(self.program, key, one, status)
        return states

    def _take(
        self, state: WindowState, element: Element, window: BoundedWindow, status: StoredWindowStatus
    ) -> None:
        """Adds an element to a window, or retracts it; `window` is the element's window before merging."""
        program, is_less = self.program, element.kind.is_retraction
        if program.together is not None:
            state.held = put(program.together, state.held, element, window)
        elif is_less:
            assert program.fold.inverse is not None
            state.held = program.fold.inverse(state.held, element.value)
        else:
            state.held = program.fold.step(state.held, element.value)
        state.live += -1 if is_less else 1
        state.fresh += 1
        self._note_time(state, element.timestamp_micros, status)
        if program.trigger.heeds_elements:
            state.trigger = program.trigger.element(state.trigger, element, status.at(state))

    def _take_together(self, state: WindowState, arrival: Arrival, status: StoredWindowStatus) -> None:
        """Adds combined elements to a window."""
        program = self.program
        holds_some = state.live if program.keeps else state.fresh
        state.held = program.fold.merge(state.held, arrival.held) if holds_some else arrival.held
        state.live += arrival.count
        state.fresh += arrival.count
        as_one = _as_element(arrival)
        for timestamp_micros in arrival.timestamps or (as_one.timestamp_micros,):
            self._note_time(state, timestamp_micros, status)
        if program.trigger.heeds_elements:
            state.trigger = program.trigger.element(state.trigger, as_one, status.at(state))

    def _note_time(self, state: WindowState, timestamp_micros: int, status: StoredWindowStatus) -> None:
        """Updates the output's event time for one more element."""
        if state.is_past_end and state.output_micros is None:
            # The watermark has passed the end, even if it has gone back: the pane is late anyway.
            return
        rule = self.program.output_times
        output_micros = rule.of_element(timestamp_micros, state.window)
        # An element behind the watermark holds nothing back, unless the window's earlier elements hold back as much.
        held_micros = status.times.watermark_micros if state.output_micros is None else state.output_micros
        if output_micros >= min(status.times.watermark_micros, held_micros):
            state.output_micros = rule.together_with(state.output_micros, output_micros)

    def _answer(self, key: KeyState, state: WindowState, status: StoredWindowStatus) -> list[Pane]:
        """The panes of a window that has just taken elements."""
        program, times = self.program, status.times
        if times.expiry_micros is not None:
            key.changed[state.number] = None
        if program.trigger.heeds_elements or times.watermark_micros >= state.window.end_micros:
            return visit(program, key, state, status, has_moved=False)
        if state.is_past_end:
            # The watermark has moved back, and the window ends again.
            set_alarms(program, key, state, status)
        note_hold(program, key, state)
        return []

    def _ring(
        self,
        key: KeyState,
        domain: Domain,
        now_micros: int,
        status: StoredWindowStatus,
        emitted: list[Emitted],
    ) -> None:
        """Visits the windows that have an alarm in a domain, earliest first."""
        agenda = key.agendas.get(domain)
        while agenda is not None and (entry := agenda.take(now_micros)) is not None:
            micros, number = entry
            state = key.numbered.get(number)
            if state is not None and state.alarms.get(domain) == micros:
                del state.alarms[domain]
                if domain != CLOCK and number in key.changed:
                    # The end of the round decides about this window, not the watermark.
                    continue
                if not state.is_closed:
                    state.trigger = self.program.trigger.wake(state.trigger, status.at(state))
                emitted += visit(self.program, key, state, status, has_moved=domain != CLOCK)


def _as_element(arrival: Arrival) -> Element:
    """An arrival as an element, for triggers that do not distinguish them, and for `Dropped`."""
    latest_micros = arrival.timestamps[-1] if arrival.timestamps else arrival.window.end_micros - 1
    return Element(arrival.held, latest_micros, (arrival.window,))


def _by_window(state: WindowState) -> BoundedWindow:
    return state.window
