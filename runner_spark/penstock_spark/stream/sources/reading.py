"""Level 0 for a source that Spark reads: a task assigns times to elements, and summarises them for the watermark."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.io.kafka import KafkaRecord
from penstock.io.rejects import ELEMENTS_REJECTED, Position, Rejected, RejectedRecord, reject
from penstock.io.streaming.schedules import ScheduledSource
from penstock.io.streaming.stream_sources import StreamSource
from penstock.io.streaming.stream_times import MicrosOf
from penstock.io.streaming.watermark_policy import Recorded
from penstock.metrics.execution import ROWS, Snapshot
from penstock_spark.columns.values import micros_of
from penstock_spark.folding.totals import TotalsReader
from penstock_spark.plan.stream_plan import Clock
from penstock_spark.reports.failure import fail_step
from penstock_spark.source_watermarks import ENDED, Estimator, Summary
from penstock_spark.sources.heartbeats import ClockPeriod, HeartbeatDecoder
from penstock_spark.sources.scan import Part
from penstock_spark.stream.program import LevelProgram, ReadingSpec
from penstock_spark.stream.transport.outbox import Outbox, Row
from penstock_spark.stream.transport.stream_stage import StreamStage
from penstock_spark.worker.batch import Batch, decode_page
from penstock_spark.worker.column_read import ColumnReader
from penstock_spark.worker.inline import inline_batches
from penstock_spark.worker.messages import EARLIEST, LogicalTime, Place
from penstock_spark.worker.program import TotalsRoot

AHEAD = ("penstock", "elements_ahead_of_the_clock")
_ELEMENTS_AT_ONCE = 200_000


class Arrival(NamedTuple):
    """The output of a source at one time."""

    tick_micros: int | None  # The tick of recorded arrival times; None for the time of the micro-batch.
    batch: Batch
    summary: Summary | None  # What the watermark needs to know of them.
    # Records that cannot be read, and elements with unknown times.
    rejected: tuple[RejectedRecord, ...] = ()
    ahead: int = 0  # The number of elements too far ahead of the clock to move the watermark.
    # The position of the elements in the source; empty if they come in the order of reading.
    place: Place = ()
    by_spark: bool = False  # Whether Spark has made the elements from those that the source has.


Reader = Callable[[pa.RecordBatch, int], Iterator[Arrival]]
"""Reads the batches of one task: the content of one batch at the time of the micro-batch."""


class SourceTask:
    """One task of a source that Spark reads; `task` is its number among all tasks of the micro-batch."""

    def __init__(self, program: LevelProgram, task: int, batch: int, views: Mapping[int, Any]) -> None:
        assert program.reading is not None
        self._program = program
        self._spec: ReadingSpec = program.reading
        self._read = self._spec.make_reader()
        self._producer = (0, task + 1)
        self._outbox = Outbox(self._producer, program.shards)
        self._stage = self._make_stage(task, views)
        self._batch = batch
        self._read_in = (batch, task)
        self._summaries_at: dict[LogicalTime, list[Summary]] = {}
        self._waiting = 0
        self.has_ended = False  # Whether it has read the end of the source.
        # The number of elements and rejected records of the source; None if Spark has read it.
        self._rows: int | None = 0 if isinstance(self._read, StreamReader) else None

    def run(self, records: Iterator[pa.RecordBatch]) -> Iterator[list[Row]]:
        """Reads everything; yields rows whenever many elements wait, or large ones."""
        with self._stage.running() as done:
            for record in records:
                for count in self._arrivals(record, done):
                    self._waiting += count
                    if self._waiting >= _ELEMENTS_AT_ONCE or self._outbox.is_full:
                        self._waiting = 0
                        yield self._outbox.take()
        self._tell_times()
        yield self._outbox.take()

    def _arrivals(self, record: pa.RecordBatch, done: Callable[[Any], None]) -> Iterator[int]:
        """Takes the rows of one batch; yields whenever some of them are done, and the number of these elements."""
        if not record.num_rows:
            return
        clock_micros = record.column("clock")[0].as_py()
        own = record.select(record.schema.names[:-1])
        for arrival in self._read(own, clock_micros):
            yield from self._arrive(arrival, self._logical_time(arrival, clock_micros), done)

    def _make_stage(self, task: int, views: Mapping[int, Any]) -> StreamStage:
        return StreamStage(self._program, task, self._outbox, views)

    def snapshot(self) -> Snapshot:
        if self._rows is not None:
            # Spark counts lines that are not records, whole files that have many, and pages.
            self._stage.container(self._spec.origin).keep(self._rows, ROWS)
        return self._stage.snapshot()

    def _logical_time(self, arrival: Arrival, clock_micros: int) -> LogicalTime:
        match self._program.clock:
            case Clock.RECORDED:
                timeline = self._program.timeline
                step = timeline.beginning(self._batch)
                return LogicalTime(step, timeline.clocks_micros[step])
            case Clock.TICKS:
                tick_micros = arrival.tick_micros
                return EARLIEST if tick_micros is None else LogicalTime(tick_micros, tick_micros)
            case Clock.LIVE:
                return LogicalTime(clock_micros, clock_micros)

    def _arrive(
        self, arrival: Arrival, logical_time: LogicalTime, done: Callable[[Any], None]
    ) -> Iterator[int]:
        """Takes an arrival; yields whenever some of it is done, and the number of these elements."""
        if logical_time != self._outbox.now:
            done(self._stage.end_bundle())
            self._outbox.now = logical_time
        self._outbox.place = (self._spec.origin, *(arrival.place or self._read_in))
        summaries = self._summaries_at.setdefault(logical_time, [])
        if not arrival.by_spark:
            self._rows = (self._rows or 0) + len(arrival.batch.values) + len(arrival.rejected)
        if arrival.summary is not None:
            summaries.append(arrival.summary)
            self.has_ended = self.has_ended or arrival.summary.ended
        reader = self._stage.sized_for(self._spec.edge)
        for part in reader.parts(arrival.batch):
            done(reader.consumer.push(part))
            yield len(part.values)
        if arrival.rejected:
            assert self._spec.rejects is not None
            self._count(ELEMENTS_REJECTED, len(arrival.rejected))
            done(self._stage.sized_for(self._spec.rejects).push(Batch(list(arrival.rejected))))
        if arrival.ahead:
            self._count(AHEAD, arrival.ahead)

    def _count(self, name: tuple[str, str], count: int) -> None:
        self._stage.container(self._spec.origin).inc(name, count)

    def _tell_times(self) -> None:
        """Reports to the next level when something was read, and to each level what its watermark depends on."""
        for level in self._program.next:
            self._outbox.to_all(level).timeline = sorted(self._summaries_at)
        origin = self._spec.origin
        merge = Estimator(self._program.estimated[origin]).merge
        for level in self._spec.readers:
            self._outbox.to_all(level).summaries = [
                (logical_time, origin, merge(summaries))
                for logical_time, summaries in self._summaries_at.items()
                if summaries
            ]


class StreamReader:
    """Reads a `StreamSource`; `make_decoder` makes a function from Arrow batches to elements, by their place."""

    def __init__(self, source: StreamSource, make_decoder: Callable[[], Any], where: str) -> None:
        self._where = where
        self._decode = make_decoder()
        self._estimator = Estimator(source.watermark)
        self._has_event_times = source.watermark.innermost.needs_event_times is True
        self._event_time_of = source.event_time_of() if source.event_time is not None else None
        self._arrival_time_of = source.arrival_time_of() if source.arrival_time is not None else None
        self._partition_of = source.partition_of() if source.partition is not None else None
        self._tick_micros = source.tick_micros
        self._max_ahead_micros = source.max_ahead_micros
        self._has_rejects = source.has_rejects
        self._name = source.source.describe()

    def __call__(self, record: pa.RecordBatch, clock_micros: int) -> Iterator[Arrival]:
        for part in self._decode(record):
            kept, bad = self._parted(part)
            values, events, arrivals = self._times(kept, bad, clock_micros)
            yield from self._arrivals(values, events, arrivals, bad, part)

    def _parted(self, part: Part) -> tuple[Part, list[RejectedRecord]]:
        """The part without the values that could not be parsed, and these."""
        values, times_micros = part.values, part.times_micros
        if Rejected not in set(map(type, values)):
            return part, []
        bad = [value.record for value in values if type(value) is Rejected]
        places = [place for place, value in enumerate(values) if type(value) is not Rejected]
        times = None if times_micros is None else [times_micros[place] for place in places]
        numbers = part.numbers
        return part._replace(
            values=[values[place] for place in places],
            times_micros=times,
            numbers=None if numbers is None else lambda at: numbers(places[at]),
        ), bad

    def _times(
        self, part: Part, bad: list[RejectedRecord], clock_micros: int
    ) -> tuple[list[Any], list[int], int | list[int]]:
        """The values with known times, their event times, and their arrival times."""
        events, arrivals = self._event_time_of, self._arrival_time_of
        values, own = part.values, part.times_micros if self._has_event_times else None
        if own is None:
            own = [clock_micros] * len(values)
        try:
            return (
                values,
                list(own) if events is None else _times_of(part, events),
                clock_micros if arrivals is None else _times_of(part, arrivals),
            )
        except Exception as error:
            if not self._has_rejects:
                fail_step(error, self._where)
        kept, own_events, own_arrivals = [], [], []
        for at, (value, time_micros) in enumerate(zip(values, own, strict=True)):
            try:
                event = time_micros if events is None else events(value)
                arrival = clock_micros if arrivals is None else arrivals(value)
            except Exception as error:
                bad.append(self._without_time(part, at, error))
                continue
            kept.append(value)
            own_events.append(event)
            own_arrivals.append(arrival)
        return kept, own_events, clock_micros if arrivals is None else own_arrivals

    def _without_time(self, part: Part, place: int, error: Exception) -> RejectedRecord:
        """The record of an element that has no usable time; `error` says which one."""
        line = None if part.numbers is None else part.numbers(place)
        element = part.values[place]
        if isinstance(element, KafkaRecord):
            position = Position(None, element.partition, element.offset)
            return reject(element.topic, position, element.value, error)
        found = reject(part.source or str(part.partition) or self._name, Position(line), element, error)
        asked = [each for each in (self._event_time_of, self._arrival_time_of) if each is not None]
        names = [each.selector for each in asked if isinstance(each.selector, str)]
        return found._replace(field=names[0]) if len(asked) == 1 and names else found

    def _arrivals(
        self,
        values: list[Any],
        events: list[int],
        arrivals: int | list[int],
        bad: list[RejectedRecord],
        part: Part,
    ) -> Iterator[Arrival]:
        place, partition = part.place, part.partition
        if isinstance(arrivals, int):
            summary, ahead = self._summary(values, events, arrivals, partition)
            yield Arrival(None, Batch(values, events), summary, tuple(bad), ahead, place)
            return
        ticks: dict[int, list[int]] = {}
        for row, arrival in enumerate(arrivals):
            ticks.setdefault(arrival // self._tick_micros * self._tick_micros, []).append(row)
        whole = Batch(values, events)
        for tick_micros, rows in sorted(ticks.items()):
            own = whole.taken(rows)
            own_events = [events[row] for row in rows]
            own_arrivals = [arrivals[row] for row in rows]
            summary, ahead = self._summary(own.values, own_events, own_arrivals, partition)
            yield Arrival(tick_micros, own, summary, tuple(bad), ahead, place)
            bad = []
        if bad:
            yield Arrival(None, Batch([]), None, tuple(bad), place=place)

    def _summary(
        self, values: list[Any], events: list[int], arrivals: int | list[int], partition: Hashable
    ) -> tuple[Summary, int]:
        """The summary for the watermark, without event times that are too far ahead, and the number of these."""
        count = len(events)
        if self._max_ahead_micros is not None and events:
            latest = max(arrivals) if isinstance(arrivals, list) else arrivals
            if max(events) > latest + self._max_ahead_micros:
                limit_micros = latest + self._max_ahead_micros
                places = [place for place, event in enumerate(events) if event <= limit_micros]
                if self._partition_of is not None:
                    values = [values[place] for place in places]
                events = [events[place] for place in places]
                arrivals = [arrivals[place] for place in places] if isinstance(arrivals, list) else arrivals
        ahead = count - len(events)
        summary = self._estimator.empty_summary
        if self._partition_of is None:
            return self._estimator.observe(summary, partition, events, arrivals), ahead
        partitions: dict[Hashable, list[int]] = {}
        for place, value in enumerate(values):
            partitions.setdefault(self._partition_of(value), []).append(place)
        for name, places in partitions.items():
            own = [arrivals[place] for place in places] if isinstance(arrivals, list) else arrivals
            summary = self._estimator.observe(summary, name, [events[place] for place in places], own)
        return summary, ahead


def scheduled_reader(source: ScheduledSource, eras: tuple[ClockPeriod, ...]) -> Reader:
    """Reads a source whose elements come when the clock says."""
    decode, estimator = HeartbeatDecoder(source, eras), Estimator(Recorded())

    def read(record: pa.RecordBatch, clock_micros: int) -> Iterator[Arrival]:
        for heartbeat in decode(record):
            summary = estimator.announce(estimator.empty_summary, heartbeat.until_micros)
            times = [element.timestamp_micros for element in heartbeat.elements]
            batch = Batch([element.value for element in heartbeat.elements], times)
            yield Arrival(None, batch, estimator.merge([summary, ENDED]) if heartbeat.is_over else summary)

    return read


def column_reader(reader: ColumnReader) -> Reader:
    """Reads the columns behind a grouping that Spark runs, which keeps the watermark itself."""

    def read(record: pa.RecordBatch, clock_micros: int) -> Iterator[Arrival]:
        yield Arrival(None, reader.read(record), None, by_spark=True)

    return read


def totals_reader(root: TotalsRoot) -> Reader:
    """Reads the sums that Spark computes."""
    reader = TotalsReader([root])

    def read(record: pa.RecordBatch, clock_micros: int) -> Iterator[Arrival]:
        for _, batch in reader.read(record):
            yield Arrival(None, batch, None, by_spark=True)

    return read


def staged_reader(has_times: bool) -> Reader:
    """Reads a bounded source that was staged before: pages, and a mark at the end.

    With `has_times`, elements may be TimestampedValue or WindowedValue objects with their own times.
    """

    def read(record: pa.RecordBatch, clock_micros: int) -> Iterator[Arrival]:
        for page, last, *place in zip(*(column.to_pylist() for column in record.columns), strict=True):
            if last:
                yield Arrival(None, Batch([]), ENDED)
                continue
            batch = decode_page(page)
            for own in inline_batches(tuple(batch.values), 0, 1) if has_times else (batch,):
                yield Arrival(None, own, None, place=tuple(place))

    return read


def _times_of(part: Part, times: MicrosOf) -> list[int]:
    """The times of the elements of a part, out of a column if they are records of columns."""
    found = None
    if part.columns is not None and isinstance(times.selector, str):
        found = micros_of(part.columns, times.selector)
    return times.of_all(part.values) if found is None else found
