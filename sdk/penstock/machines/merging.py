"""Merges windows of a key: finds which windows a new one may merge with, and makes one state of several."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from penstock.elements.bounded_window import BoundedWindow
from penstock.error import refusal
from penstock.machines.program import GroupingProgram
from penstock.machines.states import KeyState, WindowState
from penstock.machines.window_status import StoredWindowStatus
from penstock.windows.window_fn import MergeScope, WindowFn


class InventedWindowError(ValueError):
    """A WindowFn merged a window that is not among the windows of its context."""


class Merging(WindowFn.MergeContext):
    """Asks a WindowFn which windows merge, and records its answers."""

    def __init__(self, windowfn: WindowFn, windows: Iterable[BoundedWindow]) -> None:
        super().__init__(windows)
        # The original windows, by the window that each of them is in now.
        self.sources: dict[BoundedWindow, list[BoundedWindow]] = {window: [window] for window in self.windows}
        self._name = type(windowfn).__name__
        windowfn.merge(self)

    def merge(self, to_be_merged: Iterable[BoundedWindow], merge_result: BoundedWindow) -> None:
        sources: list[BoundedWindow] = []
        for window in to_be_merged:
            if window not in self.sources:
                what = f"{self._name} merges the window {window!r}, which has no elements"
                hint = "merge only windows of the context's `windows`"
                raise refusal(InventedWindowError, what, hint=hint)
            sources.extend(self.sources.pop(window))
        self.sources.setdefault(merge_result, []).extend(sources)


def start_of(window: BoundedWindow) -> int:
    """Returns the start of a window, in microseconds."""
    micros: int | None = getattr(window, "start_micros", None)
    return window.start.micros if micros is None else micros


def find_merge_candidates(
    program: GroupingProgram, key: KeyState, window: BoundedWindow
) -> list[BoundedWindow]:
    """Returns the windows of a key that may merge with a new one; closed windows merge no more."""
    if program.windowfn.merge_scope is MergeScope.ALL:
        return [window for window, state in key.windows.items() if not state.is_closed]
    starts, start_micros = key.starts, start_of(window)
    last = bisect_right(starts, window.end_micros)
    if program.windowfn.merge_scope is MergeScope.NEIGHBOURS:
        first = max(bisect_left(starts, start_micros, 0, last) - 1, 0)
    else:
        first = bisect_left(starts, start_micros - key.longest_micros, 0, last)
    candidates = [state.window for state in key.ordered[first:last]]
    return [candidate for candidate in candidates if candidate.end_micros >= start_micros]


def is_surrounded(program: GroupingProgram, window: BoundedWindow, candidates: list[BoundedWindow]) -> bool:
    """True if the only candidate contains a new window, and so takes it in without growing."""
    if len(candidates) != 1 or program.windowfn.merge_scope is not MergeScope.NEIGHBOURS:
        return False
    return candidates[0].end_micros >= window.end_micros and start_of(candidates[0]) <= start_of(window)


def add(program: GroupingProgram, key: KeyState, state: WindowState) -> None:
    """Adds a window to a key, in place of a closed one with the same bounds."""
    window = state.window
    if (closed := key.windows.get(window)) is not None:
        remove(program, key, closed)
    key.windows[window] = state
    key.numbered[state.number] = state
    if program.merges_in_order:
        start_micros = start_of(window)
        place = bisect_right(key.starts, start_micros)
        key.starts.insert(place, start_micros)
        key.ordered.insert(place, state)
        key.longest_micros = max(key.longest_micros, window.end_micros - start_micros)


def remove(program: GroupingProgram, key: KeyState, state: WindowState) -> None:
    """Forgets a window of a key; its entries in agendas are ignored when they are due."""
    del key.windows[state.window]
    del key.numbered[state.number]
    key.changed.pop(state.number, None)
    key.owed.pop(state.number, None)
    if program.merges_in_order and not state.is_closed:
        take_out_of_order(key, state)


def take_out_of_order(key: KeyState, state: WindowState) -> None:
    """Excludes a window from further merging."""
    place = bisect_left(key.starts, start_of(state.window))
    while key.ordered[place] is not state:
        place += 1
    del key.starts[place], key.ordered[place]


def unite_states(
    program: GroupingProgram,
    key: KeyState,
    states: list[WindowState],
    window: BoundedWindow,
    status: StoredWindowStatus,
) -> WindowState:
    """One state for several windows that have merged, or for one that has grown; it keeps the number of the first."""
    first = states[0]
    if len(states) == 1 and first.window == window:
        return first
    same = next((state for state in states if state.window == window), None)
    numbers = (same.panes, same.nonspeculative) if same is not None else (0, 0)
    has_changed = any(state.number in key.changed for state in states)
    owed_micros = find_owed_micros(program, key, states, window, status) if program.retracts else None
    for state in states:
        remove(program, key, state)
    if has_changed:
        key.changed[first.number] = None
    outputs = [state.output_micros for state in states if state.output_micros is not None]
    triggers = [state.trigger for state in states]
    first.output_micros = program.output_times.after_merge(window, outputs)
    first.held = _held_together(program, states)
    first.window = window
    first.fresh = sum(state.fresh for state in states)
    first.live = sum(state.live for state in states)
    first.panes, first.nonspeculative = numbers
    first.shown = [shown for state in states for shown in state.shown]
    first.last = next((state.last for state in reversed(states) if state.last), ())
    add(program, key, first)
    if owed_micros is not None:
        key.owed[first.number] = owed_micros
        key.note_hold(first, owed_micros)
    first.is_past_end = status.at(first).is_past_end
    first.trigger = program.trigger.merge(triggers, status)
    return first


def find_owed_micros(
    program: GroupingProgram,
    key: KeyState,
    states: list[WindowState],
    window: BoundedWindow | None,
    status: StoredWindowStatus,
) -> int | None:
    """Returns the event time that the output watermark must not pass before a united window has retracted panes of lost
    windows.

    Later groupings must still take these retractions. So they hold the watermark like a future pane with the
    timestamp of the old one. If the watermark has passed that, the end of the old pane's window takes its place, or
    else the end of the allowed lateness. Windows that have come apart (`window` is None) are lost in any case.
    """
    now_micros = status.times.horizon_micros
    owed = [key.owed[state.number] for state in states if state.number in key.owed]
    for state in states:
        for of_window, _, timestamp_micros, _ in state.shown:
            # Panes of windows that were lost before are owed already.
            if of_window == state.window != window:
                last_micros = program.expiry_micros(of_window) - 1
                preferred = (timestamp_micros, of_window.end_micros - 1)
                owed.append(next((micros for micros in preferred if micros >= now_micros), last_micros))
    return min(owed, default=None)


def _held_together(program: GroupingProgram, states: list[WindowState]) -> object:
    """Returns what windows hold together, without those that have just fired everything."""
    several = [state.held for state in states if program.keeps or state.fresh]
    return program.fold.merged(several) if several else program.fold.empty()
