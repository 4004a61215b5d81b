"""Rows of several sides in one recorded stream, some of which take others back, and what a query makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import penstock as beam
from penstock.coders import VarIntCoder
from penstock.io import WriteToMemory
from penstock.relations.changes import emit_pairs
from penstock.testing.test_stream import TestStream
from penstock.transforms.userstate import ReadModifyWriteStateSpec
from penstock.transforms.window import GlobalWindows, TimestampedValue
from penstock.utils.windowed_value import ValueKind, WindowedValue, unknown_pane
from tests.shards.toy_query import ToyQuery

DELETE = ValueKind.DELETE


class Come(NamedTuple):
    """A row that is inserted, or retracted."""

    side: str
    key: Any
    row: Any
    at: float
    kind: ValueKind = ValueKind.INSERT


def seconds(text: str) -> int:
    """Seconds since midnight, of hours, minutes and maybe seconds."""
    hours, minutes, rest = [int(part) for part in f"{text}:0".split(":")[:3]]
    return hours * 3_600 + minutes * 60 + rest


class TakeBack(beam.DoFn):
    """The opposite of a Changelog: from what a row does and the row to rows and retractions."""

    def __init__(self, emits_retractions):
        self.emits_retractions = emits_retractions

    def process(self, come, seen=beam.DoFn.WindowedValueParam):
        yield WindowedValue((come.key, come.row), seen.timestamp, seen.windows, unknown_pane(come.kind))


class Balance(beam.DoFn):
    """Adds up by hand: its state is the total of the values that stand."""

    accepts_retractions = True
    emits_retractions = True
    TOTAL = ReadModifyWriteStateSpec("total", VarIntCoder())

    def process(
        self,
        element,
        at=beam.DoFn.TimestampParam,
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
        total=beam.DoFn.StateParam(TOTAL),
    ):
        key, value = element
        before = total.read() or 0
        after = before - value if pane.kind.is_retraction else before + value
        total.write(after)
        retracted, inserted = ([(each, at.micros)] if each else [] for each in (before, after))
        return emit_pairs(key, (retracted, inserted), window)


def sides(pipeline: Any, events: Iterable[Any], windowfn: Any = GlobalWindows()) -> tuple[Any, Any]:
    """The rows of the sides ``left`` and ``right``; a number among the events is a watermark in seconds."""
    events = list(events)
    retracts = any(event.kind.is_retraction for event in events if isinstance(event, Come))
    stream = TestStream()
    for event in events:
        if isinstance(event, Come):
            stream = stream.add_elements([TimestampedValue(event, event.at)])
        else:
            stream = stream.advance_watermark_to(event)
    rows = pipeline | stream.advance_watermark_to_infinity()
    return tuple(  # type: ignore[return-value]
        rows
        | f"Only {name}" >> beam.Filter(lambda come, name=name: come.side == name)
        | f"Take back {name}" >> beam.ParDo(TakeBack(retracts)).with_output_types(beam.typehints.KV[str, Any])
        | f"Window {name}" >> beam.WindowInto(windowfn)
        for name in ("left", "right")
    )


def batches_of(result: Any, events_per_batch: int | None = 1, mode: str = "streaming") -> list[list[Any]]:
    """The changes of a result: (kind, value) in each micro-batch."""
    _ = result | beam.Changelog() | WriteToMemory([])
    query = ToyQuery(result.pipeline, mode, shards=2, events_per_batch=events_per_batch)
    return [
        [change for given in query.batch().values() for change in given]
        for _ in range(query.timeline.batches)
    ]


def text_of(changes: Iterable[Any]) -> list[str]:
    """Changes as in the book: a minus is an undo."""
    return [f"{'-' if kind.is_retraction else '+'}{value}" for kind, (_, value) in changes]


def net_of(changes: Iterable[Any]) -> Counter[Any]:
    """The rows left after all retractions."""
    left: Counter[Any] = Counter()
    for kind, value in changes:
        left[value] += -1 if kind.is_retraction else 1
        assert left[value] >= 0, "a row is retracted that is not there"
    return +left
