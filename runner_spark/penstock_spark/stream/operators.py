"""What a shard hosts: groupings, with the panes that they give on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.machines.grouping import GroupingMachine
from penstock.machines.recorder import At, Recorder
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Dropped, Given, Pane, Times
from penstock.machines.stateful import StatefulMachine
from penstock.machines.window_columns import ColumnMachine
from penstock.utils.windowed_value import unknown_pane
from penstock_spark.stream.arrivals import arrive, elements_of
from penstock_spark.stream.columns import Columns
from penstock_spark.stream.columns import Fired as ColumnFired
from penstock_spark.stream.keys import Fired, KeyTable
from penstock_spark.stream.writer import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part
from penstock_spark.worker.pushing import Consumer, Records

Parts = Iterable[tuple[Part, Message]]
"""The arrivals of one logical time, in the order of producers, each part with its message."""


@dataclass(frozen=True, eq=False)
class WatermarkInput:
    """A watermark that another one depends on."""

    origin: str  # The label of a source, or of a grouping.
    producers: int  # The number of its parts; until all have reported, it is unknown.


@dataclass(frozen=True, eq=False)
class Grouping:
    """A grouping of the level."""

    label: str  # The label, which also names its state.
    machine: GroupingMachine | StatefulMachine | ColumnMachine
    watermark_inputs: tuple[WatermarkInput, ...]  # What its input's watermark depends on.
    readers: tuple[int, ...]  # The levels that depend on its output's watermark.
    # Sends a stateful DoFn's results on; None for groupings proper, which give panes.
    give: Callable[[Iterable[Given]], Records] | None = None


class Operator(Protocol):
    """Something with state and a watermark that a shard hosts."""

    watermark_inputs: tuple[WatermarkInput, ...]  # What its input's watermark depends on.
    side_watermark_inputs: tuple[WatermarkInput, ...]  # What the watermarks of awaited side inputs depend on.
    readers: tuple[int, ...]  # The levels that depend on its output's watermark.
    times: Times

    def arrive(self, parts: Parts) -> Records:
        """Elements arrive at one logical time."""

    def signal(self, name: str) -> Records:
        """A signal arrives."""

    def advance_watermark(self) -> Records:
        """A watermark has moved: `times` tells where it is."""

    def advance_clock(self) -> Records:
        """The clock has moved."""

    def end_micro_batch(self) -> Records:
        """A micro-batch that is a round ends."""

    def next_clock_alarm(self) -> int | None:
        """A time before which nothing is due by the clock; None if nothing ever is."""

    def hold_micros(self) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing holds it."""

    def input_hold_micros(self) -> int | None:
        """The event time that the input's watermark may not pass, because elements wait; None if nothing holds it."""

    def save(self) -> None:
        """Writes what has changed."""


@dataclass(eq=False)
class GroupingOperator:
    """A grouping at work."""

    grouping: Grouping
    keys: KeyTable | Columns
    out: Consumer  # Takes panes.
    outbox: Outbox
    count_dropped: Callable[[Dropped], None]
    guard: Callable[[], AbstractContextManager[None]]  # Surrounds work that may be the user's code.
    late: Consumer | None = None  # Takes elements that come too late.
    recorder: Recorder | None = None
    records_watermark: bool = False  # True in one shard: the watermark is the same in all.
    side_watermark_inputs: tuple[WatermarkInput, ...] = ()

    def __post_init__(self) -> None:
        self.watermark_inputs = self.grouping.watermark_inputs
        self.readers = self.grouping.readers
        self.times = Times()

    def arrive(self, parts: Parts) -> Records:
        if self.recorder is not None:
            parts = list(parts)
            for key, element in elements_of(parts):
                self.recorder.arrived(self._now(), key, element)
        keys = self.keys
        return self._give(
            keys.arrive(parts, self.times) if isinstance(keys, Columns) else arrive(keys, parts, self.times)
        )

    def signal(self, name: str) -> Records:
        return self._give(self.keys.signal(name, self.times))

    def advance_watermark(self) -> Records:
        if self.times.watermark_micros > MIN_MICROS:
            self._record_watermark(self.times.watermark_micros)
        return self._give(self.keys.advance_watermark(self.times))

    def advance_clock(self) -> Records:
        return self._give(self.keys.advance_clock(self.times))

    def end_micro_batch(self) -> Records:
        self._record_watermark(MAX_MICROS)
        yield from self._give(self.keys.end_micro_batch(self.times))
        yield from self._give(self.keys.advance_watermark(self.times))
        self._record_watermark(MIN_MICROS)

    def next_clock_alarm(self) -> int | None:
        return self.keys.next_clock_alarm()

    def hold_micros(self) -> int | None:
        return self.keys.hold_micros()

    def input_hold_micros(self) -> int | None:
        return None

    def save(self) -> None:
        self.keys.save()

    def _now(self) -> At:
        logical_time = self.outbox.now
        return At(logical_time.clock_micros, logical_time.step)

    def _record_watermark(self, micros: int) -> None:
        if self.recorder is not None and self.records_watermark:
            self.recorder.watermark(self._now(), micros)

    def _give(self, fired: Iterable[Fired | ColumnFired]) -> Records:
        panes, dropped = _Rows(), _Rows()
        given: list[Given] = []
        with self.guard():
            for each in fired:
                if isinstance(each, Batch):
                    self._record(each)
                    panes.add_all(each)
                    continue
                key, emitted = each
                for one in emitted:
                    if isinstance(one, Given):
                        given.append(one)
                        continue
                    if self.recorder is not None:
                        self.recorder.emitted(self._now(), key, one)
                    if isinstance(one, Dropped):
                        self.count_dropped(one)
                        if self.late is not None:
                            element = one.element
                            pair, pane = (key, element.value), unknown_pane(element.kind)
                            dropped.add(pair, element.timestamp_micros, element.windows, pane)
                    else:
                        panes.add((key, one.value), one.timestamp_micros, (one.window,), one.info)
        if self.grouping.give is not None:
            yield from self.grouping.give(given)
        if panes.values:
            yield from self.out.push(panes.batch())
        if self.late is not None and dropped.values:
            yield from self.late.push(dropped.batch())

    def _record(self, fired: Batch) -> None:
        if self.recorder is not None:
            for (key, value), micros, (window,), info in fired.rows():
                self.recorder.emitted(self._now(), key, Pane(value, window, micros, info))


class _Rows:
    """Elements with their metadata, on the way to a batch."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.windows: list[tuple[Any, ...]] = []
        self.panes: list[Any] = []

    def add(self, value: Any, timestamp_micros: int, windows: tuple[Any, ...], pane: Any) -> None:
        self.values.append(value)
        self.timestamps.append(timestamp_micros)
        self.windows.append(windows)
        self.panes.append(pane)

    def add_all(self, batch: Batch) -> None:
        full = batch.expanded()
        self.values += full.values
        self.timestamps += full.timestamps  # type: ignore[arg-type]
        self.windows += full.windows
        self.panes += full.panes

    def batch(self) -> Batch:
        return Batch(self.values, self.timestamps, self.windows, self.panes).collapsed()
