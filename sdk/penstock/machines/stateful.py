"""The machine of a stateful DoFn, one key at a time: what its cells hold, and when its timers fire.

Like the machine of a grouping it knows no engine and no clock: time is an argument (Streaming Systems, chapter 7).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from penstock.error import three_parts
from penstock.machines.cells import Cells, cell_of
from penstock.machines.records import MAX_MICROS, Dropped, DropReason, Element, Given, Times
from penstock.machines.timers import END_OF_WINDOW, Outlook, Setting, Timers
from penstock.machines.trigger_machine import CLOCK, WATERMARK, Domain
from penstock.transforms.bounded_window import BoundedWindow, GlobalWindow, IntervalWindow
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.userstate import BaseTimer, RuntimeState, StateSpec, TimerSpec, UserStateContext
from penstock.utils.timestamp import Duration, Timestamp
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, unknown_pane

_VERSION: Final = b"\x03"
_GLOBAL: Final = GlobalWindow()

Reaction = Given | Dropped


class Ring(NamedTuple):
    """A timer that fires.

    Attributes:
        name: The timer's name, as its TimerSpec has it.
        tag: The dynamic timer tag.
        fire_micros: When it was due.
        output_micros: The event time of what it gives.
    """

    name: str
    tag: str
    fire_micros: int
    output_micros: int


class Code(Protocol):
    """The methods of a stateful DoFn; each returns what the user's method gave, in order."""

    has_expiration: bool
    """Whether it wants to know when a window's state goes."""

    def process(
        self, key: Any, element: Element, window: BoundedWindow, state: UserStateContext
    ) -> Iterable[Any]:
        """An element in one of its windows."""
        ...

    def on_timer(self, key: Any, ring: Ring, window: BoundedWindow, state: UserStateContext) -> Iterable[Any]:
        """A timer fires."""
        ...

    def on_window_expiration(self, key: Any, window: BoundedWindow, state: UserStateContext) -> Iterable[Any]:
        """The state of a window is about to go."""
        ...


class WindowCells:
    """What a DoFn keeps for one key and window.

    Attributes:
        number: Tells the windows of a key apart.
        window: The window.
        cells: What is in its cells.
        end_micros: When all this goes; None as long as no timer is set for that.
    """

    __slots__ = ("cells", "end_micros", "number", "window")

    def __init__(
        self, number: int, window: BoundedWindow, cells: Cells, end_micros: int | None = None
    ) -> None:
        self.number = number
        self.window = window
        self.cells = cells
        self.end_micros = end_micros


PlainKey = tuple[int, tuple[tuple[int, Any, Cells, int | None], ...], tuple[Setting, ...]]
"""Of a key: the next window's number; each window's number, itself, cells and end; and timers besides those of ends."""


class StatefulKey:
    """All that a DoFn keeps for one key.

    Attributes:
        key: The key.
        windows: By window.
        numbered: By number.
        timers: The timers of all windows, and the ends of these.
        next_number: The next window's.
    """

    __slots__ = ("key", "next_number", "numbered", "timers", "windows")

    agendas: Final = (WATERMARK, CLOCK)
    changed: Final[dict[int, None]] = {}

    def __init__(self, key: Any = None, timers: Iterable[Setting] = (), next_number: int = 0) -> None:
        self.key = key
        self.windows: dict[BoundedWindow, WindowCells] = {}
        self.numbered: dict[int, WindowCells] = {}
        self.timers = Timers(timers)
        self.next_number = next_number

    def plain(self) -> PlainKey:
        """All of it as plain data, except for the key: many small states are stored, each beside its key's name."""
        windows = tuple(
            (one.number, _plain(one.window), one.cells, one.end_micros) for one in self.windows.values()
        )
        settings = tuple([one for one in self.timers.settings() if one[1] != END_OF_WINDOW])
        return self.next_number, windows, settings


def _plain(window: BoundedWindow) -> Any:
    """A window as plain data, if it is of one of the usual kinds."""
    if window is _GLOBAL:
        return None
    return (window.start_micros, window.end_micros) if type(window) is IntervalWindow else window


def restored(key: Any, plain: PlainKey) -> StatefulKey:
    """What is kept for a key, from plain data."""
    next_number, windows, settings = plain
    state, ends = StatefulKey(key, (), next_number), []
    for number, stored, cells, end_micros in windows:
        window: BoundedWindow = _GLOBAL if stored is None else stored
        if type(stored) is tuple:
            window = IntervalWindow.from_micros(*stored)
        state.windows[window] = state.numbered[number] = WindowCells(number, window, cells, end_micros)
        if end_micros is not None:
            ends.append((number, END_OF_WINDOW, "", True, end_micros, None))
    state.timers = Timers((*ends, *settings))
    return state


class StatefulMachine:
    """The machine of one stateful DoFn.

    Args:
        code: Its methods.
        lateness_micros: How long after a window's end its state is kept.
    """

    def __init__(self, code: Code, lateness_micros: int = 0) -> None:
        self._code = code
        self._lateness_micros = lateness_micros

    def new_key(self, key: Any = None) -> StatefulKey:
        """The state of a key that has had no elements."""
        return StatefulKey(key)

    def element(self, state: StatefulKey, element: Element, times: Times) -> list[Reaction]:
        """An element arrives, in windows that have been assigned; timers that it sets to a time gone by fire.

        Returns:
            What its windows gave; for each that no longer takes it, a `Dropped`.
        """
        reactions: list[Reaction] = []
        now_micros = times.horizon_micros
        for window in element.windows:
            expiry_micros = self._expiry_micros(window)
            if now_micros >= expiry_micros:
                lost = Element(element.value, element.timestamp_micros, (window,), element.kind)
                reactions.append(Dropped(lost, DropReason.EXPIRED))
                continue
            held = state.windows.get(window)
            if held is None:
                held = WindowCells(state.next_number, window, {})
                state.windows[window] = state.numbered[held.number] = held
                state.next_number += 1
            context = _Context(state, held, element.timestamp_micros, expiry_micros, times.clock_micros)
            results = tuple(self._code.process(state.key, element, window, context))
            if results:
                info = unknown_pane(element.kind)
                reactions.append(Given(results, element.timestamp_micros, window, info))
            self._keep_if_used(state, held, expiry_micros)
        first_micros = state.timers.earliest(True)
        if first_micros is not None and first_micros <= now_micros:
            reactions += self._ring(state, True, now_micros, times)
        return reactions

    def advance_watermark(self, state: StatefulKey, times: Times) -> list[Reaction]:
        """The watermark has come to that of `times`: timers of event time that are due fire, and windows end."""
        return [*self._ring(state, True, times.horizon_micros, times)]

    def advance_clock(self, state: StatefulKey, times: Times) -> list[Reaction]:
        """The clock has come to that of `times`: timers of processing time that are due fire."""
        reactions = [*self._ring(state, False, times.clock_micros, times)]
        return reactions + [*self._ring(state, True, times.horizon_micros, times)]

    def signal(self, state: StatefulKey, name: str, times: Times) -> list[Reaction]:
        """A signal: only triggers hear it."""
        return []

    def end_round(self, state: StatefulKey, times: Times) -> list[Reaction]:
        """A micro-batch ends: timers go by the watermark of the source, and hear nothing of rounds."""
        return []

    def hold_micros(self, state: StatefulKey) -> int | None:
        """The event time that the watermark of the output may not pass; None if nothing holds it."""
        return state.timers.hold_micros()

    def outlook(self, state: StatefulKey) -> Outlook:
        """What `alarm_micros` tells of each domain in which something is due, and what `hold_micros` does."""
        return state.timers.outlook()

    def alarm_micros(self, state: StatefulKey, domain: Domain) -> int | None:
        """A moment before which nothing is due in a domain; None if nothing will ever be."""
        return state.timers.earliest(domain != CLOCK)

    def snapshot(self, state: StatefulKey) -> bytes:
        """The state of a key as bytes."""
        return _VERSION + pickle.dumps((state.key, state.plain()), pickle.HIGHEST_PROTOCOL)

    def restore(self, data: bytes) -> StatefulKey:
        """The state of a key from its bytes.

        Raises:
            ValueError: They are of another version.
        """
        if data[:1] != _VERSION:
            what = f"the state of a key has the format {data[:1]!r}, not {_VERSION!r}"
            raise ValueError(three_parts(what, hint="restore it with the version of penstock that wrote it"))
        return restored(*pickle.loads(data[1:]))

    def _expiry_micros(self, window: BoundedWindow) -> int:
        micros = window.end_micros + self._lateness_micros
        return micros if micros < MAX_MICROS else MAX_MICROS

    def _keep_if_used(self, state: StatefulKey, held: WindowCells, expiry_micros: int) -> None:
        """A window in which nothing is kept, and nothing is waited for, takes no room."""
        if held.cells or self._code.has_expiration or state.timers.has_any(held.number):
            if held.end_micros is None:
                held.end_micros = expiry_micros
                state.timers.set((held.number, END_OF_WINDOW, "", True, expiry_micros, None))
            return
        state.timers.clear_window(held.number)
        del state.windows[held.window], state.numbered[held.number]

    def _ring(
        self, state: StatefulKey, is_event_time: bool, until_micros: int, times: Times
    ) -> Iterator[Reaction]:
        """Fires what is due, earliest first; what that sets, too, if it is due."""
        while (due := state.timers.take(is_event_time, until_micros)) is not None:
            number, name, tag, _, fire_micros, output_micros = due
            held = state.numbered[number]
            expiry_micros = self._expiry_micros(held.window)
            if name == END_OF_WINDOW:
                if state.timers.are_due(number, fire_micros):
                    # What is due at that very moment fires before the window ends.
                    state.timers.set(due)
                    continue
                yield from self._end(state, held, times)
                continue
            if output_micros is None:
                output_micros = fire_micros
            context = _Context(state, held, output_micros, expiry_micros, times.clock_micros)
            ring = Ring(name, tag, fire_micros, output_micros)
            results = tuple(self._code.on_timer(state.key, ring, held.window, context))
            if results:
                yield Given(results, output_micros, held.window, PANE_INFO_UNKNOWN)
            self._keep_if_used(state, held, expiry_micros)

    def _end(self, state: StatefulKey, held: WindowCells, times: Times) -> Iterator[Reaction]:
        """The state of a window goes, after the DoFn has had a last look."""
        if self._code.has_expiration:
            last_micros = held.window.end_micros - 1
            context = _Context(state, held, last_micros, None, times.clock_micros)
            results = tuple(self._code.on_window_expiration(state.key, held.window, context))
            if results:
                yield Given(results, last_micros, held.window, PANE_INFO_UNKNOWN)
        state.timers.clear_window(held.number)
        del state.windows[held.window], state.numbered[held.number]


class _Context(UserStateContext):
    """The cells and timers of one key and window, while a method is called for it.

    Attributes:
        state: All of the key.
        held: What is of the window.
        timestamp_micros: The event time of what the method works on.
        expiry_micros: Where the watermark must be for the state to go; None if it goes now.
        clock_micros: Processing time.
    """

    __slots__ = ("clock_micros", "expiry_micros", "held", "state", "timestamp_micros")

    def __init__(
        self,
        state: StatefulKey,
        held: WindowCells,
        timestamp_micros: int,
        expiry_micros: int | None,
        clock_micros: int,
    ) -> None:
        self.state = state
        self.held = held
        self.timestamp_micros = timestamp_micros
        self.expiry_micros = expiry_micros
        self.clock_micros = clock_micros

    def get_state(self, state_spec: StateSpec, key: Any = None, window: Any = None) -> RuntimeState:
        """A cell."""
        return cell_of(state_spec, self.held.cells)

    def get_timer(
        self,
        timer_spec: TimerSpec,
        key: Any = None,
        window: Any = None,
        timestamp: Any = None,
        pane: Any = None,
    ) -> BaseTimer:
        """A timer."""
        return _Timer(timer_spec, self)

    def commit(self) -> None:
        """Does nothing: all is stored where it is written."""


class _Timer(BaseTimer):
    """A timer as a method sees it."""

    __slots__ = ("_context", "_is_event_time", "_spec")

    def __init__(self, spec: TimerSpec, context: _Context) -> None:
        self._spec = spec
        self._context = context
        self._is_event_time = spec.time_domain == TimeDomain.WATERMARK

    def clear(self, dynamic_timer_tag: str = "") -> None:
        """Unsets the timer."""
        self._context.state.timers.clear(self._context.held.number, self._spec.name, dynamic_timer_tag)

    def set_relative(self, duration: Any, dynamic_timer_tag: str = "") -> None:
        """Sets the timer some time after now; see `BaseTimer`.

        Raises:
            ValueError: The state of the window goes.
        """
        context = self._context
        now_micros = context.timestamp_micros if self._is_event_time else context.clock_micros
        fire_micros = now_micros + Duration.of(duration).micros
        if self._is_event_time and context.expiry_micros is not None:
            fire_micros = min(fire_micros, context.expiry_micros)
        self.set(Timestamp.from_micros(fire_micros), dynamic_timer_tag)

    def set(self, timestamp: Any, dynamic_timer_tag: str = "", output_timestamp: Any = None) -> None:
        """Sets the timer; see `BaseTimer`.

        Raises:
            ValueError: It is due after the state of its window has gone, or gives something after it is due.
        """
        context, is_event_time = self._context, self._is_event_time
        fire_micros = timestamp.micros if type(timestamp) is Timestamp else Timestamp.of(timestamp).micros
        if context.expiry_micros is None:
            raise self._refused(timestamp, "is set while the state of its window goes", "set timers before")
        if is_event_time and fire_micros > context.expiry_micros:
            hint = "set it to the window's end at most, or allow more lateness"
            raise self._refused(timestamp, "is due after the state of its window has gone", hint)
        output_micros = fire_micros if is_event_time else context.timestamp_micros
        if output_timestamp is not None:
            output_micros = Timestamp.of(output_timestamp).micros
            if is_event_time and output_micros > fire_micros:
                raise self._refused(
                    timestamp, "would give something later than it is due", "give an earlier time"
                )
        number, name = context.held.number, self._spec.name
        context.state.timers.set((number, name, dynamic_timer_tag, is_event_time, fire_micros, output_micros))

    def _refused(self, timestamp: Any, what: str, hint: str) -> ValueError:
        text = f"{self._spec!r} at {Timestamp.of(timestamp)!r} {what}"
        return ValueError(three_parts(text, where=f"in the window {self._context.held.window}", hint=hint))
