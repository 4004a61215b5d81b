"""Splittable DoFns in a batch on the real workers, and what the runner refuses of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as beam
from penstock.coders import StrUtf8Coder
from penstock.error import UnsupportedByRunner
from penstock.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from penstock.io.watermark_estimators import MonotonicWatermarkEstimator
from penstock.testing.test_stream import TestStream
from penstock.transforms.core import ProcessContinuation, RestrictionProvider
from penstock.transforms.userstate import BagStateSpec
from penstock.transforms.window import GlobalWindow, IntervalWindow, SlidingWindows, TimestampedValue
from penstock.utils import clock
from penstock.utils.timestamp import Duration, Timestamp
from penstock_spark.reports.failure import StepFailure, find_failure
from penstock_spark.supported import check, default_mode
from tests.runner.plain_runner import Settings, collect, collect_timed, run_plain


class Ranges(RestrictionProvider):
    def initial_restriction(self, element: Any) -> Any:
        return OffsetRange(0, len(element))

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: Any, restriction: Any) -> Any:
        return restriction.split(2)


RANGES = beam.DoFn.RestrictionParam(Ranges())
MONOTONIC = beam.DoFn.WatermarkEstimatorParam(MonotonicWatermarkEstimator.default_provider())


class Letters(beam.DoFn):
    """Gives the letters of a word, and looks at its restriction anew after each."""

    def process(
        self, word: Any, more: str = "", tracker: Any = RANGES, estimator: Any = MONOTONIC, *args: Any
    ) -> Any:
        position = tracker.current_restriction().start
        if tracker.try_claim(position):
            yield TimestampedValue(word[position] + more, position)
            yield ProcessContinuation.resume(2)


class Windowed(beam.DoFn):
    def process(
        self, element: Any, sides: Any, window: Any = beam.DoFn.WindowParam, tracker: Any = RANGES
    ) -> Any:
        position = tracker.current_restriction().start
        while tracker.try_claim(position):
            yield element[position], window.start.micros // 10**6, sorted(sides)
            position += 1
        if position < tracker.current_restriction().stop:
            raise AssertionError("the tracker ends too early")


class Waiting(clock.Clock):
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def seconds(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_each_restriction_is_processed_to_its_end_and_a_task_waits_for_what_is_deferred():
    pipeline = beam.Pipeline()
    found = collect(pipeline | beam.Create(["abcde", "xy"]) | beam.ParDo(Letters(), "!"))
    waiting = Waiting()
    with clock.replace_clock(waiting):
        run_plain(pipeline, Settings(rows=1))
    assert sorted(found) == [letter + "!" for letter in "abcdexy"]
    # The last letter of each of the four restrictions leaves nothing.
    assert waiting.now == 50 + 2 * (7 - 4)


def test_work_may_wait_for_a_time_of_the_clock():
    class Until(beam.DoFn):
        def process(self, element: Any, tracker: Any = RANGES) -> Any:
            position = tracker.current_restriction().start
            tracker.try_claim(position)
            yield element[position]
            tracker.defer_remainder(Timestamp(60) if position == 0 else Duration(5))

    pipeline = beam.Pipeline()
    found = collect(pipeline | beam.Create(["ab"]) | beam.ParDo(Until()))
    waiting = Waiting()
    with clock.replace_clock(waiting):
        run_plain(pipeline)
    assert (sorted(found), waiting.now) == (["a", "b"], 60)


def note(log: Path, what: str) -> None:
    with log.open("a") as file:
        file.write(f"{what}\n")


class Finalized(beam.DoFn):
    def __init__(self, log: Path) -> None:
        self.log = log

    def process(self, element: Any, finalizer: Any = beam.DoFn.BundleFinalizerParam) -> Any:
        finalizer.register(lambda: note(self.log, f"finalized {element}"))
        return [element]


class FinalizedRange(Finalized):
    def process(
        self, element: Any, tracker: Any = RANGES, finalizer: Any = beam.DoFn.BundleFinalizerParam
    ) -> Any:
        tracker.try_claim(tracker.current_restriction().stop - 1)
        return super().process(element, finalizer)


@pytest.mark.parametrize("kind", [Finalized, FinalizedRange])
def test_bundle_finalizers_run_after_the_outputs_of_the_task(kind, tmp_path):
    log = tmp_path / "log"
    pipeline = beam.Pipeline()
    _ = pipeline | beam.Create(["ab"]) | beam.ParDo(kind(log)) | beam.Map(lambda element: note(log, element))
    run_plain(pipeline)
    assert log.read_text().split("\n")[:2] == ["ab", "finalized ab"]


def test_elements_keep_their_windows_and_windows_that_are_seen_are_processed_one_by_one():
    pipeline = beam.Pipeline()
    words = (
        pipeline
        | beam.Create([TimestampedValue("ab", 7)])
        | beam.Map(lambda timed: timed)
        | beam.WindowInto(SlidingWindows(10, 5))
    )
    seen = collect(words | "Seen" >> beam.ParDo(Windowed(), beam.pvalue.AsList(words)), "seen")
    plain = collect_timed(words | "Plain" >> beam.ParDo(Letters()), "plain")
    with clock.replace_clock(Waiting()):
        run_plain(pipeline)
    assert sorted(seen) == [(letter, start, ["ab"]) for letter in "ab" for start in (0, 5)]
    # An output with a time of its own gets the windows of that time, once for each window of its element.
    assert sorted(plain)[0] == ("a", 0, IntervalWindow(-5, 5))


def test_tags_metrics_and_the_windowed_value_are_those_of_the_element():
    class All(beam.DoFn):
        def process(
            self,
            element: Any,
            tracker: Any = RANGES,
            whole: Any = beam.DoFn.WindowedValueParam,
            key: Any = beam.DoFn.KeyParam,
        ) -> Any:
            position = tracker.current_restriction().start
            while tracker.try_claim(position):
                beam.metrics.Metrics.counter("all", "letters").inc()
                yield beam.pvalue.TaggedOutput("side", (key, whole.value[position], whole.windows))
                position += 1

    pipeline = beam.Pipeline()
    made = pipeline | beam.Create(["ab"]) | beam.ParDo(All()).with_outputs("side", main="main")
    found = collect(made.side)
    metrics = run_plain(pipeline)
    assert sorted(found) == [("a", letter, (GlobalWindow(),)) for letter in "ab"]
    assert [int(value) for name, value in metrics.items() if "letters" in name] == [2]


def test_what_a_process_leaves_unclaimed_is_an_error_at_its_step():
    class Lazy(beam.DoFn):
        def process(self, element: Any, tracker: Any = RANGES) -> Any:
            tracker.try_claim(0)
            yield element

    pipeline = beam.Pipeline()
    collect(pipeline | beam.Create(["ab"]) | "Lazy" >> beam.ParDo(Lazy()))
    with pytest.raises(StepFailure) as caught:
        run_plain(pipeline)
    failure = find_failure(str(caught.value))
    assert failure is not None
    assert "has not been claimed" in failure.message
    assert "at step 'Lazy' (test_splittable_batch.py:" in failure.where
    assert "ab" not in failure.message


class Endless(Letters):
    @beam.DoFn.unbounded_per_element()
    def process(self, word: Any, tracker: Any = RANGES) -> Any:
        yield from super().process(word)


class Stateful(beam.DoFn):
    def process(
        self,
        element: Any,
        tracker: Any = RANGES,
        bag: Any = beam.DoFn.StateParam(BagStateSpec("b", StrUtf8Coder())),
    ) -> Any:
        yield element


class Batches(beam.DoFn):
    @beam.DoFn.yields_batches
    def process(self, element: str, tracker: Any = RANGES) -> Iterator[list[str]]:
        yield [element]

    def infer_output_type(self, input_type: Any) -> Any:
        return str


class Estimating(beam.DoFn):
    def process(self, element: Any, estimator: Any = MONOTONIC) -> Any:
        yield element


def recorded() -> Any:
    return TestStream().add_elements(["a"]).advance_watermark_to_infinity()


@pytest.mark.parametrize(
    ("dofn", "source", "mode", "what"),
    [
        (Endless(), beam.Create(["a"]), "batch", r"may never end.*step 'Work'.*leave out mode='batch'"),
        (Endless(), recorded(), "streaming", r"follows the machine's clock.*recorded events"),
        (Stateful(), beam.Create([("a", "b")]), "batch", "cannot use state or timers"),
        (Batches(), beam.Create(["a"]), "batch", "cannot take or yield batches"),
        (Estimating(), beam.Create(["a"]), "batch", "only a splittable DoFn has a watermark estimator"),
    ],
)
def test_what_cannot_be_split_is_refused_by_name(dofn, source, mode, what):
    pipeline = beam.Pipeline()
    _ = pipeline | "Source" >> source | "Work" >> beam.ParDo(dofn)
    with pytest.raises(UnsupportedByRunner, match=f"(?s){what}"):
        check(pipeline.to_graph(), mode)


def test_a_side_input_that_may_change_is_refused_in_a_stream():
    class Asking(beam.DoFn):
        def process(self, element: Any, side: Any, tracker: Any = RANGES) -> Any:
            yield element

    pipeline = beam.Pipeline()
    lines = pipeline | beam.io.ReadFromText("/in/*.txt", validate=False).as_stream()
    _ = pipeline | beam.Create(["a"]) | beam.ParDo(Asking(), beam.pvalue.AsList(lines))
    with pytest.raises(UnsupportedByRunner, match="cannot read a side input that may change"):
        check(pipeline.to_graph(), "streaming")


def test_work_that_may_never_end_makes_a_pipeline_a_stream():
    def mode_with(dofn: beam.DoFn) -> str:
        pipeline = beam.Pipeline()
        _ = pipeline | beam.Create(["a"]) | beam.ParDo(dofn)
        return default_mode(pipeline.to_graph())

    assert (mode_with(Letters()), mode_with(Endless())) == ("batch", "streaming")
