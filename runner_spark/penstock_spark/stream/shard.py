"""One shard of a level in one micro-batch: messages in, through the machines by logical time, messages out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.machines.records import MIN_MICROS, Times
from penstock_spark.source_watermarks import Estimator, Summary
from penstock_spark.stream.arrivals import by_grouping
from penstock_spark.stream.header import Header
from penstock_spark.stream.inbox import Inbox
from penstock_spark.stream.operators import Operator, Parts
from penstock_spark.stream.program import WatermarkInput
from penstock_spark.stream.writer import Outbox
from penstock_spark.worker.messages import LogicalTime, WatermarkUpdate
from penstock_spark.worker.pushing import Records


def _no_bundles() -> Records:
    return iter(())


@dataclass(eq=False)
class Shard:
    number: int
    operators: Mapping[str, Operator]  # By label.
    header: Header
    outbox: Outbox
    micro_batch: bool  # Whether each micro-batch is a round with a watermark of its own.
    estimators: Mapping[str, Estimator] = field(default_factory=dict)  # Of the sources that Spark reads.
    # Take the elements of side inputs, before all other elements of a logical time.
    sides: Mapping[str, Callable[[Parts], Records]] = field(default_factory=dict)
    # Ends the bundles of the steps after the operators, which still belongs to a logical time.
    end_bundle: Callable[[], Records] = _no_bundles

    def __post_init__(self) -> None:
        self.outputs: dict[str, int] = dict.fromkeys(self.operators, MIN_MICROS)
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
            self._send_marks(inbox.logical_times[-1])

    def watermarks(self) -> dict[str, tuple[int, int]]:
        """The watermarks of input and output, by label, in microseconds."""
        return {
            label: (operator.times.horizon_micros, self.outputs[label])
            for label, operator in self.operators.items()
        }

    def sizes(self, label: str) -> tuple[int, int, int | None]:
        """The numbers of keys and bytes with state, and of windows, if that is known; call it after `save`."""
        notes = self.header.notes.get(label)
        if notes is None:
            return 0, 0, None
        return notes.keys, notes.size_bytes + notes.segment_bytes, notes.windows

    def awaited(self, label: str) -> dict[str, int]:
        """The watermarks on which the watermark of an operator's input depends, by origin."""
        return {
            watermark_input.origin: self._watermark_of(watermark_input)
            for watermark_input in self.operators[label].watermark_inputs
        }

    def save(self) -> None:
        """Writes what has changed; the caller stores the header."""
        for operator in self.operators.values():
            operator.save()

    def _with_watermark(self, operator: Operator, times: Times) -> Times:
        """The times of an operator with the minimum of the watermarks that feed it, and of the percentile
        watermarks.
        """
        header, watermark_inputs = self.header, operator.watermark_inputs
        micros = min(map(self._watermark_of, watermark_inputs))
        hold_micros = operator.input_hold_micros()
        if hold_micros is not None:
            micros = min(micros, hold_micros)
        if operator.side_watermark_inputs:
            times = times._replace(side_micros=tuple(map(self._watermark_of, operator.side_watermark_inputs)))
        if self.micro_batch:
            return times._replace(expiry_micros=micros)
        # Where a source has no such percentile, its own watermark stands in.
        ahead = {
            percentile: min(
                max(
                    header.watermark_of(watermark_input.origin, watermark_input.producers, percentile),
                    self._watermark_of(watermark_input),
                )
                for watermark_input in watermark_inputs
            )
            for percentile in header.percentiles()
        }
        return times._replace(watermark_micros=micros, percentile_micros=ahead)

    def _watermark_of(self, watermark_input: WatermarkInput) -> int:
        return self.header.watermark_of(watermark_input.origin, watermark_input.producers)

    def _catch_up(self, logical_time: LogicalTime) -> Records:
        """Fires what the watermark has passed since the last micro-batch: it moves on if a source is given up."""
        behind = [operator for operator in self.operators.values() if operator.is_behind()]
        if not behind:
            return
        self.outbox.now = LogicalTime(logical_time.step, self.header.clock_micros)
        for operator in behind:
            yield from operator.advance_watermark()
        yield from self.end_bundle()

    def _clock_before(self, logical_time: LogicalTime) -> Records:
        """Fires what is due by the clock before a logical time, each at a logical time of its own."""
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
        arrived = by_grouping(inbox.parts.get(logical_time, ()))
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
        self._estimate(logical_time, inbox.summaries.get(logical_time, {}))
        for update in inbox.watermark_updates.get(logical_time, ()):
            self.header.note(
                update.origin,
                update.percentile,
                update.producer,
                update.micros,
            )
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
            self._send_marks(logical_time)

    def _estimate(self, logical_time: LogicalTime, summaries: dict[str, list[Summary]]) -> None:
        """Moves the watermarks of sources by the summaries of their tasks, and by the clock."""
        for origin, estimator in self.estimators.items():
            before = self.header.estimators.get(origin) or estimator.start()
            news = estimator.merge(summaries[origin]) if origin in summaries else None
            reached = estimator.advance(before, news, logical_time.clock_micros)
            self.header.learn(origin, reached.state)

    def _send_marks(self, logical_time: LogicalTime) -> None:
        """Sends the level's new watermarks to the levels that depend on them."""
        for label, operator in self.operators.items():
            micros = self.outputs[label] = max(_leaving_micros(operator), self.outputs[label])
            for level in operator.readers:
                if micros > self.header.sent.get((label, level), MIN_MICROS - 1):
                    self.header.sent[label, level] = micros
                    for message in self.outbox.to_level(level):
                        message.watermark_updates.append(
                            WatermarkUpdate(logical_time, label, self.number, micros)
                        )


def _leaving_micros(operator: Operator) -> int:
    """An operator's output watermark: its input's, unless something holds it back."""
    hold_micros, micros = operator.hold_micros(), operator.times.horizon_micros
    return micros if hold_micros is None else min(micros, hold_micros)
