"""One shard of a level in one micro-batch: packets in, and moment by moment through the machines, packets out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.machines.records import MIN_MICROS, Times
from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.operators.pushing import Records
from penstock_spark.shards.arrivals import by_grouping
from penstock_spark.shards.header import Header
from penstock_spark.shards.inbox import Inbox
from penstock_spark.shards.packets import Mark, Moment
from penstock_spark.shards.tables import Feed, Parts, Table
from penstock_spark.shards.writer import Outbox
from penstock_spark.source_watermarks import Estimator, Summary


class Shard:
    """A shard at work.

    Args:
        number: Its number.
        tables: What it hosts, by label.
        header: What it remembers.
        outbox: Where its packets go.
        micro_batch: Whether each micro-batch is a round with a watermark of its own.
        estimators: Of the sources whose watermarks are found from what is read, by origin.
        sides: What takes the elements of side inputs, by their addresses: before all others of a moment.
    """

    def __init__(
        self,
        number: int,
        tables: Mapping[str, Table],
        header: Header,
        outbox: Outbox,
        micro_batch: bool,
        estimators: Mapping[str, Estimator] = {},
        sides: Mapping[str, Callable[[Parts], Records]] = {},
    ) -> None:
        self.number = number
        self.tables = tables
        self.header = header
        self.outbox = outbox
        self.micro_batch = micro_batch
        self.estimators = estimators
        self.sides = sides
        self.outputs: dict[str, int] = dict.fromkeys(tables, MIN_MICROS)
        for table in tables.values():
            table.times = self._with_watermark(table, Times(clock_micros=header.clock_micros))

    def run(self, inbox: Inbox) -> Records:
        """A micro-batch."""
        for moment in inbox.moments:
            self.header.last = moment
            yield from self._clock_before(moment)
            yield from self._at(moment, inbox)
        if not inbox.moments:
            # Nothing takes place, and the watermarks are where they were.
            self.outputs = {label: _leaving_micros(table) for label, table in self.tables.items()}
        elif self.micro_batch:
            for table in self.tables.values():
                yield from table.end_round()
            self._send_marks(inbox.moments[-1])

    def watermarks(self) -> dict[str, tuple[int, int]]:
        """Where the watermarks of input and output are, by label, in microseconds."""
        return {
            label: (table.times.horizon_micros, self.outputs[label]) for label, table in self.tables.items()
        }

    def save(self) -> None:
        """Writes what has changed; the header is the caller's to keep."""
        for table in self.tables.values():
            table.save()

    def _with_watermark(self, table: Table, times: Times) -> Times:
        """The times of a table with the minimum of the watermarks that feed it, and those of percentiles."""
        header, feeds = self.header, table.feeds
        micros = min(map(self._watermark_of, feeds))
        hold_micros = table.input_hold_micros()
        if hold_micros is not None:
            micros = min(micros, hold_micros)
        if table.side_feeds:
            times = times._replace(side_micros=tuple(map(self._watermark_of, table.side_feeds)))
        if self.micro_batch:
            return times._replace(expiry_micros=micros)
        # Where a source has no such percentile, its own watermark stands in.
        ahead = {
            percentile: min(
                max(
                    header.watermark_of(feed.origin, feed.producers, percentile),
                    self._watermark_of(feed),
                )
                for feed in feeds
            )
            for percentile in header.percentiles()
        }
        return times._replace(watermark_micros=micros, percentile_micros=ahead)

    def _watermark_of(self, feed: Feed) -> int:
        return self.header.watermark_of(feed.origin, feed.producers)

    def _clock_before(self, moment: Moment) -> Records:
        """What is due by the clock before a moment, each at a moment of its own."""
        while True:
            alarms = [table.next_clock_alarm() for table in self.tables.values()]
            due = min((alarm for alarm in alarms if alarm is not None), default=None)
            if due is None or due >= moment.clock_micros:
                break
            yield from self._ring(Moment(moment.step, max(due, self.header.clock_micros)))
        self._set_clock(moment)

    def _ring(self, moment: Moment) -> Records:
        """What is due by the clock at a moment."""
        self._set_clock(moment)
        for table in self.tables.values():
            yield from table.advance_clock()
        self._send_marks(moment)

    def _set_clock(self, moment: Moment) -> None:
        self.outbox.now = moment
        self.header.clock_micros = moment.clock_micros
        for table in self.tables.values():
            table.times = table.times._replace(clock_micros=moment.clock_micros)

    def _at(self, moment: Moment, inbox: Inbox) -> Records:
        """Elements, those of side inputs first; then signals, then watermarks, then the clock."""
        arrived = by_grouping(inbox.parts.get(moment, ()))
        for address, take in self.sides.items():
            if address in arrived:
                yield from take(arrived[address])
        for label, parts in arrived.items():
            # What has waited for this moment may be for a grouping that has been given up since.
            if label in self.tables:
                yield from self.tables[label].arrive(parts)
        for name in inbox.signals.get(moment, ()):
            for table in self.tables.values():
                yield from table.signal(name)
        self._estimate(moment, inbox.summaries.get(moment, {}))
        for mark in inbox.marks.get(moment, ()):
            self.header.note(mark.origin, mark.percentile, mark.producer, mark.micros)
        for table in self.tables.values():
            times = self._with_watermark(table, table.times)
            if times != table.times:
                table.times = times
                yield from table.advance_watermark()
        if moment in inbox.ends:
            for table in self.tables.values():
                yield from table.advance_clock()
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

    def _send_marks(self, moment: Moment) -> None:
        """Tells those that read what the level gives where its watermarks are by now."""
        for label, table in self.tables.items():
            micros = self.outputs[label] = max(_leaving_micros(table), self.outputs[label])
            for level in table.readers:
                if micros > self.header.sent.get((label, level), MIN_MICROS - 1):
                    self.header.sent[label, level] = micros
                    for packet in self.outbox.to_level(level):
                        packet.marks.append(Mark(moment, label, self.number, micros))


def _leaving_micros(table: Table) -> int:
    """The watermark of what a table gives: that of its input, unless something holds it."""
    hold_micros, micros = table.hold_micros(), table.times.horizon_micros
    return micros if hold_micros is None else min(micros, hold_micros)
