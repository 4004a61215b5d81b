"""User code in hosted groupings: what it raises and counts, and what its triggers leave out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import penstock as beam
from penstock.error import UnsupportedByRunner
from penstock.metrics import Metrics
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterPattern,
    AfterPunctuation,
    CustomTrigger,
    Repeatedly,
    TriggerFn,
)
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions
from penstock_spark.folding import machine_read
from penstock_spark.reports.failure import StepFailure, find_failure, to_exception
from tests.runner.changes import grouping, new_pipeline, timed
from tests.runner.plain_runner import Settings, collect, run_plain


def test_the_elements_of_a_window_that_takes_no_more_are_counted():
    pipeline = new_pipeline()
    elements = [("k", n, n * 1_000_000) for n in range(7)] + [("other", 1, 0)]
    once = beam.WindowInto(FixedWindows(5), AfterCount(2), accumulation_mode=AccumulationMode.ACCUMULATING)
    into = collect(timed(pipeline, elements) | once | "Once" >> beam.GroupByKey())
    metrics = run_plain(pipeline)
    assert sorted(into) == [("k", [0, 1]), ("k", [5, 6]), ("other", [1])]
    assert metrics == {("counters", "Once", "penstock", "elements_dropped_after_last_pane"): 3}


@dataclass(frozen=True)
class Failing(CustomTrigger):
    method: str

    def fail(self, method):
        if method == self.method:
            raise LookupError("no answer")

    def on_element(self, state, element, context):
        self.fail("on_element")

    def on_merge(self, states, context):
        self.fail("on_merge")

    def should_fire(self, state, context):
        self.fail("should_fire")
        return context.window.max_timestamp() < context.watermark or context.count > 2

    def on_fire(self, state, context):
        self.fail("on_fire")


def raising(*values):
    raise LookupError("no answer")


class FailingFn(beam.CombineFn):
    def create_accumulator(self):
        return 0

    def add_input(self, accumulator, value):
        raise LookupError("no answer")

    def merge_accumulators(self, accumulators):
        return 0

    def extract_output(self, accumulator):
        return 0


class FailingMerge(Sessions):
    def merge(self, context):
        raise LookupError("no answer")


@pytest.mark.parametrize(
    ("trigger", "windowfn", "combine"),
    [
        *(
            (Failing(name), Sessions(5), None)
            for name in ("on_element", "on_merge", "should_fire", "on_fire")
        ),
        (AfterPunctuation(raising), GlobalWindows(), None),
        (AfterPattern(raising), GlobalWindows(), None),
        (AfterBytes(1, raising), GlobalWindows(), None),
        (AfterDelta(1, distance=raising), GlobalWindows(), None),
        (AfterCount(1), GlobalWindows(), FailingFn()),
        (AfterCount(1), FailingMerge(5), None),
    ],
)
def test_what_a_trigger_or_a_combine_fn_raises_names_the_grouping(trigger, windowfn, combine):
    pipeline = beam.Pipeline()
    elements = [("k", n, n * 1_000_000) for n in range(3)]
    windowed = beam.WindowInto(windowfn, Repeatedly(trigger), accumulation_mode=AccumulationMode.ACCUMULATING)
    collect(timed(pipeline, elements) | windowed | "It" >> grouping(combine))
    with pytest.raises(StepFailure) as caught:
        run_plain(pipeline)
    error = to_exception(find_failure(str(caught.value)))
    assert isinstance(error, LookupError)
    assert "no answer [while running 'It'" in str(error)


def count(name):
    Metrics.counter("test", name).inc()


def counted_zero(value):
    count("asked")
    return value == 0


class Counted(beam.CombineFn):
    """Counts what is done, and whether it is set up."""

    def setup(self):
        count("setup")

    def create_accumulator(self):
        return []

    def add_input(self, accumulator, value):
        count("added")
        return [*accumulator, value]

    def merge_accumulators(self, accumulators):
        return [value for accumulator in accumulators for value in accumulator]

    def extract_output(self, accumulator):
        count("out")
        return accumulator

    def teardown(self):
        count("teardown")


def test_user_code_of_a_hosted_grouping_counts_for_its_step(monkeypatch):
    # Each pane is pushed at once, so that another step is at work before the next element.
    monkeypatch.setattr(machine_read, "_MOST_PANES", 1)
    pipeline = beam.Pipeline()
    elements = [(key, n % 3, n * 1_000_000) for n in range(9) for key in "ab"]
    trigger = Repeatedly(AfterPunctuation(counted_zero))
    windowed = beam.WindowInto(GlobalWindows(), trigger, accumulation_mode=AccumulationMode.DISCARDING)
    combined = timed(pipeline, elements) | windowed | "It" >> beam.CombinePerKey(Counted())
    into = collect(combined | "After" >> beam.Map(lambda pair: count("mapped") or pair))
    metrics = run_plain(pipeline, Settings(partitions=1, rows=2))
    assert sorted(into) == [(key, values) for key in "ab" for values in ([0], [1, 2], [1, 2, 0], [1, 2, 0])]
    found = {(step, name): n for (_, step, space, name), n in metrics.items() if space == "test"}
    # The trigger is not asked any more once it holds; the reader alone needs the CombineFn.
    assert found == {
        ("It", "asked"): 18,
        ("It", "added"): 18,
        ("It", "out"): 8,
        ("It", "setup"): 1,
        ("It", "teardown"): 1,
        ("After", "mapped"): 8,
    }


def test_an_accumulator_may_be_of_a_class_that_a_worker_cannot_import():
    class Total:
        value = 0

    class Totals(beam.CombineFn):
        def create_accumulator(self):
            return Total()

        def add_input(self, accumulator, value):
            accumulator.value += value
            return accumulator

        def merge_accumulators(self, accumulators):
            raise AssertionError("nothing merges")

        def extract_output(self, accumulator):
            return accumulator.value

    pipeline = beam.Pipeline()
    each = beam.WindowInto(
        GlobalWindows(), Repeatedly(AfterCount(1)), accumulation_mode=AccumulationMode.ACCUMULATING
    )
    into = collect(timed(pipeline, [("k", 1, 0), ("k", 2, 1)]) | each | "It" >> beam.CombinePerKey(Totals()))
    run_plain(pipeline)
    assert into == [("k", 1), ("k", 3)]


class Foreign(TriggerFn):
    def get_continuation_trigger(self):
        return self


def test_a_trigger_that_nothing_explains_is_refused():
    pipeline = new_pipeline()
    windowed = beam.WindowInto(GlobalWindows(), Foreign(), accumulation_mode=AccumulationMode.DISCARDING)
    pipeline | beam.Create([(1, 1)]) | windowed | "It" >> beam.GroupByKey()
    with pytest.raises(UnsupportedByRunner, match=r"(?s)Foreign\(\).*'It'.*CustomTrigger"):
        pipeline.explain()
