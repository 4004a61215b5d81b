"""The state of one key, as plain data: its windows, what each holds, and when to visit it again."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any

from penstock.elements.bounded_window import BoundedWindow, IntervalWindow
from penstock.machines.trigger_machine import Domain
from penstock.utils.windowed_value import PaneInfo

_SPARE_ENTRIES = 16

Shown = tuple[BoundedWindow, Any, int, PaneInfo]
"""A pane that has been given and not been retracted: its window, value, timestamp in microseconds, and numbering."""


class WindowState:
    """One window of one key."""

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

    def __init__(self, number: int, window: BoundedWindow, held: Any, trigger: object) -> None:
        self.number = number  # Its name in agendas; it stays when the window grows.
        self.window = window
        self.held = held  # What it holds (see `penstock.functions.folds`).
        self.trigger = trigger  # The trigger's state.
        self.fresh = 0  # The number of elements since the last pane.
        self.live = 0  # The number of elements that have arrived, less the retracted ones.
        self.panes = 0  # The number of panes so far.
        self.nonspeculative = 0  # The number of panes that were not early.
        self.is_past_end = False  # Whether the watermark has passed its end.
        self.is_closed = False  # Whether its trigger has fired for the last time.
        # The output timestamp of what it holds; None if no element was on time.
        self.output_micros: int | None = None
        self.shown: list[Shown] = []  # The panes to retract when the next one comes, if panes are retracted.
        # The last pane's value in a 1-tuple; () before the first; kept only for triggers that look at it.
        self.last: tuple[Any, ...] = ()
        self.alarms: dict[Domain, int] = {}  # The earliest alarm that is set, by domain.
        self.noted_micros: int | None = None  # The earliest hold that is noted.


# The window is stored separately.
_content_of = attrgetter(*WindowState.__slots__[:-1])


def _restored(window: BoundedWindow, content: tuple[Any, ...]) -> WindowState:
    state = WindowState.__new__(WindowState)
    state.window = window
    # States are restored by the thousand: one statement is much faster than a loop over the names.
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


class AlarmQueue:
    """Windows by the earliest time at which each may need a visit: a heap whose entries may be out of date.

    No entry is later than its window needs. The code that takes an entry checks the window again.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = [] if entries is None else entries

    def add(self, micros: int, number: int) -> None:
        """Notes a window."""
        heappush(self.entries, (micros, number))

    def may_be_untidy(self, windows: int) -> bool:
        """True if most entries are out of date when there is this number of windows."""
        return len(self.entries) > 2 * windows + _SPARE_ENTRIES

    def tidy(self, is_current: Callable[[int, int], bool]) -> None:
        """Drops entries that are out of date."""
        self.entries = [entry for entry in set(self.entries) if is_current(*entry)]
        heapify(self.entries)

    def earliest(self) -> tuple[int, int] | None:
        """Returns the first entry, as (time, number); None without entries."""
        return self.entries[0] if self.entries else None

    def take(self, until_micros: int) -> tuple[int, int] | None:
        """Takes the first entry out if it is due, as (time, number); else None."""
        if self.entries and self.entries[0][0] <= until_micros:
            return heappop(self.entries)
        return None


class KeyState:
    """All windows of one key."""

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
        self.agendas: dict[Domain, AlarmQueue] = {}
        self.holds = AlarmQueue()  # Windows by the output timestamps that must not be passed.
        self.ordered: list[WindowState] = []  # Windows ordered by start, if they merge in order.
        self.starts: list[int] = []  # The starts of the ordered windows, in microseconds.
        self.longest_micros = 0  # The length of the longest window so far, if windows merge in order.
        self.changed: dict[
            int, None
        ] = {}  # The numbers of windows that changed in this micro-batch, in order.
        # The event times that must not be passed before panes of merged windows are retracted, by the numbers of the
        # windows that will retract them.
        self.owed: dict[int, int] = {}

    def set_alarm(self, state: WindowState, domain: Domain, micros: int) -> None:
        """Makes sure that a window is visited at a time, or before."""
        earliest = state.alarms.get(domain)
        if earliest is not None and earliest <= micros:
            return
        state.alarms[domain] = micros
        agenda = self.agendas.get(domain)
        if agenda is None:
            agenda = self.agendas[domain] = AlarmQueue()
        agenda.add(micros, state.number)
        if agenda.may_be_untidy(len(self.windows)):
            agenda.tidy(lambda due_micros, number: self._alarm(number, domain) == due_micros)

    def note_hold(self, state: WindowState, micros: int) -> None:
        """Notes the event time that a window holds."""
        if state.noted_micros is None or micros < state.noted_micros:
            state.noted_micros = micros
            self.holds.add(micros, state.number)
            if self.holds.may_be_untidy(len(self.windows)):
                self.holds.tidy(lambda held_micros, number: self._noted(number) == held_micros)

    def _alarm(self, number: int, domain: Domain) -> int | None:
        state = self.numbered.get(number)
        return None if state is None else state.alarms.get(domain)

    def _noted(self, number: int) -> int | None:
        state = self.numbered.get(number)
        return None if state is None else state.noted_micros

    def __reduce__(self) -> tuple[Callable[..., KeyState], tuple[Any, ...]]:
        # Pickling and unpickling look up the class of every object: tuples and numbers are faster.
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
            self.owed,
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
    owed: dict[int, int],
) -> KeyState:
    key = KeyState()
    for stored, content in zip(windows, contents, strict=True):
        window = IntervalWindow.from_micros(*stored) if type(stored) is tuple else stored
        state = _restored(window, content)
        key.windows[window] = key.numbered[state.number] = state
    key.next_number = next_number
    key.agendas = {domain: AlarmQueue(entries) for domain, entries in agendas.items()}
    key.holds = AlarmQueue(holds)
    key.longest_micros = longest_micros
    key.changed = dict.fromkeys(changed)
    key.ordered = [key.numbered[number] for number in ordered]
    key.starts = starts
    key.owed = owed
    return key
