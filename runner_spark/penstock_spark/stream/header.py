"""What a shard remembers besides its keys: watermarks, and where its pages are."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

from penstock.error import three_parts
from penstock.machines.records import MIN_MICROS
from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.stream.page_index import PageNotes
from penstock_spark.worker.batch import dumps
from penstock_spark.worker.messages import LogicalTime, Message

_VERSION = 3


@dataclass
class Header:
    """The part of a shard's state that every micro-batch reads.

    Attributes:
        clock_micros: Processing time at the end of the last micro-batch.
        watermark_updates: Where watermarks are, by origin, then by percentile, then by producer.
        estimators: The states of the watermark estimators, by source.
        sent: Where the shard's own watermarks are, as far as each level has been told, by grouping and level.
        notes: What is known of the pages of each grouping, by its label.
        last: The last moment that took place.
        pending: What waits for the next micro-batch, because its moment is not over.
    """

    clock_micros: int = MIN_MICROS
    watermark_updates: dict[str, dict[float, dict[int, int]]] = field(default_factory=dict)
    estimators: dict[str, Any] = field(default_factory=dict)
    sent: dict[tuple[str, int], int] = field(default_factory=dict)
    notes: dict[str, PageNotes] = field(default_factory=dict)
    last: LogicalTime | None = None
    pending: list[Message] = field(default_factory=list)

    def note(self, origin: str, percentile: float, producer: int, micros: int) -> None:
        """A producer's watermark is there now; it does not go back."""
        of_producers = self.watermark_updates.setdefault(origin, {}).setdefault(percentile, {})
        of_producers[producer] = max(micros, of_producers.get(producer, MIN_MICROS))

    def watermark_of(self, origin: str, producers: int, percentile: float = WATERMARK) -> int:
        """The watermark of an origin: the minimum of all of its producers, once all have spoken."""
        of_producers = self.watermark_updates.get(origin, {}).get(percentile, {})
        return min(of_producers.values()) if len(of_producers) >= producers else MIN_MICROS

    def percentiles(self) -> set[float]:
        """The percentiles that any origin has a watermark of."""
        return {percentile for known in self.watermark_updates.values() for percentile in known} - {WATERMARK}

    def encoded(self) -> bytes:
        """The header as bytes."""
        return dumps((_VERSION, dumps(vars(self))))

    @staticmethod
    def decoded(data: bytes | None) -> Header:
        """The header of its bytes; a new one of None.

        Raises:
            ValueError: They are of another version.
        """
        if data is None:
            return Header()
        try:
            version, fields = pickle.loads(data)
        except (ImportError, AttributeError):
            # The first format is only read as a whole, with a class that is gone.
            version, fields = 1, b""
        if version != _VERSION:
            what = f"the state of a shard has the format {version}, not {_VERSION}"
            raise ValueError(three_parts(what, hint="go on with the version of penstock that wrote it"))
        return Header(**pickle.loads(fields))
