"""The reduce side of a grouping's machine: each key's elements in order of event time, then the end of all input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MAX_MICROS, Dropped, DropReason, Element, Emitted, Times
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.utils.windowed_value import PANE_INFO_UNKNOWN, PaneInfo, ValueKind
from penstock_spark.operators.batch import Batch, Windows, loads
from penstock_spark.operators.failure import guarded, step_failed
from penstock_spark.operators.keys import restore
from penstock_spark.operators.program import MachineRoot
from penstock_spark.operators.pushing import Consumer, Records

BUFFER_BYTES = 4 << 20
_MOST_PANES = 1_000
_MOST_WINDOWS = 10_000

# Until all input is read, the watermark is at its minimum. The clock stands still.
_BEFORE_THE_END = Times()
_AT_THE_END = Times(watermark_micros=MAX_MICROS)

_KINDS = tuple(ValueKind)
DROPPED = {
    DropReason.FINISHED: ("penstock", "elements_dropped_after_last_pane"),
    DropReason.EXPIRED: ("penstock", "elements_dropped_as_late"),
}
"""The counter of each reason for which a machine drops an element."""

Rows = Iterator[tuple[tuple[Any, ...], Iterator[tuple[int, bytes]]]]


def late_pane(dropped: Dropped) -> PaneInfo:
    """The pane of an element that a machine has dropped, where it goes on as late data."""
    return replace(PANE_INFO_UNKNOWN, kind=dropped.element.kind)


class MachineReader:
    """Turns the elements of each key into batches of panes.

    Args:
        root: What is read.
        out: Where panes go.
        metrics: The step's metrics.
        late: Where elements go that a window no longer takes; None if they are only counted.
    """

    def __init__(
        self, root: MachineRoot, out: Consumer, metrics: MetricsContainer, late: Consumer | None = None
    ) -> None:
        self.root = root
        self.out = out
        self.late = late
        self.metrics = metrics
        self.machine = GroupingMachine(root.windowing, root.combine, root.input_retracts)
        self._guard = partial(guarded, metrics, root.where)
        self._windows: dict[bytes, Windows] = {}
        self._elements = 0
        self._read_bytes = 0
        self._clear()

    def _clear(self) -> None:
        self._values: list[Any] = []
        self._timestamps: list[int] = []
        self._in_windows: list[Windows] = []
        self._panes: list[Any] = []
        self._held = 0

    def setup(self) -> None:
        """Prepares the CombineFn."""
        if self.root.combine is not None:
            self._guard(self.root.combine.setup)

    def teardown(self) -> None:
        """Lets the CombineFn go."""
        if self.root.combine is not None:
            self._guard(self.root.combine.teardown)

    def read_key(self, encoded_key: bytes, rows: Rows) -> Records:
        """Plays all elements of a key."""
        machine, state = self.machine, self.machine.new_key()
        key = None
        for (_, _, timestamp_micros, _, windows), elements in rows:
            in_windows = self._windows_of(windows)
            for kind, payload in elements:
                key, value = restore(encoded_key, loads(payload))
                self._elements += 1
                self._read_bytes += len(payload)
                element = Element(value, timestamp_micros, in_windows, _KINDS[kind])
                set_current(self.metrics)
                try:
                    emitted = machine.element(state, element, _BEFORE_THE_END)
                except Exception as error:
                    step_failed(error, self.root.where, ((key, value),))
                if emitted:
                    yield from self._take(key, emitted)
        yield from self._take(key, self._guard(machine.advance_watermark, state, _AT_THE_END))

    def _windows_of(self, encoded: bytes) -> Windows:
        found = self._windows.get(encoded)
        if found is None:
            if len(self._windows) >= _MOST_WINDOWS:
                self._windows.clear()
            found = self._windows[encoded] = loads(encoded)
        return found

    def _take(self, key: Any, emitted: list[Emitted]) -> Records:
        """Holds panes, and pushes them when there are enough; counts what was dropped."""
        is_list = self.root.combine is None
        for one in emitted:
            if isinstance(one, Dropped):
                self.metrics.inc(DROPPED[one.reason])
                if self.late is not None:
                    element = one.element
                    late = [(key, element.value)], element.timestamp_micros, element.windows, late_pane(one)
                    yield from self.late.push(Batch(*late))
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
        """Pushes the panes that are held."""
        if self._values:
            batch = Batch(self._values, self._timestamps, self._in_windows, self._panes)
            self._clear()
            yield from self.out.push(batch.collapsed())
