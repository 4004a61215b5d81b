"""Windows that have merged come apart again when the elements between them are retracted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines import merging
from penstock.machines.program import GroupingProgram
from penstock.machines.records import Element
from penstock.machines.separable_values import Pieces, SeparableValues, join_pieces, windows_of_pieces
from penstock.machines.states import KeyState, WindowState
from penstock.machines.window_status import StoredWindowStatus


def is_hollow(state: WindowState) -> bool:
    """True if nothing is left in a window, which waits only to retract its pane or to receive what it owes."""
    return not any(there for there, _ in state.held.pieces.values())


def window_of(
    program: GroupingProgram, states: Iterable[WindowState], window: BoundedWindow
) -> BoundedWindow:
    """Returns the window that a new one becomes with all that windows hold, however far they reached before."""
    windows = [own for state in states for own in windows_of_pieces(state.held)]
    merged = merging.Merging(program.windowfn, dict.fromkeys([*windows, window])).sources
    return next(into for into, sources in merged.items() if window in sources)


def split_window(
    program: GroupingProgram,
    key: KeyState,
    state: WindowState,
    element: Element,
    window: BoundedWindow,
    status: StoredWindowStatus,
) -> list[WindowState]:
    """Returns the windows of what is left in a window after it has taken an element: mostly, the window itself.

    `window` is the window of the element before merging.
    """
    held = state.held
    there, _ = held.pieces.get((window, element.timestamp_micros), ((), ()))
    if not held.pieces or (there and not held.owing):
        return [state]
    dealt = _dealt(program, held)
    return [state] if [*dealt] == [state.window] else _apart(program, key, state, dealt, status)


def _apart(
    program: GroupingProgram,
    key: KeyState,
    state: WindowState,
    dealt: Mapping[BoundedWindow, Pieces],
    status: StoredWindowStatus,
) -> list[WindowState]:
    """One state for each window that is left of one; the first keeps its number.

    The window that fired a pane retracts it if it still exists, and otherwise the first does.
    """
    assert program.together is not None
    shown, trigger = state.shown, state.trigger
    has_changed = state.number in key.changed
    owed_micros = merging.find_owed_micros(program, key, [state], None, status) if program.retracts else None
    merging.remove(program, key, state)
    states = [state]
    for window in [*dealt][1:]:
        states.append(WindowState(key.next_number, window, None, None))
        key.next_number += 1
    for number, (part, (window, pieces)) in enumerate(zip(states, dealt.items(), strict=True)):
        part.window = window
        part.held = join_pieces(program.together, pieces)
        part.live = sum(len(there) - len(owed) for there, owed in pieces.values())
        part.panes = part.nonspeculative = 0
        part.output_micros = _output_micros(program, window, pieces, status)
        part.shown = [one for one in shown if one[0] == window or (number == 0 and one[0] not in dealt)]
        # Something to retract counts as news.
        part.fresh = sum(len(there) for there, _ in pieces.values()) or len(part.shown)
        part.last = state.last
        merging.add(program, key, part)
        if has_changed:
            key.changed[part.number] = None
        part.is_past_end = status.at(part).is_past_end
        part.trigger = program.trigger.merge([trigger], status)
    if owed_micros is not None:
        key.owed[state.number] = owed_micros
        key.note_hold(state, owed_micros)
    return states


def _dealt(program: GroupingProgram, held: SeparableValues) -> dict[BoundedWindow, Pieces]:
    """The pieces of a window by the windows that they make without the retracted elements; hollow windows come last.

    What is only owed stays in the window that its value would join, or else has its own.
    """
    merged = merging.Merging(program.windowfn, dict.fromkeys(windows_of_pieces(held))).sources
    into = {own: window for window, sources in merged.items() for own in sources}
    if held.owing:
        everything = merging.Merging(program.windowfn, dict.fromkeys(own for own, _ in held.pieces))
        for window, sources in everything.sources.items():
            home = min((into[own] for own in sources if own in into), default=window)
            into.update({own: home for own in sources if own not in into})
    dealt: dict[BoundedWindow, Pieces] = {window: {} for window in sorted(merged)}
    for (own, timestamp_micros), piece in held.pieces.items():
        dealt.setdefault(into[own], {})[own, timestamp_micros] = piece
    return dealt


def _output_micros(
    program: GroupingProgram, window: BoundedWindow, pieces: Pieces, status: StoredWindowStatus
) -> int | None:
    """The event time of a window's next pane; None if everything in it is late."""
    rule = program.output_times
    outputs = [
        rule.of_element(timestamp_micros, window)
        for (_, timestamp_micros), (there, _) in pieces.items()
        if there
    ]
    return rule.after_merge(window, [micros for micros in outputs if micros >= status.times.watermark_micros])
