"""Elements for a step that waits for side inputs: its own are dealt out to shards, a side input's go to all."""

from __future__ import annotations

from penstock_spark.stream.program import SpreadWriterSpec
from penstock_spark.stream.transport.outbox import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Message, Part
from penstock_spark.worker.pushing import Node, Records

_FEW, _MANY = 64, 1_024
"""The number of neighbours that stay together: few at the beginning of a task, to spread even a few elements."""


def address(label: str, side: int | None) -> str:
    """Returns the address in messages of a step's own elements, or of one of its side inputs.

    >>> address("Convert", None), address("Convert", 1)
    ('Convert', 'Convert<1')
    """
    return label if side is None else f"{label}<{side}"


class SpreadWriter(Node):
    """Puts elements into the messages of all shards, or distributes them, beginning with the shard `first`.

    The place of an element depends on how many its task has pushed before it, and not on the batch that it comes in.
    """

    def __init__(self, spec: SpreadWriterSpec, outbox: Outbox, first: int) -> None:
        self._spec = spec
        self._address = address(spec.label, spec.side)
        self._outbox = outbox
        self._first = first
        self._pushed = 0

    def push(self, batch: Batch) -> Records:
        outbox, level = self._outbox, self._spec.level
        if self._spec.side is not None:
            self._put(outbox.to_all(level), batch, 0)
            outbox.held_bytes += batch.estimated_bytes() * (outbox.shards - 1)
            return iter(())
        start, count = 0, len(batch.values)
        while start < count:
            size = _FEW if self._pushed < _FEW * _FEW else _MANY
            turn, within = divmod(self._pushed, size)
            stop = min(start + size - within, count)
            message = outbox.messages[level, (self._first + turn) % outbox.shards]
            self._put(message, batch.slice(start, stop), self._pushed)
            self._pushed += stop - start
            start = stop
        return iter(())

    def _put(self, message: Message, part: Batch, number: int) -> None:
        # Elements that one task has read are distributed, and come together again behind the step.
        place = (*self._outbox.place, number) if self._outbox.place else ()
        self._outbox.held_bytes += part.estimated_bytes()
        message.parts.setdefault(self._address, []).append(Part(self._outbox.now, [], part, place=place))
