"""The machine of a stateful DoFn: cells, timers, holds and the end of windows, one key at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.coders import StrUtf8Coder, VarIntCoder
from penstock.machines.cells import cell_of
from penstock.machines.records import Dropped, DropReason, Element, MethodOutput, Times
from penstock.machines.stateful import StatefulMachine
from penstock.machines.timers import Timers
from penstock.machines.trigger_machine import CLOCK, WATERMARK
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import (
    BagStateSpec,
    CombiningValueStateSpec,
    MapStateSpec,
    OrderedListStateSpec,
    ReadModifyWriteStateSpec,
    SetStateSpec,
    TimerSpec,
)
from penstock.transforms.window import GlobalWindow, IntervalWindow

SECOND = 1_000_000
WINDOW = IntervalWindow(0, 20)
BAG = BagStateSpec("bag", StrUtf8Coder())
BY_WATERMARK = TimerSpec("by watermark", TimeDomain.WATERMARK)
BY_CLOCK = TimerSpec("by clock", TimeDomain.REAL_TIME)


class Script:
    """A DoFn whose elements are what it does: pairs of a timer's name, or ``keep``, and arguments."""

    has_expiration = False

    def process(self, key, element, window, state):
        what, *arguments = element.value
        if what == "keep":
            state.get_state(BAG).add(arguments[0])
        elif what == "forget":
            state.get_state(BAG).clear()
        else:
            timer = state.get_timer(BY_WATERMARK if what == "watermark" else BY_CLOCK)
            action, *rest = arguments
            getattr(timer, action)(*rest)
        return [(key, what)] if what == "keep" else []

    def on_timer(self, key, ring, window, state):
        return [(ring.name, ring.tag, ring.fire_micros // SECOND, sorted(state.get_state(BAG).read()))]

    def on_window_expiration(self, key, window, state):
        return [("end", sorted(state.get_state(BAG).read()))]


class WithEnd(Script):
    has_expiration = True


def does(*value: Any, at: int = 1, window: Any = WINDOW) -> Element:
    return Element(value, at * SECOND, (window,))


def times(watermark: int = -1, clock: int = 0) -> Times:
    return Times(watermark * SECOND, clock * SECOND)


def results(reactions: list[Any]) -> list[Any]:
    return [result for one in reactions if isinstance(one, MethodOutput) for result in one.results]


@pytest.fixture
def machine() -> StatefulMachine:
    return StatefulMachine(WithEnd(), lateness_micros=5 * SECOND)


def test_timers_fire_by_time_and_then_as_they_were_set_and_the_window_ends_last(machine):
    state = machine.new_key("k")
    for value in (
        ("watermark", "set", 7, "b"),
        ("watermark", "set", 7, "a"),
        ("watermark", "set", 3),
        ("keep", "x"),
    ):
        machine.element(state, does(*value), times())
    machine.element(state, does("watermark", "set", 25, "last"), times())
    assert machine.alarm_micros(state, WATERMARK) == 3 * SECOND
    assert results(machine.advance_watermark(state, times(7))) == [
        ("ts-by watermark", "", 3, ["x"]),
        ("ts-by watermark", "b", 7, ["x"]),
        ("ts-by watermark", "a", 7, ["x"]),
    ]
    assert results(machine.advance_watermark(state, times(25))) == [
        ("ts-by watermark", "last", 25, ["x"]),
        ("end", ["x"]),
    ]
    assert not state.windows
    assert machine.alarm_micros(state, WATERMARK) is None


@pytest.mark.parametrize("window", [WINDOW, GlobalWindow()])
def test_a_window_that_has_forgotten_everything_is_forgotten_and_has_no_end(machine, window):
    state = machine.new_key("k")
    machine.element(state, does("keep", "x", window=window), times())
    machine.element(state, does("clock", "set", 7, window=window), times())
    machine.element(state, does("forget", window=window), times())
    assert state.windows
    machine.advance_clock(state, times(clock=7))
    assert (state.windows, machine.next_timers(state)) == ({}, ({}, None))
    assert machine.advance_watermark(state, times(25)) == []


def test_a_timer_is_replaced_and_cleared_by_its_tag(machine):
    state = machine.new_key()
    for value in (("set", 3), ("set", 9), ("set", 4, "other"), ("clear", "other")):
        machine.element(state, does("watermark", *value), times())
    assert results(machine.advance_watermark(state, times(8))) == []
    assert results(machine.advance_watermark(state, times(9))) == [("ts-by watermark", "", 9, [])]


def test_a_timer_that_is_set_to_a_time_gone_by_fires_at_once(machine):
    state = machine.new_key()
    assert results(machine.element(state, does("watermark", "set", 4, at=6), times(5))) == [
        ("ts-by watermark", "", 4, [])
    ]


def test_timers_of_the_clock_fire_by_the_clock_with_the_event_time_of_their_element(machine):
    state = machine.new_key()
    machine.element(state, does("clock", "set", 30, at=2), times(clock=10))
    machine.element(state, does("clock", "set_relative", 5, "soon", at=3), times(clock=10))
    assert machine.hold_micros(state) == 2 * SECOND
    assert machine.alarm_micros(state, CLOCK) == 15 * SECOND
    [soon] = machine.advance_clock(state, times(clock=15))
    assert (soon.timestamp_micros, soon.results) == (3 * SECOND, (("ts-by clock", "soon", 15, []),))
    [later] = machine.advance_clock(state, times(clock=40))
    assert later.timestamp_micros == 2 * SECOND
    assert machine.hold_micros(state) is None


def test_an_output_timestamp_holds_the_watermark_back(machine):
    state = machine.new_key()
    machine.element(state, does("watermark", "set", 9, "", 2), times())
    assert machine.hold_micros(state) == 2 * SECOND
    [given_] = machine.advance_watermark(state, times(9))
    assert given_.timestamp_micros == 2 * SECOND


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("set", 26), "is due after the state"),
        (("set", 9, "", 10), "has an output timestamp later than the time when it is due"),
    ],
)
def test_a_timer_that_cannot_be_is_refused(machine, arguments, what):
    with pytest.raises(ValueError, match=f"TimerSpec.*{what}.*\n  in the window"):
        machine.element(machine.new_key(), does("watermark", *arguments), times())


def test_what_comes_after_the_end_and_the_lateness_is_dropped(machine):
    state = machine.new_key()
    assert results(machine.element(state, does("keep", "x"), times(24))) == [(None, "keep")]
    [dropped] = machine.element(machine.new_key(), does("keep", "x"), times(25))
    assert isinstance(dropped, Dropped)
    assert dropped.reason == DropReason.EXPIRED


def test_each_window_of_an_element_has_its_own_cells(machine):
    state = machine.new_key()
    both = Element(("keep", "x"), SECOND, (WINDOW, IntervalWindow(-10, 10)))
    machine.element(state, both, times())
    machine.element(state, does("keep", "y"), times())
    assert results(machine.advance_watermark(state, times(99))) == [("end", ["x"]), ("end", ["x", "y"])]


def test_a_window_in_which_nothing_is_kept_takes_no_room():
    machine = StatefulMachine(Script())
    state = machine.new_key()
    machine.element(state, does("keep", "x", window=GlobalWindow()), times())
    assert state.windows
    machine.element(state, does("forget", window=GlobalWindow()), times())
    assert not state.windows
    assert not state.timers.settings


STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("keep"), some.sampled_from("xyz")),
        some.tuples(some.just("watermark"), some.just("set"), some.integers(0, 25), some.sampled_from("ab")),
        some.tuples(some.just("clock"), some.just("set"), some.integers(0, 25), some.sampled_from("ab")),
        some.tuples(some.sampled_from(["watermark", "clock"]), some.just("clear"), some.sampled_from("ab")),
        some.just(("forget",)),
        some.integers(0, 30),
    ),
    max_size=20,
)


@settings(max_examples=300)
@given(STEPS)
def test_to_store_and_restore_a_key_changes_nothing(steps):
    machine = StatefulMachine(WithEnd(), 5 * SECOND)

    def play(is_cut: bool) -> list[Any]:
        state, now, seen = machine.new_key("k"), 0, []
        for step in (*steps, 30):
            if isinstance(step, int):
                now = max(now, step)
                seen += machine.advance_watermark(state, times(now, now))
                seen += machine.advance_clock(state, times(now, now))
            else:
                seen += machine.element(state, does(*step), times(now, now))
            seen.append((machine.hold_micros(state), machine.alarm_micros(state, CLOCK)))
            state = machine.restore(machine.snapshot(state)) if is_cut else state
        return seen

    assert play(True) == play(False)


@settings(max_examples=200)
@given(
    some.lists(
        some.tuples(some.integers(0, 3), some.sampled_from("ab"), some.booleans(), some.integers(0, 9))
    )
)
def test_the_earliest_of_many_settings_is_what_a_plain_list_says(settings_):
    timers, plain = Timers(), {}
    for window, tag, is_event_time, micros in settings_:
        timers.set((window, "t", tag), (is_event_time, micros, micros - 1))
        plain[window, tag] = (is_event_time, micros)
    for domain in (True, False):
        due = [micros for is_event_time, micros in plain.values() if is_event_time is domain]
        assert timers.earliest(domain) == min(due, default=None)
    assert timers.hold_micros() == min((micros - 1 for _, micros in plain.values()), default=None)
    assert Timers({**timers.settings}).earliest(True) == timers.earliest(True)


def test_cells_read_and_write_what_they_are_asked_for_only():
    cells: dict[str, Any] = {}
    letters = cell_of(MapStateSpec("map", StrUtf8Coder(), VarIntCoder()), cells)
    letters.put("a", 1)
    assert (letters.put_if_absent("a", 9), letters.put_if_absent("b", 2)) == (False, True)
    assert (letters.get("a"), letters.get("c"), letters.get("c", 0), letters.contains("b")) == (
        1,
        None,
        0,
        True,
    )
    assert (list(letters.keys()), list(letters.values()), list(letters.entries())) == (
        ["a", "b"],
        [1, 2],
        [("a", 1), ("b", 2)],
    )
    for key in "abc":
        letters.remove(key)
    assert cells == {}
    names = cell_of(SetStateSpec("set", StrUtf8Coder()), cells)
    assert [names.add_if_absent(name) for name in ("x", "y", "x")] == [True, True, False]
    names.remove("x")
    assert (list(names.read()), names.contains("x")) == (["y"], False)
    moments = cell_of(OrderedListStateSpec("list", StrUtf8Coder()), cells)
    for seconds, value in ((5, "e"), (1, "a"), (5, "f"), (3, "c")):
        moments.add((seconds, value))
    assert [value for _, value in moments.read()] == ["a", "c", "e", "f"]
    assert [(float(moment), value) for moment, value in moments.read_range(3, 5)] == [(3.0, "c")]
    moments.clear_range(2, 6)
    assert [value for _, value in moments.read()] == ["a"]
    total = cell_of(CombiningValueStateSpec("sum", sum), cells)
    assert total.read() == 0
    total.add(3)
    total.add(4)
    assert total.read() == 7
    last = cell_of(ReadModifyWriteStateSpec("last", VarIntCoder()), cells)
    assert last.read() is None
    last.write(3)
    assert cells["last"] == b"\x03"
    last.clear()
    assert last.read() is None
    bag = cell_of(BAG, cells)
    bag.add("x")
    seen = bag.read()
    bag.add("y")
    # What was read is what was there then.
    assert (list(seen), len(seen), list(bag.read())) == (["x"], 1, ["x", "y"])
