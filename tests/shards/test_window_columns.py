"""Windows in columns have the results of a machine for each key: panes, dropped elements and watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock.coders.deterministic import encode_keys
from penstock.functions.combinefn import CallableWrapperCombineFn, CombineFn
from penstock.io.watermarks import BoundedDisorder
from penstock.machines.grouping import GroupingMachine
from penstock.machines.pane_counts import ROOM
from penstock.machines.recorder import bounds_of
from penstock.machines.records import AddElement, AdvanceClock, AdvanceWatermark, Event, Times
from penstock.machines.window_machine import FRESH, WindowMachine
from penstock.transforms.combiners import CountCombineFn
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    OnTimeBehavior,
    Repeatedly,
    TriggerFn,
)
from penstock.transforms.window import FixedWindows, IntervalWindow, TimestampCombiner
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import PaneInfoTiming
from penstock.windows.windowing import Windowing
from penstock_spark.checkpoints.state_table import rows_of_page
from penstock_spark.stream.shards import window_table
from penstock_spark.stream.state import window_pages
from penstock_spark.stream.state.header import Header
from penstock_spark.stream.state.page_index import PageNotes
from penstock_spark.stream.state.window_pages import StoredWindow, WindowPages, page_of
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.messages import LogicalTime, Message, Part
from tests.machines.generated import FIXED, FOREVER, Largest, Listing, Sum, random_windowing
from tests.machines.generated_events import SECOND, random_events
from tests.shards.shard_streams import GROUPING, SOURCE, DictStore, Stream, machine_of
from tests.shards.test_combining import CombinedStream
from tests.shards.test_shards import cuts
from tests.shards.toy_query import ToyQuery

EARLY = (None, AfterCount(1), AfterCount(3), AfterProcessingTime(1), AfterProcessingTime(0))
LATE = (AfterCount(1), AfterCount(2), AfterProcessingTime(1), AfterProcessingTime.aligned_to(2))
QUIET_EARLY = (None, AfterProcessingTime(1), AfterProcessingTime(3), AfterProcessingTime(0))
QUIET_LATE = (AfterCount(1), AfterProcessingTime(1), AfterProcessingTime.aligned_to(2))
COMBINES: tuple[Any, ...] = (
    None,
    Sum(),
    Listing(),
    Largest(),
    CombineFn.from_callable(sum),
    CombineFn.from_callable(max),
    CombineFn.from_callable(min),
    CountCombineFn(),
)


OBJECTS = {"each cell": 0, "whole pages": window_table._MANY}
"""Which cells of a page become objects where some of them are wanted, and from how many wanted ones on all do."""


@pytest.fixture
def objects(objects_of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_table, "_MANY", OBJECTS[objects_of])


def random_trigger(random: Random, early: Sequence[TriggerFn | None], late: Sequence[TriggerFn]) -> TriggerFn:
    if random.random() < 0.2:
        return DefaultTrigger()
    if random.random() < 0.3:
        return Repeatedly(random.choice([trigger for trigger in early if trigger is not None]))
    return AfterWatermark(random.choice(early), random.choice(late))


def random_grouping(random: Random, trigger: TriggerFn) -> tuple[Windowing, Any]:
    # A grouping without a pane for late elements is simple only in windows that take none.
    repeats = isinstance(trigger, Repeatedly)
    windowing = random_windowing(random, [FIXED], lateness=(0,) if repeats else (0, 4, 4, FOREVER))
    mode = random.choice((AccumulationMode.DISCARDING, AccumulationMode.ACCUMULATING))
    at_end = TimestampCombiner.OUTPUT_AT_EOW
    windowing = replace(windowing, triggerfn=trigger, accumulation_mode=mode, timestamp_combiner=at_end)
    return windowing, random.choice(COMBINES)


def columns_of(windowing: Windowing, combine: Any) -> WindowMachine:
    machine = machine_of(windowing, combine, False)
    assert isinstance(machine, WindowMachine)
    return machine


def numbered(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The events without elements that cannot be added up."""
    return tuple(
        replace(event, value=event.value or 0) if isinstance(event, AddElement) else event for event in events
    )


def in_order(stream: Stream) -> list[str]:
    """The results of each key and window, in order."""
    return [repr(pane) for pane in sorted(stream.panes, key=lambda pane: repr((pane[1], pane[3])))]


def together(stream: Stream) -> list[str]:
    """The results of each moment, and the number of elements that were dropped."""
    return sorted(map(repr, stream.panes)) + [repr(sum(count for *_, count in stream.dropped))]


SEEDS = [
    pytest.param(seed, which, marks=[] if seed < 70 and seed % 2 == number else [pytest.mark.soak])
    for seed in range(150)
    for number, which in enumerate(OBJECTS)
]
"""Inputs, each with one choice of objects, and with ``soak`` with the other one too."""


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(("seed", "objects_of"), SEEDS)
def test_elements_that_come_one_by_one_give_what_machines_give(seed: int) -> None:
    random = Random(seed)
    windowing, combine = random_grouping(random, random_trigger(random, EARLY, LATE))
    machine, events = GroupingMachine(windowing, combine), numbered(random_events(random, 60))
    shards = random.choice((1, 2, 3))
    by_key, by_window = (
        Stream(machine, shards),
        Stream(machine, shards, columns=columns_of(windowing, combine)),
    )
    for some in cuts(random, events):
        by_key.batch(some)
        by_window.batch(some)
    by_key.batch([], ends=True)
    by_window.batch([], ends=True)
    assert in_order(by_window) == in_order(by_key), windowing
    assert sorted(map(repr, by_window.dropped)) == sorted(map(repr, by_key.dropped))
    assert by_window.outputs == by_key.outputs


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(("seed", "objects_of"), SEEDS)
def test_elements_that_come_combined_give_what_machines_give(seed: int) -> None:
    random = Random(seed)
    windowing, combine = random_grouping(random, random_trigger(random, QUIET_EARLY, QUIET_LATE))
    machine = GroupingMachine(windowing, combine)
    cut = list(cuts(random, numbered(random_events(random, 60))))
    streams = []
    for kept in (None, columns_of(windowing, combine)):
        stream = CombinedStream(machine, combine, Random(seed), columns=kept)
        for some in cut:
            stream.batch(some)
        stream.batch([], ends=True)
        streams.append(stream)
    by_key, by_window = streams
    assert together(by_window) == together(by_key), windowing
    assert by_window.outputs == by_key.outputs


def watermarks_go_back(random: Random, number: int) -> dict[str, int | None]:
    """The sources of the third and of the sixth micro-batch, and of those after them: each has one more."""
    lags = [0, random.randint(1, 20) * SECOND, random.randint(10, 40) * SECOND]
    sources = [SOURCE, "second", "third"][: 1 + (number >= 2) + (number >= 5)]
    return dict(zip(sources, lags, strict=False))


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(("seed", "objects_of"), SEEDS)
@pytest.mark.parametrize("combined", [False, True])
def test_a_window_that_has_ended_and_is_open_again_gives_what_machines_give(
    seed: int, combined: bool
) -> None:
    """A source is added, whose watermark is earlier: windows of both are in the same pages."""
    random = Random(seed)
    quiet = (QUIET_EARLY, QUIET_LATE) if combined else (EARLY, LATE)
    windowing, combine = random_grouping(random, random_trigger(random, *quiet))
    if not isinstance(windowing.triggerfn, Repeatedly):
        windowing = replace(windowing, allowed_lateness=random.choice((4, 15, 40)))
    machine, events = GroupingMachine(windowing, combine), numbered(random_events(random, 120))
    cut = [events[start : start + 12] for start in range(0, len(events), 12)]
    streams = []
    for kept in (None, columns_of(windowing, combine)):
        stream = (
            CombinedStream(machine, combine, Random(seed), columns=kept)
            if combined
            else Stream(machine, 2, columns=kept)
        )
        sources = Random(seed)
        for number, some in enumerate(cut):
            stream.lag_micros = watermarks_go_back(sources, number)
            stream.batch(list(some))
        stream.batch([], ends=True)
        streams.append(stream)
    by_key, by_window = streams
    told = together if combined else in_order
    assert told(by_window) == told(by_key), windowing
    assert by_window.outputs == by_key.outputs


@pytest.mark.parametrize("seed", range(30))
def test_what_the_view_of_a_run_counts_is_what_comes_out(seed: int) -> None:
    random = Random(seed)
    windowing, combine = random_grouping(random, random_trigger(random, EARLY, LATE))
    events = numbered(random_events(random, 60))
    retracting = replace(windowing, accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING)
    for own, kept in ((windowing, None), (windowing, columns_of(windowing, combine)), (retracting, None)):
        stream = Stream(GroupingMachine(own, combine), 2, columns=kept)
        for some in cuts(random, events):
            stream.batch(some)
        stream.batch([], ends=True)
        expected: dict[str, int] = {}
        for *_, info in stream.panes:
            word = "retracted" if info.kind.is_retraction else PaneInfoTiming.to_string(info.timing).lower()
            expected[word] = expected.get(word, 0) + 1
        if stream.dropped:
            expected["dropped"] = sum(count for *_, count in stream.dropped)
        tally = stream.tallier.tally()
        assert (tally.counts if tally else {}) == expected
        fired = [
            (micros, start, end, timing) for micros, start, end, timing, _ in (tally.fired if tally else ())
        ]
        assert len(fired) == len(set(fired))
        windows = {bounds_of(window) for _, _, _, window, _, _ in stream.panes}
        assert len(fired) == ROOM or windows <= {(start, end) for _, start, end, _ in fired}


FIRING = Windowing(
    FixedWindows(10),
    AfterWatermark(early=AfterProcessingTime(1), late=AfterCount(1)),
    AccumulationMode.ACCUMULATING,
    allowed_lateness=100,
)


def many_keys(random: Random, keys: list[Any]) -> list[list[Event]]:
    """Micro-batches in which something comes for some keys, now many and now few."""
    batches: list[list[Event]] = []
    for number in range(12):
        chosen = random.sample(keys, random.choice((1, 5, len(keys) // 2, len(keys))))
        arrivals: list[Event] = [
            AddElement(value, (number * 4 + random.randint(-25, 9)) * SECOND, number * SECOND, key)
            for value, key in enumerate(chosen)
        ]
        batches.append([*arrivals, AdvanceWatermark((number * 4 - 8) * SECOND)])
    return batches


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("objects_of", OBJECTS)
@pytest.mark.parametrize("keys", [[f"user {number}" for number in range(500)], [(1, x) for x in range(300)]])
def test_pages_that_split_lose_nothing(keys: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_pages, "PAGE_BYTES", 1 << 10)
    random = Random(7)
    combine = CombineFn.from_callable(sum)
    machine = GroupingMachine(FIRING, combine)
    by_key, by_window = Stream(machine), Stream(machine, columns=columns_of(FIRING, combine))
    for events in many_keys(random, keys):
        by_key.batch(events)
        by_window.batch(events)
        assert by_window.outputs == by_key.outputs
    assert len(Header.decoded(by_window.headers[0]).notes[GROUPING]) > 8
    for stream in (by_key, by_window):
        stream.batch([], ends=True)
    assert {PaneInfoTiming.EARLY, PaneInfoTiming.ON_TIME, PaneInfoTiming.LATE} == {
        pane[-1].timing for pane in by_window.panes
    }
    assert in_order(by_window) == in_order(by_key)
    assert all(not store.pages for store in by_window.stores)


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("objects_of", OBJECTS)
@pytest.mark.parametrize("seed", range(10))
def test_a_window_that_is_open_again_has_ended_for_the_keys_in_a_page_of_which_some_come(seed: int) -> None:
    random = Random(seed)
    machine = GroupingMachine(FIRING, Sum())
    by_key, by_window = streams = Stream(machine, 1), Stream(machine, 1, columns=columns_of(FIRING, Sum()))
    first, later = (sorted(random.sample(range(60), 40)) for _ in range(2))
    batches: list[list[Event]] = [
        [AddElement(1, SECOND, 0, key) for key in first],
        [AdvanceWatermark(12 * SECOND)],
    ]
    for number in range(1, 5):
        some = random.sample(later, 4)
        batches.append([AddElement(number, SECOND, number * SECOND, key) for key in some])
    batches += [[AdvanceWatermark(40 * SECOND)], [AddElement(9, SECOND, 9 * SECOND, key) for key in later]]
    for number, events in enumerate(batches):
        for stream in streams:
            if number == 2:
                stream.lag_micros = {SOURCE: 0, "second": 20 * SECOND}
            stream.batch([*events, AdvanceWatermark((12 if 0 < number < 6 else 0) * SECOND)])
    for stream in streams:
        stream.batch([], ends=True)
    assert {PaneInfoTiming.ON_TIME, PaneInfoTiming.LATE} <= {pane[-1].timing for pane in by_key.panes}
    assert in_order(by_window) == in_order(by_key)


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("objects_of", OBJECTS)
@pytest.mark.parametrize("seed", range(5))
def test_a_window_knows_how_many_of_its_keys_have_something_new(seed: int) -> None:
    """If none has, the window may close without a look at its cells."""
    random = Random(seed)
    windowing = Windowing(FixedWindows(10), AfterWatermark(early=AfterCount(3)), AccumulationMode.DISCARDING)
    machine, store, notes = columns_of(windowing, Sum()), DictStore(), PageNotes()
    found = set()
    for number in range(8):
        table = window_table.WindowTable(machine, WindowPages(store, notes, 1))
        names = encode_keys([random.randint(0, 60) for _ in range(random.choice((3, 40)))])
        part = Part(LogicalTime(number, 0), names, Batch([1] * len(names), 0, (IntervalWindow(0, 10),)))
        list(table.arrive([(part, Message((0, 0)))], Times()))
        table._read(range(len(notes)))
        [live] = table.live.values()
        known = live.column.fresh + live.stored_new_count
        if seed % 2:
            table._unpickle(live, list(live.stored))
            assert live.stored_new_count == 0
            assert known == sum(1 for cell in live.column.cells.values() if cell[FRESH])
        found.add(known)
        table.save()
        assert known == sum(page_of(page)[live.column.window].new_count for page in store.pages.values())
    assert len(found) > 1


def test_windows_for_which_nothing_comes_are_left_as_they_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(GroupingMachine(FIRING), 1, columns=columns_of(FIRING, None))
    stream.batch([AddElement(1, 10 * number * SECOND, 0, "key") for number in range(50)])
    read: list[StoredWindow] = []
    unpickled = StoredWindow.unpickled
    monkeypatch.setattr(StoredWindow, "unpickled", lambda stored: (read.append(stored), unpickled(stored))[1])
    stream.batch([AddElement(2, 33 * SECOND, 0, "key")])
    assert len(read) == 1


@pytest.mark.parametrize("behavior", list(OnTimeBehavior))
def test_the_state_table_tells_what_columns_hold(behavior: OnTimeBehavior) -> None:
    windowing = replace(FIRING, on_time_behavior=behavior, accumulation_mode=AccumulationMode.DISCARDING)
    stream = Stream(GroupingMachine(windowing), 1, columns=columns_of(windowing, None))
    stream.batch(
        [
            AddElement("x", 3 * SECOND, 0, ("a", 1)),
            AdvanceClock(SECOND),
            AddElement("y", 4 * SECOND, None, "b"),
        ]
    )
    pages = [page for store in stream.stores for page in store.pages.values()]
    rows = [
        row for page in pages for row in rows_of_page("Sum", page, 1, behavior == OnTimeBehavior.FIRE_ALWAYS)
    ]
    assert sorted(
        (str(row.key), row.value, row.new_elements, row.panes, str(row.window)) for row in rows
    ) == [
        ("('a', 1)", None, 0, 1, "[0.0, 10.0)"),
        ("b", ["y"], 1, 0, "[0.0, 10.0)"),
    ]
    of_key = {str(row.key): row for row in rows}
    assert (of_key["('a', 1)"].hold is None) == (behavior == OnTimeBehavior.FIRE_IF_NON_EMPTY)
    assert of_key["b"].hold == Timestamp.from_micros(10 * SECOND - 1)
    assert of_key["b"].next_alarm == Timestamp(10)
    assert of_key["b"].next_clock_alarm == Timestamp(2)


def test_state_stays_as_it_was_written_whatever_the_switch_says() -> None:
    pipeline = beam.Pipeline()
    _ = (
        pipeline
        | "Read"
        >> beam.io.ReadFromText("scores", validate=False).as_stream(
            event_time=lambda pair: pair[1], watermark=BoundedDisorder(60)
        )
        | beam.Map(lambda pair: (pair[0], pair[1]))
        | beam.WindowInto(FixedWindows(10))
        | beam.CombinePerKey(sum)
        | beam.io.ForEachBatch(print)
    )
    for is_first in (True, False):
        first = ToyQuery(pipeline, without=() if is_first else ("window_columns",))
        first.batch({"Read": [[("a", 1), ("b", 2)]]}, 1)
        second = ToyQuery(pipeline, without=("window_columns",) if is_first else ())
        second._headers, second._stores, second.number = first._headers, first._stores, 1
        second.batch({"Read": [[("a", 3)]]}, 2)
        [found] = second.batch(commands=[("end", "Read")]).values()
        assert sorted(found) == [("a", 4), ("b", 2)]


class Shown(CallableWrapperCombineFn):
    def extract_output(self, accumulator: list[Any], *args: Any, **kwargs: Any) -> Any:
        return f"<{super().extract_output(accumulator)}>"


def test_a_subclass_of_a_sum_gives_its_own_output_and_a_greatest_value_is_no_part_of_a_pane() -> None:
    shown = Stream(GroupingMachine(FIRING, Shown(sum)), 1, columns=columns_of(FIRING, Shown(sum)))
    shown.batch([AddElement(2, SECOND, 0, "a"), AddElement(3, SECOND, 0, "a")], ends=True)
    assert [pane[2] for pane in shown.panes] == ["<5>"]
    greatest = CombineFn.from_callable(max)
    kept = Stream(GroupingMachine(FIRING, greatest), 1, columns=columns_of(FIRING, greatest))
    machine = kept.working
    assert isinstance(machine, WindowMachine)
    held = [1]
    assert machine.fold.result(held, True) == held
    assert machine.fold.result(held, True) is not held


def test_what_fires_more_cleverly_has_a_machine_for_each_key() -> None:
    for changed in (
        replace(FIRING, accumulation_mode=AccumulationMode.ACCUMULATING_AND_RETRACTING),
        replace(FIRING, timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST),
        replace(FIRING, triggerfn=AfterWatermark(early=AfterCount(1))),
        replace(FIRING, triggerfn=Repeatedly(AfterCount(1))),
    ):
        assert isinstance(machine_of(changed, None, False), GroupingMachine)
    assert isinstance(machine_of(FIRING, None, True), GroupingMachine)
    assert isinstance(machine_of(FIRING, None, False, may_be_by_window=False), GroupingMachine)
