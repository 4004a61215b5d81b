"""The state of a shard beyond its keys: watermarks, and the places of its pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.machines.records import MAX_MICROS, MIN_MICROS
from penstock.machines.trigger_machine import WATERMARK
from penstock_spark.process.written_formats import HEADER
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.stored import content_of, load_pickle
from penstock_spark.worker.batch import dumps
from penstock_spark.worker.messages import LogicalTime, Message, WatermarkUpdate


@dataclass
class Header:
    """The part of a shard's state that every micro-batch reads."""

    clock_micros: int = MIN_MICROS  # Processing time at the end of the last micro-batch.
    # Watermarks by origin, then by percentile.
    watermark_updates: dict[str, dict[float, int]] = field(default_factory=dict)
    # The times to which shards of an earlier level hold their watermark back, by origin, then by shard.
    holds: dict[str, dict[int, int]] = field(default_factory=dict)
    # The states of the watermark estimators, by source.
    estimators: dict[str, Any] = field(default_factory=dict)
    # The watermarks that the level has sent, by grouping and level.
    sent: dict[tuple[str, int], int] = field(default_factory=dict)
    # The times to which this shard has said that it holds these watermarks back; without an entry it holds nothing.
    held: dict[tuple[str, int], int] = field(default_factory=dict)
    # The sources whose watermarks later levels know, with the level.
    told: set[tuple[str, int]] = field(default_factory=set)
    # The notes about the pages of each grouping, by its label.
    notes: dict[str, PageNotes] = field(default_factory=dict)
    last: LogicalTime | None = None  # The last logical time that was processed.
    # Messages that wait for the next micro-batch, because their logical time is not over.
    pending: list[Message] = field(default_factory=list)
    plan: str = ""  # The digest of the plan, if the shards keep it because no folder does.
    is_draining: bool = False  # Whether the driver has asked for the end of all sources.

    def learn(self, origin: str, state: Any) -> None:
        """Takes the state of a source's estimator, and notes the watermarks that it has reached."""
        self.estimators[origin] = state
        self.note(origin, WATERMARK, state.watermark_micros)
        for percentile, micros in state.percentile_micros.items():
            self.note(origin, percentile, micros)

    def take(self, update: WatermarkUpdate) -> None:
        """Notes a producer's message about a watermark."""
        if update.holder is None:
            self.note(update.origin, update.percentile, update.micros)
        else:
            self._note_hold(update.origin, update.holder, update.micros)

    def note(self, origin: str, percentile: float, micros: int) -> None:
        """Notes a watermark, which does not go back."""
        known = self.watermark_updates.setdefault(origin, {})
        known[percentile] = max(micros, known.get(percentile, MIN_MICROS))

    def _note_hold(self, origin: str, holder: int, micros: int) -> None:
        """Notes to what time a shard holds the watermark of an origin back: the end of time is not a hold."""
        holds = self.holds.setdefault(origin, {})
        holds[holder] = micros
        if micros == MAX_MICROS:
            del holds[holder]

    def watermark_of(self, origin: str, percentile: float = WATERMARK) -> int:
        """Returns the watermark of an origin, or the time to which some of its shards hold it back."""
        micros = self.watermark_updates.get(origin, {}).get(percentile, MIN_MICROS)
        return min((micros, *self.holds.get(origin, {}).values()))

    def percentiles(self) -> set[float]:
        return {percentile for known in self.watermark_updates.values() for percentile in known} - {WATERMARK}

    def encoded(self) -> bytes:
        return dumps((HEADER.number, dumps(vars(self))))

    @staticmethod
    def decoded(data: bytes | None) -> Header:
        """Decodes a header, or makes a new one for None; ValueError if it has another format."""
        if data is None:
            return Header()
        (fields,) = content_of(data, HEADER)
        return Header(**load_pickle(fields, HEADER.name))
