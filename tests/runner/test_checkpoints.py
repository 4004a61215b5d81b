"""Pipelines that fit a checkpoint and pipelines that do not, with the messages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest

import penstock as beam
from penstock.io.streaming.watermark_policy import WatermarkPolicy
from penstock.io.watermarks import (
    BoundedDisorder,
    EstimationBand,
    IdleTimeout,
    OrderedPartitions,
)
from penstock.testing.test_stream import TestStream
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn, TopCombineFn
from penstock.transforms.trigger import (
    AfterAlignedProcessingTime,
    AfterCount,
    AfterProcessingTime,
    AfterPunctuation,
    AfterWatermark,
    ClosingBehavior,
    CustomTrigger,
    OnTimeBehavior,
    Repeatedly,
)
from penstock.transforms.window import (
    CalendarWindows,
    FixedWindows,
    IntervalWindow,
    NonMergingWindowFn,
    Sessions,
    TimestampCombiner,
)
from penstock.utils.timestamp import Duration
from penstock_spark.checkpoints.contract.compare import compare
from penstock_spark.checkpoints.contract.signature import as_text, describe_combine
from tests.runner.checkpoint_plans import (
    ACCUMULATING,
    BASE,
    RETRACTING,
    Pipeline,
    grouped,
    into,
    lines,
    windowed,
    written,
)

# What fits.


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BASE, BASE),
        (BASE, replace(BASE, step=repr)),
        (BASE, replace(BASE, step=lambda one: one)),
        (BASE, replace(BASE, step_label="Renamed")),
        (BASE, replace(BASE, more=written("Out"))),
        (replace(BASE, more=written("Out")), BASE),
        (BASE, replace(BASE, more=grouped("More"))),
        (BASE, replace(BASE, more=grouped("More", deep=True))),
        (BASE, replace(BASE, windows=into(FixedWindows(60.0), AfterWatermark(AfterCount(1)), ACCUMULATING))),
        (
            replace(BASE, source=lines(event_time=float, watermark=BoundedDisorder(60))),
            replace(BASE, source=lines(event_time=int, watermark=IdleTimeout(BoundedDisorder(5), 9))),
        ),
    ],
)
def test_a_change_that_state_survives_is_not_refused(old: Pipeline, new: Pipeline) -> None:
    assert compare(old.signature(), new.signature()).refusals == []


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (BASE, BASE, None),
        (BASE, replace(BASE, step_label="Renamed"), None),
        (BASE, replace(BASE, more=grouped("More")), "'More' starts without state"),
        (BASE, replace(BASE, more=written("Out")), "'Out' receives only elements that arrive from now on"),
        (replace(BASE, more=written("Out")), BASE, "the pipeline no longer writes to 'Out'"),
        (
            BASE,
            replace(BASE, source=TestStream().add_elements([("ann", 1)])),
            "the source 'Clicks' has a different description",
        ),
        (
            BASE,
            replace(BASE, shards=8),
            "its state is distributed again, because the number of shards has changed\n  - 4\n  + 8",
        ),
        (
            replace(BASE, source=lines(event_time=float, watermark=BoundedDisorder(60))),
            replace(
                BASE,
                source=lines(event_time=float, watermark=BoundedDisorder(60)),
                more_sources=("Names", "Ages"),
            ),
            "the source 'Ages' is read from its beginning",
        ),
        (
            replace(BASE, source=lines(event_time=float, watermark=BoundedDisorder(60))),
            replace(BASE, source=lines(event_time=float, watermark=BoundedDisorder(5))),
            "the source 'Clicks' has a different watermark policy",
        ),
    ],
)
def test_what_is_worth_knowing_is_noted(old: Pipeline, new: Pipeline, note: str | None) -> None:
    notes = compare(old.signature(), new.signature()).notes
    assert [found.startswith(str(note)) for found in notes] == [True] * (note is not None)


def test_a_grouping_that_waits_for_more_than_before_is_noted() -> None:
    def beside(clicks: Any, sums: Any) -> None:
        more = clicks | "More" >> beam.GroupByKey()
        _ = (more, sums) | beam.Flatten() | "Both" >> beam.GroupByKey() | "ShowBoth" >> beam.Map(print)

    old, new = replace(BASE, more=grouped("Both", deep=True)), replace(BASE, more=beside)
    comparison = compare(old.signature(), new.signature())
    assert comparison.refusals == []
    assert "the watermark of 'Both' depends on different inputs\n  - Sum\n  + More, Sum" in comparison.notes


# What does not.


class Days(NonMergingWindowFn):
    def __init__(self, hour: int) -> None:
        self.hour = hour

    def assign(self, context: Any) -> Any:
        return [IntervalWindow(0, 86_400)]


class Odd(CustomTrigger):
    def should_fire(self, state: Any, context: Any) -> bool:
        return True


def sums(fn: Any) -> Any:
    return beam.CombineFn.from_callable(fn)


def streamed(**arguments: Any) -> Pipeline:
    return replace(BASE, source=lines(event_time=float, **arguments))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (BASE, replace(BASE, mode="micro_batch"), "the pipeline has a different mode"),
        (BASE, replace(BASE, top=False), "'Top' is missing, but the checkpoint has its state"),
        (BASE, replace(BASE, sum_label="Total"), "if its label is 'Total' now, give it the old label again"),
        (BASE, replace(BASE, sum_label="Total", combine=MeanCombineFn()), "pass drop_state=['Sum']"),
        (
            replace(BASE, more=grouped("More")),
            replace(BASE, more=grouped("More", deep=True)),
            "'More' is at a different level",
        ),
        (
            streamed(watermark=BoundedDisorder(60)),
            replace(streamed(watermark=BoundedDisorder(60)), more_sources=()),
            "the source 'Names' is missing, but the checkpoint stores how far it was "
            "read: to discard it, pass drop_state=['Names']",
        ),
        (
            streamed(watermark=BoundedDisorder(60)),
            replace(streamed(watermark=BoundedDisorder(60)), more_sources=("Ages",)),
            "if its label is 'Ages' now, give it the old label again",
        ),
        (
            BASE,
            replace(BASE, more_sources=()),
            "the source 'Names' is missing, and events that a program lists in recorded",
        ),
        (BASE, replace(BASE, source=beam.Create([1])), "the source 'Clicks' has another kind"),
        (BASE, streamed(watermark=OrderedPartitions()), "the pipeline uses a different clock"),
        (
            streamed(watermark=BoundedDisorder(60)),
            streamed(watermark=OrderedPartitions()),
            "estimates its watermark in a different way"
            "\n  - BoundedDisorder(per_partition=False)\n  + OrderedPartitions",
        ),
        (
            streamed(watermark=BoundedDisorder(60)),
            streamed(watermark=BoundedDisorder(60, per_partition=True)),
            "+ BoundedDisorder(per_partition=True)",
        ),
        (
            streamed(watermark=EstimationBand(10)),
            streamed(watermark=EstimationBand(20)),
            "- EstimationBand(band=Duration(10))",
        ),
        (
            streamed(watermark=OrderedPartitions(), partition=len),
            streamed(watermark=OrderedPartitions(), partition=hash),
            "the source 'Clicks' has other partitions\n  - len\n  + hash",
        ),
        (
            streamed(watermark=BoundedDisorder(60), arrival_time=float, tick=1),
            streamed(watermark=BoundedDisorder(60), arrival_time=float, tick=2),
            "the source 'Clicks' has another tick",
        ),
        (
            windowed(),
            windowed(windowfn=FixedWindows(61)),
            "'Sum' has other windows\n"
            "  - FixedWindows(offset=Duration(0), size=Duration(60))\n"
            "  + FixedWindows(offset=Duration(0), size=Duration(61))",
        ),
        (windowed(), windowed(windowfn=Sessions(60)), "'Sum' has other windows"),
        (windowed(), windowed(trigger=AfterCount(4)), "- Repeatedly(underlying=AfterCount(count=3))"),
        (windowed(), windowed(accumulation_mode=RETRACTING), "'Sum' has another accumulation mode"),
        (windowed(), windowed(accumulation_mode=RETRACTING), "'Top' has windows with different contents"),
        (windowed(), windowed(allowed_lateness=5), "'Sum' has another allowed lateness"),
        (
            windowed(),
            windowed(timestamp_combiner=TimestampCombiner.OUTPUT_AT_EARLIEST),
            "'Sum' has another output timestamp\n  - OUTPUT_AT_EOW\n  + OUTPUT_AT_EARLIEST",
        ),
        (
            windowed(trigger=AfterWatermark()),
            windowed(trigger=AfterWatermark(), on_time_behavior=OnTimeBehavior.FIRE_IF_NON_EMPTY),
            "'Sum' has a different rule for the pane at a window's end",
        ),
        (
            windowed(),
            windowed(closing_behavior=ClosingBehavior.FIRE_ALWAYS),
            "'Sum' has a different rule for a window's last pane",
        ),
        (BASE, replace(BASE, combine=MeanCombineFn()), "'Sum' has another CombineFn"),
        (replace(BASE, combine=sums(max)), replace(BASE, combine=sums(min)), "CombineFn(max)"),
    ],
)
def test_a_change_that_state_does_not_survive_is_refused_by_name(
    old: Pipeline, new: Pipeline, reason: str
) -> None:
    refusals = compare(old.signature(), new.signature()).refusals
    assert [reason in refusal for refusal in refusals].count(True) == 1, refusals


def test_a_behavior_without_a_meaning_for_the_trigger_is_no_difference() -> None:
    new = windowed(on_time_behavior=OnTimeBehavior.FIRE_IF_NON_EMPTY)
    assert compare(windowed().signature(), new.signature()).refusals == []


def test_another_pipeline_altogether_is_said_to_be_one() -> None:
    new = replace(BASE, source_label="Views", sum_label="Count", top=False, more_sources=())
    [refusal] = compare(BASE.signature(), new.signature()).refusals
    assert refusal.splitlines() == [
        "it belongs to a different pipeline: this one has none of the checkpoint's sources and groupings",
        "  - Clicks, Names, Sum, Top",
        "  + Count, Views",
    ]


def test_state_is_given_up_where_that_is_said_and_only_there() -> None:
    old = replace(BASE, more=grouped("More")).signature()
    comparison = compare(old, BASE.signature(), ["More"])
    assert (comparison.refusals, comparison.dropped) == ([], ("More",))
    assert "the state of 'More' is discarded" in comparison.notes
    kept = compare(old, old, ["More", "Moore"])
    assert [refusal.startswith("drop_state names 'More', which is in") for refusal in kept.refusals] == [True]
    assert kept.notes == [
        "drop_state names 'Moore', which has no state in the checkpoint: did you mean 'More'?"
    ]


# Descriptions as text.


def is_odd(value: Any) -> bool:
    return bool(value % 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AfterProcessingTime(5), AfterProcessingTime(Duration(5.0))),
        (AfterAlignedProcessingTime(60, 61), AfterAlignedProcessingTime(60.0, 1)),
        (AfterWatermark(early=AfterCount(2)), AfterWatermark(early=Repeatedly(AfterCount(2)))),
        (AfterPunctuation(lambda value: value > 1), AfterPunctuation(lambda value: value > 2)),
        (Days(8), Days(8)),
        (Odd(), Odd()),
        (CalendarWindows.months(12), CalendarWindows.years()),
    ],
)
def test_equal_descriptions_have_equal_texts(one: Any, other: Any) -> None:
    assert as_text(one) == as_text(other)
    assert " at 0x" not in as_text(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AfterProcessingTime(5), AfterProcessingTime(6)),
        (AfterPunctuation(is_odd), AfterPunctuation(str.isspace)),
        (Days(8), Days(9)),
        (CalendarWindows.months(3), CalendarWindows.months(3, time_zone="Europe/Berlin")),
        (Sessions(5), Sessions(5, merge_touching=True)),
        (frozenset({1, "a"}), frozenset({1, "b"})),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_different_descriptions_have_different_texts(one: Any, other: Any) -> None:
    assert as_text(one) != as_text(other)


def test_a_combinefn_is_told_by_its_name_and_its_parts_and_not_by_their_arguments() -> None:
    pairs = [
        (TopCombineFn(3, key=len), "TopCombineFn(len)"),
        (TopCombineFn(5, key=len), "TopCombineFn(len)"),
        (
            beam.combiners.TupleCombineFn(max, MeanCombineFn()),
            "TupleCombineFn(max, MeanCombineFn, CallableWrapperCombineFn(max)",
        ),
    ]
    for fn, text in pairs:
        assert describe_combine(fn).startswith(text)
    one, other = (MeanCombineFn(), CountCombineFn()), (CountCombineFn(), MeanCombineFn())
    tuples = [beam.combiners.TupleCombineFn(*fns) for fns in (one, other)]
    assert describe_combine(tuples[0]) != describe_combine(tuples[1])


IN_ANOTHER_PROCESS = """
from penstock.transforms.trigger import AfterAny, AfterPattern, AfterProcessingTime
from penstock_spark.checkpoints.contract.signature import as_text
print(as_text({"b", "a", "c"}), as_text(AfterAny(AfterPattern(lambda x: x, len), AfterProcessingTime(1))))
"""


def test_texts_are_the_same_in_every_process() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


@dataclass(frozen=True)
class Seasonal(WatermarkPolicy):
    """A policy with one argument that its state depends on."""

    needs_event_times = True
    state_depends_on = ("seasons",)
    seasons: int
    margin: int


def test_the_state_of_a_source_depends_on_the_arguments_that_its_policy_declares() -> None:
    def kept(policy: WatermarkPolicy) -> str:
        [*_, source] = streamed(watermark=policy).signature()["sources"]
        return source["watermark"]

    assert kept(IdleTimeout(Seasonal(4, margin=1))) == kept(Seasonal(4, margin=2))
    assert kept(Seasonal(4, margin=1)).endswith("Seasonal(seasons=4)")
