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
from penstock_spark.stream.columns import Columns, FiredTogether
from penstock_spark.stream.columns import Fired as ColumnFired
from penstock_spark.stream.keys import Fired, KeyTable
from penstock_spark.stream.writer import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part
from penstock_spark.worker.pushing import Consumer, Records

Parts = Iterable[tuple[Part, Message]]
"""What arrives at one moment, in the order of producers, each part with the message that it was in."""


@dataclass(frozen=True, eq=False)
class WatermarkInput:
    """What a watermark depends on.

    Attributes:
        origin: The label of a source, or of a grouping.
        producers: The number of its parts; until all have spoken, nothing is known.
    """

    origin: str
    producers: int


@dataclass(frozen=True, eq=False)
class Grouping:
    """A grouping of the level.

    Attributes:
        label: Its label, which also names its state.
        machine: Its machine.
        watermark_inputs: What its input's watermark depends on.
        readers: The levels that depend on its output's watermark.
        give: Sends on what a stateful DoFn gave; None for groupings proper, which give panes.
    """

    label: str
    machine: GroupingMachine | StatefulMachine | ColumnMachine
    watermark_inputs: tuple[WatermarkInput, ...]
    readers: tuple[int, ...]
    give: Callable[[Iterable[Given]], Records] | None = None


class Operator(Protocol):
    """Something with state and a watermark that a shard hosts.

    Attributes:
        watermark_inputs: What its input's watermark depends on.
        side_watermark_inputs: What those of its side inputs depend on, if it waits for any.
        readers: The levels that depend on its output's watermark.
        times: The times that it knows.
    """

    watermark_inputs: tuple[WatermarkInput, ...]
    side_watermark_inputs: tuple[WatermarkInput, ...]
    readers: tuple[int, ...]
    times: Times

    def arrive(self, parts: Parts) -> Records:
        """Elements arrive at one moment."""
        ...

    def signal(self, name: str) -> Records:
        """A signal arrives."""
        ...

    def advance_watermark(self) -> Records:
        """A watermark has moved: `times` tells where it is."""
        ...

    def advance_clock(self) -> Records:
        """The clock has moved."""
        ...

    def end_micro_batch(self) -> Records:
        """A micro-batch ends that is a round by itself."""
        ...

    def next_clock_alarm(self) -> int | None:
        """A moment before which nothing is due by the clock; None if nothing ever is."""
        ...

    def hold_micros(self) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing holds it."""
        ...

    def input_hold_micros(self) -> int | None:
        """The event time that the input's watermark may not pass, because elements wait; None if nothing holds it."""
        ...

    def save(self) -> None:
        """Writes what has changed."""
        ...


class GroupingOperator:
    """A grouping at work: its keys, and where its panes go.

    Args:
        grouping: The grouping.
        keys: Its keys, or its windows in columns.
        out: Where panes go.
        outbox: Where the moment is known.
        count_dropped: Counts an element that the machine dropped.
        guard: Surrounds the work of the machine, which may be the user's code.
        late: Where what comes too late goes, if anywhere.
        recorder: What writes down what happens, if anything does.
        records_watermark: Whether it also writes the watermark down, which is the same in all shards.
    """

    side_watermark_inputs: tuple[WatermarkInput, ...] = ()

    def __init__(
        self,
        grouping: Grouping,
        keys: KeyTable | Columns,
        out: Consumer,
        outbox: Outbox,
        count_dropped: Callable[[Dropped], None],
        guard: Callable[[], AbstractContextManager[None]],
        late: Consumer | None = None,
        recorder: Recorder | None = None,
        records_watermark: bool = False,
    ) -> None:
        self.watermark_inputs = grouping.watermark_inputs
        self.readers = grouping.readers
        self.times = Times()
        self._recorder = recorder
        self._records_watermark = records_watermark
        self._give_on = grouping.give
        self._keys = keys
        self._out = out
        self._outbox = outbox
        self._count_dropped = count_dropped
        self._guard = guard
        self._late = late

    def arrive(self, parts: Parts) -> Records:
        """Elements arrive at one moment."""
        if self._recorder is not None:
            parts = list(parts)
            for key, element in elements_of(parts):
                self._recorder.arrived(self._now(), key, element)
        keys = self._keys
        return self._give(
            keys.arrive(parts, self.times) if isinstance(keys, Columns) else arrive(keys, parts, self.times)
        )

    def signal(self, name: str) -> Records:
        """A signal arrives, for all keys that there are."""
        return self._give(self._keys.signal(name, self.times))

    def advance_watermark(self) -> Records:
        """What is due by the watermark."""
        if self.times.watermark_micros > MIN_MICROS:
            self._record_watermark(self.times.watermark_micros)
        return self._give(self._keys.advance_watermark(self.times))

    def advance_clock(self) -> Records:
        """What is due by the clock."""
        return self._give(self._keys.advance_clock(self.times))

    def end_micro_batch(self) -> Records:
        """A round ends for all keys that changed in it, and then by its own watermark."""
        self._record_watermark(MAX_MICROS)
        yield from self._give(self._keys.end_micro_batch(self.times))
        yield from self._give(self._keys.advance_watermark(self.times))
        self._record_watermark(MIN_MICROS)

    def next_clock_alarm(self) -> int | None:
        """A moment before which nothing is due by the clock; None if nothing ever is."""
        return self._keys.next_clock_alarm()

    def hold_micros(self) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing holds it."""
        return self._keys.hold_micros()

    def input_hold_micros(self) -> int | None:
        """Nothing waits before it."""
        return None

    def save(self) -> None:
        """Writes the keys that have changed."""
        self._keys.save()

    def _now(self) -> At:
        logical_time = self._outbox.now
        return At(logical_time.clock_micros, logical_time.step)

    def _record_watermark(self, micros: int) -> None:
        if self._recorder is not None and self._records_watermark:
            self._recorder.watermark(self._now(), micros)

    def _give(self, fired: Iterable[Fired | ColumnFired]) -> Records:
        """Sends the panes of machines on, and what they dropped."""
        panes, dropped = _Rows(), _Rows()
        given: list[Given] = []
        with self._guard():
            for each in fired:
                if isinstance(each, FiredTogether):
                    self._add_together(panes, each)
                    continue
                key, emitted = each
                for one in emitted:
                    if isinstance(one, Given):
                        given.append(one)
                        continue
                    if self._recorder is not None:
                        self._recorder.emitted(self._now(), key, one)
                    if isinstance(one, Dropped):
                        self._count_dropped(one)
                        if self._late is not None:
                            element = one.element
                            pair, pane = (key, element.value), unknown_pane(element.kind)
                            dropped.add(pair, element.timestamp_micros, element.windows, pane)
                    else:
                        panes.add((key, one.value), one.timestamp_micros, (one.window,), one.info)
        if self._give_on is not None:
            yield from self._give_on(given)
        if panes.values:
            yield from self._out.push(panes.batch())
        if self._late is not None and dropped.values:
            yield from self._late.push(dropped.batch())

    def _add_together(self, panes: _Rows, fired: FiredTogether) -> None:
        window, _, values, infos = fired.firing
        micros = window.end_micros - 1
        pairs = list(zip(fired.keys, values, strict=True))
        if self._recorder is not None:
            for (key, value), info in zip(pairs, infos, strict=True):
                self._recorder.emitted(self._now(), key, Pane(value, window, micros, info))
        panes.values += pairs
        panes.timestamps += [micros] * len(pairs)
        panes.windows += [(window,)] * len(pairs)
        panes.panes += infos


class _Rows:
    """Elements with all that belongs to them, on the way to being a batch."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.windows: list[tuple[Any, ...]] = []
        self.panes: list[Any] = []

    def add(self, value: Any, timestamp_micros: int, windows: tuple[Any, ...], pane: Any) -> None:
        """One more."""
        self.values.append(value)
        self.timestamps.append(timestamp_micros)
        self.windows.append(windows)
        self.panes.append(pane)

    def batch(self) -> Batch:
        """All of them."""
        return Batch(self.values, self.timestamps, self.windows, self.panes).collapsed()
