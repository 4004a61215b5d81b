"""What the book and the patent ask for and no transcript can say: steps, several groupings, attempts, duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import chain, permutations
from typing import Any, get_args

import pytest

import penstock as beam
from penstock.graph import Primitive
from penstock.io.each_batch import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.machines.grouping import GroupingMachine
from penstock.machines.records import AddElement, AdvanceWatermark, Pane
from penstock.machines.reference_engine import play
from penstock.testing.test_stream import TestStream
from penstock.transforms.deduplicate import DeduplicatePerKey
from penstock.transforms.stats import ApproximateQuantilesCombineFn
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterProcessingTime,
    AfterWatermark,
    Repeatedly,
)
from penstock.transforms.userstate import ReadModifyWriteStateSpec
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    TimestampCombiner,
    TimestampedValue,
)
from penstock.utils.windowed_value import PaneInfoTiming
from penstock.windows.windowing import Windowing
from penstock_spark.stream.state.header import Header
from penstock_spark.worker.batch import loads
from penstock_spark.worker.messages import Message, WatermarkUpdate
from tests.conformance.toy_runner import batches_of
from tests.shards import toy_query
from tests.shards.toy_query import ToyQuery

SECOND = 1_000_000


def timed(element: Any, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> Any:
    """The element, the end of its window in seconds, and the timing of its pane."""
    return (*element, window.end.micros // SECOND, PaneInfoTiming.to_string(pane.timing))


def pair_of(one: Any) -> tuple[Any, Any]:
    """What is read, without its event time."""
    return one[0], one[1]


def at(seconds: float, key: str, value: Any) -> TimestampedValue:
    return TimestampedValue((key, value), seconds)


def read(label: str = "Read", delay: float = 0) -> Any:
    """A stream of (key, value, event time in seconds); the query gives its own values for it."""
    source = beam.io.ReadFromText("/in/*.txt", validate=False)
    return label >> source.as_stream(event_time=lambda one: one[2], watermark=BoundedDisorder(delay))


def elements_of(pipeline: beam.Pipeline) -> Iterator[Any]:
    """What comes out of a pipeline with one recorded stream and one sink, event by event."""
    for _, given in batches_of(ToyQuery(pipeline, events_per_batch=1)):
        yield from chain(*given.values())


# P-05


@pytest.mark.parametrize(("lateness", "expected"), [(0, []), (60, [("a", 1, 10, "LATE")])])
def test_a_step_may_make_late_data_on_purpose_and_triggers_deal_with_it(lateness, expected):
    pipeline = beam.Pipeline()
    stream = (
        TestStream().advance_watermark_to(20).add_elements([at(25, "a", 1)]).advance_watermark_to_infinity()
    )
    moved = pipeline | stream | beam.Map(lambda pair: TimestampedValue(pair, 5))
    sums = moved | beam.WindowInto(FixedWindows(10), allowed_lateness=lateness) | beam.CombinePerKey(sum)
    _ = sums | beam.Map(timed) | WriteToMemory([])
    query = ToyQuery(pipeline, events_per_batch=1)
    assert [one for _, given in batches_of(query) for one in given["WriteToMemory"]] == expected
    assert query.counted("elements_dropped_as_late") == (0 if expected else 1)


# P-07


def sessions_of(seconds: Iterable[int], windowing: Windowing) -> list[tuple[int, int]]:
    events = [AddElement(one, one * SECOND) for one in seconds]
    played = play(GroupingMachine(windowing), [*events, AdvanceWatermark(100 * SECOND)])
    panes = [one.emitted for one in played if isinstance(one.emitted, Pane) and one.emitted.value]
    return sorted((pane.window.start.seconds(), pane.window.end.seconds()) for pane in panes)


def test_what_is_emitted_of_a_window_does_not_depend_on_order_when_all_it_may_merge_with_is_known():
    found = {tuple(sessions_of(order, Windowing(Sessions(10)))) for order in permutations((1, 8, 15, 40))}
    assert found == {((1, 25), (40, 50))}


def test_what_is_emitted_of_a_window_depends_on_order_when_it_is_ready_before_that():
    each = Windowing(Sessions(10), Repeatedly(AfterCount(1)), AccumulationMode.DISCARDING)
    forwards, outside_in = (sessions_of(order, each) for order in ((1, 8, 15), (1, 15, 8)))
    assert forwards == [(1, 11), (1, 18), (1, 25)]
    assert outside_in == [(1, 11), (1, 25), (15, 25)]


# C1-08


def test_one_stream_is_processed_in_the_four_styles_at_once():
    pipeline = beam.Pipeline()
    pairs = pipeline | read() | beam.Map(pair_of)
    every_minute = beam.WindowInto(
        GlobalWindows(), Repeatedly(AfterProcessingTime.aligned_to(60)), AccumulationMode.DISCARDING
    )
    styles = {
        "time-agnostic": pairs | beam.Filter(lambda pair: pair[1] > 2),
        "approximate": pairs
        | "Times" >> every_minute
        | beam.Values()
        | beam.CombineGlobally(ApproximateQuantilesCombineFn.create(3)).without_defaults(),
        "processing time": pairs | "Minutes" >> every_minute | "Sum" >> beam.CombinePerKey(sum),
        "event time": pairs | beam.WindowInto(FixedWindows(10)) | "Sum by time" >> beam.CombinePerKey(sum),
    }
    for style, results in styles.items():
        _ = results | style >> WriteToMemory([])
    query = ToyQuery(pipeline)

    def given(*values: Any, clock: int) -> dict[str, Any]:
        found = query.batch({"Read": [list(values)]} if values else {}, clock * SECOND)
        return {style: next(found[name] for name in found if name.startswith(style)) for style in styles}

    nothing: dict[str, Any] = {style: [] for style in styles}
    assert given(("a", 1, 1), ("a", 3, 12), clock=65) == {
        **nothing,
        "time-agnostic": [("a", 3)],
        "event time": [("a", 1)],
    }
    assert given(("a", 2, 13), clock=70) == nothing
    assert given(clock=120) == {**nothing, "approximate": [[1, 2, 3]], "processing time": [("a", 6)]}


# C3-11


def test_a_stages_watermark_is_the_least_of_its_parts():
    pipeline = beam.Pipeline()
    both = (pipeline | read("One"), pipeline | read("Other")) | beam.Flatten()
    windows = beam.WindowInto(FixedWindows(10), timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST)
    groups = both | beam.Map(pair_of) | windows | "Group" >> beam.GroupByKey()
    _ = groups | "Again" >> beam.GroupByKey() | WriteToMemory([])
    # One shard: it tells its own watermarks, of which the least counts.
    query = ToyQuery(pipeline, shards=1)

    def watermarks(**read: Any) -> list[tuple[int, int]]:
        query.batch({label: [values] for label, values in read.items()}, query.number * SECOND)
        return [tuple(micros // SECOND for micros in query.watermarks[label]) for label in ("Group", "Again")]

    # A source that has said nothing holds all; then the slower of the two, and what waits in the stage.
    [(first, _), _] = watermarks(One=[("a", 1, 34)])
    assert first < 0
    assert watermarks(Other=[("a", 1, 5)]) == [(5, 5), (5, 5)]
    assert watermarks(Other=[("a", 1, 9)]) == [(9, 5), (5, 5)]
    # The first window has fired. What the fourth one holds is all that is left in the first stage.
    assert watermarks(Other=[("a", 1, 38)]) == [(34, 34), (34, 34)]
    assert watermarks(One=[("a", 1, 39)]) == [(38, 34), (34, 34)]


# C3-25


def test_a_micro_batch_that_was_given_up_moves_no_watermark():
    pipeline = beam.Pipeline()
    pairs = pipeline | read() | beam.Map(pair_of) | beam.WindowInto(FixedWindows(10))
    _ = pairs | "Sum" >> beam.CombinePerKey(sum) | beam.Map(timed) | WriteToMemory([])
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 5)]]})
    attempt = deepcopy(query)
    [fired] = attempt.batch({"Read": [[("a", 2, 95)]]}).values()
    assert (fired, attempt.watermarks["Sum"][0]) == ([("a", 1, 10, "ON_TIME")], 95 * SECOND)
    # What was committed knows of no 95: the watermark stays, and the element at 6 is not late.
    [fired] = query.batch({"Read": [[("a", 4, 6)]]}).values()
    assert (fired, query.watermarks["Sum"][0]) == ([], 6 * SECOND)
    [fired] = query.batch({"Read": [[("a", 8, 10)]]}).values()
    assert fired == [("a", 5, 10, "ON_TIME")]


# C3-27


def test_after_a_watermark_its_sender_sends_nothing_before_it_that_is_not_late(monkeypatch):
    sent: list[Message] = []
    play_shard = toy_query.play_shard

    def listening(*arguments: Any) -> Any:
        rows: list[Any] = []
        done = toy_query.yield_into(rows, play_shard(*arguments))
        sent.extend(loads(payload) for level, shard, payload in rows if (level, shard) == (2, 0))
        yield rows
        return done

    monkeypatch.setattr(toy_query, "play_shard", listening)
    pipeline = beam.Pipeline()
    early = AfterWatermark(early=AfterCount(2), late=AfterCount(1))
    windows = beam.WindowInto(
        FixedWindows(10),
        early,
        AccumulationMode.ACCUMULATING,
        # The panes' timestamps are those of elements, for which the sender's watermark has to wait.
        TimestampCombiner.OUTPUT_AT_EARLIEST,
        allowed_lateness=20,
    )
    pairs = pipeline | read(delay=4) | beam.Map(pair_of) | windows
    _ = pairs | beam.CombinePerKey(sum) | "Again" >> beam.GroupByKey() | WriteToMemory([])
    query = ToyQuery(pipeline, shards=1)
    for number in range(60):
        query.batch({"Read": [[(f"k{number % 3}", 1, number + number * 7 % 13)]]}, number * SECOND)
    updates: list[WatermarkUpdate] = [
        update for message in sent for update in message.watermark_updates if update.percentile == 1
    ]
    timings = set()
    for message in sent:
        for parts in message.parts.values():
            for part in parts:
                known = Header()
                for update in updates:
                    if update.logical_time < part.logical_time:
                        known.take(update)
                promised = known.watermark_of(updates[0].origin)
                for _, timestamp, _, pane in part.batch.rows():
                    timings.add(PaneInfoTiming.to_string(pane.timing))
                    assert pane.timing == PaneInfoTiming.LATE or timestamp >= promised
    assert timings == {"EARLY", "ON_TIME", "LATE"}
    assert len({update.micros for update in updates}) > 10


# C4-02


USERS = (30, "ann", 1), (80, "bob", 2)
"""When points arrive, in seconds of processing time: whose, and how many."""


def in_two_stages(points: Any, windows: Any) -> None:
    """Sums of each user, and of those the sum of their team."""
    users = points | windows | "Users" >> beam.CombinePerKey(sum)
    of_team = users | "To the team" >> beam.Map(lambda pair: ("team", pair[1]))
    team = of_team | "Again" >> windows | "Teams" >> beam.CombinePerKey(sum)
    _ = (users, team) | beam.Flatten() | beam.Map(timed) | WriteToMemory([])


def test_slices_of_processing_time_are_cut_anew_in_each_stage():
    stream, now = TestStream(), 0
    for clock, user, points in USERS:
        stream, now = stream.advance_processing_time(clock - now).add_elements([at(0, user, points)]), clock
    pipeline = beam.Pipeline()
    every_minute = Repeatedly(AfterProcessingTime(60))
    slices = beam.WindowInto(FixedWindows(1000), every_minute, AccumulationMode.DISCARDING)
    in_two_stages(pipeline | stream.advance_processing_time(300), slices)
    # The users' slices end at 90 and 140; that of the team begins with the first of them, and has both.
    assert sorted(elements_of(pipeline)) == [
        ("ann", 1, 1000, "EARLY"),
        ("bob", 2, 1000, "EARLY"),
        ("team", 3, 1000, "EARLY"),
    ]


def test_windows_of_arrival_times_are_the_same_in_all_stages():
    stream = TestStream()
    for clock, user, points in USERS:
        stream = stream.advance_watermark_to(clock).add_elements([at(clock, user, points)])
    pipeline = beam.Pipeline()
    in_two_stages(pipeline | stream.advance_watermark_to_infinity(), beam.WindowInto(FixedWindows(60)))
    assert list(elements_of(pipeline)) == [
        ("ann", 1, 60, "ON_TIME"),
        ("team", 1, 60, "ON_TIME"),
        ("bob", 2, 120, "ON_TIME"),
        ("team", 2, 120, "ON_TIME"),
    ]


# S5-01, S5-07


@pytest.mark.parametrize(("by", "expected"), [("their ids", 7), ("the ids of messages", 8), ("nothing", 11)])
def test_what_is_delivered_or_published_again_counts_once_by_its_id(by, expected):
    # Each record has an id of its publisher's, and a message id that a second try to publish does not keep.
    records = [("r1", "m1", 1), ("r2", "m2", 2), ("r3", "m3", 2), ("r4", "m4", 2), ("r1", "m5", 1)]
    # The first two are delivered a second time as well.
    stream = TestStream().add_elements([TimestampedValue(one, 5) for one in [*records, *records[:2]]])
    pipeline = beam.Pipeline()
    read = pipeline | stream.advance_watermark_to_infinity() | beam.WindowInto(FixedWindows(10))
    place = ("their ids", "the ids of messages", "nothing").index(by)
    pairs = read | beam.Map(lambda record: (record[place], record[2]))
    if by != "nothing":
        pairs = pairs | DeduplicatePerKey(event_time_duration=60)
    _ = pairs | beam.Values() | beam.CombineGlobally(sum).without_defaults() | WriteToMemory([])
    assert list(elements_of(pipeline)) == [expected]


# S5-03


TRIES: list[Any] = []


def differently(pair: Any) -> list[Any]:
    """Something else with every try, and more of it."""
    TRIES.append(pair)
    return [(pair[0], 10 ** len(TRIES))] * len(TRIES)


def test_of_a_step_that_is_not_deterministic_one_try_counts_in_all_that_follows():
    TRIES.clear()
    pipeline = beam.Pipeline()
    pairs = (
        pipeline | read() | beam.Map(pair_of) | beam.FlatMap(differently) | beam.WindowInto(FixedWindows(10))
    )
    sums = pairs | "Sum" >> beam.CombinePerKey(sum)
    _ = sums | "Sums" >> WriteToMemory([])
    _ = pairs | beam.combiners.Count.PerKey() | "Counts" >> WriteToMemory([])
    _ = sums | "Group" >> beam.GroupByKey() | "Groups" >> WriteToMemory([])
    query = ToyQuery(pipeline)
    # The first try is given up.
    deepcopy(query).batch({"Read": [[("a", 1, 5)]]})
    query.batch({"Read": [[("a", 1, 5)]]})
    assert TRIES == [("a", 1)] * 2
    found = query.batch(commands=[("drain", "")])
    assert sorted(map(repr, found.values())) == ["[('a', 2)]", "[('a', 200)]", "[('a', [200])]"]
    # What is stored is not computed again.
    assert len(TRIES) == 2


# C6-03, C6-05, C6-06, S6-01


class Remembering(beam.DoFn):
    last = ReadModifyWriteStateSpec("last", beam.coders.PickleCoder())

    def process(self, element: Any, last: Any = beam.DoFn.StateParam(last)) -> Any:
        last.write(element)
        yield element


KINDS = {
    "ungroups a table that is there": {"Read"},
    "changes a stream": {"ParDo", "AssignWindows", "Flatten", "Reshuffle"},
    "groups into a table, and its trigger ungroups it": {"StatefulParDo", "GroupByKey", "CombinePerKey"},
    "groups into the table of somebody else": {"Write"},
}


def test_every_primitive_is_one_of_the_kinds_of_operations_and_only_groupings_have_tables():
    pipeline = beam.Pipeline()
    pairs = pipeline | read() | beam.Map(pair_of) | beam.WindowInto(FixedWindows(10))
    both = (pairs, pairs) | beam.Flatten() | beam.Reshuffle()
    remembered = both | beam.ParDo(Remembering())
    _ = remembered | beam.CombinePerKey(sum) | beam.GroupByKey() | WriteToMemory([])
    query = ToyQuery(pipeline)
    query.batch({"Read": [[("a", 1, 5)]]})
    query.batch(commands=[("drain", "")])
    plan = query.plan
    assert {kind.__name__ for kind in get_args(Primitive)} == set().union(*KINDS.values())
    groupings = [step for level in plan.levels for step in level.roots]
    steps = [step for part in plan.parts for step in part.steps if step not in groupings]
    sources = [step for part in plan.readings for step in part.roots]
    found = [
        {type(step.primitive).__name__ for step in some} for some in (sources, steps, groupings, plan.sinks)
    ]
    assert found == list(KINDS.values())
    assert {label for _, _, label in query._stores} == {step.label for step in groupings}


def test_what_is_written_without_a_key_is_added_and_replaces_nothing():
    pipeline = beam.Pipeline()
    stream = TestStream().add_elements([at(5, "a", 1), at(5, "a", 1)]).add_elements([at(5, "a", 1)])
    _ = pipeline | stream | WriteToMemory([])
    assert list(elements_of(pipeline)) == [("a", 1)] * 3


def test_map_and_reduce_are_six_phases():
    pipeline = beam.Pipeline()
    lines = pipeline | "MapRead" >> beam.io.ReadFromText("/in/lines.txt", validate=False)
    pairs = lines | "Map" >> beam.FlatMap(lambda line: [(word, 1) for word in line.split()])
    groups = pairs | "Group" >> beam.GroupByKey()
    counts = groups | "Reduce" >> beam.FlatMapTuple(lambda word, ones: [f"{word} {sum(ones)}"])
    _ = counts | "ReduceWrite" >> beam.io.WriteToText("/out/counts")
    plan = pipeline.explain().partition("# plan\n")[2]
    without_remarks = re.sub("  # .*", "", plan)
    assert without_remarks.splitlines() == [
        "stage 0 = scan",
        "  MapRead = Read(text /in/lines.txt)",
        "  Map = ParDo(<lambda>)",
        "  -> stage 1: #1 for Group",
        "stage 1 = exchange by key(stage 0)",
        "  Group = GroupByKey",
        "  Reduce = ParDo(<lambda>)",
        "  -> write 'ReduceWrite': #3 for ReduceWrite",
        "write 'ReduceWrite' = Write(text /out/counts-SSSSS-of-NNNNN)(stage 1)",
    ]
