"""A window's state as its trigger sees it."""

from __future__ import annotations

from typing import Any

from penstock.machines.program import GroupingProgram
from penstock.machines.records import Times
from penstock.machines.states import WindowState
from penstock.machines.trigger_machine import WindowStatus


class StoredWindowStatus(WindowStatus):
    """Shows a window's trigger what it may see, read from the window's state."""

    __slots__ = ("_program", "_state")
    _state: WindowState

    def __init__(self, program: GroupingProgram, times: Times, due_micros: int) -> None:
        self._program = program
        self.times = times
        self.due_micros = due_micros
        self.keeps = program.keeps

    def at(self, state: WindowState) -> StoredWindowStatus:
        """Returns the status of a window at these times."""
        self._state = state
        self.window = state.window
        self.fresh = state.fresh
        return self

    def value(self) -> Any:
        return self._program.fold.result(self._state.held, True)

    def last_value(self, default: object) -> object:
        return self._state.last[0] if self._state.last else default
