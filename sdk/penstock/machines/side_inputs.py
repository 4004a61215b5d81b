"""What waits for side inputs that change, and which of their contents are still asked for: a state machine.

It knows windows, counts and times. The elements themselves, and the contents of side inputs, are in parcels that its
host keeps under the numbers that the machine gives out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.base.bounded_window import BoundedWindow
from penstock.machines.records import Times

Mapping = Callable[[BoundedWindow], BoundedWindow]
"""From a window of the main input to the one of a side input that its elements see."""


@dataclass
class Waiting:
    """What waits in one window of the main input.

    Attributes:
        count: The number of elements.
        earliest_micros: The earliest event time of any.
        parcels: The numbers of the parcels that they are in, in the order of arrival.
    """

    count: int
    earliest_micros: int
    parcels: list[int] = field(default_factory=list)


@dataclass
class SideInputState:
    """What is remembered of a step with side inputs.

    Attributes:
        next_number: The number of the next parcel.
        contents: The parcels of what side inputs hold now, by the place of the side input and its window.
        waiting: What waits, by window, in the order of arrival.
    """

    next_number: int = 1
    contents: dict[tuple[int, BoundedWindow], int] = field(default_factory=dict)
    waiting: dict[BoundedWindow, Waiting] = field(default_factory=dict)


class SideInputMachine:
    """The rules of side inputs whose collections do not end (Beam's, for streaming).

    A side input is ready for a window if its grouping has given a pane for the window that corresponds, or if its
    watermark has passed the end of that: then nothing more is expected, and it may be empty. An element waits until all
    are ready; while it does, the watermark of the output does not pass it. It then sees what they hold at that moment.

    Contents are kept until the main input's watermark has passed the end of their window and the allowed lateness, and
    nothing waits for them. What arrives after that finds nothing to be processed with.

    Args:
        mappings: For each side input, the windows that correspond.
        lateness_micros: The main input's allowed lateness.

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
        """The places of the side inputs that are not ready for a window of the main input."""
        return tuple(
            place
            for place, mapping in enumerate(self._mappings)
            if times.side_micros[place] < (own := mapping(window)).end_micros
            and (place, own) not in state.contents
        )

    def is_gone(self, window: BoundedWindow, times: Times) -> bool:
        """Whether a window's side inputs are no longer kept."""
        return any(self._is_over(mapping(window), times) for mapping in self._mappings)

    def wait(self, state: SideInputState, window: BoundedWindow, count: int, earliest_micros: int) -> None:
        """Some elements of a window have to wait."""
        known = state.waiting.setdefault(window, Waiting(0, earliest_micros))
        known.count += count
        known.earliest_micros = min(known.earliest_micros, earliest_micros)

    def put_away(self, state: SideInputState, window: BoundedWindow) -> int:
        """The number of a parcel for elements that wait."""
        number = self._number(state)
        state.waiting[window].parcels.append(number)
        return number

    def replace(
        self, state: SideInputState, place: int, window: BoundedWindow, times: Times
    ) -> tuple[int | None, int | None]:
        """A side input has new contents for a window.

        Returns:
            The number of the parcel for them, or None if nobody will ask; and that of the old one, if there is any.
        """
        old = state.contents.pop((place, window), None)
        if self._is_over(window, times) and (place, window) not in self._asked(state):
            return None, old
        number = state.contents[place, window] = self._number(state)
        return number, old

    def released(
        self, state: SideInputState, times: Times, is_end: bool = False
    ) -> list[tuple[BoundedWindow, Waiting]]:
        """What need not wait any more, by window and in their order; it is then the host's.

        Args:
            state: The state.
            times: The watermarks.
            is_end: Whether nothing waits any longer than now.
        """
        windows = [window for window in state.waiting if is_end or not self.missing(state, window, times)]
        return [(window, state.waiting.pop(window)) for window in sorted(windows)]

    def forget(self, state: SideInputState, times: Times) -> list[int]:
        """The parcels of contents that nobody will ask for any more; they are then not in the state."""
        over = [key for key in state.contents if self._is_over(key[1], times)]
        asked = self._asked(state) if over else set()
        return [state.contents.pop(key) for key in over if key not in asked]

    def hold_micros(self, state: SideInputState) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing waits."""
        return min((waiting.earliest_micros for waiting in state.waiting.values()), default=None)

    def waits(self, state: SideInputState, times: Times) -> dict[int, int]:
        """How many elements wait for each side input, by its place."""
        found: dict[int, int] = {}
        for window, waiting in state.waiting.items():
            for place in self.missing(state, window, times):
                found[place] = found.get(place, 0) + waiting.count
        return found

    def _asked(self, state: SideInputState) -> set[tuple[int, BoundedWindow]]:
        """The contents that what waits will see."""
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
