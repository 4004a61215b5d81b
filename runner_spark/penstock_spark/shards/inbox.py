"""What a shard has got for one micro-batch, moment by moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from penstock_spark.shards.header import Header
from penstock_spark.shards.packets import Mark, Moment, Packet, Part, Place
from penstock_spark.source_watermarks import Summary


@dataclass
class Inbox:
    """The content of packets, by moment.

    Attributes:
        moments: The moments, in order.
        parts: Elements, as (label of their grouping, elements, packet), in the order of their places in the sources, or
            of producers.
        marks: Watermarks.
        summaries: What tasks saw of sources, by origin.
        signals: The names of signals.
        steps: Those of them that are steps of the input.
        ends: The moments at which what is due at that very time fires as well.
    """

    moments: list[Moment] = field(default_factory=list)
    parts: dict[Moment, list[tuple[str, Part, Packet]]] = field(default_factory=dict)
    marks: dict[Moment, list[Mark]] = field(default_factory=dict)
    summaries: dict[Moment, dict[str, list[Summary]]] = field(default_factory=dict)
    signals: dict[Moment, dict[str, None]] = field(default_factory=dict)
    steps: set[Moment] = field(default_factory=set)
    ends: set[Moment] = field(default_factory=set)


def inbox_of(packets: Iterable[Packet], last: Moment | None) -> Inbox:
    """The inbox of some packets.

    Args:
        packets: The packets, in the order of their producers.
        last: The last moment of earlier micro-batches. Time does not go back: what comes for an earlier moment takes
            place at this one.
    """
    inbox = Inbox()

    def settled(moment: Moment) -> Moment:
        return last if last is not None and moment < last else moment

    for packet in packets:
        inbox.steps.update(map(settled, packet.timeline))
        inbox.ends.update(map(settled, packet.ends))
        for label, parts in packet.parts.items():
            for part in parts:
                inbox.parts.setdefault(settled(part.moment), []).append((label, part, packet))
        for mark in packet.marks:
            inbox.marks.setdefault(settled(mark.moment), []).append(mark)
        for moment, origin, summary in packet.summaries:
            inbox.summaries.setdefault(settled(moment), {}).setdefault(origin, []).append(summary)
        for moment, name in packet.signals:
            inbox.signals.setdefault(settled(moment), {})[name] = None
    for arrived in inbox.parts.values():
        arrived.sort(key=_order)
    between = {*inbox.parts, *inbox.marks} - inbox.steps
    # A moment between two steps is one at which something was due by the clock, and so the clock stayed there.
    inbox.ends |= between
    inbox.moments = sorted(inbox.steps | between)
    return inbox


def _order(arrived: tuple[str, Part, Packet]) -> tuple[int, Moment, Place]:
    """What arrives at one moment may come in several micro-batches, and from any task: its place in the source stays.

    Parts of one place are from one task, in the order in which it has read them.
    """
    _, part, packet = arrived
    return packet.producer[0], part.moment, part.place


def received(packets: list[Packet], header: Header) -> list[Packet]:
    """The packets of a micro-batch in the order of their producers, after those that have waited."""
    waiting, header.pending = header.pending, []
    return sorted([*waiting, *packets], key=lambda packet: (packet.producer, packet.number))


def hold_back(packets: list[Packet], header: Header, last: Moment | None) -> list[Packet]:
    """The packets without what comes later than `last`, which waits in the header for the next micro-batch."""
    here = []
    for packet in packets:
        later = _within(packet, lambda moment: last is None or moment > last)
        if later.timeline or later.marks or later.summaries or later.signals or later.parts:
            header.pending.append(later)
        here.append(_within(packet, lambda moment: last is not None and moment <= last))
    return here


def moments_of(packets: Iterable[Packet]) -> set[Moment]:
    """All moments at which the input does something."""
    return {moment for packet in packets for moment in packet.timeline}


def _within(packet: Packet, wanted: Callable[[Moment], bool]) -> Packet:
    """A packet with what is at wanted moments only."""
    parts = {label: [part for part in own if wanted(part.moment)] for label, own in packet.parts.items()}
    return replace(
        packet,
        timeline=[moment for moment in packet.timeline if wanted(moment)],
        ends={moment for moment in packet.ends if wanted(moment)},
        marks=[mark for mark in packet.marks if wanted(mark.moment)],
        summaries=[summary for summary in packet.summaries if wanted(summary[0])],
        signals=[signal for signal in packet.signals if wanted(signal[0])],
        parts={label: own for label, own in parts.items() if own},
    )
