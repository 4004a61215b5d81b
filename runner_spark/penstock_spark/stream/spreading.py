"""Elements for a step that waits for side inputs: its own are dealt out to shards, a side input's go to all."""

from __future__ import annotations

from penstock_spark.stream.program import SpreadWriterSpec
from penstock_spark.stream.writer import Outbox
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import Part
from penstock_spark.worker.pushing import Node, Records

_LEAST = 64
"""So many elements, at least, are worth a shard of their own."""


def address(label: str, side: int | None) -> str:
    """The address in messages of a step's own elements, or of one of its side inputs.

    >>> address("Convert", None), address("Convert", 1)
    ('Convert', 'Convert<1')
    """
    return label if side is None else f"{label}<{side}"


class SpreadWriter(Node):
    """Puts elements into the messages of all shards, or of each shard in turn, beginning with `first`."""

    def __init__(self, spec: SpreadWriterSpec, outbox: Outbox, first: int) -> None:
        self._spec = spec
        self._address = address(spec.label, spec.side)
        self._outbox = outbox
        self._next = first

    def push(self, batch: Batch) -> Records:
        messages = self._outbox.to_level(self._spec.level)
        if self._spec.side is not None:
            parts = [batch] * len(messages)
        else:
            size = max(_LEAST, -(-len(batch.values) // len(messages)))
            parts = [batch.sliced(start, start + size) for start in range(0, len(batch.values), size)]
        for part in parts:
            message = messages[self._next % len(messages)]
            # What one task has read is dealt out, and comes together again behind the step.
            place = (*self._outbox.place, self._next) if self._outbox.place else ()
            message.parts.setdefault(self._address, []).append(Part(self._outbox.now, [], part, place=place))
            self._next += 1
        return iter(())
