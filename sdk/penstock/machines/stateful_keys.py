"""The state of a stateful DoFn for one key, as plain data: the cells of its windows, and its timers."""

from __future__ import annotations

from typing import Any, Final

from penstock.elements.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow
from penstock.machines.cells import Cells
from penstock.machines.timers import Place, Setting, Timers
from penstock.machines.trigger_machine import CLOCK, WATERMARK

_GLOBAL: Final = GlobalWindow()
_MOST_WINDOWS: Final = 1_000

PlainWindow = Any
"""A window as plain data: None for the global window, start and end in microseconds for an interval, or itself."""

PlainKey = tuple[dict[PlainWindow, Cells], dict[Place, Setting]]
"""The cells of each window, and all timers, including those for the windows' ends."""


class StatefulKey:
    """All that a DoFn keeps for one key. It uses the dictionaries of `plain`, and changes them in place."""

    __slots__ = ("key", "timers", "windows")

    agendas: Final = (WATERMARK, CLOCK)
    changed: Final[dict[int, None]] = {}

    def __init__(self, key: object = None, plain: PlainKey | None = None) -> None:
        self.key = key
        if plain is None:
            self.windows: dict[PlainWindow, Cells] = {}
            self.timers = Timers()
        else:
            self.windows, settings = plain
            self.timers = Timers(settings)

    def close(self, window: PlainWindow) -> None:
        """Drops everything of a window."""
        self.timers.clear_window(window)
        del self.windows[window]

    def plain(self) -> PlainKey:
        """Returns all of it except the key, as plain data: many small states are stored, each beside its key's name."""
        return self.windows, self.timers.settings


def plain_window(window: BoundedWindow) -> PlainWindow:
    """Returns a window as plain data.

    >>> plain_window(IntervalWindow(0, 1)), plain_window(GlobalWindow())
    ((0, 1000000), None)
    """
    if window is _GLOBAL:
        return None
    return (window.start_micros, window.end_micros) if type(window) is IntervalWindow else window


def window_of(plain: PlainWindow) -> BoundedWindow:
    """Returns a window from plain data.

    >>> window_of((0, 1_000_000))
    [0.0, 1.0)
    """
    if plain is None:
        return _GLOBAL
    if type(plain) is not tuple:
        return plain  # type: ignore[no-any-return]
    window = _known.get(plain)
    if window is None:
        if len(_known) >= _MOST_WINDOWS:
            _known.clear()
        window = _known[plain] = IntervalWindow.from_micros(*plain)
    return window


# Most keys use the same few windows.
_known: dict[tuple[int, int], IntervalWindow] = {}
