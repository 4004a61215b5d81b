"""The figures of the paper and of the book: all are there, and those with two groupings."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import MAX_MICROS, AddElement, AdvanceWatermark, Event, EventOutput, Pane
from penstock.machines.reference_engine import ReferenceEngine
from penstock.transforms.combiners import MeanCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterWatermark
from penstock.transforms.window import (
    FixedWindows,
    IntervalWindow,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
)
from penstock.windows.windowing import Windowing
from penstock_conformance.moments import micros_of, window_of
from penstock_conformance.parsing import load
from penstock_conformance.scenario import Scenario

FIGURES = {scenario.title: scenario for scenario in load() if scenario.place.startswith("figures/")}


def of_figure(name: str) -> list[Scenario]:
    """The scenarios whose titles begin with a figure's name."""
    return [
        scenario
        for title, scenario in FIGURES.items()
        if title.startswith((f"{name}:", f"{name},", f"{name} "))
    ]


@pytest.mark.parametrize(
    ("figure", "number"),
    [
        *((f"Paper, figure {number}", 1) for number in (3, 4, 6, 7, 8, 9, 10, 11, 12, 13)),
        # As drawn, nudged, and what a strict reading gives.
        ("Paper, figure 14", 3),
        *((f"Figure 2-{number}", 1) for number in (3, 5, 6, 7, 8, 12, 13, 14)),
        ("Figure 2-10", 2),
        ("Figure 2-11", 3),
        ("Figure 3-4", 2),
        ("Figure 3-11", 3),
        ("Figure 4-2", 1),
        ("Figure 4-3", 2),
        ("Figure 4-4", 2),
        ("Figure 4-7", 2),
        *((f"Figure 4-{number}", 1) for number in (8, 9, 10)),
        ("Figure 4-11", 2),
        ("Figure 7-1", 1),
    ],
)
def test_every_figure_is_there(figure: str, number: int) -> None:
    assert len(of_figure(figure)) == number


def test_there_are_no_other_figures() -> None:
    assert len(FIGURES) == 44


def test_figure_3_of_the_paper_copies_an_element_into_each_window_and_leaves_its_time() -> None:
    machine = GroupingMachine(Windowing(SlidingWindows(120, 60)))
    windows = {time: set(machine.assign(micros_of(time))) for time in ("12:00:00", "12:01:00")}
    assert windows == {
        "12:00:00": {window_of("[11:59:00, 12:01:00)"), window_of("[12:00:00, 12:02:00)")},
        "12:01:00": {window_of("[12:00:00, 12:02:00)"), window_of("[12:01:00, 12:03:00)")},
    }


def recorded(title: str) -> tuple[Event, ...]:
    return FIGURES[title].steps("streaming")[0].events


def sessions_of(user: str, timestamp_combiner: int) -> ReferenceEngine:
    windowing = Windowing(
        Sessions(60), AfterWatermark(), AccumulationMode.DISCARDING, timestamp_combiner=timestamp_combiner
    )
    return ReferenceEngine(GroupingMachine(windowing, MeanCombineFn()))


def average_lengths(timestamp_combiner: int) -> Iterator[EventOutput]:
    """The mean length, in seconds, of the sessions of two users: a grouping after each user's, with holds between."""
    inputs = {
        "mobile": recorded("Figure 3-4, left: sessions of the mobile user"),
        "console": recorded("Figure 3-4, right: sessions of the console user"),
    }
    users = {name: sessions_of(name, timestamp_combiner) for name in inputs}
    watermarks = dict.fromkeys(users, micros_of("-inf"))
    averages = ReferenceEngine(
        GroupingMachine(
            Windowing(FixedWindows(120), AfterWatermark(), AccumulationMode.DISCARDING), MeanCombineFn()
        )
    )
    events: list[tuple[Any, str]] = [(event, name) for name in inputs for event in inputs[name]]
    events.sort(key=lambda one: one[0].clock_micros)
    at_the_end = [(AdvanceWatermark(MAX_MICROS, events[-1][0].clock_micros), name) for name in users]
    for event, name in [*events, *at_the_end]:
        for played in users[name].play(event):
            pane = played.emitted
            assert isinstance(pane, Pane)
            assert isinstance(pane.window, IntervalWindow)
            seconds = Fraction(pane.window.end_micros - pane.window.start_micros, 1_000_000)
            # No key: one average for all users.
            yield from averages.play(AddElement(seconds, pane.timestamp_micros, played.clock_micros))
        if isinstance(event, AdvanceWatermark):
            watermarks[name] = max(watermarks[name], event.watermark_micros)
        outputs = [
            watermarks[user] if player.hold_micros is None else min(watermarks[user], player.hold_micros)
            for user, player in users.items()
        ]
        yield from averages.play(AdvanceWatermark(min(outputs), event.clock_micros))


@pytest.mark.parametrize(
    ("timestamp_combiner", "expected"),
    [
        pytest.param(
            TimestampCombiner.OUTPUT_AT_EOW,
            [
                ("12:06:46", "[12:00:00, 12:02:00)", Fraction(60)),
                ("12:08:13", "[12:02:00, 12:04:00)", Fraction(94 + 60, 2)),
                ("12:08:18", "[12:04:00, 12:06:00)", Fraction(173 + 60, 2)),
                ("12:09:20", "[12:06:00, 12:08:00)", Fraction(106)),
                # When the input ends.
                ("12:11:00", "[12:08:00, 12:10:00)", Fraction(127 + 60, 2)),
            ],
            id="figure 3-5: at the end of the session",
        ),
        pytest.param(
            TimestampCombiner.OUTPUT_AT_EARLIEST,
            [
                ("12:06:51", "[12:00:00, 12:02:00)", Fraction(60 + 94, 2)),
                ("12:08:15", "[12:02:00, 12:04:00)", Fraction(173 + 60 + 60, 3)),
                ("12:08:33", "[12:04:00, 12:06:00)", Fraction(106)),
                ("12:09:21", "[12:06:00, 12:08:00)", Fraction(127 + 60, 2)),
            ],
            id="figure 3-6: at the first element of the session",
        ),
    ],
)
def test_the_average_lengths_of_sessions(timestamp_combiner: int, expected: list[Any]) -> None:
    panes = [
        (played.clock_micros, played.emitted.window, played.emitted.value)
        for played in average_lengths(timestamp_combiner)
        if isinstance(played.emitted, Pane)
    ]
    assert panes == [(micros_of(time), window_of(window), value) for time, window, value in expected]
