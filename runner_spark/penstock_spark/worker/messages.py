"""What a producer tells a consumer shard in one micro-batch: elements, watermarks and the time, moment by moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.worker.batch import Batch


class LogicalTime(NamedTuple):
    """A point of the timeline; at one logical time elements come first, then watermarks, then timers of the clock.

    Attributes:
        step: The step of the input that leads to it; steps ascend over the whole life of a pipeline.
        clock_micros: Processing time. Between two steps there is a logical time for each time
            something was due by the clock.
    """

    step: int
    clock_micros: int


class WatermarkUpdate(NamedTuple):
    """A watermark, from a logical time on.

    Attributes:
        logical_time: When it holds, or when the elements arrive.
        origin: What it is the watermark of: the label of a source, or of a grouping.
        producer: Which part of it; the minimum of all parts counts.
        micros: Where it is.
        percentile: Which one: 1 for the watermark itself.
    """

    logical_time: LogicalTime
    origin: str
    producer: int
    micros: int
    percentile: float = WATERMARK


Place = tuple[Any, ...]
"""The place of elements in their source, which orders those of one logical time: the source, and for example
the file and the offset in it. Empty where the order of the producers decides."""


class Part(NamedTuple):
    """Elements that arrive at one logical time, one by one or combined.

    Attributes:
        logical_time: When it holds, or when the elements arrive.
        names: Their encoded keys.
        batch: Their values, with timestamps, windows and panes. Of combined elements: what those of one key and window
            come to, a list of values or an accumulator, with that window.
        counts: How many elements each value stands for; None if they come one by one.
        timestamps: Of combined elements, the timestamps that may decide the output's, in microseconds; None if only the
            window does.
        are_plain: Whether the values are what a kernel holds, such as a sum, instead of accumulators.
        place: Where the elements stand in their source.
    """

    logical_time: LogicalTime
    names: list[bytes]
    batch: Batch
    counts: list[int] | None = None
    timestamps: list[tuple[int, ...]] | None = None
    are_plain: bool = False
    place: Place = ()


@dataclass
class Message:
    """All that one producer tells one shard.

    Attributes:
        producer: Orders the messages of a micro-batch.
        number: Orders those of one producer.
        timeline: The logical times of the micro-batch at which the input does something, if this producer knows them.
        ends: Those of them at which the clock stays, so that what is due at that very time fires as well.
        watermark_updates: Watermarks.
        summaries: What a task saw of its source's watermark, as (logical time, source, summary).
        signals: Signals from outside, as (logical time, name).
        parts: Elements, by the label of their grouping.
        carried: The keys that their names alone do not tell, by name.
    """

    producer: tuple[int, int]
    number: int = 0
    timeline: list[LogicalTime] = field(default_factory=list)
    ends: set[LogicalTime] = field(default_factory=set)
    watermark_updates: list[WatermarkUpdate] = field(default_factory=list)
    summaries: list[tuple[LogicalTime, str, Any]] = field(default_factory=list)
    signals: list[tuple[LogicalTime, str]] = field(default_factory=list)
    parts: dict[str, list[Part]] = field(default_factory=dict)
    carried: dict[bytes, Any] = field(default_factory=dict)
