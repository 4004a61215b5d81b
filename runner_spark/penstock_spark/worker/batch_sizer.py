"""The size of the batches that go through a stage: small enough that each step makes a few megabytes at most.

A step makes all its outputs for a batch before the next step sees them. Where a step turns names of files into their
contents, a batch of thousands would not fit into memory, while for short lines a small batch would cost more than the
work. The size of the outputs so far shows how large the next batch may be.

The time that a batch takes must not decide. If a machine is lost, Spark repeats the tasks whose rows it had. Where a
PCollection goes through two steps and a Flatten joins their outputs, the sizes of batches decide the order of the
elements. In another order, a `Reshuffle` would distribute them differently: some would be lost, and others doubled.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock_spark.worker.batch import Batch
from penstock_spark.worker.pushing import Consumer, Records

_FIRST_ELEMENTS = 8
_MOST_ELEMENTS = 16_384
_FITTING_BYTES = 16 << 20


class Scale:
    """Keeps the size of the largest outputs since it was last set to 0, for the sizers of a stage."""

    __slots__ = ("largest_bytes", "sizers")

    def __init__(self) -> None:
        self.largest_bytes = 0
        self.sizers: list[BatchSizer] = []

    def weigh(self, size_bytes: int) -> None:
        if size_bytes > self.largest_bytes:
            self.largest_bytes = size_bytes

    def begin_anew(self) -> None:
        """Lets the sizers forget what they have learned."""
        for sizer in self.sizers:
            sizer.forget()


class WeighedConsumer:
    """Weighs the outputs of a step, on their way to their reader."""

    __slots__ = ("_consumer", "_scale")

    def __init__(self, consumer: Consumer, scale: Scale) -> None:
        self._consumer = consumer
        self._scale = scale

    def push(self, batch: Batch) -> Records:
        self._scale.weigh(batch.estimated_bytes())
        return self._consumer.push(batch)


class BatchSizer:
    """Finds the size of batches for which no step makes outputs of more than a few megabytes.

    >>> scale = Scale()
    >>> sizer = BatchSizer(scale, most_elements=1_000)
    >>> [len(part.values) for part in sizer.parts(Batch(list(range(200))))]
    [8, 32, 128, 32]
    >>> for part in sizer.parts(Batch(list(range(200)))):
    ...     scale.weigh(1_000_000 * len(part.values))
    >>> sizer.elements
    16
    """

    def __init__(self, scale: Scale, most_elements: int) -> None:
        self._most_elements = most_elements
        self._scale = scale
        self.forget()
        scale.sizers.append(self)

    def forget(self) -> None:
        """Begins with a few elements again."""
        self.elements = min(_FIRST_ELEMENTS, self._most_elements)

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """Cuts a batch; before each part, it has learned what steps have made of the previous one."""
        start, count = 0, len(batch.values)
        while start < count:
            some = min(self.elements, count - start)
            before = self.begin()
            yield batch if some == count else batch.slice(start, start + some)
            self.learn(some, before)
            start += some

    def begin(self) -> int:
        """Begins to weigh what steps make of a batch; `learn` takes the result."""
        before, self._scale.largest_bytes = self._scale.largest_bytes, 0
        return before

    def learn(self, pushed: int, before: int) -> None:
        """Learns from the outputs that steps have made of `pushed` elements.

        The sizer of an earlier step does not learn from them: with a smaller batch there, the parts here would be as
        large.
        """
        largest_bytes, self._scale.largest_bytes = self._scale.largest_bytes, before
        fitting = max(1, _FITTING_BYTES * pushed // max(largest_bytes, 1))
        if fitting < self.elements:
            self.elements = fitting
        elif pushed >= self.elements:
            self.elements = min(fitting, self.elements * 4, self._most_elements)


class SizedConsumer:
    """Takes the batches of a root to their reader, in parts of a size that fits."""

    def __init__(self, consumer: Consumer, scale: Scale) -> None:
        self.consumer = consumer
        self._scale = scale
        self._sizer = BatchSizer(scale, _MOST_ELEMENTS)

    def push(self, batch: Batch) -> Records:
        for part in self.parts(batch):
            yield from self.consumer.push(part)

    def parts(self, batch: Batch) -> Iterator[Batch]:
        """Returns the parts in which a batch goes to the reader, each to be pushed before the next one is asked for."""
        return self._sizer.parts(batch)


class SizedArrivals(SizedConsumer):
    """Takes the arrivals of a stream to its reader; the sizes of the parts depend on each arrival alone.

    If elements of several windows wait for a side input, the parts in which they come decide their order behind it.
    What a task has read before depends on how a log is divided into micro-batches, and must not change that order.
    """

    def parts(self, batch: Batch) -> Iterator[Batch]:
        self._scale.begin_anew()
        for part in super().parts(batch):
            # A writer gathers as much as it receives.
            self._scale.weigh(part.estimated_bytes())
            yield part
