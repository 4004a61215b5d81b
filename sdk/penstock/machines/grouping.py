"""The machine of a grouping, one key at a time: ``(element | watermark | clock | signal) -> panes, hold``.

It answers the paper's questions where, when and how. It knows no engine and no clock: time is an argument.
"""

from __future__ import annotations

import pickle
from typing import Any, Final

from penstock.error import three_parts
from penstock.machines import merging
from penstock.machines.program import program_of
from penstock.machines.records import MAX_MICROS, Dropped, DropReason, Element, Emitted, Times
from penstock.machines.sight import WindowSight
from penstock.machines.states import KeyState, WindowState
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.machines.visiting import (
    end_round,
    hold_of,
    is_expired,
    note_hold,
    set_alarms,
    visit,
)
from penstock.transforms.bounded_window import BoundedWindow
from penstock.transforms.window import WindowFn
from penstock.transforms.windowing import Windowing
from penstock.utils.timestamp import Timestamp

_VERSION: Final = b"\x01"


class GroupingMachine:
    """The machine of one grouping; the state of each key is apart from it.

    Args:
        windowing: The input's: windows, trigger, accumulation mode and the rest.
        combine: The CombineFn whose results panes hold; without one, a pane holds the list of the values.
        input_retracts: Whether elements may take back earlier ones.

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

    def __init__(self, windowing: Windowing, combine: Any = None, input_retracts: bool = False) -> None:
        self.windowing = windowing
        self.program = program_of(windowing, combine, input_retracts)

    def assign(self, timestamp_micros: int, element: Any = None) -> tuple[BoundedWindow, ...]:
        """The windows of an element, for callers without a step that assigns them."""
        context = WindowFn.AssignContext(Timestamp.from_micros(timestamp_micros), element=element)
        return tuple(self.windowing.windowfn.assign(context))

    def new_key(self) -> KeyState:
        """The state of a key that has had no elements."""
        return KeyState()

    def element(self, key: KeyState, element: Element, times: Times) -> list[Emitted]:
        """An element arrives, in windows that have been assigned.

        Returns:
            The panes it makes fire, and for each of its windows that no longer takes it, a `Dropped`.
        """
        program = self.program
        sight = WindowSight(program, times, times.clock_micros - 1)
        emitted: list[Emitted] = []
        for window in element.windows:
            state = self._window(key, window, sight, emitted)
            if isinstance(state, DropReason):
                dropped = Element(element.value, element.timestamp_micros, (window,), element.kind)
                emitted.append(Dropped(dropped, state))
                continue
            self._take(state, element, sight)
            if times.expiry_micros is not None:
                key.changed[state.number] = None
            if program.trigger.heeds_elements or times.watermark_micros >= state.window.end_micros:
                emitted += visit(program, key, state, sight, has_moved=False)
            else:
                note_hold(program, key, state)
        return emitted

    def advance(self, key: KeyState, times: Times) -> list[Emitted]:
        """The watermark and the clock have come to `times`: what is due fires, first by the watermark."""
        return self.advance_watermark(key, times) + self.advance_clock(key, times)

    def advance_watermark(self, key: KeyState, times: Times) -> list[Emitted]:
        """The watermark has come to that of `times`: what is due by it fires."""
        emitted: list[Emitted] = []
        sight = WindowSight(self.program, times, times.clock_micros - 1)
        for percentile in sorted(float(domain) for domain in key.agendas if domain != CLOCK):
            is_watermark = percentile == WATERMARK
            now_micros = times.horizon_micros if is_watermark else times.percentile(percentile)
            self._ring(key, percentile, now_micros, sight, emitted)
        return emitted

    def advance_clock(self, key: KeyState, times: Times) -> list[Emitted]:
        """The clock has come to that of `times`, and everything else of this instant is done: what is due fires."""
        emitted: list[Emitted] = []
        sight = WindowSight(self.program, times, times.clock_micros)
        self._ring(key, CLOCK, times.clock_micros, sight, emitted)
        return emitted

    def signal(self, key: KeyState, name: str, times: Times) -> list[Emitted]:
        """A named signal arrives from outside, for all windows of the key."""
        emitted: list[Emitted] = []
        sight = WindowSight(self.program, times, times.clock_micros - 1)
        for state in sorted(key.windows.values(), key=_by_window):
            if not state.is_closed:
                state.trigger = self.program.trigger.signal(state.trigger, name)
                emitted += visit(self.program, key, state, sight, has_moved=False)
        return emitted

    def end_round(self, key: KeyState, times: Times) -> list[Emitted]:
        """A micro-batch ends: its own watermark goes to infinity, every window that changed fires and starts anew.

        Args:
            key: The key.
            times: The clock; and ``expiry_micros``, the source's watermark, which decides what is let go.
        """
        emitted: list[Emitted] = []
        end = times._replace(watermark_micros=MAX_MICROS, expiry_micros=times.horizon_micros)
        sight = WindowSight(self.program, end, times.clock_micros)
        changed = sorted((key.numbered[number] for number in key.changed), key=_by_window)
        key.changed = {}
        for state in changed:
            emitted += end_round(self.program, key, state, sight)
        return emitted

    def hold_micros(self, key: KeyState) -> int | None:
        """The event time that the watermark of the output may not pass; None if nothing holds it."""
        while (noted := key.holds.earliest()) is not None:
            micros, number = noted
            state = key.numbered.get(number)
            if state is not None and hold_of(self.program, state) == micros:
                return micros
            key.holds.take(micros)
            if state is not None and state.noted_micros == micros:
                state.noted_micros = None
                note_hold(self.program, key, state)
        return None

    def alarm_micros(self, key: KeyState, domain: Domain) -> int | None:
        """A moment before which nothing is due in a domain; None if nothing will ever be."""
        agenda = key.agendas.get(domain)
        earliest = None if agenda is None else agenda.earliest()
        return None if earliest is None else earliest[0]

    def snapshot(self, key: KeyState) -> bytes:
        """The state of a key as bytes."""
        return _VERSION + pickle.dumps(key, pickle.HIGHEST_PROTOCOL)

    def restore(self, data: bytes) -> KeyState:
        """The state of a key from its bytes.

        Raises:
            ValueError: They are of another version.
        """
        if data[:1] != _VERSION:
            what = f"the state of a key has the format {data[:1]!r}, not {_VERSION!r}"
            raise ValueError(three_parts(what, hint="restore it with the version of penstock that wrote it"))
        key: KeyState = pickle.loads(data[1:])
        return key

    def _window(
        self, key: KeyState, window: BoundedWindow, sight: WindowSight, emitted: list[Emitted]
    ) -> WindowState | DropReason:
        """The window that takes an element, or the reason why none does."""
        state = key.windows.get(window)
        if state is not None and not state.is_closed:
            return state
        if self.program.merges:
            return self._merged(key, window, sight, emitted)
        return self._opened(key, window, sight)

    def _opened(self, key: KeyState, window: BoundedWindow, sight: WindowSight) -> WindowState | DropReason:
        """A new window, unless it is one that has given its last pane."""
        program = self.program
        if window in key.windows:
            return DropReason.FINISHED
        if is_expired(program, window, sight.times):
            return DropReason.EXPIRED
        state = WindowState(key.next_number, window, program.contents.empty(), program.trigger.start())
        state.is_past_end = sight.times.watermark_micros >= window.end_micros
        key.next_number += 1
        merging.add(program, key, state)
        set_alarms(program, key, state, sight)
        return state

    def _merged(
        self, key: KeyState, window: BoundedWindow, sight: WindowSight, emitted: list[Emitted]
    ) -> WindowState | DropReason:
        """The window that a new one merges into; others that merge because of its coming do so as well."""
        candidates = merging.concerned(self.program, key, window)
        if not candidates and self.program.merges_in_order:
            return self._opened(key, window, sight)
        if merging.surrounding(self.program, window, candidates):
            return key.windows[candidates[0]]
        merged = merging.Merging(self.program.windowfn, [*candidates, window]).sources()
        into = next(into for into, sources in merged.items() if window in sources)
        states = [key.windows[source] for source in merged.pop(into) if source != window]
        for other, sources in merged.items():
            if len(sources) > 1:
                state = self._united(key, [key.windows[source] for source in sources], other, sight)
                emitted += visit(self.program, key, state, sight, has_moved=False)
        return self._united(key, states, into, sight) if states else self._opened(key, into, sight)

    def _united(
        self, key: KeyState, states: list[WindowState], window: BoundedWindow, sight: WindowSight
    ) -> WindowState:
        """One window of several."""
        united = merging.unite(self.program, key, states, window, sight)
        set_alarms(self.program, key, united, sight)
        return united

    def _take(self, state: WindowState, element: Element, sight: WindowSight) -> None:
        """The window holds one more element, or one less."""
        program = self.program
        if element.kind.is_retraction:
            state.held = program.contents.subtract(state.held, element.value)
            state.live -= 1
        else:
            state.held = program.contents.add(state.held, element.value)
            state.live += 1
        state.fresh += 1
        output_micros = program.output_times.of_element(state.window, element.timestamp_micros)
        # What is behind the watermark holds nothing back, but counts where the window holds back as much by itself.
        held_micros = sight.times.watermark_micros if state.output_micros is None else state.output_micros
        if output_micros >= min(sight.times.watermark_micros, held_micros):
            state.output_micros = program.output_times.together_with(state.output_micros, output_micros)
        if program.trigger.heeds_elements:
            state.trigger = program.trigger.element(state.trigger, element, sight.at(state))

    def _ring(
        self, key: KeyState, domain: Domain, now_micros: int, sight: WindowSight, emitted: list[Emitted]
    ) -> None:
        """Visits the windows that have an alarm in a domain, earliest first."""
        agenda = key.agendas.get(domain)
        while agenda is not None and (entry := agenda.take(now_micros)) is not None:
            micros, number = entry
            state = key.numbered.get(number)
            if state is not None and state.alarms.get(domain) == micros:
                del state.alarms[domain]
                if domain != CLOCK and number in key.changed:
                    # Whatever the watermark says of it, it is the end of the round that tells.
                    continue
                if not state.is_closed:
                    state.trigger = self.program.trigger.wake(state.trigger, sight.at(state))
                emitted += visit(self.program, key, state, sight, has_moved=domain != CLOCK)


def _by_window(state: WindowState) -> BoundedWindow:
    return state.window
