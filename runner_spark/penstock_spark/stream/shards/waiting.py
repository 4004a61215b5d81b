"""A step that waits for side inputs, in one shard: the waiting elements, and the contents of side inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow
from penstock.machines.side_inputs import SideInputMachine, SideInputState, WaitingElements
from penstock.utils.windowed_value import ValueKind
from penstock_spark.process.written_formats import WAITING_PAGE
from penstock_spark.stream.shards.operators import Operator
from penstock_spark.stream.state.pages import Store
from penstock_spark.stream.state.stored import content_of, load_pickle
from penstock_spark.worker.batch import Batch, dumps
from penstock_spark.worker.batch_sizer import SizedConsumer
from penstock_spark.worker.messages import Parts, Place
from penstock_spark.worker.pushing import Records
from penstock_spark.worker.views import ChangingContents, View

STATE = 0
"""The number under which the machine's state is stored."""

_AT_ONCE = 16
_MOST_CACHED = 64
_cached: dict[bytes, list[Any]] = {}
"""Contents of side inputs by the digests of their pages: one process hosts a shard in many micro-batches."""

_Placed = tuple[Place, Batch]
"""Elements that wait, with their logical time and their place in the source."""


@dataclass(eq=False)
class WaitingOperator(Operator):
    """The elements of a step that wait in one shard.

    At the end of a micro-batch, each window's waiting elements are stored together under one number. So are the
    contents of a side input for each window, which every pane replaces.
    """

    views: Sequence[View]
    lateness_micros: int
    out: SizedConsumer  # Takes elements whose side inputs are ready.
    count_late: Callable[[int], None]
    store: Store

    def __post_init__(self) -> None:
        self._machine = SideInputMachine([view.side_window for view in self.views], self.lateness_micros)
        self._changes: dict[int, bytes | None] = {}
        self._arrived: dict[BoundedWindow, list[_Placed]] = {}
        [stored] = self.store.get_many([STATE])
        self._stored = stored
        self._state: SideInputState
        self._digests: dict[int, bytes]
        self._state, self._digests = load_waiting_page(stored) if stored else (SideInputState(), {})
        for place, view in enumerate(self.views):
            if isinstance(view.contents, ChangingContents):
                view.contents.of = self._finder(place)

    def arrive(self, parts: Parts) -> Records:
        """Processes elements whose side inputs are ready, and stores the others."""
        machine, state, times = self._machine, self._state, self.times
        for part, _ in parts:
            windows = _windows_of(part.batch)
            place = (part.logical_time, *part.place) if part.place else ()
            gone = {window for window in windows if machine.is_gone(window, times)}
            waits = {window for window in windows if machine.missing(state, window, times)} - gone
            if not (gone or waits):
                yield from self._push(place, part.batch)
                continue
            for window, batch in _by_window(part.batch):
                if window in gone:
                    self.count_late(len(batch.values))
                elif window in waits:
                    # A late element cannot move the watermark back.
                    held_micros = max(_earliest(batch), times.horizon_micros)
                    machine.wait(state, window, len(batch.values), held_micros)
                    self._arrived.setdefault(window, []).append((place, batch))
                else:
                    yield from self._push(place, batch)

    def see(self, place: int, parts: Parts) -> Records:
        """Takes new panes of a side input: each replaces the content of its window."""
        latest: dict[BoundedWindow, list[Any]] = {}
        for part, _ in parts:
            for (_, values), _, (window,), pane in part.batch.rows():
                if not pane.kind.is_retraction:
                    latest[window] = values
                elif pane.kind is ValueKind.DELETE:
                    latest[window] = []
        for window, values in latest.items():
            number, old = self._machine.replace(self._state, place, window, self.times)
            if old is not None:
                self._forget(old)
            if number is not None:
                self._changes[number] = waiting_page = dump_waiting_page((place, window, values))
                self._digests[number] = blake2b(waiting_page, digest_size=16).digest()
        self.views[place].forget()
        yield from self._release()

    def advance_watermark(self) -> Records:
        return self._settle()

    def is_behind(self) -> bool:
        machine, state = self._machine, self._state
        return any(not machine.missing(state, window, self.times) for window in state.waiting)

    def _settle(self) -> Records:
        """Processes elements whose side inputs are ready now, and deletes what no element will see."""
        yield from self._release()
        for number in self._machine.forget(self._state, self.times):
            self._forget(number)

    def end_micro_batch(self) -> Records:
        """Processes everything that waits: the round will see no more of side inputs."""
        yield from self._release(is_end=True)
        yield from self._settle()

    def hold_micros(self) -> int | None:
        return self._machine.hold_micros(self._state)

    def waits(self) -> dict[str, int]:
        waits = self._machine.waits(self._state, self.times)
        return {self.side_watermark_inputs[place]: count for place, count in waits.items()}

    def save(self) -> None:
        for window, batches in self._arrived.items():
            self._changes[self._machine.put_away(self._state, window)] = dump_waiting_page(
                (None, window, batches)
            )
        self._arrived = {}
        state = dump_waiting_page((self._state, self._digests))
        if state != self._stored:
            self._changes[STATE] = state
        self.store.put_many(self._changes.items())
        self._changes = {}

    def _release(self, is_end: bool = False) -> Records:
        for window, waiting in self._machine.released(self._state, self.times, is_end):
            for place, batch in self._taken(window, waiting):
                yield from self._push(place, batch)

    def _push(self, place: Place, batch: Batch) -> Records:
        self.outbox.place = place
        yield from self._process(batch)
        self.outbox.place = ()

    def _process(self, batch: Batch) -> Records:
        return self.send(self.out, batch)

    def _taken(self, window: BoundedWindow, waiting: WaitingElements) -> Iterator[_Placed]:
        """Yields the elements that waited in a window, in the order of arrival, reading a few pages at a time."""
        arrived = self._arrived.pop(window, [])
        for first in range(0, len(waiting.parcels), _AT_ONCE):
            for waiting_page in self.store.get_many(waiting.parcels[first : first + _AT_ONCE]):
                assert waiting_page is not None
                yield from load_waiting_page(waiting_page)[2]
        for number in waiting.parcels:
            self._forget(number)
        yield from arrived

    def _finder(self, place: int) -> Callable[[BoundedWindow], list[Any]]:
        def find(window: BoundedWindow) -> list[Any]:
            number = self._state.contents.get((place, window))
            return [] if number is None else self._contents(number)

        return find

    def _contents(self, number: int) -> list[Any]:
        digest = self._digests[number]
        found = _cached.get(digest)
        if found is None:
            waiting_page = self._changes.get(number)
            if waiting_page is None:
                [waiting_page] = self.store.get_many([number])
            assert waiting_page is not None
            if len(_cached) >= _MOST_CACHED:
                _cached.clear()
            found = _cached[digest] = load_waiting_page(waiting_page)[2]
        return found

    def _forget(self, number: int) -> None:
        """Deletes the content with a number; new content of this micro-batch was never stored."""
        self._digests.pop(number, None)
        if number in self._changes:
            del self._changes[number]
        else:
            self._changes[number] = None


class WaitingPage(NamedTuple):
    place: int | None  # The index of the side input whose elements it has; None if its elements wait.
    window: BoundedWindow
    values: list[Any]
    earliest_micros: int | None  # The earliest event time of waiting elements; None for a side input.


def show_waiting_page(waiting_page: bytes) -> WaitingPage | None:
    """Decodes stored content to show it; None for the machine's own state. ValueError if it has another format."""
    first, *rest = load_waiting_page(waiting_page)
    if isinstance(first, SideInputState):
        return None
    window, held = rest
    if first is not None:
        return WaitingPage(first, window, held, None)
    values = [value for _, batch in held for value in batch.values]
    return WaitingPage(None, window, values, min(_earliest(batch) for _, batch in held))


def load_waiting_state(waiting_page: bytes) -> SideInputState:
    """Returns the machine's state from its stored form."""
    state, _ = load_waiting_page(waiting_page)
    return state  # type: ignore[no-any-return]


def _windows_of(batch: Batch) -> set[BoundedWindow]:
    if not isinstance(batch.windows, list):
        return set(batch.windows)
    return {window for windows in batch.windows for window in windows}


def _by_window(batch: Batch) -> Iterator[tuple[BoundedWindow, Batch]]:
    """Yields the elements of a batch by window; an element of several windows is in each."""
    batch = batch.explode()
    if not isinstance(batch.windows, list):
        yield batch.windows[0], batch
        return
    places: dict[BoundedWindow, list[int]] = {}
    for place, (window,) in enumerate(batch.windows):
        places.setdefault(window, []).append(place)
    for window, own in places.items():
        yield window, batch.taken(own).collapse()


def _earliest(batch: Batch) -> int:
    return min(batch.timestamps) if isinstance(batch.timestamps, list) else batch.timestamps


def dump_waiting_page(content: tuple[Any, ...]) -> bytes:
    return dumps((WAITING_PAGE.number, dumps(content)))


def load_waiting_page(waiting_page: bytes) -> Any:
    """Decodes stored content; ValueError if it has another format."""
    (content,) = content_of(waiting_page, WAITING_PAGE)
    return load_pickle(content, WAITING_PAGE.name)
