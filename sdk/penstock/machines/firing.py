"""Fires a window: computes its panes, and what it holds afterwards (paper, section 2.3: refinement)."""

from __future__ import annotations

from functools import lru_cache

from penstock.machines.program import GroupingProgram
from penstock.machines.records import Pane
from penstock.machines.states import WindowState
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, ValueKind

# Many panes share few different infos: one object for all equal ones is faster to get and to pickle.
_info = lru_cache(maxsize=1_024)(PaneInfo)


def fire(program: GroupingProgram, state: WindowState, timing: int, is_last: bool) -> list[Pane]:
    """The panes of one firing: retractions first, then the new value. `timing` is a constant of `PaneInfoTiming`."""
    if program.retracts:
        panes = _refined(program, state, timing, is_last)
    elif program.fold.owed(state.held) and not program.keeps:
        panes = _difference(program, state, timing, is_last)
    elif _has_result(program, state):
        panes = [_pane(program, state, timing, is_last, ValueKind.INSERT)]
    else:
        panes = []
    if not panes and not program.keeps:
        # The window has given nothing, and so may drop nothing: it may owe more than it holds. It holds nothing back.
        state.output_micros = None
        return []
    if not program.keeps:
        state.held = program.fold.empty()
    state.fresh = 0
    state.output_micros = None
    return panes


def _has_result(program: GroupingProgram, state: WindowState) -> bool:
    """True if the window has something to emit: values, or a result of no values after earlier panes."""
    if not (state.live or state.panes):
        return False
    has_values = (program.keeps or state.fresh > 0) and program.fold.has_values(state.held)
    return has_values or program.fold.has_result_of_nothing


def _pane(program: GroupingProgram, state: WindowState, timing: int, is_last: bool, kind: ValueKind) -> Pane:
    value = program.fold.result(state.held, program.keeps)
    if program.remembers:
        state.last = (value,)
    window = state.window
    timestamp_micros = window.end_micros - 1 if state.output_micros is None else state.output_micros
    nonspeculative = -1
    if timing != PaneInfoTiming.EARLY:
        nonspeculative = state.nonspeculative
        state.nonspeculative += 1
    info = _info(state.panes == 0, is_last, timing, state.panes, nonspeculative, kind)
    state.panes += 1
    return Pane(value, window, timestamp_micros, info)


def _refined(program: GroupingProgram, state: WindowState, timing: int, is_last: bool) -> list[Pane]:
    """Retractions of every pane that still stands, under its own window; then the new value, unless nothing is left."""
    has_value = state.live > 0
    panes = []
    is_update = False
    for window, value, timestamp_micros, info in state.shown:
        is_same = has_value and window == state.window
        is_update = is_update or is_same
        kind = ValueKind.UPDATE_BEFORE if is_same else ValueKind.DELETE
        numbers = (info.is_first, False, timing, info.index, info.nonspeculative_index)
        panes.append(Pane(value, window, timestamp_micros, PaneInfo(*numbers, kind)))
    state.shown = []
    if has_value:
        kind = ValueKind.UPDATE_AFTER if is_update else ValueKind.INSERT
        new = _pane(program, state, timing, is_last, kind)
        state.shown = [(new.window, new.value, new.timestamp_micros, new.info)]
        panes.append(new)
    return panes


def _difference(program: GroupingProgram, state: WindowState, timing: int, is_last: bool) -> list[Pane]:
    """Returns retractions of what earlier panes held and has been retracted since; then the new values, if any."""
    held, owed = state.held, program.fold.empty()
    for value in program.fold.owed(held):
        owed = program.fold.step(owed, value)
    state.held = owed
    is_all = not program.fold.has_values(held)
    panes = [_pane(program, state, timing, is_last and is_all, ValueKind.DELETE)]
    state.held = held
    if not is_all:
        panes.append(_pane(program, state, timing, is_last, ValueKind.INSERT))
    return panes
