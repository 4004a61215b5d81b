"""Messages of a producer to the shards of a level in a micro-batch: elements, watermarks, the time, by logical time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from penstock.machines.records import MIN_MICROS
from penstock.machines.trigger_machine import WATERMARK
from penstock.metrics.execution import Snapshot
from penstock_spark.worker.batch import Batch


class LogicalTime(NamedTuple):
    """A point of the timeline; at one logical time elements come first, then watermarks, then timers of the clock."""

    step: int  # The step of the input that leads to it; steps ascend over the whole life of a pipeline.
    # Processing time. Between two steps, each time at which the clock fired something is a logical time.
    clock_micros: int


EARLIEST = LogicalTime(MIN_MICROS, MIN_MICROS)
"""The logical time of rows without a tick, if time goes by ticks: they take place as soon as anything does."""


class WatermarkUpdate(NamedTuple):
    """A watermark, valid from a logical time: of all shards of its origin, or how far one shard holds it back."""

    logical_time: LogicalTime
    origin: str  # The label of a source, or of a grouping.
    micros: int
    percentile: float = WATERMARK  # 1 for the watermark itself.
    # The shard of a grouping that holds the watermark back, until it says something later; None for the watermark.
    holder: int | None = None


Place = tuple[Any, ...]
"""The place of elements in their source, which orders those of one logical time: the source, and for example
the file and the offset in it. Empty where the order of the producers decides."""


class Part(NamedTuple):
    """Elements that arrive at one logical time, one by one or combined."""

    logical_time: LogicalTime
    names: list[bytes]  # Encoded keys.
    # Values with their metadata; of combined elements, the partial result of each key and window.
    batch: Batch
    counts: list[int] | None = None  # How many elements each value stands for; None if they come one by one.
    # Of combined elements, the timestamps that may decide the output's; None if only the window does.
    timestamps: list[tuple[int, ...]] | None = None
    place: Place = ()  # The position of the elements in their source.


class TaskCounts(NamedTuple):
    """The numbers that a task of a source has counted for the view of the run.

    A shard sends it with its own report: for each task that reports, the driver has to answer Java one more time.
    """

    elements: Snapshot


@dataclass
class Message:
    """The message of one producer to one shard, or to all shards of a level."""

    producer: tuple[int, int]  # Orders the messages of a micro-batch.
    number: int = 0  # Orders the messages of one producer.
    # The logical times of the micro-batch at which the input does something, if this producer knows them.
    timeline: list[LogicalTime] = field(default_factory=list)
    # The logical times at which the clock stays, so that timers that are due at that very time fire as well.
    ends: set[LogicalTime] = field(default_factory=set)
    watermark_updates: list[WatermarkUpdate] = field(default_factory=list)
    # The summary of a source's watermark in a task: (logical time, source, summary).
    summaries: list[tuple[LogicalTime, str, Any]] = field(default_factory=list)
    # Signals from outside: (logical time, name).
    signals: list[tuple[LogicalTime, str]] = field(default_factory=list)
    # The states of sources' watermark estimators before the micro-batch, for a level that may read a source again.
    estimators: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, list[Part]] = field(default_factory=dict)  # Elements, by the label of their grouping.
    pickled_keys: dict[bytes, Any] = field(
        default_factory=dict
    )  # The keys that are not self-contained, by name.

    @property
    def is_empty(self) -> bool:
        """True if it contains nothing."""
        return not any(getattr(self, name) for name in _TOLD)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out empty fields: most messages contain a time and a watermark, and there are many."""
        return {"producer": self.producer} | {
            name: value for name, value in vars(self).items() if value and name != "producer"
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Fills in the fields that are empty, or that an earlier version did not have."""
        Message.__init__(self, **state)


Parts = Iterable[tuple[Part, Message]]
"""The arrivals of one logical time, in the order of producers, each part with its message."""

_TOLD = tuple(one.name for one in fields(Message) if one.name not in ("producer", "number"))
