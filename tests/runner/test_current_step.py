"""Counters of user code count for their own step, however the work of several steps interleaves."""

from __future__ import annotations

from collections import Counter

import pytest

import penstock as beam
from penstock.metrics import Metrics
from penstock.pvalue import AsIter, TaggedOutput
from penstock.transforms.window import FixedWindows, GlobalWindows, IntervalWindow, TimestampedValue, WindowFn
from penstock_spark.reports.failure import StepFailure
from tests.runner.plain_runner import Settings, collect, run_plain


def count(name="n"):
    Metrics.counter("test", name).inc()


@pytest.fixture(params=[1, 2, 4096])
def _chunks(request, monkeypatch):
    for module in ("inline", "outputs"):
        monkeypatch.setattr(f"penstock_spark.worker.{module}.CHUNK_ELEMENTS", request.param)
    monkeypatch.setattr("penstock_spark.stages.stage.BUNDLE_ELEMENTS", 2 * request.param)
    monkeypatch.setattr("penstock_spark.folding.group_read._MOST_GROUPS", request.param)
    monkeypatch.setattr("penstock_spark.folding.group_read.BUFFER_BYTES", request.param)


def twice(x):
    """Counts between its outputs, when other steps have been at work."""
    count()
    yield x
    count()
    yield x
    count()


def tagged(x):
    count()
    yield TaggedOutput("other", x)
    count()
    yield x
    count()


def in_turn(x):
    count()
    yield TimestampedValue(x, 5)
    count()
    yield x
    count()


def looking(x, at=beam.DoFn.TimestampParam, side=()):
    count()
    for _ in side:
        yield x
        count()


class WholeLife(beam.DoFn):
    def setup(self):
        count("setup")

    def start_bundle(self):
        count("start")

    def process(self, x):
        yield from twice(x)

    def finish_bundle(self):
        count("finish")
        for number in range(3):
            yield GlobalWindows.windowed_value(number)
            count()

    def teardown(self):
        count("teardown")


class Summing(beam.CombineFn):
    def create_accumulator(self):
        return 0

    def add_input(self, accumulator, value):
        count()
        return accumulator + value

    def merge_accumulators(self, accumulators):
        return sum(accumulators)

    def extract_output(self, accumulator):
        count("out")
        return accumulator


class Counting(FixedWindows):
    def assign(self, context):
        count("assign")
        return super().assign(context)

    def merge(self, context):
        count("merge")

    def is_merging(self):
        return True


def counted(metrics):
    """The counts of the test by step and name."""
    return {
        (step, name): value
        for (kind, step, space, name), value in metrics.items()
        if (kind, space) == ("counters", "test")
    }


@pytest.mark.usefixtures("_chunks")
def test_generators_of_several_steps_count_for_their_own_step():
    pipeline = beam.Pipeline()
    side = pipeline | "Side" >> beam.Create([1, 2])
    x = pipeline | beam.Create(range(5)) | "A" >> beam.FlatMap(twice)
    x = x | "B" >> beam.FlatMap(twice) | "C" >> beam.ParDo(looking, side=AsIter(side))
    main, _ = x | "D" >> beam.FlatMap(tagged).with_outputs("other", main="main")
    x = main | "E" >> beam.FlatMap(in_turn) | "F" >> beam.FlatMap(twice)
    x | "G" >> beam.Map(lambda x: count()) | "H" >> beam.Filter(lambda x: count())
    metrics = run_plain(pipeline, Settings(partitions=2))
    expected = {"A": 15, "B": 30, "C": 60, "D": 120, "E": 120, "F": 240, "G": 160, "H": 160}
    assert counted(metrics) == {(step, "n"): number for step, number in expected.items()}


@pytest.mark.usefixtures("_chunks")
def test_the_whole_life_of_a_dofn_counts_for_its_step():
    pipeline = beam.Pipeline()
    pipeline | beam.Create(range(8)) | "A" >> beam.ParDo(WholeLife()) | "B" >> beam.ParDo(WholeLife())
    found = counted(run_plain(pipeline, Settings(partitions=2)))
    bundles = found["A", "start"]
    passed_on = 16 + 3 * bundles
    assert {key: value for key, value in found.items() if key[1] != "n"} == {
        **{(step, name): bundles for step in "AB" for name in ("start", "finish")},
        **{(step, name): 2 for step in "AB" for name in ("setup", "teardown")},
    }
    assert found["A", "n"] == 24 + 3 * bundles
    assert found["B", "n"] == 3 * passed_on + 3 * bundles


@pytest.mark.usefixtures("_chunks")
def test_groups_combines_and_window_functions_count_for_their_step():
    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([(key, 1) for key in "aab"]) | "A" >> beam.FlatMap(twice)
    windowed = pairs | "Window" >> beam.WindowInto(Counting(5)) | "B" >> beam.FlatMap(twice)
    groups = windowed | "Group" >> beam.GroupByKey()
    sums = windowed | "Sum" >> beam.CombinePerKey(Summing())
    groups | "C" >> beam.FlatMap(lambda group: (x for x in group[1] for _ in twice(x)))
    into = collect(sums | "D" >> beam.FlatMap(twice))
    metrics = run_plain(pipeline, Settings(partitions=1, rows=1))
    assert Counter(into) == {("a", 8): 2, ("b", 4): 2}
    assert counted(metrics) == {
        ("A", "n"): 9,
        ("Window", "assign"): 6,
        ("B", "n"): 18,
        ("Group", "merge"): 2,
        ("Sum", "n"): 12,
        ("Sum", "merge"): 2,
        ("Sum", "out"): 2,
        ("C", "n"): 36,
        ("D", "n"): 6,
    }


class Failing(WindowFn):
    def assign(self, context):
        return [IntervalWindow(0, 1)]

    def merge(self, context):
        raise StopIteration


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("number", [0, 2, 4])
def test_stop_iteration_of_user_code_is_an_error_and_never_the_end_of_the_elements(number):
    def stops(x):
        if x == number:
            raise StopIteration
        return [x]

    def check(build, elements=range(5)):
        pipeline = beam.Pipeline()
        build(pipeline | beam.Create(elements))
        with pytest.raises(StepFailure, match=r"(RuntimeError|StopIteration) at step 'It'"):
            run_plain(pipeline, Settings(partitions=1))

    check(lambda x: x | "It" >> beam.Map(stops))
    check(lambda x: x | "It" >> beam.Filter(stops))
    check(lambda x: x | "It" >> beam.FlatMap(stops))
    check(lambda x: x | "It" >> beam.ParDo(lambda x, at=beam.DoFn.TimestampParam: stops(x)))
    check(lambda x: x | "It" >> beam.MapTuple(lambda x, y: stops(x)), [(n, n) for n in range(5)])
    timed = beam.Map(lambda x: TimestampedValue(x, x))
    check(lambda x: x | timed | "It" >> beam.FlatMap(stops))
    grouped = beam.WindowInto(Failing())
    check(lambda x: x | beam.Map(lambda x: (x, x)) | grouped | "It" >> beam.GroupByKey() | beam.Map(str))
