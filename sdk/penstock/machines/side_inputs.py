"""A state machine for unbounded side inputs: which elements wait for them, and which contents are still needed.

It knows windows, counts and times. Its host stores the elements and the contents of side inputs under the numbers
that the machine assigns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.records import Times

Mapping = Callable[[BoundedWindow], BoundedWindow]
"""Maps a window of the main input to the window of a side input that its elements see."""


@dataclass
class WaitingElements:
    """The elements that wait in one window of the main input."""

    count: int
    earliest_micros: int
    parcels: list[int] = field(default_factory=list)  # The parcels with the elements, in order of arrival.


@dataclass
class SideInputState:
    """The state of a step with side inputs."""

    next_number: int = 1
    # The numbers of the present contents, by the place of the side input and its window.
    contents: dict[tuple[int, BoundedWindow], int] = field(default_factory=dict)
    waiting: dict[BoundedWindow, WaitingElements] = field(default_factory=dict)  # In order of arrival.


class SideInputMachine:
    """The rules of unbounded side inputs (Beam's, for streaming).

    A side input is ready for a window if its grouping has given a pane for the corresponding window, or if its
    watermark has passed the end of that window: then nothing more is expected, and it may be empty. An element waits
    until all side inputs are ready, and meanwhile holds the output watermark. It then sees what they contain at that
    time.

    The machine keeps contents until the main input's watermark has passed the end of their window and the allowed
    lateness, and nothing waits for them. An element that arrives later has nothing to be processed with.

    >>> from penstock.transforms.window import GlobalWindow, IntervalWindow
    >>> machine, state = SideInputMachine([lambda window: window], 0), SideInputState()
    >>> minute, early = IntervalWindow(0, 60), Times(side_micros=(30_000_000,))
    >>> machine.missing(state, minute, early)
    (0,)
    >>> machine.wait(state, minute, 1, 5_000_000)
    >>> machine.released(state, early), machine.hold_micros(state)
    ([], 5000000)
    >>> [window for window, _ in machine.released(state, Times(side_micros=(60_000_000,)))]
    [[0.0, 60.0)]
    """

    def __init__(self, mappings: Sequence[Mapping], lateness_micros: int) -> None:
        self._mappings = mappings
        self._lateness_micros = lateness_micros

    def missing(self, state: SideInputState, window: BoundedWindow, times: Times) -> tuple[int, ...]:
        """Returns the places of the side inputs that are not ready for a window of the main input."""
        return tuple(
            place
            for place, mapping in enumerate(self._mappings)
            if times.side_micros[place] < (own := mapping(window)).end_micros
            and (place, own) not in state.contents
        )

    def is_gone(self, window: BoundedWindow, times: Times) -> bool:
        """True if the contents of a window's side inputs have been dropped."""
        return any(self._is_over(mapping(window), times) for mapping in self._mappings)

    def wait(self, state: SideInputState, window: BoundedWindow, count: int, earliest_micros: int) -> None:
        """Lets elements of a window wait."""
        known = state.waiting.setdefault(window, WaitingElements(0, earliest_micros))
        known.count += count
        known.earliest_micros = min(known.earliest_micros, earliest_micros)

    def put_away(self, state: SideInputState, window: BoundedWindow) -> int:
        """Returns the number under which to store elements that wait."""
        number = self._number(state)
        state.waiting[window].parcels.append(number)
        return number

    def replace(
        self, state: SideInputState, place: int, window: BoundedWindow, times: Times
    ) -> tuple[int | None, int | None]:
        """Takes new contents of a side input: returns their number, None if not needed, and the old number, if any."""
        old = state.contents.pop((place, window), None)
        if self._is_over(window, times) and (place, window) not in self._asked(state):
            return None, old
        number = state.contents[place, window] = self._number(state)
        return number, old

    def released(
        self, state: SideInputState, times: Times, is_end: bool = False
    ) -> list[tuple[BoundedWindow, WaitingElements]]:
        """Returns the elements that need not wait any more, by window and in order; with `is_end`, all of them."""
        windows = [window for window in state.waiting if is_end or not self.missing(state, window, times)]
        return [(window, state.waiting.pop(window)) for window in sorted(windows)]

    def forget(self, state: SideInputState, times: Times) -> list[int]:
        """Removes contents that are no longer needed from the state, and returns their numbers."""
        over = [key for key in state.contents if self._is_over(key[1], times)]
        asked = self._asked(state) if over else set()
        return [state.contents.pop(key) for key in over if key not in asked]

    def hold_micros(self, state: SideInputState) -> int | None:
        """Returns the event time that the output watermark must not pass; None if nothing waits."""
        return min((waiting.earliest_micros for waiting in state.waiting.values()), default=None)

    def waits(self, state: SideInputState, times: Times) -> dict[int, int]:
        """Returns the number of elements that wait for each side input, by its place."""
        found: dict[int, int] = {}
        for window, waiting in state.waiting.items():
            for place in self.missing(state, window, times):
                found[place] = found.get(place, 0) + waiting.count
        return found

    def _asked(self, state: SideInputState) -> set[tuple[int, BoundedWindow]]:
        """Returns the contents that waiting elements will see."""
        return {
            (place, mapping(window))
            for window in state.waiting
            for place, mapping in enumerate(self._mappings)
        }

    def _is_over(self, window: BoundedWindow, times: Times) -> bool:
        return window.end_micros + self._lateness_micros <= times.horizon_micros

    def _number(self, state: SideInputState) -> int:
        number, state.next_number = state.next_number, state.next_number + 1
        return number
