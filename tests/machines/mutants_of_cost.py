"""Deliberate breaks of what the machine costs, and of what triggers say of themselves to make it cost less."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.machines import firing, merging, visiting
from penstock.machines.grouping import GroupingMachine
from penstock.machines.simple_triggers import AfterCountMachine
from penstock.machines.states import AlarmQueue, KeyState
from penstock.transforms.window import MergeScope, Sessions

# What triggers say of themselves.


def counts_are_said_to_wait_for_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AfterCountMachine, "fires_on_elements", False)


def counts_are_said_to_mind_no_elements(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AfterCountMachine, "heeds_elements", False)


# What it costs.


def many_windows_are_asked(patch: pytest.MonkeyPatch) -> None:
    concerned = merging.find_merge_candidates

    def more(program: Any, key: KeyState, window: Any) -> list[Any]:
        others = [state.window for state in key.ordered[:300]]
        return list(dict.fromkeys([*concerned(program, key, window), *others]))

    patch.setattr(merging, "find_merge_candidates", more)


def a_long_session_is_near_to_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sessions, "merge_scope", MergeScope.OVERLAPPING)


def every_window_is_visited(patch: pytest.MonkeyPatch) -> None:
    advance = GroupingMachine.advance

    def thorough(self: GroupingMachine, key: KeyState, times: Any) -> Any:
        status = visiting.StoredWindowStatus(self.program, times, times.clock_micros)
        for state in list(key.windows.values()):
            visiting.set_alarms(self.program, key, state, status)
        return advance(self, key, times)

    patch.setattr(GroupingMachine, "advance", thorough)


def alarms_pile_up(patch: pytest.MonkeyPatch) -> None:
    def set_alarm(self: KeyState, state: Any, domain: Any, micros: int) -> None:
        state.alarms[domain] = micros
        self.agendas.setdefault(domain, AlarmQueue()).add(micros, state.number)

    patch.setattr(KeyState, "set_alarm", set_alarm)


def holds_pile_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AlarmQueue, "tidy", lambda *arguments: None)


def panes_that_were_taken_back_are_kept(patch: pytest.MonkeyPatch) -> None:
    refined = firing._refined

    def keeping(program: Any, state: Any, *rest: Any) -> Any:
        state.last = (*state.last, *state.shown)
        return refined(program, state, *rest)

    patch.setattr(firing, "_refined", keeping)
