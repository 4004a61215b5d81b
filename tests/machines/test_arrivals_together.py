"""A window answers all elements of one logical time once, also where some of them are retractions."""

from __future__ import annotations

from penstock.functions.combinefn import CombineFn
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import Arrival, Element, Times
from penstock.utils.windowed_value import ValueKind
from penstock.windows.triggers import AccumulationMode, AfterArrival, AfterCount, Repeatedly, TriggerFn
from penstock.windows.window_fn import GlobalWindows, Sessions
from penstock.windows.windowing import Windowing

LESS = ValueKind.DELETE


def _machine(trigger: TriggerFn, retracts: bool = True) -> GroupingMachine:
    mode = AccumulationMode.ACCUMULATING_AND_RETRACTING
    return GroupingMachine(
        Windowing(GlobalWindows(), Repeatedly(trigger), mode), CombineFn.from_callable(sum), retracts
    )


def _element(machine: GroupingMachine, value: int, kind: ValueKind = ValueKind.INSERT) -> Element:
    return Element(value, 0, machine.assign(0), kind)


def _told(panes: list[object]) -> list[tuple[str, object]]:
    return [(pane.info.kind.name, pane.value) for pane in panes]  # type: ignore[attr-defined]


def test_elements_and_retractions_of_one_moment_make_one_change() -> None:
    machine = _machine(AfterArrival())
    assert machine.program.answers_together
    key = machine.new_key()
    first = [_element(machine, 3), _element(machine, 4), _element(machine, 3, LESS)]
    assert _told(machine.elements(key, first, Times())) == [("INSERT", 4)]
    second = [_element(machine, 4, LESS), _element(machine, 9)]
    assert _told(machine.elements(key, second, Times())) == [("UPDATE_BEFORE", 4), ("UPDATE_AFTER", 9)]
    assert _told(machine.elements(key, [_element(machine, 9, LESS)], Times())) == [("DELETE", 9)]


def test_what_comes_and_goes_in_one_moment_is_not_seen() -> None:
    machine = _machine(AfterArrival())
    key = machine.new_key()
    assert machine.elements(key, [_element(machine, 3), _element(machine, 3, LESS)], Times()) == []
    assert _told(machine.elements(key, [_element(machine, 5)], Times())) == [("INSERT", 5)]


def test_combined_elements_make_one_change() -> None:
    machine = _machine(AfterArrival(), retracts=False)
    key = machine.new_key()
    [window] = machine.assign(0)
    assert _told(machine.arrival(key, Arrival(window, 7, 2, ()), Times())) == [("INSERT", 7)]
    changed = machine.arrival(key, Arrival(window, 5, 3, ()), Times())
    assert _told(changed) == [("UPDATE_BEFORE", 7), ("UPDATE_AFTER", 12)]


def test_a_count_and_windows_that_merge_answer_each_element() -> None:
    assert not _machine(AfterCount(1)).program.answers_together
    merging = Windowing(Sessions(5), Repeatedly(AfterArrival()), AccumulationMode.ACCUMULATING)
    assert not GroupingMachine(merging).program.answers_together
