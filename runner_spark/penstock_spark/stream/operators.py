"""What a shard hosts: groupings, with the panes that they give on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from penstock.machines.recorder import At, Recorder
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Dropped, Given, Pane, Times
from penstock.machines.tally import Tallier
from penstock.machines.trigger_machine import CLOCK, WATERMARK
from penstock.utils.windowed_value import unknown_pane
from penstock_spark.stream.arrivals import arrive, elements_of
from penstock_spark.stream.columns import Columns
from penstock_spark.stream.columns import Fired as ColumnFired
from penstock_spark.stream.keys import Fired, KeyTable
from penstock_spark.stream.program import WatermarkInput
from penstock_spark.stream.writer import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part
from penstock_spark.worker.pushing import Consumer, Records

Parts = Iterable[tuple[Part, Message]]
"""The arrivals of one logical time, in the order of producers, each part with its message."""


@dataclass(eq=False)
class Operator:
    """Something with state and a watermark that a shard hosts."""

    watermark_inputs: tuple[WatermarkInput, ...]  # What its input's watermark depends on.
    readers: tuple[int, ...]  # The levels that depend on its output's watermark.
    outbox: Outbox
    # What the watermarks of awaited side inputs depend on.
    side_watermark_inputs: tuple[WatermarkInput, ...] = field(default=(), kw_only=True)
    times: Times = field(default=Times(), kw_only=True)

    def arrive(self, parts: Parts) -> Records:
        """Elements arrive at one logical time."""
        raise NotImplementedError

    def signal(self, name: str) -> Records:
        return iter(())

    def advance_watermark(self) -> Records:
        """A watermark has moved: `times` tells where it is."""
        raise NotImplementedError

    def is_behind(self) -> bool:
        """Whether something may wait although `times` says that it is due."""
        raise NotImplementedError

    def advance_clock(self) -> Records:
        return iter(())

    def end_micro_batch(self) -> Records:
        """A micro-batch that is a round ends."""
        raise NotImplementedError

    def next_clock_alarm(self) -> int | None:
        """A time before which nothing is due by the clock; None if nothing ever is."""
        return None

    def hold_micros(self) -> int | None:
        """The event time that the output's watermark may not pass; None if nothing holds it."""
        raise NotImplementedError

    def input_hold_micros(self) -> int | None:
        """The event time that the input's watermark may not pass, because elements wait; None if nothing holds it."""
        return None

    def save(self) -> None:
        """Writes what has changed."""
        raise NotImplementedError


@dataclass(eq=False)
class GroupingOperator(Operator):
    keys: KeyTable | Columns
    out: Consumer  # Takes panes.
    count_dropped: Callable[[Dropped], None]
    guard: Callable[[], AbstractContextManager[None]]  # Surrounds work that may be the user's code.
    late: Consumer | None = None  # Takes elements that come too late.
    recorder: Recorder | None = None
    records_watermark: bool = False  # True in one shard: the watermark is the same in all.
    # Sends a stateful DoFn's results on; None for groupings proper, which give panes.
    give: Callable[[Iterable[Given]], Records] | None = None
    tallier: Tallier | None = None

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

    def is_behind(self) -> bool:
        alarm = self.keys.next_alarm(WATERMARK)
        return alarm is not None and alarm <= self.times.horizon_micros

    def advance_clock(self) -> Records:
        return self._give(self.keys.advance_clock(self.times))

    def end_micro_batch(self) -> Records:
        self._record_watermark(MAX_MICROS)
        yield from self._give(self.keys.end_micro_batch(self.times))
        yield from self._give(self.keys.advance_watermark(self.times))
        self._record_watermark(MIN_MICROS)

    def next_clock_alarm(self) -> int | None:
        return self.keys.next_alarm(CLOCK)

    def hold_micros(self) -> int | None:
        return self.keys.hold_micros()

    def save(self) -> None:
        self.keys.save()

    def _now(self) -> At:
        logical_time = self.outbox.now
        return At(logical_time.clock_micros, logical_time.step)

    def _record_watermark(self, micros: int) -> None:
        if self.recorder is not None and self.records_watermark:
            self.recorder.watermark(self._now(), micros)

    def _give(self, fired: Iterable[Fired | ColumnFired]) -> Records:
        panes, dropped = Batch.growing(), Batch.growing()
        given: list[Given] = []
        with self.guard():
            for each in fired:
                if isinstance(each, Batch):
                    self._record(each)
                    self._count_batch(each)
                    panes.extend(each)
                    continue
                key, emitted = each
                for one in emitted:
                    if isinstance(one, Given):
                        given.append(one)
                        continue
                    if self.recorder is not None:
                        self.recorder.emitted(self._now(), key, one)
                    if self.tallier is not None:
                        self._count(self.tallier, one)
                    if isinstance(one, Dropped):
                        self.count_dropped(one)
                        if self.late is not None:
                            element = one.element
                            pair, pane = (key, element.value), unknown_pane(element.kind)
                            dropped.add(pair, element.timestamp_micros, element.windows, pane)
                    else:
                        panes.add((key, one.value), one.timestamp_micros, (one.window,), one.info)
        if self.give is not None:
            yield from self.give(given)
        if panes.values:
            yield from self.out.push(panes.collapsed())
        if self.late is not None and dropped.values:
            yield from self.late.push(dropped.collapsed())

    def _record(self, fired: Batch) -> None:
        if self.recorder is not None:
            for (key, value), micros, (window,), info in fired.rows():
                self.recorder.emitted(self._now(), key, Pane(value, window, micros, info))

    def _count_batch(self, fired: Batch) -> None:
        if self.tallier is not None:
            windows = fired.windows
            assert isinstance(windows, tuple), "columns fire one window at a time"
            infos = fired.panes if isinstance(fired.panes, list) else [fired.panes] * len(fired.values)
            self.tallier.panes(self.outbox.now.clock_micros, windows[0], infos)

    def _count(self, tallier: Tallier, one: Pane | Dropped) -> None:
        clock_micros = self.outbox.now.clock_micros
        if isinstance(one, Dropped):
            tallier.dropped(clock_micros, one.element.windows[0], one.count)
        else:
            tallier.pane(clock_micros, one.window, one.info)
