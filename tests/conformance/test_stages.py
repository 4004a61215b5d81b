"""Two and three groupings in a row: what comes out, when, and the watermark of each stage (the book's chapter 3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io.each_batch import WriteToMemory
from penstock.machines.records import MAX_MICROS
from penstock.testing.test_stream import TestStream
from penstock.transforms.window import SlidingWindows, TimestampCombiner, TimestampedValue
from penstock.utils.timestamp import Timestamp
from penstock_conformance.moments import micros_of, window_of
from penstock_conformance.stages import AVERAGES, LONGEST, USERS, AverageLengths
from tests.conformance.toy_runner import batches_of
from tests.shards.toy_query import ToyQuery

END_OF_WINDOW = TimestampCombiner.OUTPUT_AT_EOW
EARLIEST = TimestampCombiner.OUTPUT_AT_EARLIEST
LATEST = TimestampCombiner.OUTPUT_AT_LATEST
TRANSFORMED = TimestampCombiner.OUTPUT_AT_EARLIEST_TRANSFORMED

MILLISECOND = 1_000
"""The events of a TestStream come some microseconds before their time."""


class Moment(NamedTuple):
    """What a query has done at a step.

    Attributes:
        clock_micros: Processing time.
        found: What came out.
        watermarks: Where those of each grouping's input and output are then.
    """

    clock_micros: int
    found: list[Any]
    watermarks: dict[str, tuple[int, int]]


def logical_times_of(pipeline: beam.Pipeline) -> list[Moment]:
    query = ToyQuery(pipeline, shards=1, events_per_batch=1)
    return [
        Moment(
            query.timeline.clocks_micros[step],
            [element for elements in given.values() for element in elements],
            {label.removeprefix("Lengths/"): micros for label, micros in query.watermarks.items()},
        )
        for step, given in batches_of(query)
    ]


def with_window(element: Any, window: Any = beam.DoFn.WindowParam) -> Any:
    return element[1], window


def of_sessions(timestamp_combiner: int) -> list[Moment]:
    pipeline = beam.Pipeline(allow_unsafe_triggers=True)
    averages, longest = pipeline | "Lengths" >> AverageLengths(timestamp_combiner)
    for name, results in ((AVERAGES, averages), (LONGEST, longest)):
        shown = results | f"Show {name}" >> beam.Map(
            lambda element, name=name: (element[0], (name, element[1]))
        )
        _ = shown | f"Windows of {name}" >> beam.Map(with_window) | f"Write {name}" >> WriteToMemory([])
    return logical_times_of(pipeline)


@pytest.mark.parametrize(
    ("timestamp_combiner", "averages", "longest"),
    [
        pytest.param(
            END_OF_WINDOW,
            [
                ("12:06:46", "[12:00:00, 12:02:00)", 60),
                ("12:08:13", "[12:02:00, 12:04:00)", (94 + 60) / 2),
                ("12:08:18", "[12:04:00, 12:06:00)", (173 + 60) / 2),
                ("12:09:20", "[12:06:00, 12:08:00)", 106),
                ("12:11:00", "[12:08:00, 12:10:00)", (127 + 60) / 2),
            ],
            [
                ("12:08:13", "[12:00:00, 12:04:00)", (94 + 60) / 2),
                ("12:09:20", "[12:04:00, 12:08:00)", (173 + 60) / 2),
                ("12:11:00", "[12:08:00, 12:12:00)", (127 + 60) / 2),
            ],
            id="figure 3-5: at the end of the window",
        ),
        pytest.param(
            EARLIEST,
            [
                ("12:06:51", "[12:00:00, 12:02:00)", (60 + 94) / 2),
                ("12:08:15", "[12:02:00, 12:04:00)", (173 + 60 + 60) / 3),
                ("12:08:33", "[12:04:00, 12:06:00)", 106),
                ("12:09:21", "[12:06:00, 12:08:00)", (127 + 60) / 2),
            ],
            [
                ("12:08:15", "[12:00:00, 12:04:00)", (173 + 60 + 60) / 3),
                ("12:09:21", "[12:04:00, 12:08:00)", 106),
            ],
            id="figure 3-6: at the earliest element",
        ),
        # There is no figure of it: sessions count where their last element is.
        pytest.param(
            LATEST,
            [
                ("12:06:51", "[12:00:00, 12:02:00)", (60 + 94) / 2),
                ("12:08:15", "[12:02:00, 12:04:00)", 60),
                ("12:08:18", "[12:04:00, 12:06:00)", 173),
                ("12:09:21", "[12:06:00, 12:08:00)", (106 + 127 + 60) / 3),
            ],
            [
                ("12:08:15", "[12:00:00, 12:04:00)", (60 + 94) / 2),
                ("12:09:21", "[12:04:00, 12:08:00)", 173),
            ],
            id="at the latest element",
        ),
    ],
)
def test_what_the_second_and_the_third_stage_give_and_when(
    timestamp_combiner: int, averages: list[Any], longest: list[Any]
) -> None:
    found: dict[str, list[Any]] = {AVERAGES: [], LONGEST: []}
    for moment in of_sessions(timestamp_combiner):
        for (name, seconds), window in moment.found:
            clock_seconds = round(moment.clock_micros / 1_000_000)
            found[name].append((clock_seconds, window, pytest.approx(seconds)))
    for name, expected in ((AVERAGES, averages), (LONGEST, longest)):
        assert found[name] == [
            (micros_of(time) // 1_000_000, window_of(window), seconds) for time, window, seconds in expected
        ]


def at(moments: list[Moment], time: str, before: bool = False) -> dict[str, tuple[int, int]]:
    """The watermarks at a processing time, or just before."""
    until = micros_of(time) - (MILLISECOND if before else 0)
    return [moment.watermarks for moment in moments if moment.clock_micros <= until][-1]


# User, event times of the first and of the last element of a session, and when the session is given.
SESSIONS = [
    ("Mobile", "12:00:26", "12:00:26", "12:05:50"),
    ("Mobile", "12:02:26", "12:04:19", "12:07:36"),
    ("Mobile", "12:06:39", "12:07:46", "12:09:21"),
    ("Console", "12:00:39", "12:01:13", "12:06:51"),
    ("Console", "12:02:39", "12:02:39", "12:08:09"),
    ("Console", "12:03:53", "12:03:53", "12:08:15"),
    ("Console", "12:05:53", "12:06:39", "12:08:33"),
    ("Console", "12:07:46", "12:07:46", "12:09:00"),
]


@pytest.mark.parametrize(("timestamp_combiner", "behind"), [(EARLIEST, 7), (LATEST, 5)])
def test_a_session_holds_the_watermark_at_its_timestamp_until_it_is_given(
    timestamp_combiner: int, behind: int
) -> None:
    moments = of_sessions(timestamp_combiner)
    held_back = 0
    for user, first, last, until in SESSIONS:
        held_micros = micros_of(first if timestamp_combiner == EARLIEST else last)
        entering, leaving = at(moments, until, before=True)[user]
        assert leaving == min(entering, held_micros)
        assert at(moments, until)[user][1] > held_micros
        held_back += leaving < entering
    assert held_back == behind


def test_at_the_end_of_the_window_nothing_is_held() -> None:
    for moment in of_sessions(END_OF_WINDOW):
        assert all(entering == leaving for entering, leaving in moment.watermarks.values())


@pytest.mark.parametrize("timestamp_combiner", [END_OF_WINDOW, EARLIEST, LATEST])
def test_a_stage_is_as_far_as_the_stages_before_it_let_it_be(timestamp_combiner: int) -> None:
    moments = [moment.watermarks for moment in of_sessions(timestamp_combiner) if moment.watermarks]
    for watermarks in moments:
        assert all(leaving <= entering for entering, leaving in watermarks.values())
        assert watermarks[AVERAGES][0] == min(watermarks[user][1] for user in USERS)
        assert watermarks[LONGEST][0] == watermarks[AVERAGES][1]
    for earlier, later in pairwise(moments):
        for label, (entering, leaving) in earlier.items():
            assert later[label][0] >= entering
            assert later[label][1] >= leaving
    assert set(moments[-1].values()) == {(MAX_MICROS, MAX_MICROS)}


def overlapping(timestamp_combiner: int) -> Iterator[tuple[str, str, int]]:
    """One element in three windows, three groupings in a row: the watermark, the stage and the window's end."""
    times = ("12:02:59", "12:03:00", "12:03:59", "12:04:00", "12:04:59", "12:05:00")
    stream = TestStream().add_elements(
        [TimestampedValue(("key", 1), Timestamp.from_micros(micros_of("12:02:30")))]
    )
    for time in times:
        stream = stream.advance_watermark_to(Timestamp.from_micros(micros_of(time)))
    pipeline = beam.Pipeline()
    windows = beam.WindowInto(SlidingWindows(180, 60), timestamp_combiner=timestamp_combiner)
    groups = pipeline | stream | windows
    for stage in ("first", "second", "third"):
        groups = groups | f"Group {stage}" >> beam.GroupByKey()
        shown = groups | f"Name {stage}" >> beam.Map(lambda _, stage=stage: (None, stage))
        _ = shown | f"Show {stage}" >> beam.Map(with_window) | f"Write {stage}" >> WriteToMemory([])
        groups = groups | f"Again {stage}" >> beam.Map(lambda group: (group[0], 1))
    # Before the watermark there is a step for the beginning, and one for the element.
    for time, moment in zip(times, logical_times_of(pipeline)[2:], strict=False):
        for stage, window in moment.found:
            yield time, stage, window.end_micros


def test_windows_that_overlap_come_one_after_the_other_where_each_holds_behind_the_one_before() -> None:
    ends = ("12:03:00", "12:04:00", "12:05:00")
    stages = ("first", "second", "third")
    assert sorted(overlapping(TRANSFORMED)) == sorted(
        (end, stage, micros_of(end)) for end in ends for stage in stages
    )


def test_windows_that_overlap_come_all_at_once_where_each_holds_at_the_element() -> None:
    ends = ("12:03:00", "12:04:00", "12:05:00")
    first = [(end, "first", micros_of(end)) for end in ends]
    after = [(ends[-1], stage, micros_of(end)) for stage in ("second", "third") for end in ends]
    assert sorted(overlapping(EARLIEST)) == sorted([*first, *after])
