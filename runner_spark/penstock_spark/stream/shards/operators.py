"""The operators that a shard runs: groupings, with the panes that they emit on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from penstock.coders.deterministic import decode_key
from penstock.machines.pane_counts import PaneCounter
from penstock.machines.recorder import EventPosition, Recorder
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Dropped, Emitted, MethodOutput, Pane, Times
from penstock.machines.trigger_machine import CLOCK, WATERMARK
from penstock.utils.windowed_value import unknown_pane
from penstock_spark.stream.shards.keys import Fired, KeyTable, elements_of
from penstock_spark.stream.shards.window_table import Fired as FiredWindow
from penstock_spark.stream.shards.window_table import WindowTable
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.batch_sizer import SizedConsumer
from penstock_spark.worker.messages import Parts
from penstock_spark.worker.pushing import Records
from penstock_spark.worker.sizes import estimated_bytes

_FIRST_LOOK = 8
_MOST_PANES = 8_192
_ENOUGH_BYTES = 4 << 20
"""About the largest size of a batch that is sent on; it is up to four times as large if its first values were small."""


@dataclass(eq=False)
class Operator:
    """Something with state and a watermark that a shard hosts."""

    watermark_inputs: tuple[str, ...]  # The origins that its input's watermark depends on.
    readers: tuple[int, ...]  # The levels that depend on its output's watermark.
    outbox: Outbox
    # The origins of awaited side inputs.
    side_watermark_inputs: tuple[str, ...] = field(default=(), kw_only=True)
    times: Times = field(default=Times(), kw_only=True)

    def arrive(self, parts: Parts) -> Records:
        """Elements arrive at one logical time."""
        raise NotImplementedError

    def send(self, out: SizedConsumer, batch: Batch) -> Records:
        """Sends a batch on, and hands up what the outbox holds whenever that is much."""
        for part in out.parts(batch):
            yield from out.consumer.push(part)
            yield from self.hand_up()

    def hand_up(self) -> Records:
        """Hands up what the outbox holds if that is much."""
        if self.outbox.is_full:
            yield self.outbox.take()

    def signal(self, name: str) -> Records:
        return iter(())

    def advance_watermark(self) -> Records:
        """A watermark has moved: `times` has its place."""
        raise NotImplementedError

    def is_behind(self) -> bool:
        """True if something may wait although `times` says that it is due."""
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
        """The event time that the output's watermark must not pass; None if nothing holds it."""
        raise NotImplementedError

    def input_hold_micros(self) -> int | None:
        """The event time that the input's watermark must not pass, because elements wait; None if nothing holds it."""
        return None

    def save(self) -> None:
        """Writes what has changed."""
        raise NotImplementedError


class _Made:
    """The results of machines, on their way out."""

    __slots__ = ("dropped", "given", "panes")

    def __init__(self) -> None:
        self.panes, self.dropped = Batch.growing(), Batch.growing()
        self.given: list[MethodOutput] = []  # Of a DoFn with state.

    def __len__(self) -> int:
        return len(self.panes.values) + len(self.dropped.values) + len(self.given)

    def estimated_bytes(self) -> int:
        batches = self.panes.estimated_bytes() + self.dropped.estimated_bytes()
        return batches + estimated_bytes([one.results for one in self.given])


@dataclass(eq=False)
class GroupingOperator(Operator):
    keys: KeyTable | WindowTable
    out: SizedConsumer  # Takes panes.
    count_dropped: Callable[[Dropped], None]
    guard: Callable[[], AbstractContextManager[None]]  # Surrounds work that may be the user's code.
    late: SizedConsumer | None = None  # Takes elements that come too late.
    recorder: Recorder | None = None
    records_watermark: bool = False  # True in one shard: the watermark is the same in all.
    # Sends a stateful DoFn's results on; None for groupings proper, which give panes.
    give: Callable[[Iterable[MethodOutput]], Records] | None = None
    tallier: PaneCounter | None = None

    def arrive(self, parts: Parts) -> Records:
        if self.recorder is not None:
            parts = list(parts)
            self._record_arrivals(self.recorder, parts)
        return self._give(self.keys.arrive(parts, self.times))

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

    def _now(self) -> EventPosition:
        logical_time = self.outbox.now
        return EventPosition(logical_time.clock_micros, logical_time.step)

    def _record_arrivals(self, recorder: Recorder, parts: Parts) -> None:
        for part, message in parts:
            for name, element in zip(part.names, elements_of(part.batch), strict=True):
                key = message.pickled_keys[name] if name in message.pickled_keys else decode_key(name)
                recorder.arrived(self._now(), key, element)

    def _record_watermark(self, micros: int) -> None:
        if self.recorder is not None and self.records_watermark:
            self.recorder.watermark(self._now(), micros)

    def _give(self, fired: Iterable[Fired | FiredWindow]) -> Records:
        """Sends on what machines have made, some at a time: a window may end for millions of keys at once."""
        rest = iter(fired)
        is_over = False
        while not is_over:
            made = _Made()
            with self.guard():
                is_over = self._gather(rest, made)
            if made.given and self.give is not None:
                yield from self.give(made.given)
                yield from self.hand_up()
            if made.panes.values:
                yield from self.send(self.out, made.panes.collapse())
            if self.late is not None and made.dropped.values:
                yield from self.send(self.late, made.dropped.collapse())

    def _gather(self, fired: Iterator[Fired | FiredWindow], made: _Made) -> bool:
        """Takes what has fired until it is enough for a batch; returns whether that was all."""
        enough = _FIRST_LOOK
        for each in fired:
            if isinstance(each, Batch):
                self._record(each)
                self._count_batch(each)
                made.panes.extend(each)
            else:
                self._take(*each, made)
            while len(made) >= enough:
                if enough >= _MOST_PANES or made.estimated_bytes() >= _ENOUGH_BYTES:
                    return False
                enough *= 4
        return True

    def _take(self, key: object, emitted: Iterable[Emitted | MethodOutput], made: _Made) -> None:
        for one in emitted:
            if isinstance(one, MethodOutput):
                made.given.append(one)
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
                    made.dropped.add(pair, element.timestamp_micros, element.windows, pane)
            else:
                made.panes.add((key, one.value), one.timestamp_micros, (one.window,), one.info)

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

    def _count(self, tallier: PaneCounter, one: Pane | Dropped) -> None:
        clock_micros = self.outbox.now.clock_micros
        if isinstance(one, Dropped):
            tallier.dropped(clock_micros, one.element.windows[0], one.count)
        else:
            tallier.pane(clock_micros, one.window, one.info)
