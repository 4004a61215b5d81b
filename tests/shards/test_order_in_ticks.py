"""Elements of one tick of a recorded log are in the order of its files, wherever it is cut into micro-batches."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions
from penstock_spark.stream.transport import inbox
from tests.shards.toy_query import Placed, ToyQuery

DISCARDING, ACCUMULATING = AccumulationMode.DISCARDING, AccumulationMode.ACCUMULATING
EACH = GlobalWindows(), Repeatedly(AfterCount(1)), ACCUMULATING
PAIRS = GlobalWindows(), Repeatedly(AfterCount(2)), DISCARDING
LATE = AfterWatermark(late=AfterCount(1))
"""Triggers that look at each element, so that it is seen in which order they come."""

FILES = [f"/log/{name}" for name in "cadbe"]
"""In the order in which they arrived; it is not that of their names."""

LOG = [
    (f"k{number % 2}", f"{number:02}", number // 4 + (number % 9 if number % 5 == 1 else 0), number // 5)
    for number in range(40)
]
"""Elements of (key, value, event time, arrival time), five in a tick; most files of eight begin within a tick."""


def source() -> Any:
    return "Read" >> beam.io.ReadFromText("/log/*", validate=False).as_stream(
        lambda line: line[2], BoundedDisorder(2), arrival_time=lambda line: line[3]
    )


class Join(beam.CombineFn):
    """A CombineFn of which the order of the values can be told."""

    def create_accumulator(self):
        return ""

    def add_input(self, accumulator, value):
        return accumulator + value

    def merge_accumulators(self, accumulators):
        return "".join(accumulators)

    def extract_output(self, accumulator):
        return accumulator


def pieces() -> list[Placed]:
    """The pieces of the files: a new one begins with every sixth element, and so most within a tick."""
    return [
        Placed((FILES[first // 8], first % 8), LOG[first:end])
        for first, end in (
            (start, min(start + 6, begin + 8)) for begin in range(0, 40, 8) for start in (begin, begin + 6)
        )
    ]


def windowed(pipeline: Any, how: str) -> Any:
    pairs = pipeline | source() | beam.MapTuple(lambda key, value, event, arrival: (key, value))
    match how:
        case "each":
            return pairs | beam.WindowInto(*EACH) | beam.GroupByKey()
        case "pairs":
            return pairs | beam.WindowInto(*PAIRS) | beam.GroupByKey()
        case "groups":
            return pairs | beam.WindowInto(FixedWindows(4)) | beam.GroupByKey()
        case "sessions":
            return pairs | beam.WindowInto(Sessions(3)) | beam.GroupByKey()
        case "combined":
            return pairs | beam.WindowInto(FixedWindows(4)) | beam.CombinePerKey(Join())
        case "waiting":
            sides = pipeline | "Sides" >> source() | "Side windows" >> beam.WindowInto(*EACH)
            seen = beam.Map(lambda pair, side: ("all", (*pair, side)), beam.pvalue.AsSingleton(sides))
            waits = pairs | "Fixed" >> beam.WindowInto(FixedWindows(4), allowed_lateness=9) | "See" >> seen
            return waits | "Every" >> beam.WindowInto(*EACH) | beam.GroupByKey()
    windowfn = Sessions(2) if how == "late sessions" else FixedWindows(4)
    sums = pairs | beam.MapTuple(lambda key, value: (key, int(value)))
    sums |= beam.WindowInto(windowfn, LATE, DISCARDING, allowed_lateness=9)
    sums = sums | beam.CombinePerKey(sum) | "Together" >> beam.MapTuple(lambda *pair: (pair[1] % 2, pair))
    return sums | "Every" >> beam.WindowInto(*EACH) | "Again" >> beam.GroupByKey()


WAYS = ("each", "pairs", "groups", "sessions", "combined", "late", "late sessions", "waiting")


def played(how: str, random: Random | None, shards: int = 2, without: tuple[str, ...] = ()) -> list[Any]:
    """The panes of the log, its files dealt out to micro-batches, and their pieces to tasks in any order."""
    pipeline = beam.Pipeline()
    _ = windowed(pipeline, how) | beam.Map(repr) | WriteToMemory([])
    query = ToyQuery(pipeline, shards=shards, without=without)
    [sink] = [step.label for step in query.plan.sinks]
    rest, found = pieces(), []
    while rest:
        # All pieces of a file are read in one micro-batch.
        files = [*dict.fromkeys(piece.place[0] for piece in rest)][
            : random.choice((1, 2, 3)) if random else 1
        ]
        here = [piece for piece in rest if piece.place[0] in files]
        rest = rest[len(here) :]
        tasks: list[list[Placed]] = [[], [], []]
        if random:
            random.shuffle(here)
        for piece in here:
            (random.choice(tasks) if random else tasks[0]).append(piece)
        read: dict[str, Any] = {"Read": [task for task in tasks if task]}
        if how == "waiting" and FILES[2] in files:
            read["Sides"] = [[Placed((FILES[0], 0), [("side", "", 3, 4)])]]
        found += query.batch(read)[sink]
    return found + query.batch(commands=[("drain", "")])[sink]


@pytest.mark.parametrize(
    "without", [(), ("early_combining", "window_columns")], ids=["as it is", "one by one"]
)
@pytest.mark.parametrize("how", WAYS)
def test_the_panes_of_a_recorded_log_are_the_same_wherever_its_files_are_cut(how, without):
    whole = sorted(played(how, None, without=without))
    assert len(whole) > 6
    for seed in range(10):
        assert sorted(played(how, Random(seed), without=without)) == whole


@pytest.mark.parametrize("how", [how for how in WAYS if not how.startswith("late")])
def test_the_law_finds_an_order_that_depends_on_the_cut(how, monkeypatch):
    whole = sorted(played(how, None))
    monkeypatch.setattr(inbox, "_order", lambda arrived: arrived[2].producer)
    assert any(sorted(played(how, Random(seed))) != whole for seed in range(10))
