"""The messages that a shard has received for one micro-batch, by logical time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from penstock_spark.source_watermarks import Summary
from penstock_spark.stream.state.header import Header
from penstock_spark.worker.messages import LogicalTime, Message, Part, Place, WatermarkUpdate


@dataclass
class Inbox:
    logical_times: list[LogicalTime] = field(default_factory=list)  # In order.
    # (Label of the grouping, elements, message), in the order of their places in the sources, or of
    # producers.
    parts: dict[LogicalTime, list[tuple[str, Part, Message]]] = field(default_factory=dict)
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

    def settled(logical_time: LogicalTime) -> LogicalTime:
        return last if last is not None and logical_time < last else logical_time

    for message in messages:
        inbox.steps.update(map(settled, message.timeline))
        inbox.ends.update(map(settled, message.ends))
        for label, parts in message.parts.items():
            for part in parts:
                inbox.parts.setdefault(settled(part.logical_time), []).append((label, part, message))
        for update in message.watermark_updates:
            inbox.watermark_updates.setdefault(settled(update.logical_time), []).append(update)
        for logical_time, origin, summary in message.summaries:
            inbox.summaries.setdefault(settled(logical_time), {}).setdefault(origin, []).append(summary)
        for logical_time, name in message.signals:
            inbox.signals.setdefault(settled(logical_time), {})[name] = None
    for arrived in inbox.parts.values():
        arrived.sort(key=_order)
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


def received(messages: list[Message], header: Header) -> list[Message]:
    """Returns the messages of a micro-batch in the order of their producers, after those that have waited."""
    waiting, header.pending = header.pending, []
    return sorted([*waiting, *messages], key=lambda message: (message.producer, message.number))


def hold_back(messages: list[Message], header: Header, last: LogicalTime | None) -> list[Message]:
    """Returns the messages up to `last`; later content waits in the header for the next micro-batch."""
    here = []
    for message in messages:
        later = _within(message, lambda logical_time: last is None or logical_time > last)
        if later.timeline or later.watermark_updates or later.summaries or later.signals or later.parts:
            header.pending.append(later)
        here.append(_within(message, lambda logical_time: last is not None and logical_time <= last))
    return here


def logical_times_of(messages: Iterable[Message]) -> set[LogicalTime]:
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
