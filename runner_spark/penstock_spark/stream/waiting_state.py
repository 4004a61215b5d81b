"""A DoFn with state or timers that waits for side inputs, at work in one shard: first what waits, then its keys."""

from __future__ import annotations

from collections.abc import Callable

from penstock.machines.records import Times
from penstock_spark.stream.operators import GroupingOperator, Parts
from penstock_spark.stream.waiting import WaitingOperator
from penstock_spark.stream.writer import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part
from penstock_spark.worker.pushing import Records

_WAITING = "<"


def waiting_label(label: str) -> str:
    """The label of the state of what waits; that of the DoFn's cells is the step's.

    >>> waiting_label("Count")
    'Count<'
    """
    return label + _WAITING


def label_of_waiting(label: str) -> str:
    """The step's label, of either.

    >>> label_of_waiting("Count<"), label_of_waiting("Count")
    ('Count', 'Count')
    """
    return label.removesuffix(_WAITING)


class WaitingGrouping:
    """A DoFn with state or timers whose elements wait for side inputs before they reach their keys.

    What waits holds the watermark of the DoFn's input back: its timers do not fire before elements that are on time.

    Args:
        make_waiting: Makes the place where elements wait, of what takes them when they are ready.
        grouping: The DoFn.
        outbox: Where the moment is known.
    """

    def __init__(
        self,
        make_waiting: Callable[[Callable[[Batch], Records]], WaitingOperator],
        grouping: GroupingOperator,
        outbox: Outbox,
    ) -> None:
        self._waiting = make_waiting(self._release)
        self._grouping = grouping
        self._outbox = outbox
        self.watermark_inputs = self._waiting.watermark_inputs
        self.side_watermark_inputs = self._waiting.side_watermark_inputs
        self.readers = self._waiting.readers

    @property
    def times(self) -> Times:
        """The times that it knows: those of both."""
        return self._waiting.times

    @times.setter
    def times(self, times: Times) -> None:
        self._waiting.times = self._grouping.times = times

    def arrive(self, parts: Parts) -> Records:
        """Elements go on to their keys, or wait."""
        return self._waiting.arrive((_with_names(part, message), message) for part, message in parts)

    def see(self, place: int, parts: Parts) -> Records:
        """A side input has new panes."""
        return self._waiting.see(place, parts)

    def signal(self, name: str) -> Records:
        """Nothing happens."""
        return self._grouping.signal(name)

    def advance_watermark(self) -> Records:
        """What need not wait any more arrives; then comes what is due by the watermark."""
        yield from self._waiting.advance_watermark()
        yield from self._grouping.advance_watermark()

    def advance_clock(self) -> Records:
        """What is due by the clock."""
        return self._grouping.advance_clock()

    def end_micro_batch(self) -> Records:
        """Everything that waits arrives before the round ends."""
        yield from self._waiting.end_micro_batch()
        yield from self._grouping.end_micro_batch()

    def next_clock_alarm(self) -> int | None:
        """The DoFn's."""
        return self._grouping.next_clock_alarm()

    def hold_micros(self) -> int | None:
        """The DoFn's: what waits holds its input back."""
        return self._grouping.hold_micros()

    def input_hold_micros(self) -> int | None:
        """The earliest event time of what waits."""
        return self._waiting.hold_micros()

    def waits(self) -> dict[str, int]:
        """How many elements wait for each side input, by the grouping that makes it."""
        return self._waiting.waits()

    def save(self) -> None:
        """Writes what has changed of both."""
        self._waiting.save()
        self._grouping.save()

    def _release(self, batch: Batch) -> Records:
        """Elements whose side inputs are ready reach their keys."""
        names = [name for name, _, _ in batch.values]
        carried = {name: key for name, key, _ in batch.values if key is not None}
        part = Part(self._outbox.now, names, batch.with_values([value for _, _, value in batch.values]))
        return self._grouping.arrive([(part, Message((0, 0), carried=carried))])


def _with_names(part: Part, message: Message) -> Part:
    """The same elements, each with the name of its key, and the key itself where its name does not tell it."""
    carried = message.carried
    named = [
        (name, carried.get(name), value) for name, value in zip(part.names, part.batch.values, strict=True)
    ]
    return part._replace(batch=part.batch.with_values(named))
