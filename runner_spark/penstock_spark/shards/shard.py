"""One shard of a level in one micro-batch: packets in, and moment by moment through the machines, packets out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from penstock.figures.happenings import At, Recorder
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MAX_MICROS, MIN_MICROS, Dropped, Given, Times
from penstock.machines.stateful import StatefulMachine
from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.operators.batch import Batch
from penstock_spark.operators.machine_read import late_pane
from penstock_spark.operators.pushing import Consumer, Records
from penstock_spark.shards.arrivals import arrive, by_grouping, elements_of
from penstock_spark.shards.header import Header
from penstock_spark.shards.inbox import Inbox
from penstock_spark.shards.keys import Fired, KeyTable
from penstock_spark.shards.packets import Mark, Moment, Packet, Part
from penstock_spark.shards.pages import Pages, Store
from penstock_spark.shards.writer import Outbox
from penstock_spark.source_watermarks import Estimator, Summary


@dataclass(frozen=True, eq=False)
class Feed:
    """What a grouping's watermark depends on.

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
        feeds: What its input's watermark depends on.
        readers: The levels that depend on its output's watermark.
        give: Sends on what a stateful DoFn gave; None for groupings proper, which give panes.
    """

    label: str
    machine: GroupingMachine | StatefulMachine
    feeds: tuple[Feed, ...]
    readers: tuple[int, ...]
    give: Callable[[Iterable[Given]], Records] | None = None


class _Table:
    """A grouping at work: its keys, the times it knows, and where its panes go."""

    def __init__(self, grouping: Grouping, keys: KeyTable, out: Consumer, times: Times) -> None:
        self.grouping = grouping
        self.keys = keys
        self.out = out
        self.times = times


class Shard:
    """A shard at work.

    Args:
        number: Its number.
        groupings: The groupings of its level.
        header: What it remembers.
        store_of: The page store of a grouping's label.
        consumer_of: Where the panes of a grouping's label go.
        outbox: Where its packets go.
        micro_batch: Whether each micro-batch is a round with a watermark of its own.
        count_dropped: Counts an element that the machine of a grouping's label dropped.
        guard: Surrounds the work of the machine of a grouping's label, which may be the user's code.
        estimators: Of the sources whose watermarks are found from what is read, by origin.
        late: Where what comes too late goes, by the grouping's label, if anywhere.
        recorders: What writes down what happens at a grouping, by its label, if anything does.
    """

    def __init__(
        self,
        number: int,
        groupings: Sequence[Grouping],
        header: Header,
        store_of: Callable[[str], Store],
        consumer_of: Callable[[str], Consumer],
        outbox: Outbox,
        micro_batch: bool,
        count_dropped: Callable[[str, Dropped], None],
        guard: Callable[[str], AbstractContextManager[None]] = lambda label: nullcontext(),
        estimators: Mapping[str, Estimator] = {},
        late: Mapping[str, Consumer] = {},
        recorders: Mapping[str, Recorder] = {},
    ) -> None:
        self.number = number
        self.header = header
        self.outbox = outbox
        self.micro_batch = micro_batch
        self.estimators = estimators
        self.late = late
        self.recorders = recorders
        self.count_dropped = count_dropped
        self.guard = guard
        self.tables: dict[str, _Table] = {}
        self.outputs: dict[str, int] = dict.fromkeys((grouping.label for grouping in groupings), MIN_MICROS)
        for grouping in groupings:
            label = grouping.label
            pages = Pages(store_of(label), header.notes.setdefault(label, []), outbox.shards)
            keys = KeyTable(grouping.machine, pages)
            self.tables[label] = _Table(grouping, keys, consumer_of(label), self._first_times(grouping))

    def run(self, inbox: Inbox) -> Records:
        """A micro-batch."""
        for moment in inbox.moments:
            self.header.last = moment
            yield from self._clock_before(moment)
            yield from self._at(moment, inbox)
        if self.micro_batch and inbox.moments:
            for label, table in self.tables.items():
                # The round's own watermark.
                self._record_watermark(label, MAX_MICROS)
                yield from self._give(table, table.keys.end_round(table.times))
                yield from self._give(table, table.keys.advance_watermark(table.times))
                self._record_watermark(label, MIN_MICROS)
            self._send_marks(inbox.moments[-1])

    def watermarks(self) -> dict[str, tuple[int, int]]:
        """Where the watermarks of each grouping's input and output are, in microseconds."""
        return {
            label: (table.times.horizon_micros, self.outputs[label]) for label, table in self.tables.items()
        }

    def save(self) -> None:
        """Writes the keys that have changed; the header is the caller's to keep."""
        for table in self.tables.values():
            table.keys.save()

    def _first_times(self, grouping: Grouping) -> Times:
        return self._with_watermark(grouping, Times(clock_micros=self.header.clock_micros))

    def _with_watermark(self, grouping: Grouping, times: Times) -> Times:
        """The times of a grouping with the minimum of the watermarks that feed it, and those of percentiles."""
        header, feeds = self.header, grouping.feeds
        micros = min(header.watermark_of(feed.origin, feed.producers) for feed in feeds)
        if self.micro_batch:
            return times._replace(expiry_micros=micros)
        # Where a source has no such percentile, its own watermark stands in.
        ahead = {
            percentile: min(
                max(
                    header.watermark_of(feed.origin, feed.producers, percentile),
                    header.watermark_of(feed.origin, feed.producers),
                )
                for feed in feeds
            )
            for percentile in header.percentiles()
        }
        return times._replace(watermark_micros=micros, percentile_micros=ahead)

    def _clock_before(self, moment: Moment) -> Records:
        """What is due by the clock before a moment, each at a moment of its own."""
        while True:
            alarms = [table.keys.next_clock_alarm() for table in self.tables.values()]
            due = min((alarm for alarm in alarms if alarm is not None), default=None)
            if due is None or due >= moment.clock_micros:
                break
            yield from self._ring(Moment(moment.step, max(due, self.header.clock_micros)))
        self._set_clock(moment)

    def _ring(self, moment: Moment) -> Records:
        """What is due by the clock at a moment."""
        self._set_clock(moment)
        for table in self.tables.values():
            yield from self._give(table, table.keys.advance_clock(table.times))
        self._send_marks(moment)

    def _set_clock(self, moment: Moment) -> None:
        self.outbox.now = moment
        self.header.clock_micros = moment.clock_micros
        for table in self.tables.values():
            table.times = table.times._replace(clock_micros=moment.clock_micros)

    def _at(self, moment: Moment, inbox: Inbox) -> Records:
        """Elements, then signals, then watermarks, then the clock."""
        for label, parts in by_grouping(inbox.parts.get(moment, ())).items():
            table = self.tables.get(label)
            # What has waited for this moment may be for a grouping that has been given up since.
            if table is not None:
                self._record_arrivals(label, parts)
                yield from self._give(table, arrive(table.keys, parts, table.times))
        for name in inbox.signals.get(moment, ()):
            for table in self.tables.values():
                yield from self._give(table, table.keys.signal(name, table.times))
        self._estimate(moment, inbox.summaries.get(moment, {}))
        for mark in inbox.marks.get(moment, ()):
            self.header.note(mark.origin, mark.percentile, mark.producer, mark.micros)
        for table in self.tables.values():
            yield from self._advance_watermark(table)
        if moment in inbox.ends:
            for table in self.tables.values():
                yield from self._give(table, table.keys.advance_clock(table.times))
        self._send_marks(moment)

    def _estimate(self, moment: Moment, summaries: dict[str, list[Summary]]) -> None:
        """Moves the watermarks of sources by what their tasks have seen, and by the clock."""
        for origin, estimator in self.estimators.items():
            before = self.header.estimators.get(origin) or estimator.start()
            news = estimator.merge(summaries[origin]) if origin in summaries else None
            reached = estimator.advance(before, news, moment.clock_micros)
            self.header.estimators[origin] = reached.state
            self.header.note(origin, WATERMARK, 0, reached.watermark_micros)
            for percentile, micros in reached.percentile_micros.items():
                self.header.note(origin, percentile, 0, micros)

    def _advance_watermark(self, table: _Table) -> Records:
        times = self._with_watermark(table.grouping, table.times)
        if times == table.times:
            return
        table.times = times
        self._record_watermark(table.grouping.label, times.watermark_micros)
        yield from self._give(table, table.keys.advance_watermark(table.times))

    def _give(self, table: _Table, fired: Iterable[Fired]) -> Records:
        """Sends the panes of machines on, and what they dropped."""
        panes, dropped = _Rows(), _Rows()
        given: list[Given] = []
        label = table.grouping.label
        late, recorder = self.late.get(label), self.recorders.get(label)
        with self.guard(label):
            for key, emitted in fired:
                for one in emitted:
                    if isinstance(one, Given):
                        given.append(one)
                        continue
                    if recorder is not None:
                        recorder.emitted(self._now(), key, one)
                    if isinstance(one, Dropped):
                        self.count_dropped(label, one)
                        if late is not None:
                            element = one.element
                            value, windows = (key, element.value), element.windows
                            dropped.add(value, element.timestamp_micros, windows, late_pane(one))
                    else:
                        panes.add((key, one.value), one.timestamp_micros, (one.window,), one.info)
        if table.grouping.give is not None:
            yield from table.grouping.give(given)
        if panes.values:
            yield from table.out.push(panes.batch())
        if late is not None and dropped.values:
            yield from late.push(dropped.batch())

    def _now(self) -> At:
        moment = self.outbox.now
        return At(moment.clock_micros, moment.step)

    def _record_arrivals(self, label: str, parts: Iterable[tuple[Part, Packet]]) -> None:
        recorder = self.recorders.get(label)
        if recorder is not None:
            for key, element in elements_of(parts):
                recorder.arrived(self._now(), key, element)

    def _record_watermark(self, label: str, micros: int) -> None:
        """What feeds a grouping tells the same to all shards, and so one of them writes it down."""
        recorder = self.recorders.get(label)
        if recorder is not None and self.number == 0 and micros > MIN_MICROS - self.micro_batch:
            recorder.watermark(self._now(), micros)

    def _send_marks(self, moment: Moment) -> None:
        """Tells those that read the level's groupings where their watermarks are by now."""
        for label, table in self.tables.items():
            hold_micros = table.keys.hold_micros()
            micros = table.times.horizon_micros
            if hold_micros is not None:
                micros = min(micros, hold_micros)
            micros = self.outputs[label] = max(micros, self.outputs[label])
            for level in table.grouping.readers:
                if micros > self.header.sent.get((label, level), MIN_MICROS - 1):
                    self.header.sent[label, level] = micros
                    for packet in self.outbox.to_level(level):
                        packet.marks.append(Mark(moment, label, self.number, micros))


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
