"""What a stateful DoFn keeps for one key: the cells of its windows, and its timers. All of it is plain data."""

from __future__ import annotations

from typing import Any, Final

from penstock.base.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow
from penstock.machines.cells import Cells
from penstock.machines.timers import END_OF_WINDOW, HOLDS_NOTHING, Place, Setting, Timers
from penstock.machines.trigger_machine import CLOCK, WATERMARK

_GLOBAL: Final = GlobalWindow()
_MOST_WINDOWS: Final = 1_000

PlainWindow = Any
"""A window as plain data, if it is of one of the usual kinds: None is the global one; two numbers are the start and the
end of an interval, in microseconds; any other is itself."""

PlainKey = tuple[dict[PlainWindow, Cells], dict[Place, Setting]]
"""What is in the cells of each window, and all timers, those of the windows' ends as well."""


class StatefulKey:
    """All that a DoFn keeps for one key.

    Args:
        key: The key.
        plain: What there is. It is kept, and changed in place.

    Attributes:
        windows: What is in the cells of each window.
        timers: The timers of all windows, and the ends of these.
    """

    __slots__ = ("key", "timers", "windows")

    agendas: Final = (WATERMARK, CLOCK)
    changed: Final[dict[int, None]] = {}

    def __init__(self, key: Any = None, plain: PlainKey | None = None) -> None:
        self.key = key
        if plain is None:
            self.windows: dict[PlainWindow, Cells] = {}
            self.timers = Timers()
        else:
            self.windows, settings = plain
            self.timers = Timers(settings)

    def close(self, window: PlainWindow) -> None:
        """Lets everything of a window go."""
        self.timers.clear_window(window)
        del self.windows[window]

    def plain(self) -> PlainKey:
        """All of it as plain data, except for the key: many small states are stored, each beside its key's name."""
        return self.windows, self.timers.settings


def restored(key: Any, plain: Any) -> StatefulKey:
    """What is kept for a key, from plain data, also of the form in which it was stored before."""
    return StatefulKey(key, plain if len(plain) == 2 else _of_numbers(*plain))


def _of_numbers(_: int, windows: tuple[Any, ...], timers: tuple[Any, ...]) -> PlainKey:
    """What was stored while windows had numbers, and the ends of windows stood apart from the timers.

    Args:
        windows: Each window's number, itself, its cells, and when they go.
        timers: Each timer's window, by number, its name and its tag; then its setting.
    """
    plain_of = {number: window for number, window, _, _ in windows}
    ends: dict[Place, Setting] = {
        (window, END_OF_WINDOW, ""): (True, end_micros, HOLDS_NOTHING)
        for _, window, _, end_micros in windows
        if end_micros is not None
    }
    settings = {(plain_of[number], name, tag): tuple(setting) for number, name, tag, *setting in timers}
    return {window: cells for _, window, cells, _ in windows}, ends | settings


def plain_window(window: BoundedWindow) -> PlainWindow:
    """A window as plain data.

    >>> plain_window(IntervalWindow(0, 1)), plain_window(GlobalWindow())
    ((0, 1000000), None)
    """
    if window is _GLOBAL:
        return None
    return (window.start_micros, window.end_micros) if type(window) is IntervalWindow else window


def window_of(plain: PlainWindow) -> BoundedWindow:
    """A window from plain data.

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


# Most keys have something in the same few windows.
_known: dict[tuple[int, int], IntervalWindow] = {}
