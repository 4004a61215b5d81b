"""The reduce side of a grouping's machine: each key's elements in order of event time, then the end of all input."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from penstock.coders.deterministic import decode_key
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MAX_MICROS, Dropped, DropReason, Element, Emitted, Times
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils.windowed_value import ValueKind, unknown_pane
from penstock_spark.reports.failure import call_guarded, fail_step
from penstock_spark.worker.batch import Batch, Windows, loads
from penstock_spark.worker.keys import key_is_self_contained
from penstock_spark.worker.program import MachineRoot
from penstock_spark.worker.pushing import Combining, Consumer, Records

BUFFER_BYTES = 4 << 20
_MOST_PANES = 1_000
_MOST_WINDOWS = 10_000

# Until all input is read, the watermark is at its minimum. The clock does not advance.
_BEFORE_THE_END = Times()
_AT_THE_END = Times(watermark_micros=MAX_MICROS)

_KINDS = tuple(ValueKind)
DROPPED = {
    DropReason.FINISHED: ("penstock", "elements_dropped_after_last_pane"),
    DropReason.EXPIRED: ("penstock", "elements_dropped_as_late"),
}
"""The counter of each reason for which a machine drops an element."""

Rows = Iterator[tuple[tuple[Any, ...], Iterator[tuple[int, bytes]]]]


class KeyElements:
    """Decodes the elements of keys for their machines; decodes windows that many of them share once."""

    def __init__(self) -> None:
        self._windows: dict[bytes, Windows] = {}

    def read(self, encoded_key: bytes, rows: Rows) -> Iterator[tuple[Any, Element, int]]:
        """Yields the elements of a key in order, each with the key and its size in bytes."""
        is_carried = not key_is_self_contained(encoded_key)
        key = None if is_carried else decode_key(encoded_key)
        for (_, _, timestamp_micros, _, encoded_windows), elements in rows:
            windows = self._windows_of(encoded_windows)
            for kind, payload in elements:
                value = loads(payload)
                if is_carried:
                    key, value = value
                yield key, Element(value, timestamp_micros, windows, _KINDS[kind]), len(payload)

    def _windows_of(self, encoded: bytes) -> Windows:
        found = self._windows.get(encoded)
        if found is None:
            if len(self._windows) >= _MOST_WINDOWS:
                self._windows.clear()
            found = self._windows[encoded] = loads(encoded)
        return found


class MachineReader(Combining):
    """Turns the elements of each key into batches of panes.

    `late` takes elements that a window no longer takes; None if they are only counted.
    """

    def __init__(
        self, root: MachineRoot, out: Consumer, metrics: MetricsContainer, late: Consumer | None = None
    ) -> None:
        self.root = root
        self.combine = root.combine
        self.out = out
        self.late = late
        self.metrics = metrics
        self.machine = GroupingMachine(root.windowing, root.combine, root.input_retracts)
        self._guard = partial(call_guarded, metrics, root.where)
        self._key_elements = KeyElements()
        self._elements = 0
        self._read_bytes = 0
        self._clear()

    def _clear(self) -> None:
        self._values: list[Any] = []
        self._timestamps: list[int] = []
        self._in_windows: list[Windows] = []
        self._panes: list[Any] = []
        self._held = 0

    def read_key(self, encoded_key: bytes, rows: Rows) -> Records:
        machine, state = self.machine, self.machine.new_key()
        key = None
        for key, element, size_bytes in self._key_elements.read(encoded_key, rows):
            self._elements += 1
            self._read_bytes += size_bytes
            set_current(self.metrics)
            try:
                emitted = machine.element(state, element, _BEFORE_THE_END)
            except Exception as error:
                fail_step(error, self.root.where, ((key, element.value),))
            if emitted:
                yield from self._take(key, emitted)
        yield from self._take(key, self._guard(machine.advance_watermark, state, _AT_THE_END))

    def _take(self, key: object, emitted: list[Emitted]) -> Records:
        is_list = self.combine is None
        for one in emitted:
            if isinstance(one, Dropped):
                self.metrics.inc(DROPPED[one.reason])
                if self.late is not None:
                    element = one.element
                    pair, pane = (key, element.value), unknown_pane(element.kind)
                    yield from self.late.push(Batch([pair], element.timestamp_micros, element.windows, pane))
                continue
            self._values.append((key, one.value))
            self._timestamps.append(one.timestamp_micros)
            self._in_windows.append((one.window,))
            self._panes.append(one.info)
            self._held += len(one.value) if is_list else 1
            # Values are taken to be as large as those that have been read are on average.
            is_large = self._held * self._read_bytes >= BUFFER_BYTES * self._elements
            if is_large or len(self._values) >= _MOST_PANES:
                yield from self.flush()

    def flush(self) -> Records:
        if self._values:
            batch = Batch(self._values, self._timestamps, self._in_windows, self._panes)
            self._clear()
            yield from self.out.push(batch.collapse())
