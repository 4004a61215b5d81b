"""Metrics of a run on Spark: found by name, namespace and step, and counted exactly once."""

import pytest

import penstock as beam
from penstock.metrics import Metrics, MetricsFilter
from penstock.pvalue import AsList
from penstock.testing.test_pipeline import TestPipeline
from penstock.utils.windowed_value import WindowedValue

pytestmark = pytest.mark.spark


class Measures(beam.DoFn):
    """Counts in every method of its life."""

    def __init__(self):
        super().__init__()
        self.processed = Metrics.counter(type(self), "processed")
        self.sizes = Metrics.distribution("game", "sizes")

    def setup(self):
        Metrics.counter("life", "setup").inc()

    def start_bundle(self):
        Metrics.counter("life", "bundles").inc()

    def process(self, element):
        self.processed.inc()
        self.sizes.update(element)
        Metrics.gauge("game", "last").set(element)
        Metrics.string_set("game", "names").add(f"name {element % 3}")
        yield element
        Metrics.counter("game", "after the yield").inc(2)

    def finish_bundle(self):
        Metrics.counter("life", "finished").inc()

    def teardown(self):
        Metrics.counter("life", "teardown").inc()


def counters(result, **parts):
    found = MetricsFilter()
    for part, value in parts.items():
        found = getattr(found, f"with_{part}")(value)
    return {(c.key.step, c.key.metric.name): c.committed for c in result.metrics().query(found)["counters"]}


def test_every_kind_of_metric_is_found_by_name_namespace_and_step():
    p = TestPipeline()
    numbers = p | beam.Create(range(1, 11))
    _ = numbers | "Measure" >> beam.ParDo(Measures())
    _ = numbers | "Other" >> beam.Map(lambda x: Metrics.counter("game", "others").inc(-x))
    result = p.run()
    assert counters(result, name="processed") == {("Measure", "processed"): 10}
    assert counters(result, namespace=Measures) == {("Measure", "processed"): 10}
    assert counters(result, name="after the yield") == {("Measure", "after the yield"): 20}
    assert counters(result, step="Other") == {("Other", "others"): -55}
    assert counters(result, step="Meas") == {}
    life = counters(result, namespace="life")
    assert len(set(life.values())) == 1
    assert {name for _, name in life} == {"setup", "bundles", "finished", "teardown"}
    found = result.metrics().query(MetricsFilter().with_namespace("game"))
    (sizes,) = found["distributions"]
    assert (sizes.committed.sum, sizes.committed.count) == (55, 10)
    assert (sizes.committed.min, sizes.committed.max) == (1, 10)
    (last,) = found["gauges"]
    assert last.committed.value in range(1, 11)
    (names,) = found["string_sets"]
    assert names.committed == {"name 0", "name 1", "name 2"}
    assert sizes.attempted == sizes.committed


def test_elements_count_once_although_several_steps_groupings_and_views_read_them():
    def count(x):
        Metrics.counter("once", "seen").inc()
        return x % 4, x

    p = TestPipeline()
    counted = p | beam.Create(range(100)) | "Count" >> beam.Map(count)
    groups = counted | beam.GroupByKey()
    sums = counted | beam.CombinePerKey(sum)
    _ = (counted | "Spread" >> beam.Reshuffle(), groups, sums) | beam.Flatten() | beam.Map(len)
    _ = counted | "Itself" >> beam.Map(lambda x, s: len(s), AsList(counted)) | beam.combiners.Count.Globally()
    _ = sums | "Side" >> beam.Map(lambda x, s: len(s), AsList(groups | "Keys" >> beam.Keys()))
    result = p.run()
    assert counters(result, name="seen") == {("Count", "seen"): 100}


def test_each_run_counts_for_itself():
    p = TestPipeline()
    _ = p | beam.Create([1, 2]) | "Count" >> beam.Map(lambda x: Metrics.counter("runs", "seen").inc())
    assert [counters(p.run(), name="seen") for _ in range(2)] == [{("Count", "seen"): 2}] * 2


class Counting(beam.CombineFn):
    """Counts in every method, in the name of the step."""

    def setup(self):
        Metrics.counter("combine", "setup").inc()

    def create_accumulator(self):
        return 0

    def add_input(self, accumulator, element):
        Metrics.counter("combine", "inputs").inc()
        return accumulator + element

    def merge_accumulators(self, accumulators):
        return sum(accumulators)

    def extract_output(self, accumulator):
        Metrics.counter("combine", "outputs").inc()
        return accumulator

    def teardown(self):
        Metrics.counter("combine", "teardown").inc()


def test_combine_fns_count_in_the_name_of_their_step():
    p = TestPipeline()
    pairs = p | beam.Create([("a", 1), ("b", 2), ("a", 3)])
    _ = pairs | "Combined" >> beam.CombinePerKey(Counting()) | beam.Map(len)
    _ = pairs | beam.GroupByKey() | "Values" >> beam.CombineValues(Counting()) | "Len" >> beam.Map(len)
    result = p.run()
    steps = {step.partition("/")[0] for step, _ in counters(result, namespace="combine")}
    assert steps == {"Combined", "Values"}
    for step in steps:
        inputs = counters(result, step=step)
        assert sum(n for (_, name), n in inputs.items() if name == "inputs") == 3
        assert sum(n for (_, name), n in inputs.items() if name == "outputs") == 2


def test_steps_inside_composites_have_the_whole_label_and_generators_count_for_their_own_step():
    class Composite(beam.PTransform):
        def expand(self, pcoll):
            return pcoll | "Inner" >> beam.FlatMap(slow) | "Next" >> beam.Map(quick)

    def slow(x):
        for number in range(3):
            Metrics.counter("c", "slow").inc()
            yield number

    def quick(x):
        Metrics.counter("c", "quick").inc()

    p = TestPipeline()
    _ = p | beam.Create([1, 2]) | "Outer" >> Composite()
    result = p.run()
    assert counters(result, namespace="c") == {("Outer/Inner", "slow"): 6, ("Outer/Next", "quick"): 6}
    assert counters(result, step="Outer", name="slow") == {("Outer/Inner", "slow"): 6}
    assert counters(result, step="Inner", name="slow") == {("Outer/Inner", "slow"): 6}


class GivesAtTheEnd(beam.DoFn):
    def process(self, element):
        return None

    def finish_bundle(self):
        for number in range(5):
            Metrics.counter("c", "given").inc()
            yield WindowedValue(number, 0, [beam.window.GlobalWindow()])


def test_what_finish_bundle_gives_is_counted_for_its_own_step():
    p = TestPipeline()
    _ = (
        p
        | beam.Create([1])
        | "End" >> beam.ParDo(GivesAtTheEnd())
        | beam.Map(lambda x: Metrics.counter("c", "taken").inc())
    )
    assert counters(p.run(), namespace="c", name="given") == {("End", "given"): 5}
