"""The inbox of a shard for one micro-batch: rows become messages, and their content is sorted by logical time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.metrics.execution import Snapshot, merge_snapshots
from penstock_spark.plan.stream_plan import Clock
from penstock_spark.source_watermarks import Summary
from penstock_spark.stream.program import LevelProgram
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.transport.control import Command, decode_row, heartbeat, make_commanded
from penstock_spark.worker.messages import (
    EARLIEST,
    LogicalTime,
    Message,
    Part,
    Place,
    TaskCounts,
    WatermarkUpdate,
)


@dataclass
class Received:
    """The content of a shard's rows of one micro-batch."""

    messages: list[Message] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    counted: Snapshot = field(default_factory=dict)  # What tasks of sources have counted.

    _beats: set[int] = field(default_factory=set)

    def take(self, payload: bytes) -> None:
        """Takes the content of a row."""
        match decode_row(payload):
            case Message() as message:
                self.messages.append(message)
            case TaskCounts(elements):
                self.counted = merge_snapshots(self.counted, elements)
            case Command() as command:
                self.commands.append(command)
            case int(clock_micros) if clock_micros not in self._beats:
                self._beats.add(clock_micros)
                self.messages.append(heartbeat(clock_micros))

    @property
    def is_empty(self) -> bool:
        """True if nothing takes place."""
        return not (self.messages or self.commands)

    @property
    def drains(self) -> bool:
        """True if the driver ends all sources."""
        return any(command.name == "drain" for command in self.commands)

    @property
    def estimators(self) -> Iterator[Mapping[str, Any]]:
        """The states of the estimators of sources in each message, by origin."""
        return (message.estimators for message in self.messages)


def take_due(received: Received, program: LevelProgram, header: Header) -> list[Message]:
    """The messages for this micro-batch in the order of their producers, after those that have waited in the header.

    If time goes by ticks, the last tick may continue in the next micro-batch, so it waits until a later one
    begins, or until no more will come.
    """
    waiting, header.pending, commands = header.pending, [], received.commands
    messages = sorted([*waiting, *received.messages], key=lambda message: (message.producer, message.number))
    logical_times = _logical_times_of(messages)
    if header.last is not None:
        logical_times.add(header.last)
    if commands:
        clock_micros = commands[0].clock_micros
        logical_time = LogicalTime(clock_micros, clock_micros)
        if program.clock is not Clock.LIVE:
            logical_time = max(logical_times, default=EARLIEST)
        messages.insert(0, make_commanded(commands, program, logical_time))
    if program.clock is not Clock.TICKS or any(command.ends_input for command in commands):
        return messages
    if program.number == 1:
        complete = logical_times - {max(logical_times, default=None)}
    else:
        complete = _logical_times_of(
            message for message in messages if message.producer[0] == program.number - 1
        )
    return _held_back(messages, header, max(complete, default=None))


@dataclass
class Inbox:
    logical_times: list[LogicalTime] = field(default_factory=list)  # In order.
    # The elements by the label of their grouping, with their messages, in the order of their places in the sources, or
    # of producers.
    parts: dict[LogicalTime, dict[str, list[tuple[Part, Message]]]] = field(default_factory=dict)
    watermark_updates: dict[LogicalTime, list[WatermarkUpdate]] = field(default_factory=dict)
    # Summaries of sources from tasks, by origin.
    summaries: dict[LogicalTime, dict[str, list[Summary]]] = field(default_factory=dict)
    signals: dict[LogicalTime, dict[str, None]] = field(default_factory=dict)  # The names of signals.
    steps: set[LogicalTime] = field(default_factory=set)  # The logical times that are steps of the input.
    # The logical times that all shards of the level have: steps, and when an earlier level's watermark moved.
    common: set[LogicalTime] = field(default_factory=set)
    # The logical times at which timers that are due at that very time fire as well.
    ends: set[LogicalTime] = field(default_factory=set)


def inbox_of(messages: Iterable[Message], last: LogicalTime | None) -> Inbox:
    """Returns the inbox of some messages, in the order of their producers.

    Time does not go back: what arrives for a logical time before `last`, the last one of earlier
    micro-batches, is processed at `last`.
    """
    inbox = Inbox()
    arrived: dict[LogicalTime, list[tuple[str, Part, Message]]] = {}

    def settled(logical_time: LogicalTime) -> LogicalTime:
        return last if last is not None and logical_time < last else logical_time

    for message in messages:
        inbox.steps.update(map(settled, message.timeline))
        inbox.ends.update(map(settled, message.ends))
        for label, parts in message.parts.items():
            for part in parts:
                arrived.setdefault(settled(part.logical_time), []).append((label, part, message))
        for update in message.watermark_updates:
            inbox.watermark_updates.setdefault(settled(update.logical_time), []).append(update)
        for logical_time, origin, summary in message.summaries:
            inbox.summaries.setdefault(settled(logical_time), {}).setdefault(origin, []).append(summary)
        for logical_time, name in message.signals:
            inbox.signals.setdefault(settled(logical_time), {})[name] = None
    for logical_time, here in arrived.items():
        by_grouping = inbox.parts[logical_time] = {}
        for label, part, message in sorted(here, key=_order):
            by_grouping.setdefault(label, []).append((part, message))
    inbox.common = inbox.steps.union(inbox.watermark_updates)
    between = inbox.common.union(inbox.parts) - inbox.steps
    # At a logical time between two steps, something was due by the clock, so the clock stayed there.
    inbox.ends |= between
    inbox.logical_times = sorted(inbox.steps | between)
    return inbox


def _order(arrived: tuple[str, Part, Message]) -> tuple[int, LogicalTime, Place]:
    """Arrivals of one logical time may come in several micro-batches, from any task: the place in the source
    decides.

    Parts with the same place come from one task, in the order in which it read them.
    """
    _, part, message = arrived
    return message.producer[0], part.logical_time, part.place


def _held_back(messages: list[Message], header: Header, last: LogicalTime | None) -> list[Message]:
    """Returns the messages up to `last`; later content waits in the header for the next micro-batch."""
    here = []
    for message in messages:
        later = _within(message, lambda logical_time: last is None or logical_time > last)
        if later.timeline or later.watermark_updates or later.summaries or later.signals or later.parts:
            header.pending.append(later)
        here.append(_within(message, lambda logical_time: last is not None and logical_time <= last))
    return here


def _logical_times_of(messages: Iterable[Message]) -> set[LogicalTime]:
    return {logical_time for message in messages for logical_time in message.timeline}


def _within(message: Message, wanted: Callable[[LogicalTime], bool]) -> Message:
    parts = {
        label: [part for part in own if wanted(part.logical_time)] for label, own in message.parts.items()
    }
    return replace(
        message,
        timeline=[logical_time for logical_time in message.timeline if wanted(logical_time)],
        ends={logical_time for logical_time in message.ends if wanted(logical_time)},
        watermark_updates=[update for update in message.watermark_updates if wanted(update.logical_time)],
        summaries=[summary for summary in message.summaries if wanted(summary[0])],
        signals=[signal for signal in message.signals if wanted(signal[0])],
        parts={label: own for label, own in parts.items() if own},
    )
