"""A DoFn with state or timers that waits for side inputs, in one shard: first the waiting elements, then its keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock_spark.stream.shards.operators import GroupingOperator
from penstock_spark.stream.shards.waiting import WaitingOperator
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part, Parts
from penstock_spark.worker.pushing import Records

_WAITING = "<"


def waiting_label(label: str) -> str:
    """Returns the label of the state of waiting elements; the step's own label belongs to the DoFn's cells.

    >>> waiting_label("Count")
    'Count<'
    """
    return label + _WAITING


def label_of_waiting(label: str) -> str:
    """Returns the step's label, from either label.

    >>> label_of_waiting("Count<"), label_of_waiting("Count")
    ('Count', 'Count')
    """
    return label.removesuffix(_WAITING)


@dataclass(eq=False)
class WaitingGrouping(WaitingOperator):
    """A DoFn with state or timers whose elements wait for side inputs before they reach their keys.

    Waiting elements hold the watermark of the DoFn's input back, so its timers do not fire before elements
    that are on time.
    """

    grouping: GroupingOperator = field(kw_only=True)

    def arrive(self, parts: Parts) -> Records:
        return super().arrive((_with_names(part, message), message) for part, message in parts)

    def signal(self, name: str) -> Records:
        return self._keyed().signal(name)

    def advance_watermark(self) -> Records:
        """Lets ready elements arrive, then fires timers that are due by the watermark."""
        yield from self._settle()
        yield from self._keyed().advance_watermark()

    def is_behind(self) -> bool:
        return super().is_behind() or self._keyed().is_behind()

    def advance_clock(self) -> Records:
        return self._keyed().advance_clock()

    def end_micro_batch(self) -> Records:
        yield from super().end_micro_batch()
        yield from self._keyed().end_micro_batch()

    def next_clock_alarm(self) -> int | None:
        return self.grouping.next_clock_alarm()

    def hold_micros(self) -> int | None:
        return self.grouping.hold_micros()

    def input_hold_micros(self) -> int | None:
        return super().hold_micros()

    def save(self) -> None:
        super().save()
        self.grouping.save()

    def _keyed(self) -> GroupingOperator:
        """Returns the grouping, which has the same times."""
        self.grouping.times = self.times
        return self.grouping

    def _process(self, batch: Batch) -> Records:
        names = [name for name, _, _ in batch.values]
        pickled_keys = {name: key for name, key, _ in batch.values if key is not None}
        part = Part(self.outbox.now, names, batch.with_values([value for _, _, value in batch.values]))
        return self._keyed().arrive([(part, Message((0, 0), pickled_keys=pickled_keys))])


def _with_names(part: Part, message: Message) -> Part:
    """Returns the elements, each with the name of its key, and the key itself unless its name contains it."""
    pickled_keys = message.pickled_keys
    named = [
        (name, pickled_keys.get(name), value)
        for name, value in zip(part.names, part.batch.values, strict=True)
    ]
    return part._replace(batch=part.batch.with_values(named))
