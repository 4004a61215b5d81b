"""Side inputs that do not end: elements wait for them, and see what they hold; in any cuts, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.io import WriteToMemory
from penstock.io.watermarks import BoundedDisorder
from penstock.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton, EmptySideInput
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import GlobalWindows, SlidingWindows
from penstock_spark.reports.failure import StepFailure, find_failure
from tests.shards.toy_query import ToyQuery
from tests.shards.waiting_streams import MINUTES, SECOND, at, built, run, seen, streams

CUTS = pytest.mark.parametrize("events_per_batch", [None, 1, 2, 3])
SHARDS = pytest.mark.parametrize("shards", [1, 3])


@CUTS
@SHARDS
def test_elements_wait_for_the_pane_of_their_own_window(events_per_batch, shards):
    stream = streams(
        ("main", at(10, "a")),
        ("side", at(5, 1)),
        ("main", at(70, "b")),
        ("side", at(20, 2)),
        ("side", 60),
        ("main", at(30, "c")),
        ("side", at(80, 3)),
        ("side", 120),
    )
    found = run(stream, AsList, events_per_batch=events_per_batch, shards=shards)
    assert sorted(found) == [("a", [1, 2]), ("b", [3]), ("c", [1, 2])]


@CUTS
def test_a_window_without_elements_is_empty_once_the_watermark_has_passed_it(events_per_batch):
    stream = streams(("main", at(10, "a")), ("side", 59), ("main", at(11, "b")), ("side", 60))
    assert sorted(run(stream, AsList, events_per_batch=events_per_batch)) == [("a", []), ("b", [])]


def test_what_waits_is_told_and_holds_the_watermark():
    stream = streams(
        ("main", at(10, "a", "b")), ("main", 500), None, ("side", at(5, 1)), None, ("side", 60), None
    )
    query = ToyQuery(built(stream, AsList, MINUTES, MINUTES), shards=2)
    assert not any(query.batch().values())
    assert query.watermarks["See"] == (500 * SECOND, 10 * SECOND)
    assert query.waiting == {"See": {"SideWindows/view": 2}}
    query.batch()
    given = [element for elements in query.batch().values() for element in elements]
    assert given == [("a", [1]), ("b", [1])]
    assert query.waiting == {}
    assert query.watermarks["See"] == (500 * SECOND, 500 * SECOND)


@CUTS
def test_a_slowly_changing_side_input_is_what_its_last_pane_held(events_per_batch):
    stream = streams(
        ("main", at(1, "before")),
        ("side", at(2, "first")),
        ("main", at(3, "x")),
        ("main", at(4, "y")),
        ("side", at(5, "second")),
        ("main", at(6, "z")),
    )
    found = run(
        stream,
        AsSingleton,
        side_windows=GlobalWindows(),
        events_per_batch=events_per_batch,
        trigger=Repeatedly(AfterCount(1)),
        accumulation_mode=AccumulationMode.DISCARDING,
    )
    assert sorted(found) == [("before", "first"), ("x", "first"), ("y", "first"), ("z", "second")]


@CUTS
@pytest.mark.parametrize(
    ("accumulation", "expected"),
    [
        (AccumulationMode.DISCARDING, [[1], [2], [3]]),
        (AccumulationMode.ACCUMULATING, [[1], [1, 2], [1, 2, 3]]),
        (AccumulationMode.ACCUMULATING_AND_RETRACTING, [[1], [1, 2], [1, 2, 3]]),
    ],
)
def test_panes_replace_what_was_there(accumulation, expected, events_per_batch):
    events = []
    for number in (1, 2, 3):
        events += [("side", at(number, number)), ("main", at(number, f"m{number}"))]
    found = run(
        streams(*events),
        AsIter,
        events_per_batch=events_per_batch,
        trigger=AfterWatermark(early=AfterCount(1)),
        accumulation_mode=accumulation,
    )
    assert sorted(found) == [(f"m{number}", values) for number, values in enumerate(expected, 1)]


@CUTS
@pytest.mark.parametrize("mode", ["streaming", "micro_batch"])
def test_of_a_side_input_that_takes_back_what_is_left_is_seen(events_per_batch, mode):
    events: list[Any] = []
    for number in (1, 2, 3):
        events += [("side", at(number, number)), None, ("main", at(number, f"m{number}")), None]
    pipeline = beam.Pipeline()
    both = pipeline | streams(*events)
    early = AfterWatermark(early=AfterCount(1))
    retracting = beam.WindowInto(MINUTES, early, AccumulationMode.ACCUMULATING_AND_RETRACTING)
    total = both["side"] | "SideWindows" >> retracting | beam.CombineGlobally(sum).without_defaults()
    main = both["main"] | "MainWindows" >> beam.WindowInto(MINUTES)
    views = AsSingleton(total, 0), AsList(total)
    _ = main | "See" >> beam.Map(lambda *seen: seen, *views) | WriteToMemory([])
    query = ToyQuery(pipeline, mode, events_per_batch=events_per_batch)
    found = [
        element for _ in range(query.timeline.batches) for own in query.batch().values() for element in own
    ]
    assert sorted(found) == [("m1", 1, [1]), ("m2", 3, [3]), ("m3", 6, [6])]


@CUTS
def test_late_data_of_a_side_input_is_added_by_default(events_per_batch):
    stream = streams(
        ("side", at(5, 1)),
        ("side", 60),
        ("main", at(10, "a")),
        ("side", at(6, 2)),
        ("main", at(11, "b")),
    )
    found = run(stream, AsList, events_per_batch=events_per_batch, allowed_lateness=100)
    assert sorted(found) == [("a", [1]), ("b", [1, 2])]


@CUTS
def test_late_data_of_a_singleton_replaces_it(events_per_batch):
    stream = streams(
        ("side", at(5, 1)), ("side", 60), ("main", at(10, "a")), ("side", at(6, 2)), ("main", at(11, "b"))
    )
    found = run(stream, AsSingleton, events_per_batch=events_per_batch, allowed_lateness=100)
    assert sorted(found) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (AsDict, {"k": 1, "l": 2}),
        (AsMultiMap, {"k": [1], "l": [2]}),
        (AsIter, [("k", 1), ("l", 2)]),
        (AsList, [("k", 1), ("l", 2)]),
    ],
)
def test_all_views(view, expected):
    stream = streams(("side", at(5, ("k", 1), ("l", 2))), ("main", at(10, "a")), ("side", 60))
    assert run(stream, view) == [("a", expected)]


def test_a_singleton_that_is_empty():
    stream = streams(("main", at(10, "a")), ("side", 60))
    [(_, found)] = run(stream, AsSingleton)
    assert isinstance(found, EmptySideInput)
    assert run(stream, lambda side: AsSingleton(side, 7)) == [("a", 7)]


def test_a_singleton_of_two_is_an_error_that_names_the_step():
    stream = streams(("main", at(10, "a")), ("side", at(5, 1, 2)), ("side", 60))
    with pytest.raises(StepFailure) as failed:
        run(stream, AsSingleton)
    failure = find_failure(str(failed.value))
    assert failure is not None
    assert "2 elements is read as a singleton" in failure.message
    assert "See" in failure.where


@CUTS
def test_an_element_of_several_windows_waits_for_each(events_per_batch):
    stream = streams(
        ("main", at(70, "a")),
        ("side", at(10, 1)),
        ("side", at(70, 2)),
        ("side", 120),
        ("side", 180),
    )
    found = run(stream, AsList, SlidingWindows(120, 60), SlidingWindows(120, 60), events_per_batch)
    assert found == [("a", [1, 2]), ("a", [2])]


@CUTS
def test_None_and_elements_without_end_of_window(events_per_batch):
    stream = streams(("main", at(1, None)), ("side", at(1, None)))
    found = run(stream, AsList, GlobalWindows(), GlobalWindows(), events_per_batch)
    assert found == [(None, [None])]


def test_a_micro_batch_waits_for_nothing_beyond_itself():
    stream = streams(
        ("main", at(1, "a")), None, ("side", at(2, 1)), ("main", at(3, "b")), None, ("main", at(4, "c")), None
    )
    assert run(stream, AsList, mode="micro_batch") == [("a", []), ("b", [1]), ("c", [1])]


@CUTS
def test_what_is_late_for_its_side_input_is_dropped_and_counted(events_per_batch):
    stream = streams(
        ("side", at(5, 1)), ("side", 60), ("main", at(10, "a")), ("main", 100), ("main", at(11, "late"))
    )
    query = ToyQuery(built(stream, AsList, MINUTES, MINUTES), events_per_batch=events_per_batch)
    found = [query.batch() for _ in range(query.timeline.batches)]
    assert [element for batch in found for given in batch.values() for element in given] == [("a", [1])]
    assert query.counted("elements_dropped_as_late") == 1


@SHARDS
def test_a_step_that_a_changed_program_adds_knows_how_far_its_source_is(shards):
    """It is the first one at its level that reads this source."""

    def program(is_changed: bool) -> ToyQuery:
        pipeline = beam.Pipeline()
        source = beam.io.ReadFromText("/log/*", validate=False).as_stream(
            lambda line: line[1], BoundedDisorder(0)
        )
        pairs = (
            pipeline | "Read" >> source | beam.Map(lambda line: ("all", line[0])) | beam.WindowInto(MINUTES)
        )
        _ = pairs | "Group" >> beam.GroupByKey() | WriteToMemory([])
        if is_changed:
            sums = pairs | "Values" >> beam.Values() | beam.CombineGlobally(sum).without_defaults()
            wait = pairs | "See" >> beam.Map(lambda pair, side: (pair[1], side), AsSingleton(sums))
            _ = wait | "Seen" >> WriteToMemory([])
        return ToyQuery(pipeline, shards=shards)

    before, query = program(False), program(True)
    before.batch({"Read": [[(1, 5), (2, 500)]]})
    query.number, query._headers, query._stores = before.number, before._headers, before._stores
    # The late element would see no sum, since the grouping has also dropped it.
    assert query.batch({"Read": [[(3, 6), (4, 550)]]})["Seen"] == []
    assert query.counted("elements_dropped_as_late") == 3
    assert query.watermarks["See"][0] == 550 * SECOND
    assert query.batch({"Read": [[(5, 700)]]})["Seen"] == [(4, 4)]


def test_state_is_let_go():
    events: list[Any] = []
    for minute in range(20):
        events += [
            ("main", at(minute * 60, "m")),
            ("side", at(minute * 60, minute)),
            ("side", minute * 60 + 60),
        ]
        events += [("main", minute * 60 + 60), None]
    query = ToyQuery(built(streams(*events), AsList, MINUTES, MINUTES), shards=2)
    sizes = []
    for _ in range(query.timeline.batches):
        query.batch()
        sizes.append(sum(len(store.pages) for key, store in query._stores.items() if key[2] == "See"))
    assert max(sizes) <= 4


def test_a_step_with_side_inputs_of_both_kinds_and_what_follows_it():
    pipeline = beam.Pipeline()
    both = pipeline | streams(
        ("main", at(10, 1, 2, 3)), ("side", at(5, 10)), ("main", at(20, 4)), ("side", 60), ("main", 60)
    )
    main = both["main"] | "MainWindows" >> beam.WindowInto(MINUTES)
    rate = both["side"] | "SideWindows" >> beam.WindowInto(MINUTES)
    converted = main | "Convert" >> beam.Map(lambda amount, rate: ("all", amount * rate), AsSingleton(rate))
    kept = converted | beam.Filter(lambda pair, rate: pair[1] < 4 * rate, AsSingleton(rate))
    _ = kept | beam.CombinePerKey(sum) | WriteToMemory([])
    query = ToyQuery(pipeline, shards=2)
    assert [level.number for level in query.plan.levels] == [1, 2, 3, 4]
    found = [query.batch() for _ in range(query.timeline.batches)]
    assert [element for batch in found for given in batch.values() for element in given] == [("all", 60)]


def test_a_side_input_that_depends_on_another_one():
    pipeline = beam.Pipeline()
    both = pipeline | streams(("main", at(10, 1)), ("side", at(5, 10)), ("side", 60), ("main", 60))
    main = both["main"] | "MainWindows" >> beam.WindowInto(MINUTES)
    side = both["side"] | "SideWindows" >> beam.WindowInto(MINUTES)
    doubled = side | "Double" >> beam.Map(lambda own, all_of_main: own * 2 + len(all_of_main), AsList(main))
    _ = main | "See" >> beam.Map(seen, AsList(doubled)) | WriteToMemory([])
    query = ToyQuery(pipeline, shards=2)
    found = [query.batch() for _ in range(query.timeline.batches)]
    assert [element for batch in found for given in batch.values() for element in given] == [(1, [21])]


def test_two_views_of_one_collection_share_its_grouping():
    pipeline = beam.Pipeline()
    both = pipeline | streams(("main", at(10, "a")), ("side", at(5, 10)), ("side", 60))
    main = both["main"] | "MainWindows" >> beam.WindowInto(MINUTES)
    side = both["side"] | "SideWindows" >> beam.WindowInto(MINUTES)
    views = AsList(side), AsIter(side), AsSingleton(side)
    _ = main | "See" >> beam.Map(lambda *seen: seen, *views) | WriteToMemory([])
    query = ToyQuery(pipeline, shards=2)
    labels = [[root.label for root in level.roots] for level in query.plan.levels]
    assert labels == [["SideWindows/view", "SideWindows/singleton"], ["See"]]
    found = [query.batch() for _ in range(query.timeline.batches)]
    expected = [("a", [10], [10], 10)]
    assert [element for batch in found for given in batch.values() for element in given] == expected


def test_retractions_and_a_side_input_that_changes_are_refused():
    pipeline = beam.Pipeline()
    both = pipeline | streams(("main", at(10, ("k", 1))))
    mode = AccumulationMode.ACCUMULATING_AND_RETRACTING
    early = AfterWatermark(early=AfterCount(1))
    sums = both["main"] | beam.WindowInto(MINUTES, early, mode) | beam.CombinePerKey(sum)
    _ = sums | "See" >> beam.Map(seen, AsList(both["side"])) | beam.Map(print)
    with pytest.raises(UnsupportedByRunner, match=r"(?s)retract elements.*See.*join"):
        ToyQuery(pipeline)
