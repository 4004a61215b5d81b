"""The timers of a key, few or many: the same answers as a plain list gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.machines import timers as module
from penstock.machines.timers import FEW, Setting, Timers

PLACES = some.tuples(
    some.integers(0, 2), some.sampled_from(["", "a", "b"]), some.sampled_from(["", "x", "y"])
)
STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("set"), PLACES, some.booleans(), some.integers(0, 9), some.booleans()),
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
        self.all: list[Setting] = []

    def set(self, setting: Setting) -> None:
        self.clear(*setting[:3])
        self.all.append(setting)

    def clear(self, *place: Any) -> None:
        self.all = [one for one in self.all if one[:3] != place]

    def clear_window(self, window: int) -> None:
        self.all = [one for one in self.all if one[0] != window]

    def take(self, is_event_time: bool, until_micros: int) -> Setting | None:
        due = [one for one in self.all if one[3] is is_event_time and one[4] <= until_micros]
        found = min(due, key=lambda one: one[4], default=None)
        self.all = [one for one in self.all if one is not found]
        return found

    def answers(self) -> list[Any]:
        due = [[one[4] for one in self.all if one[3] is domain] for domain in (True, False)]
        named = [one for one in self.all if one[1]]
        return [
            len(self.all),
            *(min(micros, default=None) for micros in due),
            *(max(micros, default=None) for micros in due),
            (hold := min((one[5] for one in self.all if one[5] is not None), default=None)),
            ({name: min(own) for name, own in zip((1.0, "clock"), due, strict=True) if own}, hold),
            [any(one[0] == window for one in named) for window in range(3)],
            [any(one[0] == window and one[3] and one[4] <= 5 for one in named) for window in range(3)],
        ]


def answers(timers: Timers) -> list[Any]:
    return [
        len(timers),
        *(timers.earliest(domain) for domain in (True, False)),
        *(timers.latest(domain) for domain in (True, False)),
        timers.hold_micros(),
        timers.outlook(),
        [timers.has_any(window) for window in range(3)],
        [timers.are_due(window, 5) for window in range(3)],
    ]


def law(steps: list[Any]) -> None:
    timers, plain = Timers(), PlainList()
    for name, *arguments in steps:
        if name == "store":
            timers = Timers(timers.settings())
        elif name == "set":
            place, is_event_time, micros, holds = arguments
            setting = (*place, is_event_time, micros, micros - 1 if holds else None)
            timers.set(setting)
            plain.set(setting)
        else:
            if name == "clear":
                [arguments] = arguments
            assert getattr(timers, name)(*arguments) == getattr(plain, name)(*arguments)
        assert answers(timers) == plain.answers()
        assert timers.settings() == plain.all


@given(STEPS)
def test_timers_give_the_answers_of_a_plain_list(steps: list[Any]) -> None:
    law(steps)


@given(STEPS)
def test_so_do_heaps_whenever_they_are_made(steps: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", 1)
        law(steps)


def test_of_many_timers_only_those_that_are_next_are_looked_at() -> None:
    timers = Timers((0, "t", str(number), True, number, number) for number in range(1_000))
    assert len(timers) > FEW
    # What would be looked through is not there.
    settings, timers._settings = timers._settings, Unlistable(timers._settings)
    for number in range(999):
        taken = timers.take(True, 1_000)
        assert taken == settings[0, "t", str(number)]
        assert timers.earliest(is_event_time=True) == timers.hold_micros() == number + 1


class Unlistable(dict[Any, Any]):
    """Tells what it is asked for, and not what there is."""

    def __iter__(self) -> Any:
        raise AssertionError("all timers are looked through")

    keys = values = items = __iter__
