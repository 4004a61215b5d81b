"""Groupings in a row, as in the third chapter of "Streaming Systems": the average length of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.functions.dofn import DoFn
from penstock.testing.test_stream import TestStream
from penstock.transforms.combining.combine import CombinePerKey
from penstock.transforms.combining.ready_combiners import MeanCombineFn
from penstock.transforms.elements.pardo import ParDo
from penstock.transforms.grouping.group_by_key import Flatten, GroupByKey
from penstock.transforms.grouping.windowing import WindowInto
from penstock.windows.triggers import AccumulationMode, AfterWatermark
from penstock.windows.window_fn import FixedWindows, Sessions, WindowFn
from penstock_conformance.parsing import load
from penstock_conformance.tapes import tape_of

USERS = {
    "Mobile": "Figure 3-4, left: sessions of the mobile user",
    "Console": "Figure 3-4, right: sessions of the console user",
}
"""The groupings of the first stage, and the scenarios with their input."""

AVERAGES = "Averages"
"""The grouping of the second stage."""

LONGEST = "Longest"
"""The grouping of the third stage."""


class AverageLengths(PTransform[Any, Any]):
    """The average length of two users' sessions in every two minutes, and the largest average in every four.

    Each stage is one grouping: sessions by user, then averages over both users (figures 3-4 to 3-6), and a third
    stage of our own. The result is both, as pairs of None and seconds. The timestamp combiner is for sessions and
    averages. The pipeline must allow unsafe triggers, because late elements are dropped.
    """

    def __init__(self, timestamp_combiner: int) -> None:
        super().__init__()
        self._timestamp_combiner = timestamp_combiner

    def expand(self, pbegin: PBegin) -> tuple[PCollection[Any], PCollection[Any]]:
        scenarios = {scenario.title: scenario for scenario in load()}
        timestamp_combiner = self._timestamp_combiner
        lengths = []
        for user, title in USERS.items():
            tape = tape_of(scenarios[title], "streaming")
            scores: PCollection[Any] = pbegin | f"{user} scores" >> TestStream(events=tape.events)
            sessions = scores | f"{user} sessions" >> _windows(Sessions(60), timestamp_combiner)
            lengths.append(sessions | user >> GroupByKey() | f"{user} lengths" >> ParDo(_Length()))
        both = lengths | "Both users" >> Flatten()
        averages = (
            both
            | "Two minutes" >> _windows(FixedWindows(120), timestamp_combiner)
            | AVERAGES >> CombinePerKey(MeanCombineFn())
        )
        longest = averages | "Four minutes" >> _windows(FixedWindows(240)) | LONGEST >> CombinePerKey(max)
        return averages, longest


def _windows(windowfn: WindowFn, timestamp_combiner: int | None = None) -> WindowInto:
    return WindowInto(windowfn, AfterWatermark(), AccumulationMode.DISCARDING, timestamp_combiner)


class _Length(DoFn):
    """Gives the length of a session in seconds, for all users together."""

    def process(self, element: object, window: Any = DoFn.WindowParam) -> Iterator[tuple[None, float]]:
        yield None, (window.end_micros - window.start_micros) / 1_000_000
