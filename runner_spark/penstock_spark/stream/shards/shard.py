"""One shard of a level in one micro-batch: messages in, through the machines by logical time, messages out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.machines.records import MAX_MICROS, MIN_MICROS, Times
from penstock_spark.source_watermarks import Estimator, Summary
from penstock_spark.stream.shards.operators import Operator
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.transport.inbox import Inbox
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.messages import LogicalTime, Parts, WatermarkUpdate
from penstock_spark.worker.pushing import Records

SPOKESMAN = 0
"""The shard that sends later levels what all shards of its level know: the time, and the possible watermarks."""


def _no_bundles() -> Records:
    return iter(())


@dataclass(eq=False)
class Shard:
    number: int
    operators: Mapping[str, Operator]  # By label.
    header: Header
    outbox: Outbox
    micro_batch: bool  # Whether each micro-batch is a round with its own watermark.
    estimators: Mapping[str, Estimator] = field(default_factory=dict)  # Of the sources that Spark reads.
    # Take the elements of side inputs, before all other elements of a logical time.
    sides: Mapping[str, Callable[[Parts], Records]] = field(default_factory=dict)
    # Ends the bundles of the steps after the operators, which still belongs to a logical time.
    end_bundle: Callable[[], Records] = _no_bundles

    def __post_init__(self) -> None:
        self.outputs: dict[str, int] = dict.fromkeys(self.operators, MIN_MICROS)
        self._common: dict[
            str, int
        ] = {}  # How far the watermark of each operator would be if no shard held it back.
        for operator in self.operators.values():
            operator.times = self._with_watermark(operator, Times(clock_micros=self.header.clock_micros))

    def run(self, inbox: Inbox) -> Records:
        if inbox.logical_times:
            yield from self._catch_up(inbox.logical_times[0])
        for logical_time in inbox.logical_times:
            self.header.last = logical_time
            yield from self._clock_before(logical_time)
            yield from self._at(logical_time, inbox)
        if not inbox.logical_times:
            # Nothing takes place, and the watermarks are where they were.
            self.outputs = {label: _leaving_micros(operator) for label, operator in self.operators.items()}
        elif self.micro_batch:
            for operator in self.operators.values():
                yield from operator.end_micro_batch()
            yield from self.end_bundle()
            # The panes of a round come before the watermark of the round.
            self._find_common()
            self._send_marks(inbox.logical_times[-1])

    def watermarks(self) -> dict[str, tuple[int, int]]:
        """Returns the watermarks of input and output, by label, in microseconds."""
        return {
            label: (operator.times.horizon_micros, self.outputs[label])
            for label, operator in self.operators.items()
        }

    def sizes(self, label: str) -> tuple[int, int, int | None]:
        """Returns the numbers of keys and bytes with state, and of windows, if that is known; call it after `save`."""
        notes = self.header.notes.get(label)
        if notes is None:
            return 0, 0, None
        return notes.keys, notes.size_bytes + notes.segment_bytes, notes.windows

    def awaited(self, label: str) -> dict[str, int]:
        """Returns the watermarks on which the watermark of an operator's input depends, by origin."""
        return {origin: self.header.watermark_of(origin) for origin in self.operators[label].watermark_inputs}

    def save(self) -> None:
        """Writes all changes; the caller stores the header."""
        for operator in self.operators.values():
            operator.save()

    def _with_watermark(self, operator: Operator, times: Times) -> Times:
        """Returns the times of an operator with the minimum of the watermarks that feed it, and of the percentile
        watermarks.
        """
        header, origins = self.header, operator.watermark_inputs
        micros = min(map(header.watermark_of, origins))
        hold_micros = operator.input_hold_micros()
        if hold_micros is not None:
            micros = min(micros, hold_micros)
        if operator.side_watermark_inputs:
            times = times._replace(
                side_micros=tuple(map(header.watermark_of, operator.side_watermark_inputs))
            )
        if self.micro_batch:
            return times._replace(expiry_micros=micros)
        # If a source lacks such a percentile, its own watermark stands in.
        ahead = {
            percentile: min(
                max(header.watermark_of(origin, percentile), header.watermark_of(origin))
                for origin in origins
            )
            for percentile in header.percentiles()
        }
        return times._replace(watermark_micros=micros, percentile_micros=ahead)

    def _catch_up(self, logical_time: LogicalTime) -> Records:
        """Fires for the progress of the watermark since the last micro-batch: it advances if a source is given up."""
        behind = [operator for operator in self.operators.values() if operator.is_behind()]
        if not behind:
            return
        self.outbox.now = LogicalTime(logical_time.step, self.header.clock_micros)
        for operator in behind:
            yield from operator.advance_watermark()
        yield from self.end_bundle()

    def _clock_before(self, logical_time: LogicalTime) -> Records:
        """Fires clock timers that are due before a logical time, each at a separate logical time."""
        while True:
            alarms = [operator.next_clock_alarm() for operator in self.operators.values()]
            due = min((alarm for alarm in alarms if alarm is not None), default=None)
            if due is None or due >= logical_time.clock_micros:
                break
            yield from self._ring(LogicalTime(logical_time.step, max(due, self.header.clock_micros)))
        self._set_clock(logical_time)

    def _ring(self, logical_time: LogicalTime) -> Records:
        self._set_clock(logical_time)
        for operator in self.operators.values():
            yield from operator.advance_clock()
        yield from self.end_bundle()
        if not self.micro_batch:
            self._send_marks(logical_time)

    def _set_clock(self, logical_time: LogicalTime) -> None:
        self.outbox.now = logical_time
        self.header.clock_micros = logical_time.clock_micros
        for operator in self.operators.values():
            operator.times = operator.times._replace(clock_micros=logical_time.clock_micros)

    def _at(self, logical_time: LogicalTime, inbox: Inbox) -> Records:
        """Processes elements, side inputs first; then signals, then watermarks, then the clock."""
        arrived = inbox.parts.get(logical_time, {})
        for address, take in self.sides.items():
            if address in arrived:
                yield from take(arrived[address])
        for label, parts in arrived.items():
            # Something that waited for this time may belong to a grouping that was given up meanwhile.
            if label in self.operators:
                yield from self.operators[label].arrive(parts)
        for name in inbox.signals.get(logical_time, ()):
            for operator in self.operators.values():
                yield from operator.signal(name)
        if logical_time in inbox.common:
            # All shards estimate at the same times, and so agree.
            self._estimate(logical_time, inbox.summaries.get(logical_time, {}))
        for update in inbox.watermark_updates.get(logical_time, ()):
            self.header.take(update)
        for operator in self.operators.values():
            times = self._with_watermark(operator, operator.times)
            if times != operator.times:
                operator.times = times
                yield from operator.advance_watermark()
        if logical_time in inbox.ends:
            for operator in self.operators.values():
                yield from operator.advance_clock()
        yield from self.end_bundle()
        if not self.micro_batch:
            if logical_time in inbox.common:
                self._find_common()
            self._send_marks(logical_time)

    def _estimate(self, logical_time: LogicalTime, summaries: dict[str, list[Summary]]) -> None:
        """Moves the watermarks of sources by the summaries of their tasks, and by the clock."""
        for origin, estimator in self.estimators.items():
            before = self.header.estimators.get(origin) or estimator.start()
            news = estimator.merge(summaries[origin]) if origin in summaries else None
            reached = estimator.advance(before, news, logical_time.clock_micros)
            self.header.learn(origin, reached.state)

    def _find_common(self) -> None:
        """Finds how far the watermark of each operator's output would be, which all shards find alike."""
        for label, operator in self.operators.items():
            self._common[label] = min(map(self.header.watermark_of, operator.watermark_inputs))

    def _send_marks(self, logical_time: LogicalTime) -> None:
        """Sends later levels the limit of an operator's watermark, and this shard's hold on it, if any.

        All shards find this limit alike, and one of them sends it. So the others have something to send only if
        they hold the watermark back, or have held it back. The limit must not be sent at a time that other shards may
        not have: they would say too late that they hold it back.
        """
        header = self.header
        for label, operator in self.operators.items():
            micros = self.outputs[label] = max(_leaving_micros(operator), self.outputs[label])
            for level in operator.readers:
                address = label, level
                sent, held = header.sent.get(address), header.held.get(address, MAX_MICROS)
                before = min(MIN_MICROS if sent is None else sent, held)
                common = max(self._common.get(label, MIN_MICROS), MIN_MICROS if sent is None else sent)
                if common != sent:
                    header.sent[address] = common
                    if self.number == SPOKESMAN:
                        self._tell(level, WatermarkUpdate(logical_time, label, common))
                own = max(micros, before)
                hold = own if own < common else MAX_MICROS
                if hold != held:
                    header.held[address] = hold
                    if hold == MAX_MICROS:
                        del header.held[address]
                    self._tell(level, WatermarkUpdate(logical_time, label, hold, holder=self.number))

    def _tell(self, level: int, update: WatermarkUpdate) -> None:
        self.outbox.to_all(level).watermark_updates.append(update)


def _leaving_micros(operator: Operator) -> int:
    """Returns an operator's output watermark: its input's, unless something holds it back."""
    hold_micros, micros = operator.hold_micros(), operator.times.horizon_micros
    return micros if hold_micros is None else min(micros, hold_micros)
