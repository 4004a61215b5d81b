"""A window fires: the panes that come out, and what the window holds afterwards (paper, section 2.3: refinement)."""

from __future__ import annotations

from functools import lru_cache

from penstock.machines.program import GroupingProgram
from penstock.machines.records import Pane
from penstock.machines.states import WindowState
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, ValueKind

# There are few different ones, and many panes: one object for all of a kind is quicker to get, and to pickle.
_info = lru_cache(maxsize=1_024)(PaneInfo)


def fire(program: GroupingProgram, state: WindowState, timing: int, is_last: bool) -> list[Pane]:
    """The panes of one firing: what is taken back first, then what is new.

    Args:
        program: The grouping.
        state: The window; its numbering and contents move on.
        timing: A constant of `PaneInfoTiming`.
        is_last: Whether the window will never fire again.
    """
    if program.retracts:
        panes = _refined(program, state, timing, is_last)
    elif program.contents.owed(state.held) and not program.keeps:
        panes = _difference(program, state, timing, is_last)
    elif _has_result(program, state):
        panes = [_pane(program, state, timing, is_last, ValueKind.INSERT)]
    else:
        panes = []
    if not panes and not program.keeps:
        # Nothing has been given, and so nothing may be let go: more may be owed than is there. It holds nothing back.
        state.output_micros = None
        return []
    if not program.keeps:
        state.held = program.contents.empty()
    state.fresh = 0
    state.output_micros = None
    return panes


def _has_result(program: GroupingProgram, state: WindowState) -> bool:
    """Whether there is anything to give: values, or a result of no values where some have been given before."""
    if not (state.live or state.panes):
        return False
    has_values = (program.keeps or state.fresh > 0) and program.contents.has_values(state.held)
    return has_values or program.contents.has_result_of_nothing


def _pane(program: GroupingProgram, state: WindowState, timing: int, is_last: bool, kind: ValueKind) -> Pane:
    """The window's next pane."""
    value = program.contents.result(state.held, program.keeps)
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
    """Every pane that still stands, taken back under its own window; then the new value, unless nothing is left."""
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
    """What earlier panes held and has been taken back since; then what is new, if anything is."""
    held, owed = state.held, program.contents.empty()
    for value in program.contents.owed(held):
        owed = program.contents.add(owed, value)
    state.held = owed
    is_all = not program.contents.has_values(held)
    panes = [_pane(program, state, timing, is_last and is_all, ValueKind.DELETE)]
    state.held = held
    if not is_all:
        panes.append(_pane(program, state, timing, is_last, ValueKind.INSERT))
    return panes
