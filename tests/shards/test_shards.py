"""A shard emits the panes of the bare machine, however its input is cut into micro-batches and its keys into shards."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import (
    MAX_MICROS,
    MIN_MICROS,
    AddElement,
    AdvanceClock,
    AdvanceWatermark,
    Dropped,
    EndMicroBatch,
    Event,
    Pane,
)
from penstock.machines.reference_engine import play
from penstock.machines.window_machine import WindowMachine
from penstock.transforms.trigger import AccumulationMode, AfterProcessingTime, AfterWatermark
from penstock.transforms.window import FixedWindows, TimestampCombiner
from penstock.utils.windowed_value import PaneInfoTiming
from penstock.windows.windowing import Windowing
from tests.machines.generated_events import random_case
from tests.shards.shard_streams import Stream, machine_of

CASES = 150


def of_machine(case: Any, mode: str) -> tuple[dict[Any, list[Any]], list[Any]]:
    panes: dict[Any, list[Any]] = {}
    dropped = []
    for played in play(case.machine(), case.events, mode, finish=True):
        match played.emitted:
            case Pane(value, window, timestamp_micros, info):
                panes.setdefault(played.key, []).append((value, window, timestamp_micros, info))
            case Dropped(element, reason, count):
                dropped.append((element.value, reason, count))
    return panes, dropped


def of_stream(stream: Stream) -> tuple[dict[Any, list[Any]], list[Any]]:
    panes: dict[Any, list[Any]] = {}
    for _, key, *pane in stream.panes:
        panes.setdefault(key, []).append(tuple(pane))
    return panes, stream.dropped


def cuts(random: Random, events: tuple[Event, ...]) -> Iterable[list[Event]]:
    """The input in micro-batches of any size, empty ones included."""
    rest = list(events)
    while rest:
        size = random.choice((0, 1, 1, 2, 5, 20))
        yield rest[:size]
        rest = rest[size:]


@pytest.mark.parametrize("seed", range(CASES))
def test_streaming_gives_the_same_however_it_is_cut(seed):
    random = Random(seed)
    case = random_case(random)
    stream = Stream(case.machine(), shards=random.choice((1, 2, 3)))
    for events in cuts(random, case.events):
        stream.batch(events)
    stream.batch([], ends=True)
    panes, dropped = of_stream(stream)
    expected, expected_dropped = of_machine(case, "streaming")
    assert panes == expected, case
    assert sorted(dropped, key=repr) == sorted(expected_dropped, key=repr)


@pytest.mark.parametrize("seed", range(CASES))
def test_micro_batches_are_rounds(seed):
    random = Random(seed)
    case = random_case(random)
    stream = Stream(case.machine(), shards=random.choice((1, 2, 3)), micro_batch=True)
    batch: list[Event] = []
    for event in case.events:
        batch.append(event)
        if isinstance(event, EndMicroBatch):
            stream.batch(batch)
            batch = []
    stream.batch(batch, ends=True)
    panes, dropped = of_stream(stream)
    expected, expected_dropped = of_machine(case, "micro_batch")
    assert panes == expected, case
    assert sorted(dropped, key=repr) == sorted(expected_dropped, key=repr)


@pytest.mark.parametrize(("micro_batch", "held_micros"), [(False, 2_000_000), (True, 7_000_000)])
def test_watermarks_stay_where_they_are_while_nothing_takes_place(micro_batch, held_micros):
    """A round emits what it has, and holds nothing back."""
    machine = GroupingMachine(
        Windowing(FixedWindows(10, 0), timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    )
    stream = Stream(machine, shards=1, micro_batch=micro_batch)
    stream.batch([])
    stream.batch([AddElement("key", 2_000_000, 1), AdvanceWatermark(7_000_000)])
    stream.batch([])
    stream.batch([], ends=True)
    stream.batch([])
    assert stream.outputs == [MIN_MICROS, held_micros, held_micros, MAX_MICROS, MAX_MICROS]


@pytest.mark.parametrize("in_columns", [False, True])
def test_what_has_waited_for_a_source_fires_first_when_the_source_is_given_up(in_columns):
    """Before what is due by the clock, and although the watermark of the other source stays where it is."""
    trigger = AfterWatermark(early=AfterProcessingTime(2))
    windowing = Windowing(FixedWindows(10), trigger, AccumulationMode.DISCARDING)
    columns = machine_of(windowing, None, False) if in_columns else None
    assert isinstance(columns, WindowMachine) is in_columns
    stream = Stream(GroupingMachine(windowing), shards=1, columns=columns)
    stream.lag_micros["another one"] = None
    stream.batch([AddElement("waits", 1_000_000, 0), AdvanceWatermark(12_000_000, 0)])
    assert stream.panes == []
    del stream.lag_micros["another one"]
    stream.batch([AdvanceClock(5_000_000)])
    [(moment, *_, pane)] = stream.panes
    assert (moment.clock_micros, pane.timing) == (0, PaneInfoTiming.ON_TIME)
