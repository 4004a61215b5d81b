"""The state of one key: its windows, what each holds, and when to look at it again. All of it is plain data."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any

from penstock.base.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.trigger_machine import Domain
from penstock.utils.windowed_value import PaneInfo

_SPARE_ENTRIES = 16

Shown = tuple[BoundedWindow, Any, int, PaneInfo]
"""A pane that has been emitted and not been taken back: its window, value, timestamp in microseconds, and numbering."""


class WindowState:
    """One window of one key.

    Attributes:
        number: Its name in agendas; it stays when the window grows.
        window: The window.
        held: What it holds (see `penstock.machines.contents`).
        trigger: The trigger's state.
        fresh: The number of elements since the last pane.
        live: The number of elements that have come, less those taken back.
        panes: The number of panes so far.
        nonspeculative: The number of them that were not early.
        is_past_end: Whether the watermark has passed its end.
        is_closed: Whether its trigger has fired for the last time.
        output_micros: The output timestamp of what it holds; None without any element that was on time.
        shown: The panes to take back when the next one comes; only where they are retracted.
        last: The last pane's value in a 1-tuple; () before the first; only where a trigger looks at it.
        alarms: The earliest alarm that is set, by domain.
        noted_micros: The earliest hold that is noted.
    """

    __slots__ = (
        "alarms",
        "fresh",
        "held",
        "is_closed",
        "is_past_end",
        "last",
        "live",
        "nonspeculative",
        "noted_micros",
        "number",
        "output_micros",
        "panes",
        "shown",
        "trigger",
        "window",
    )

    def __init__(self, number: int, window: BoundedWindow, held: Any, trigger: Any) -> None:
        self.number = number
        self.window = window
        self.held = held
        self.trigger = trigger
        self.fresh = 0
        self.live = 0
        self.panes = 0
        self.nonspeculative = 0
        self.is_past_end = False
        self.is_closed = False
        self.output_micros: int | None = None
        self.shown: list[Shown] = []
        self.last: tuple[Any, ...] = ()
        self.alarms: dict[Domain, int] = {}
        self.noted_micros: int | None = None


# The window is stored apart.
_content_of = attrgetter(*WindowState.__slots__[:-1])


def _restored(window: BoundedWindow, content: tuple[Any, ...]) -> WindowState:
    state = WindowState.__new__(WindowState)
    state.window = window
    # States are restored by the thousand: one statement is much quicker than a loop over the names.
    (
        state.alarms,
        state.fresh,
        state.held,
        state.is_closed,
        state.is_past_end,
        state.last,
        state.live,
        state.nonspeculative,
        state.noted_micros,
        state.number,
        state.output_micros,
        state.panes,
        state.shown,
        state.trigger,
    ) = content
    return state


class Agenda:
    """Windows by the earliest moment at which each may need attention: a heap whose entries may be out of date.

    An entry is never later than its window asks for. Whoever takes one asks the window again.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = [] if entries is None else entries

    def add(self, micros: int, number: int) -> None:
        """Notes a window."""
        heappush(self.entries, (micros, number))

    def may_be_untidy(self, windows: int) -> bool:
        """Whether most of it is out of date, if there are so many windows."""
        return len(self.entries) > 2 * windows + _SPARE_ENTRIES

    def tidy(self, is_current: Callable[[int, int], bool]) -> None:
        """Drops what is out of date.

        Args:
            is_current: Whether a (moment, number) still says something.
        """
        self.entries = [entry for entry in set(self.entries) if is_current(*entry)]
        heapify(self.entries)

    def earliest(self) -> tuple[int, int] | None:
        """The first entry, as (moment, number); None if there is none."""
        return self.entries[0] if self.entries else None

    def take(self, until_micros: int) -> tuple[int, int] | None:
        """Takes the first entry out, as (moment, number), if its moment has come; else None."""
        if self.entries and self.entries[0][0] <= until_micros:
            return heappop(self.entries)
        return None


class KeyState:
    """All windows of one key.

    Attributes:
        windows: By window.
        numbered: By number.
        next_number: The next window's.
        agendas: By domain.
        holds: By the output timestamps that must not be passed.
        ordered: The windows in order of their starts; only where it is kept.
        starts: Those starts, in microseconds.
        longest_micros: The length of the longest window so far; only where windows merge.
        changed: The numbers of the windows that changed in this round of a micro-batch; as keys, in order.
        owed: The event times that must not be passed before panes of windows that have merged are taken back, by the
            numbers of the windows that will do it.
    """

    __slots__ = (
        "agendas",
        "changed",
        "holds",
        "longest_micros",
        "next_number",
        "numbered",
        "ordered",
        "owed",
        "starts",
        "windows",
    )

    def __init__(self) -> None:
        self.windows: dict[BoundedWindow, WindowState] = {}
        self.numbered: dict[int, WindowState] = {}
        self.next_number = 0
        self.agendas: dict[Domain, Agenda] = {}
        self.holds = Agenda()
        self.ordered: list[WindowState] = []
        self.starts: list[int] = []
        self.longest_micros = 0
        self.changed: dict[int, None] = {}
        self.owed: dict[int, int] = {}

    def set_alarm(self, state: WindowState, domain: Domain, micros: int) -> None:
        """Sees to it that a window is visited at a moment, or before."""
        earliest = state.alarms.get(domain)
        if earliest is not None and earliest <= micros:
            return
        state.alarms[domain] = micros
        agenda = self.agendas.get(domain)
        if agenda is None:
            agenda = self.agendas[domain] = Agenda()
        agenda.add(micros, state.number)
        if agenda.may_be_untidy(len(self.windows)):
            agenda.tidy(lambda moment, number: self._alarm(number, domain) == moment)

    def note_hold(self, state: WindowState, micros: int) -> None:
        """Sees to it that a window's hold is found."""
        if state.noted_micros is None or micros < state.noted_micros:
            state.noted_micros = micros
            self.holds.add(micros, state.number)
            if self.holds.may_be_untidy(len(self.windows)):
                self.holds.tidy(lambda moment, number: self._noted(number) == moment)

    def _alarm(self, number: int, domain: Domain) -> int | None:
        state = self.numbered.get(number)
        return None if state is None else state.alarms.get(domain)

    def _noted(self, number: int) -> int | None:
        state = self.numbered.get(number)
        return None if state is None else state.noted_micros

    def __reduce__(self) -> tuple[Callable[..., KeyState], tuple[Any, ...]]:
        # Plain tuples and numbers: every object of a class would cost a look-up of the class, both ways.
        states = self.windows.values()
        return _restored_key, (
            [_stored(state.window) for state in states],
            [_content_of(state) for state in states],
            self.next_number,
            {domain: agenda.entries for domain, agenda in self.agendas.items() if agenda.entries},
            self.holds.entries,
            self.longest_micros,
            list(self.changed),
            [state.number for state in self.ordered],
            self.starts,
            *([self.owed] if self.owed else ()),
        )


def _stored(window: BoundedWindow) -> BoundedWindow | tuple[int, int]:
    return (window.start_micros, window.end_micros) if type(window) is IntervalWindow else window


def _restored_key(
    windows: list[Any],
    contents: list[tuple[Any, ...]],
    next_number: int,
    agendas: dict[Domain, list[tuple[int, int]]],
    holds: list[tuple[int, int]],
    longest_micros: int,
    changed: list[int],
    ordered: list[int],
    starts: list[int],
    owed: dict[int, int] | None = None,
) -> KeyState:
    key = KeyState()
    for stored, content in zip(windows, contents, strict=True):
        window = IntervalWindow.from_micros(*stored) if type(stored) is tuple else stored
        state = _restored(window, content)
        key.windows[window] = key.numbered[state.number] = state
    key.next_number = next_number
    key.agendas = {domain: Agenda(entries) for domain, entries in agendas.items()}
    key.holds = Agenda(holds)
    key.longest_micros = longest_micros
    key.changed = dict.fromkeys(changed)
    key.ordered = [key.numbered[number] for number in ordered]
    key.starts = starts
    key.owed = owed or {}
    return key
