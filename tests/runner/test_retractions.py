"""Elements that cannot write retractions: where they go, and who takes them."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.coders import VarIntCoder
from penstock.construction.retractions import may_retract
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import UnsupportedByRunner
from penstock.graph import DriverList
from penstock.io.sink_transforms import SinkTransform
from penstock.pvalue import AsDict, AsIter, AsList, AsMultiMap, AsSingleton
from penstock.relations.changelog import Changelog
from penstock.transforms.grouping.group_by_key import SpreadElements
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterCount,
    AfterWatermark,
    DefaultTrigger,
    Repeatedly,
)
from penstock.transforms.userstate import BagStateSpec
from penstock.transforms.window import (
    FixedWindows,
    GlobalWindow,
    GlobalWindows,
    IntervalWindow,
    SlidingWindows,
    TimestampedValue,
)
from penstock.typehints import typehints
from penstock.utils.windowed_value import PaneInfo, PaneInfoTiming, ValueKind, WindowedValue
from penstock_spark.plan.retractions import retracting_edges
from penstock_spark.reports.failure import StepFailure
from penstock_spark.supported import check
from tests.runner.changes import grouping, timed
from tests.runner.plain_runner import Settings, collect, run_plain

RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING


def retracting(pipeline: beam.Pipeline, window_fn: Any = GlobalWindows()) -> beam.PCollection[Any]:
    """Sums that change: 1, then 3 in its place, then 6 in place of that."""
    elements = [("k", 1, 1_000_000), ("k", 2, 2_000_000), ("k", 3, 3_000_000)]
    windowing = beam.Windowing(window_fn, Repeatedly(AfterCount(1)), RETRACTING)
    return (
        timed(pipeline, elements) | "Window" >> beam.WindowInto(windowing) | "Sum" >> beam.CombinePerKey(sum)
    )


def kinds(pcoll: beam.PCollection[Any], label: str = "Collect") -> list[Any]:
    return collect(pcoll | f"{label} changes" >> Changelog(), label)


IN, BEFORE, AFTER, OUT = ValueKind.INSERT, ValueKind.UPDATE_BEFORE, ValueKind.UPDATE_AFTER, ValueKind.DELETE
CHANGES = [(IN, ("k", 1)), (BEFORE, ("k", 1)), (AFTER, ("k", 3)), (BEFORE, ("k", 3)), (AFTER, ("k", 6))]


class Late(beam.DoFn):
    def process(self, pair, at=beam.DoFn.TimestampParam):
        yield pair


def tagged(pair):
    yield TaggedOutput("odd" if pair[1] % 2 else "even", pair)


@beam.ptransform_fn
def Branches(pcoll):
    outputs = pcoll | beam.FlatMap(tagged).with_outputs("odd", "even")
    return (outputs.odd, outputs.even) | beam.Flatten()


@beam.ptransform_fn
def Beside(pcoll):
    side = pcoll.pipeline | "Side" >> beam.Create([1])
    return pcoll | beam.ParDo(lambda pair, view: [pair], AsIter(side))


WAYS: dict[str, Any] = {
    "Map": beam.Map(lambda pair: pair),
    "Filter": beam.Filter(lambda pair: True),
    "FlatMap": beam.FlatMap(lambda pair: [pair]),
    "a DoFn that sees the time": beam.ParDo(Late()),
    "Map to another time": beam.Map(lambda pair: TimestampedValue(pair, 7)),
    "FlatMap to another time": beam.FlatMap(lambda pair: [TimestampedValue(pair, 7)]),
    "some to another time": beam.Map(lambda pair: TimestampedValue(pair, 7) if pair[1] > 2 else pair),
    "WindowInto": beam.WindowInto(SlidingWindows(10, 10)),
    "SetTrigger": beam.SetTrigger(accumulation_mode=AccumulationMode.DISCARDING),
    "Reshuffle": beam.Reshuffle(1),
    "Reshuffle by key": SpreadElements(2, by_key=True),
    "outputs and a Flatten": Branches(),
    "a DoFn with a side input": Beside(),
}


@pytest.mark.parametrize("windowfn", [GlobalWindows(), FixedWindows(10)])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_of_a_retraction_is_one(way, windowfn):
    pipeline = beam.Pipeline()
    into = kinds(retracting(pipeline, windowfn) | WAYS[way])
    run_plain(pipeline, Settings(partitions=1))
    assert sorted(into) == sorted(CHANGES)
    assert into == CHANGES or way == "outputs and a Flatten"


def test_an_output_with_a_pane_of_its_own_keeps_it():
    pipeline = beam.Pipeline()
    own = beam.FlatMap(lambda pair: [WindowedValue(pair, 0, (GlobalWindow(),))])
    into = kinds(retracting(pipeline) | own)
    run_plain(pipeline)
    assert into == [(IN, pair) for _, pair in CHANGES]


def test_a_view_holds_what_is_left():
    pipeline = beam.Pipeline()
    sums = retracting(pipeline)
    others = sums | beam.Filter(lambda pair: pair[1] < 6)
    main = pipeline | "Main" >> beam.Create([0])
    see = beam.Map(
        lambda x, *views: views,
        AsSingleton(sums),
        AsList(sums),
        AsDict(sums),
        AsMultiMap(sums | "Spread" >> beam.Reshuffle()),
        AsSingleton(others, "nothing"),
    )
    into = collect(main | see)
    run_plain(pipeline)
    assert into == [(("k", 6), [("k", 6)], {"k": 6}, {"k": [6]}, "nothing")]


def test_retractions_end_at_a_changelog_and_where_a_window_fires_once():
    pipeline = beam.Pipeline()
    sums = retracting(pipeline)
    sums | "Log" >> Changelog()
    mapped = sums | "Map" >> beam.Map(lambda pair: pair)
    modes = {
        "again": beam.SetTrigger(accumulation_mode=RETRACTING),
        "at the end": beam.SetTrigger(DefaultTrigger(), RETRACTING),
        "discarding": beam.SetTrigger(accumulation_mode=AccumulationMode.DISCARDING),
        "discarding at the end": beam.SetTrigger(DefaultTrigger(), AccumulationMode.DISCARDING),
        "accumulating": beam.SetTrigger(accumulation_mode=AccumulationMode.ACCUMULATING),
    }
    for name, set_trigger in modes.items():
        mapped | f"Set {name}" >> set_trigger | f"Group {name}" >> beam.GroupByKey()
    found = pipeline.to_graph()
    edges = retracting_edges(found)
    labels = {step.label for step in found.steps if any(output.edge in edges for output in step.outputs)}
    # A discarding grouping can only retract its earlier results in panes of their own.
    expected = {"Sum", "Map", "Group again", "Group discarding", *(f"Set {name}" for name in modes)}
    assert labels == expected


class Bare(beam.DoFn):
    def process(self, element, seen=beam.DoFn.WindowedValueParam):
        yield element, seen.timestamp.micros, seen.windows, seen.pane_info


def test_a_changelog_has_the_times_windows_and_panes_of_the_changes_and_only_adds():
    pipeline = beam.Pipeline()
    log = retracting(pipeline, FixedWindows(10)) | Changelog()
    into = collect(log | beam.ParDo(Bare()))
    run_plain(pipeline)
    assert [element for element, *_ in into] == CHANGES
    window = (IntervalWindow(0, 10),)
    assert {(micros, windows) for _, micros, windows, _ in into} == {(9_999_999, window)}
    assert [(pane.index, pane.kind) for *_, pane in into] == [(0, IN), (0, IN), (1, IN), (1, IN), (2, IN)]
    assert typehints.is_consistent_with(
        log.element_type, typehints.Tuple[ValueKind, typehints.Tuple[str, int]]
    )


def test_a_sink_refuses_what_takes_back_and_a_changelog_helps():
    pipeline = beam.Pipeline()
    sums = retracting(pipeline)
    sums | "Log" >> Changelog() | "Write log" >> SinkTransform(DriverList([]))
    pipeline.explain()
    sums | "Format" >> beam.Map(str) | "Write" >> SinkTransform(DriverList([]))
    with pytest.raises(
        UnsupportedByRunner, match=r"(?s)cannot write retractions.*step 'Write'.*Changelog\(\)"
    ):
        pipeline.explain()


@pytest.mark.parametrize("combine", [None, sum])
def test_what_comes_too_late_for_a_retracting_grouping_is_taken_by_a_sink(combine):
    """It is what came: it takes something back only if the input of the grouping does."""
    pipeline = beam.Pipeline()
    pairs = timed(pipeline, [("k", 1, 1_000_000)])
    windowing = beam.Windowing(FixedWindows(10), AfterWatermark(late=AfterCount(1)), RETRACTING)
    windowed = pairs | "Window" >> beam.WindowInto(windowing)
    sums, late = windowed | "Sum" >> grouping(combine).with_late_data()
    late | "Write late" >> SinkTransform(DriverList([]))
    sums | "Log" >> Changelog() | "Write log" >> SinkTransform(DriverList([]))
    for mode in ("micro_batch", "streaming"):
        check(pipeline.to_graph(), mode)
    assert may_retract(sums)
    assert not may_retract(late)
    _, late_again = sums | "Sum again" >> beam.GroupByKey().with_late_data()
    assert may_retract(late_again)
    late_again | "Write late sums" >> SinkTransform(DriverList([]))
    with pytest.raises(UnsupportedByRunner, match=r"(?s)cannot write retractions.*step 'Write late sums'"):
        check(pipeline.to_graph(), "streaming")


@pytest.mark.parametrize("combine", [None, sum])
def test_a_retraction_out_of_no_grouping_is_refused(combine):
    for trigger in (DefaultTrigger(), Repeatedly(AfterCount(1))):
        pipeline = beam.Pipeline()
        pane = PaneInfo(False, False, PaneInfoTiming.EARLY, 1, -1, OUT)
        pairs = pipeline | beam.Create([WindowedValue(("k", 1), 0, (GlobalWindow(),), pane)])
        windowed = pairs | beam.FlatMap(lambda x: [x]) | beam.WindowInto(GlobalWindows(), trigger, RETRACTING)
        collect(windowed | "It" >> grouping(combine) | Changelog())
        with pytest.raises(StepFailure, match="ValueError at step 'It'"):
            run_plain(pipeline)


class Irreversible(beam.CombineFn):
    accepts_retractions = False


class Remembering(beam.DoFn):
    SEEN = BagStateSpec("seen", VarIntCoder())

    def process(self, pair, seen=beam.DoFn.StateParam(SEEN)):
        yield pair


@pytest.mark.parametrize("step", [beam.CombinePerKey(Irreversible()), beam.ParDo(Remembering())])
def test_what_takes_no_retractions_is_refused_behind_windows_that_fire_once_in_rounds_alone(step) -> None:
    windows = beam.WindowInto(FixedWindows(5), AfterWatermark(), RETRACTING)
    summed = beam.Pipeline() | beam.Create([("k", 1)]) | windows | "Sum" >> beam.CombinePerKey(sum)
    assert may_retract(summed)
    pairs = summed | "Pair" >> beam.Map(lambda pair: pair).with_output_types(beam.typehints.KV[str, int])
    graph = (pairs | "Step" >> step).pipeline.to_graph()
    for mode in ("batch", "streaming"):
        check(graph, mode)
    with pytest.raises(UnsupportedByRunner, match="it does not accept retractions") as caught:
        check(graph, "micro_batch")
    assert "at step 'Step'" in str(caught.value)
    assert "run in the mode streaming" in str(caught.value)
