"""The timers of a key, few or many: the same answers as a plain list gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.machines import timers as module
from penstock.machines.timers import FEW, HOLDS_NOTHING, Place, Setting, Timers

PLACES = some.tuples(
    some.integers(0, 2), some.sampled_from(["", "a", "b"]), some.sampled_from(["", "x", "y"])
)
HOLDS = some.sampled_from([None, -1, HOLDS_NOTHING])
STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("set"), PLACES, some.booleans(), some.integers(0, 9), HOLDS),
        some.tuples(some.just("clear"), PLACES),
        some.tuples(some.just("clear_window"), some.integers(0, 2)),
        some.tuples(some.just("take"), some.booleans(), some.integers(0, 9)),
        some.just(("store",)),
    ),
    max_size=60,
)


class PlainList:
    """The same as `Timers`, in the order in which they were set."""

    def __init__(self) -> None:
        self.all: list[tuple[Place, Setting]] = []

    def set(self, place: Place, setting: Setting) -> None:
        self.clear(place)
        self.all.append((place, setting))

    def clear(self, place: Place) -> None:
        self.all = [one for one in self.all if one[0] != place]

    def clear_window(self, window: int) -> None:
        self.all = [one for one in self.all if one[0][0] != window]

    def take(self, is_event_time: bool, until_micros: int) -> tuple[Place, Setting] | None:
        due = [one for one in self.all if one[1][0] is is_event_time and one[1][1] <= until_micros]
        found = min(due, key=lambda one: one[1][1], default=None)
        self.all = [one for one in self.all if one is not found]
        return found

    def answers(self) -> list[Any]:
        settings = [setting for _, setting in self.all]
        due = [[one[1] for one in settings if one[0] is domain] for domain in (True, False)]
        held = [one[1] if one[2] is None else one[2] for one in settings if one[2] != HOLDS_NOTHING]
        named = [(place[0], setting) for place, setting in self.all if place[1]]
        return [
            *(min(micros, default=None) for micros in due),
            *(max(micros, default=None) for micros in due),
            (hold := min(held, default=None)),
            ({name: min(own) for name, own in zip((1.0, "clock"), due, strict=True) if own}, hold),
            [any(own == window for own, _ in named) for window in range(3)],
            [any(own == window and one[0] and one[1] <= 5 for own, one in named) for window in range(3)],
        ]


def answers(timers: Timers) -> list[Any]:
    return [
        *(timers.earliest(domain) for domain in (True, False)),
        *(timers.latest(domain) for domain in (True, False)),
        timers.hold_micros(),
        timers.next_timers(),
        [timers.has_any(window) for window in range(3)],
        [timers.are_due(window, 5) for window in range(3)],
    ]


def law(steps: list[Any]) -> None:
    timers, plain = Timers(), PlainList()
    for name, *arguments in steps:
        if name == "store":
            timers = Timers({**timers.settings})
        elif name == "set":
            place, is_event_time, micros, held = arguments
            setting = is_event_time, micros, micros - 1 if held == -1 else held
            timers.set(place, setting)
            plain.set(place, setting)
        else:
            assert getattr(timers, name)(*arguments) == getattr(plain, name)(*arguments)
        assert answers(timers) == plain.answers()
        assert [*timers.settings.items()] == plain.all


@given(STEPS)
def test_timers_give_the_answers_of_a_plain_list(steps: list[Any]) -> None:
    law(steps)


@given(STEPS)
def test_so_do_heaps_whenever_they_are_made(steps: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", 1)
        law(steps)


def test_of_many_timers_only_those_that_are_next_are_looked_at() -> None:
    timers = Timers({(0, "t", str(number)): (True, number, number) for number in range(1_000)})
    assert len(timers.settings) > FEW
    # What would be looked through is not there.
    timers.settings = Unlistable(timers.settings)
    for number in range(999):
        assert timers.take(True, 1_000) == ((0, "t", str(number)), (True, number, number))
        assert timers.earliest(is_event_time=True) == timers.hold_micros() == number + 1


class Unlistable(dict[Any, Any]):
    """Tells what it is asked for, and not what there is."""

    def __iter__(self) -> Any:
        raise AssertionError("all timers are looked through")

    keys = values = items = __iter__
