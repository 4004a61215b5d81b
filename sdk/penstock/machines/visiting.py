"""A visit of one window: whether it fires, when to visit it again, and its watermark hold."""

from __future__ import annotations

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines import merging
from penstock.machines.firing import fire
from penstock.machines.program import GroupingProgram
from penstock.machines.records import Pane, Times
from penstock.machines.states import KeyState, WindowState
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.machines.window_status import StoredWindowStatus
from penstock.utils.windowed_value import PaneInfoTiming


def is_expired(program: GroupingProgram, window: BoundedWindow, times: Times) -> bool:
    """True if a window takes no more elements: the watermark has passed its end and the allowed lateness."""
    return times.horizon_micros >= program.expiry_micros(window)


def visit(
    program: GroupingProgram, key: KeyState, state: WindowState, status: StoredWindowStatus, has_moved: bool
) -> list[Pane]:
    """Fires a window if its trigger says so or it has expired, and settles what comes next.

    If the watermark `has_moved` just now, a window whose end it passes is on time.
    """
    trigger, times, window = program.trigger, status.times, state.window
    is_over = is_expired(program, window, times)
    if state.is_closed:
        if is_over:
            merging.remove(program, key, state)
        else:
            set_alarms(program, key, state, status)
        return []
    passes_end = not state.is_past_end and times.watermark_micros >= window.end_micros
    state.is_past_end = state.is_past_end or passes_end
    fires = trigger.should_fire(state.trigger, status.at(state))
    if fires:
        state.trigger = trigger.fire(state.trigger, status)
    is_finished = fires and trigger.is_finished(state.trigger)
    is_last, is_on_time = is_finished or is_over, passes_end and has_moved
    panes: list[Pane] = []
    if _has_pane(program, state, fires and is_on_time, fires, is_last):
        late_or_early = PaneInfoTiming.LATE if state.is_past_end else PaneInfoTiming.EARLY
        timing = PaneInfoTiming.ON_TIME if is_on_time else late_or_early
        panes = _fired(program, key, state, timing, is_last)
    if is_over:
        merging.remove(program, key, state)
        return panes
    if is_finished:
        _close(program, key, state)
    _settle(program, key, state, status)
    return panes


def _fired(
    program: GroupingProgram, key: KeyState, state: WindowState, timing: int, is_last: bool
) -> list[Pane]:
    """Returns the panes of one firing, after which the window owes nothing."""
    key.owed.pop(state.number, None)
    return fire(program, state, timing, is_last)


def _close(program: GroupingProgram, key: KeyState, state: WindowState) -> None:
    """Drops everything except that the window takes no more elements."""
    if program.merges_in_order:
        merging.take_out_of_order(key, state)
    key.owed.pop(state.number, None)
    state.is_closed = True
    state.held = state.trigger = None
    state.shown = []
    state.last = ()
    state.output_micros = None


def _has_pane(
    program: GroupingProgram, state: WindowState, fires_at_end: bool, fires: bool, is_last: bool
) -> bool:
    """True if the window emits a pane when its trigger fires, or when it has expired."""
    if not (fires or is_last):
        return False
    if state.fresh or (fires_at_end and program.fires_empty_at_end):
        return True
    return is_last and program.fires_empty_when_closing


def end_micro_batch(
    program: GroupingProgram, key: KeyState, state: WindowState, status: StoredWindowStatus
) -> list[Pane]:
    """Ends a micro-batch in a window that changed: its watermark has passed everything.

    The next round has its own watermark, and so the trigger starts over.
    """
    if state.is_closed:
        return []
    is_over = is_expired(program, state.window, status.times)
    state.trigger = program.trigger.wake(state.trigger, status.at(state))
    fires = program.trigger.should_fire(state.trigger, status)
    panes: list[Pane] = []
    if state.fresh or _has_pane(program, state, fires, fires, is_over):
        panes = _fired(program, key, state, PaneInfoTiming.ON_TIME, is_over)
    if is_over:
        merging.remove(program, key, state)
        return panes
    state.trigger = program.trigger.start()
    state.is_past_end = False
    _settle(program, key, state, status)
    return panes


def _settle(program: GroupingProgram, key: KeyState, state: WindowState, status: StoredWindowStatus) -> None:
    """Makes sure that a window is visited in time after it may have fired."""
    set_alarms(program, key, state, status)
    note_hold(program, key, state)


def set_alarms(
    program: GroupingProgram, key: KeyState, state: WindowState, status: StoredWindowStatus
) -> None:
    """Makes sure that the window is visited when something may be due next."""
    now_micros = status.times.horizon_micros
    end_micros = state.window.end_micros
    next_micros = end_micros if now_micros < end_micros else program.expiry_micros(state.window)
    key.set_alarm(state, WATERMARK, next_micros)
    if state.is_closed:
        return
    for domain, micros in program.trigger.alarms(state.trigger, status.at(state)):
        if micros > _rung_until(status, domain):
            key.set_alarm(state, domain, micros)


def _rung_until(status: StoredWindowStatus, domain: Domain) -> int:
    """Returns the time up to which the alarms of a domain have fired."""
    if domain == CLOCK:
        return status.due_micros
    return status.times.horizon_micros if domain == WATERMARK else status.times.percentile(float(domain))


def hold_of(program: GroupingProgram, state: WindowState) -> int | None:
    """Returns the event time of the window's next pane, before which the output watermark has to stay; None if it holds
    nothing.

    A window with only late elements holds nothing once its end has passed: its pane is late anyway.
    """
    if state.output_micros is not None:
        return state.output_micros
    if state.is_closed or state.is_past_end or not (state.fresh or program.fires_empty_at_end):
        return None
    return state.window.end_micros - 1


def note_hold(program: GroupingProgram, key: KeyState, state: WindowState) -> None:
    """Notes a window's watermark hold, if any."""
    hold = hold_of(program, state)
    if hold is not None:
        key.note_hold(state, hold)


def note_hold_anew(program: GroupingProgram, key: KeyState, state: WindowState) -> None:
    """Notes a window's watermark hold again, after the noted one has become out of date."""
    state.noted_micros = None
    note_hold(program, key, state)
    owed_micros = key.owed.get(state.number)
    if owed_micros is not None:
        key.note_hold(state, owed_micros)
