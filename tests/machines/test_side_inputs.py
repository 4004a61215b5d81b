"""The rules of side inputs that do not end: when they are ready, what waits, what it holds, and what is let go."""

from __future__ import annotations

from penstock.machines.records import MIN_MICROS, Times
from penstock.machines.side_inputs import SideInputMachine, SideInputState
from penstock.transforms.window import GlobalWindow, IntervalWindow

SECOND = 1_000_000
MINUTE, NEXT = IntervalWindow(0, 60), IntervalWindow(60, 120)


def times(main_seconds: float | None = None, *side_seconds: float) -> Times:
    micros = MIN_MICROS if main_seconds is None else int(main_seconds * SECOND)
    return Times(micros, side_micros=tuple(int(seconds * SECOND) for seconds in side_seconds))


def one_side(lateness_seconds: int = 0) -> tuple[SideInputMachine, SideInputState]:
    return SideInputMachine([lambda window: window], lateness_seconds * SECOND), SideInputState()


def test_a_pane_or_the_watermark_makes_ready_and_only_for_its_window():
    machine, state = one_side()
    assert machine.missing(state, MINUTE, times(0, 59.999999)) == (0,)
    assert machine.missing(state, MINUTE, times(0, 60)) == ()
    assert machine.replace(state, 0, MINUTE, times(0, 0)) == (1, None)
    assert machine.missing(state, MINUTE, times(0, 0)) == ()
    assert machine.missing(state, NEXT, times(0, 60)) == (0,)


def test_all_side_inputs_must_be_ready():
    machine = SideInputMachine([lambda window: window, lambda window: GlobalWindow()], 0)
    state = SideInputState()
    machine.wait(state, MINUTE, 3, 7)
    assert machine.waits(state, times(0, 0, 0)) == {0: 3, 1: 3}
    machine.replace(state, 1, GlobalWindow(), times(0, 0, 0))
    assert machine.waits(state, times(0, 0, 0)) == {0: 3}
    assert machine.released(state, times(0, 0, 0)) == []
    [(window, waiting)] = machine.released(state, times(0, 60, 0))
    assert (window, waiting.count) == (MINUTE, 3)


def test_the_earliest_of_what_waits_is_held():
    machine, state = one_side()
    machine.wait(state, MINUTE, 1, 30)
    machine.wait(state, NEXT, 1, 90)
    machine.wait(state, MINUTE, 1, 20)
    assert machine.hold_micros(state) == 20
    machine.released(state, times(0, 60))
    assert machine.hold_micros(state) == 90
    machine.released(state, times(0, 120))
    assert machine.hold_micros(state) is None


def test_the_parcels_of_a_window_come_back_in_order():
    machine, state = one_side()
    machine.wait(state, MINUTE, 1, 0)
    numbers = [machine.put_away(state, MINUTE), machine.put_away(state, MINUTE)]
    [(_, waiting)] = machine.released(state, times(0, 60))
    assert waiting.parcels == numbers == [1, 2]


def test_new_contents_replace_old_ones():
    machine, state = one_side()
    first, _ = machine.replace(state, 0, MINUTE, times(0, 0))
    second, old = machine.replace(state, 0, MINUTE, times(0, 0))
    assert (first, second, old) == (1, 2, 1)


def test_contents_are_let_go_with_the_main_input_s_time():
    machine, state = one_side(lateness_seconds=10)
    machine.replace(state, 0, MINUTE, times(0, 0))
    assert machine.forget(state, times(69, 500)) == []
    assert not machine.is_gone(MINUTE, times(69, 500))
    assert machine.forget(state, times(70, 500)) == [1]
    assert machine.is_gone(MINUTE, times(70, 500))
    assert machine.replace(state, 0, MINUTE, times(70, 500)) == (None, None)


def test_what_waits_keeps_its_contents_however_far_the_main_input_is():
    machine = SideInputMachine([lambda window: window, lambda window: window], 0)
    state = SideInputState()
    machine.wait(state, MINUTE, 1, 0)
    assert machine.replace(state, 0, MINUTE, times(500, 0, 0)) == (1, None)
    assert machine.forget(state, times(500, 0, 0)) == []
    machine.replace(state, 1, MINUTE, times(500, 0, 0))
    assert [window for window, _ in machine.released(state, times(500, 0, 0))] == [MINUTE]
    assert sorted(machine.forget(state, times(500, 0, 0))) == [1, 2]


def test_nothing_waits_beyond_the_end_of_a_round():
    machine, state = one_side()
    machine.wait(state, MINUTE, 1, 0)
    assert len(machine.released(state, times(0, 0), is_end=True)) == 1
    assert state.waiting == {}
