"""Elements for a step that waits for side inputs: its own are dealt out to shards, a side input's go to all."""

from __future__ import annotations

from penstock_spark.operators.batch import Batch
from penstock_spark.operators.pushing import Quiet, Records
from penstock_spark.shards.packets import Part
from penstock_spark.shards.program import SpreadWriterSpec
from penstock_spark.shards.writer import Outbox

_LEAST = 64
"""So many elements, at least, are worth a shard of their own."""


def address(label: str, side: int | None) -> str:
    """What stands in packets for a step's own elements, or for those of one of its side inputs.

    >>> address("Convert", None), address("Convert", 1)
    ('Convert', 'Convert<1')
    """
    return label if side is None else f"{label}<{side}"


class SpreadWriter(Quiet):
    """Puts elements into the packets of all shards, or of one after the other.

    Args:
        spec: What to write.
        outbox: Where the packets are, and the moment.
        first: The shard that the first elements go to.
    """

    def __init__(self, spec: SpreadWriterSpec, outbox: Outbox, first: int) -> None:
        self._spec = spec
        self._address = address(spec.label, spec.side)
        self._outbox = outbox
        self._next = first

    def push(self, batch: Batch) -> Records:
        """Takes a batch."""
        packets = self._outbox.to_level(self._spec.level)
        if self._spec.side is not None:
            parts = [batch] * len(packets)
        else:
            size = max(_LEAST, -(-len(batch.values) // len(packets)))
            parts = [batch.sliced(start, start + size) for start in range(0, len(batch.values), size)]
        for part in parts:
            packet = packets[self._next % len(packets)]
            # What one task has read is dealt out, and comes together again behind the step.
            place = (*self._outbox.place, self._next) if self._outbox.place else ()
            packet.parts.setdefault(self._address, []).append(Part(self._outbox.now, [], part, place=place))
            self._next += 1
        return iter(())
