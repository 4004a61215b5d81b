"""Triggers and accumulation modes in batch, on Spark: what fires by the data, and what takes earlier panes back."""

from dataclasses import dataclass
from typing import Any

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.metrics import MetricsFilter
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.trigger import (
    FINISHED,
    AccumulationMode,
    AfterCount,
    AfterPunctuation,
    AfterWatermark,
    CustomTrigger,
    Repeatedly,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampedValue
from penstock.utils.windowed_value import PaneInfoTiming, ValueKind

pytestmark = pytest.mark.spark

DISCARDING, ACCUMULATING, RETRACTING = AccumulationMode
IN, BEFORE, AFTER, OUT = ValueKind


def timed(p, values, label="Timed"):
    """Pairs of a key and a value, at the value's time in seconds; they come in no order."""
    pairs = [TimestampedValue((key, at), at) for key, at in values]
    return (
        p
        | label >> beam.Create(pairs).with_output_types(tuple[str, Any])
        | f"{label} spread" >> beam.Reshuffle()
    )


def triggered(pcoll, trigger, mode, label, windowfn=None):
    return pcoll | label >> beam.WindowInto(windowfn or GlobalWindows(), trigger, accumulation_mode=mode)


def test_a_count_fires_in_order_of_event_time_in_each_mode():
    values = [("a", at) for at in (5, 1, 4, 2, 3)] + [("b", 9)]
    with TestPipeline() as p:
        made = timed(p, values)
        panes = {
            mode: triggered(made, Repeatedly(AfterCount(2)), mode, f"{mode.name} panes")
            | f"{mode.name} group" >> beam.GroupByKey()
            for mode in AccumulationMode
        }
        apart = [("a", [1, 2]), ("a", [3, 4]), ("a", [5]), ("b", [9])]
        assert_that(panes[DISCARDING], equal_to(apart), label="discarding")
        whole = [("a", [1, 2]), ("a", [1, 2, 3, 4]), ("a", [1, 2, 3, 4, 5]), ("b", [9])]
        assert_that(panes[ACCUMULATING], equal_to(whole), label="accumulating")
        changes = [
            (IN, ("a", [1, 2])),
            (BEFORE, ("a", [1, 2])),
            (AFTER, ("a", [1, 2, 3, 4])),
            (BEFORE, ("a", [1, 2, 3, 4])),
            (AFTER, ("a", [1, 2, 3, 4, 5])),
            (IN, ("b", [9])),
        ]
        assert_that(panes[RETRACTING] | beam.Changelog(), equal_to(changes), label="retracting")


class WithPane(beam.DoFn):
    def process(self, pair, pane=beam.DoFn.PaneInfoParam, window=beam.DoFn.WindowParam):
        timing = PaneInfoTiming.to_string(pane.timing)
        yield *pair, float(window.start), timing, pane.index, pane.is_first, pane.is_last


def test_early_panes_come_before_the_one_at_the_end_of_the_window():
    values = [("a", at) for at in (3, 1, 2, 12)] + [("b", 11)]
    with TestPipeline() as p:
        trigger = AfterWatermark(early=AfterCount(2))
        windowed = triggered(timed(p, values), trigger, ACCUMULATING, "Windows", FixedWindows(10))
        panes = windowed | beam.CombinePerKey(sum) | beam.ParDo(WithPane())
        expected = [
            ("a", 3, 0, "EARLY", 0, True, False),
            ("a", 6, 0, "ON_TIME", 1, False, True),
            ("a", 12, 10, "ON_TIME", 0, True, True),
            ("b", 11, 10, "ON_TIME", 0, True, True),
        ]
        assert_that(panes, equal_to(expected))


@dataclass(frozen=True)
class Above(CustomTrigger):
    """Fires when the sum since the last pane is above a limit; after so many panes, for the last time."""

    limit: int
    most: int

    def start(self):
        return 0, 0

    def on_element(self, state, element, context):
        return state[0] + element.value, state[1]

    def should_fire(self, state, context):
        return state[0] > self.limit

    def on_fire(self, state, context):
        return FINISHED if state[1] + 1 == self.most else (0, state[1] + 1)


class Total:
    """An accumulator with a class of its own."""

    def __init__(self, value=0):
        self.value = value


class Totals(beam.CombineFn):
    def create_accumulator(self):
        return Total()

    def add_input(self, accumulator, value):
        accumulator.value += value
        return accumulator

    def merge_accumulators(self, accumulators):
        return Total(sum(accumulator.value for accumulator in accumulators))

    def extract_output(self, accumulator):
        return accumulator.value


def test_triggers_with_code_of_the_user_see_the_elements_in_order():
    values = [("a", at) for at in (5, 1, 10, 4, 20, 2, 3)]
    with TestPipeline(options=PipelineOptions(allow_unsafe_triggers=True)) as p:
        made = timed(p, values)
        marked = triggered(made, Repeatedly(AfterPunctuation(lambda at: at % 5 == 0)), DISCARDING, "Marks")
        groups = marked | "Up to a mark" >> beam.GroupByKey()
        assert_that(groups, equal_to([("a", [1, 2, 3, 4, 5]), ("a", [10]), ("a", [20])]), label="marks")
        above = triggered(made, Above(limit=5, most=2), ACCUMULATING, "Above")
        assert_that(
            above | "Sums" >> beam.CombinePerKey(Totals()), equal_to([("a", 6), ("a", 15)]), label="above"
        )
    left_out = MetricsFilter().with_step("Sums").with_name("elements_dropped_after_last_pane")
    (counter,) = p.result.metrics().query(left_out)["counters"]
    assert counter.committed == 2


def test_a_session_takes_back_those_it_is_made_of_and_later_groupings_undo_that():
    """Sessions of each player, then how many sessions there are of each length, then how many in all."""
    values = [("ann", at) for at in (0, 1, 2, 30)] + [("bob", at) for at in (5, 6, 40)]
    with TestPipeline() as p:
        windowed = triggered(
            timed(p, values), Repeatedly(AfterCount(1)), RETRACTING, "Sessions", Sessions(10)
        )
        lengths = windowed | "Length" >> beam.combiners.Count.PerKey()
        changes = [
            *((kind, ("ann", n)) for kind, n in ((IN, 1), (OUT, 1), (IN, 2), (OUT, 2), (IN, 3), (IN, 1))),
            *((kind, ("bob", n)) for kind, n in ((IN, 1), (OUT, 1), (IN, 2), (IN, 1))),
        ]
        assert_that(lengths | "Lengths log" >> beam.Changelog(), equal_to(changes), label="lengths")
        all_time = triggered(
            lengths | beam.MapTuple(lambda name, length: (length, name)), None, RETRACTING, "All time"
        )
        numbers = all_time | "Number" >> beam.combiners.Count.PerKey()
        assert_that(numbers, equal_to([(3, 1), (2, 1), (1, 2)]), label="numbers")
        totals = (
            numbers | beam.MapTuple(lambda length, number: (None, length * number)) | beam.CombinePerKey(sum)
        )
        assert_that(totals, equal_to([(None, 7)]), label="totals")


def test_what_takes_back_is_refused_by_a_sink_before_anything_starts(tmp_path):
    p = TestPipeline()
    sums = triggered(
        timed(p, [("a", 1)]), Repeatedly(AfterCount(1)), RETRACTING, "Each"
    ) | beam.CombinePerKey(sum)
    sums | beam.Map(str) | "Out" >> beam.io.WriteToText(str(tmp_path / "out"))
    with pytest.raises(UnsupportedByRunner, match=r"(?s)cannot write retractions.*'Out.*Changelog\(\)"):
        p.run()
    assert list(tmp_path.iterdir()) == []
