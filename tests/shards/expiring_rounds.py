"""Rounds of a stream, each with keys of its own, whose windows all end, and what its query keeps afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import penstock as beam
from penstock.construction.retractions import may_retract
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder, Percentiles
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.window import FixedWindows, GlobalWindows
from penstock.typehints import KV
from penstock_spark.stream.shards.waiting import STATE, load_waiting_state
from penstock_spark.stream.state.header import Header
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000
BEGIN = 1_500_000_000
"""The begin of the stream: late enough that all of its times take the same number of bytes."""
ROUND_SECONDS = 200
"""The time between two rounds: all windows, gaps, delays and lateness of a round end before the next one."""
KEYS_PER_ROUND = 5
LATENESS_SECONDS = 30


class Event(NamedTuple):
    key: str
    """Empty if the event only moves the watermark."""
    value: int
    second: int


class Scored(NamedTuple):
    name: str
    score: int
    at: datetime


class Sources:
    """The two sources of all cases of a pipeline."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self._events: dict[str, Any] = {}

    def events(self, source: str) -> Any:
        """The events of a source."""
        if source not in self._events:
            stream = beam.io.ReadFromText(f"/{source}/*.txt", validate=False).as_stream(
                event_time=lambda event: event.second, watermark=Percentiles(BoundedDisorder(2))
            )
            keyed = beam.Filter(lambda event: event.key)
            self._events[source] = self.pipeline | source >> stream | f"Events of {source}" >> keyed
        return self._events[source]


class Streams(NamedTuple):
    """The input of a case; the labels of a case begin with its name."""

    case: str
    sources: Sources

    def pairs(
        self, source: str = "Left", windows: Any = FixedWindows(10), *arguments: Any, **options: Any
    ) -> Any:
        """Pairs of a key and a number, in windows."""
        pairs = beam.Map(_pair).with_output_types(KV[str, int])
        if not isinstance(windows, GlobalWindows):
            options.setdefault("allowed_lateness", LATENESS_SECONDS)
        return (
            self.sources.events(source)
            | f"{self.case}: pairs of {source}" >> pairs
            | f"{self.case}: windows of {source}" >> beam.WindowInto(windows, *arguments, **options)
        )

    def rows(self, source: str = "Left") -> Any:
        """Rows for SQL."""
        rows = beam.Map(_row).with_output_types(Scored)
        return self.sources.events(source) | f"{self.case}: rows of {source}" >> rows


def _pair(event: Any) -> tuple[str, int]:
    return event.key, event.value


def _row(event: Any) -> Scored:
    return Scored(event.key, event.value, datetime.fromtimestamp(event.second, UTC))


Case = Callable[[Streams], Any]
"""Makes one collection of the streams, or several, with nothing to keep when all windows have ended."""


def pipeline_of(cases: Mapping[str, Case]) -> Any:
    """A pipeline with many cases side by side."""
    pipeline = beam.Pipeline(options=PipelineOptions(allow_unsafe_triggers=True))
    sources = Sources(pipeline)
    for name, case in cases.items():
        made = case(Streams(name, sources))
        for number, one in enumerate(made if isinstance(made, list) else [made]):
            label = f"{name}: {number}"
            shown = one | f"{label} changes" >> beam.Changelog() if may_retract(one) else one
            _ = shown | f"{label} written" >> WriteToMemory([])
    return pipeline


def case_of(label: str) -> str:
    """The case to which a grouping belongs."""
    return label.partition(":")[0]


class Rounds:
    """Plays rounds with keys of their own; at the end of `play`, all windows have ended."""

    def __init__(self, cases: Mapping[str, Case], mode: str, shards: int) -> None:
        self.query = ToyQuery(pipeline_of(cases), mode, shards)
        self.number = 0
        self.have_kept: set[str] = set()
        """The cases that have kept something so far."""
        self.have_given: set[str] = set()
        """The cases that have given something so far."""
        self._waiting = self.query.waiting_labels

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            self.number += 1
            start = BEGIN + self.number * ROUND_SECONDS
            first, second = (0, 1, 4), (2, 9, 12)
            self._batch(start, first)
            self._batch(start + 10, second)
            self._batch(start + 20, (3, 20))
            self._batch(start + 40, (3,))
        for step in range(1, 4):
            self._batch(BEGIN + (self.number + 1) * ROUND_SECONDS + step)

    def _batch(self, second: int, offsets: Iterable[int] = ()) -> None:
        read = {
            part.roots[0].label: self._read(place, second, offsets)
            for place, part in enumerate(self.query.plan.readings)
        }
        given = self.query.batch(read, second * SECOND)
        self.have_given.update(case_of(label) for label, elements in given.items() if elements)
        self.have_kept.update(case_of(label) for label in self.kept())

    def _read(self, source: int, second: int, offsets: Iterable[int]) -> list[Any]:
        """The events that a source reads; some keys are only in one source."""
        start = BEGIN + self.number * ROUND_SECONDS
        events = [
            Event(f"{self.number:05d} {place}", 1 + offset, start + offset)
            for offset in offsets
            for place in range(KEYS_PER_ROUND)
            if place != source
        ]
        return [[*events, Event("", 0, second)]]

    def kept(self) -> dict[str, str]:
        """Describes what is kept for keys and windows, and messages that wait, by grouping."""
        found = {}
        for place, stored in self.query.headers.items():
            header = Header.decoded(stored)
            found.update({label: f"{notes.keys} keys" for label, notes in header.notes.items() if notes.keys})
            if header.pending:
                found[f"shard {place}"] = f"{len(header.pending)} messages"
        for label, number, page in self.query.numbered_pages:
            if number != STATE or label not in self._waiting:
                found.setdefault(label, f"page {number} of {len(page)} bytes")
            elif (state := load_waiting_state(page)).waiting or state.contents:
                found[label] = repr(state)
        return found

    def residue_bytes(self) -> int:
        """The size of what belongs to no key and window."""
        pages = [page for _, _, page in self.query.numbered_pages]
        return sum(map(len, [*self.query.headers.values(), *pages]))
