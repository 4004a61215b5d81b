"""Metrics: counting at the step at work, merging what workers report, and queries."""

import contextlib
import functools
import itertools
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics import cells
from penstock.metrics.cells import BoundedTrieData, DistributionData, GaugeData, StringSetData
from penstock.metrics.execution import (
    MetricKey,
    MetricResult,
    MetricsContainer,
    merge_snapshots,
    set_current,
)
from penstock.metrics.histogram import HistogramData, LinearBucket
from penstock.metrics.metric import Lineage, MetricResults, Metrics, MetricsFilter
from penstock.metrics.metricbase import MetricName


@contextlib.contextmanager
def using_container(container):
    set_current(container)
    yield container
    set_current(None)


def merge_all(snapshots):
    return functools.reduce(merge_snapshots, snapshots, {})


def count_everything(step, numbers):
    with using_container(MetricsContainer(step)) as container:
        for number in numbers:
            Metrics.counter("game", "moves").inc(number)
            Metrics.distribution("game", "sizes").update(number + 0.5)
            Metrics.string_set("game", "names").add(str(number))
            Metrics.bounded_trie("game", "paths").add(["root", str(number)])
            Metrics.histogram("game", "spread", LinearBucket(0, 10, 3)).update(number)
    return container.snapshot()


def test_each_metric_counts_at_the_current_step_and_a_query_finds_it():
    found = MetricResults(count_everything("Play/Count", [3, 5, 25])).query()
    assert found["counters"][0].committed == found["counters"][0].attempted == 33
    sizes = found["distributions"][0].result
    assert (sizes.sum, sizes.count, sizes.min, sizes.max, sizes.mean) == (33, 3, 3, 25, 11)
    assert found["string_sets"][0].result == {"3", "5", "25"}
    paths = {("root", number, False) for number in ("3", "5", "25")}
    assert set(found["bounded_tries"][0].result.flattened()) == paths
    assert found["histograms"][0].result.histogram.counts == {0: 2, 2: 1}
    assert found["counters"][0].key == MetricKey("Play/Count", MetricName("game", "moves"))
    assert found["gauges"] == []


def test_nothing_is_counted_outside_of_a_step_or_in_another_thread():
    moves = Metrics.counter("game", "moves")
    with using_container(MetricsContainer("Count")) as container:
        thread = threading.Thread(target=moves.inc)
        thread.start()
        thread.join()
    moves.inc()
    assert container.snapshot() == {}


def test_metrics_and_snapshots_can_be_pickled():
    moves = pickle.loads(pickle.dumps(Metrics.counter("game", "moves")))
    with using_container(MetricsContainer("Count")) as container:
        moves.inc()
        moves.dec(3)
    snapshot = pickle.loads(pickle.dumps(container.snapshot()))
    assert snapshot == {("counters", "Count", "game", "moves"): -2}


def test_a_gauge_keeps_what_was_set_last():
    gauge = Metrics.gauge("game", "level")
    with using_container(MetricsContainer("Count")) as container:
        gauge.set(7)
        gauge.set(3.9)
    [result] = MetricResults(container.snapshot()).query()["gauges"]
    assert result.result.value == 3
    assert result.result.timestamp > 0


numbers = st.lists(st.integers(-5, 60), max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["A", "B"]), numbers), min_size=3, max_size=3))
def test_snapshots_merge_the_same_in_any_order_and_grouping(parts):
    first, second, third = (count_everything(step, given_numbers) for step, given_numbers in parts)
    left = merge_snapshots(merge_snapshots(first, second), third)
    assert left == merge_snapshots(first, merge_snapshots(second, third))
    assert left == merge_all([third, first, second, {}])
    whole = {step: [n for name, ns in parts if name == step for n in ns] for step in "AB"}
    assert left == merge_all(count_everything(step, given_numbers) for step, given_numbers in whole.items())


def test_merging_leaves_both_snapshots_as_they_were():
    first, second = count_everything("A", [1]), count_everything("A", [2])
    before = pickle.dumps((first, second))
    merge_snapshots(first, second)
    assert pickle.dumps((first, second)) == before


def test_gauges_merge_to_the_later_one_and_distributions_ignore_empty_ones():
    assert GaugeData(1, 2.0).combine(GaugeData(9, 1.0)) == GaugeData(1, 2.0)
    empty = DistributionData(0, 0, 0, 0)
    assert empty.combine(DistributionData(5, 1, 5, 5)).combine(empty) == DistributionData(5, 1, 5, 5)
    assert cells.DistributionResult(empty).mean is None


@given(st.lists(st.frozensets(st.text("abc", min_size=1, max_size=3)), min_size=3, max_size=3))
def test_too_many_strings_are_cut_the_same_in_any_order(sets):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "STRING_SET_CHARACTERS", 6)
        outcomes = {
            functools.reduce(StringSetData.combine, map(StringSetData.of, order))
            for order in itertools.permutations(sets)
        }
        assert outcomes == {StringSetData.of(frozenset().union(*sets))}
        assert sum(map(len, outcomes.pop().string_set)) <= 6


segments = st.lists(st.sampled_from("ab"), max_size=3).map(tuple)


@given(st.lists(st.frozensets(segments), min_size=3, max_size=3))
def test_too_many_paths_are_cut_the_same_in_any_order(sets):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "TRIE_PATHS", 3)
        outcomes = {
            functools.reduce(BoundedTrieData.combine, map(BoundedTrieData.of, order))
            for order in itertools.permutations(sets)
        }
        [data] = outcomes
        assert data == BoundedTrieData.of(frozenset().union(*sets))
        assert data.size() <= 3
        assert all(data.contains(path) for paths in sets for path in paths)


def test_a_cut_path_stands_for_all_that_begin_with_it():
    data = BoundedTrieData.of(("bucket", str(number)) for number in range(cells.TRIE_PATHS + 1))
    assert data.get_result() == {("bucket", True)}
    assert data.contains(["bucket", "anything"])
    assert not data.contains(["other"])


def test_many_strings_are_folded_while_they_come(monkeypatch):
    monkeypatch.setattr("penstock.metrics.execution._WAITING_ITEMS", 2)
    with using_container(MetricsContainer("Count")) as container:
        for text in "abcab":
            Metrics.string_set("game", "names").add(text)
    assert MetricResults(container.snapshot()).query()["string_sets"][0].result == {"a", "b", "c"}


def test_histograms_estimate_percentiles_and_refuse_other_buckets():
    data = functools.reduce(HistogramData.record, [-1, 5, 15, 25], HistogramData(LinearBucket(0, 10, 2)))
    assert (data.below, data.above, data.total_count()) == (1, 1, 4)
    assert [data.percentile(part) for part in (0.1, 0.5, 0.75, 1)] == [float("-inf"), 10, 20, float("inf")]
    with pytest.raises(ValueError, match="different buckets"):
        data.combine(HistogramData(LinearBucket(0, 1, 2)))
    with pytest.raises(ValueError, match="empty"):
        HistogramData(LinearBucket(0, 1, 2)).percentile(0.5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        data.percentile(2)


@pytest.mark.parametrize(
    ("narrow", "found"),
    [
        (lambda f: f.with_name("moves"), ["Play/Count", "Play/Count/Inner"]),
        (lambda f: f.with_names(["moves"]).with_namespace("other"), []),
        (lambda f: f.with_namespaces(["game", "other"]).with_step("Count/Inner"), ["Play/Count/Inner"]),
        (lambda f: f.with_steps(["Play"]), ["Play/Count", "Play/Count/Inner"]),
        (lambda f: f.with_step("Coun"), []),
        (lambda f: f.with_metric(Metrics.counter("game", "moves")), ["Play/Count", "Play/Count/Inner"]),
    ],
)
def test_a_filter_narrows_by_name_namespace_and_part_of_the_label(narrow, found):
    snapshots = [{("counters", step, "game", "moves"): 1} for step in ("Play/Count", "Play/Count/Inner")]
    results = MetricResults(merge_all(snapshots)).query(narrow(MetricsFilter()))
    assert [result.key.step for result in results["counters"]] == found


@pytest.mark.parametrize("method", ["with_names", "with_namespaces", "with_steps"])
def test_a_filter_refuses_a_string_where_several_are_meant(method):
    with pytest.raises(ValueError, match="not a string"):
        getattr(MetricsFilter(), method)("abc")


def test_committed_and_attempted_work_are_told_apart():
    key = ("counters", "A", "game", "moves")
    [result] = MetricResults({key: 2}, {key: 5}).query()["counters"]
    assert (result.committed, result.attempted, result.result) == (2, 5, 2)
    assert MetricResult(result.key, 0, 5).result == 5


@pytest.mark.parametrize(("namespace", "name", "complaint"), [("", "n", "namespace"), ("n", "", "name")])
def test_names_must_not_be_empty(namespace, name, complaint):
    with pytest.raises(ValueError, match=f"Metric {complaint} must be non-empty"):
        Metrics.counter(namespace, name)


def test_namespaces_are_texts_or_classes_and_strings_are_strings():
    assert Metrics.get_namespace(MetricName) == "penstock.metrics.metricbase.MetricName"
    with pytest.raises(ValueError, match="Unknown namespace type"):
        Metrics.counter(3, "n")
    with pytest.raises(TypeError, match="takes strings"):
        Metrics.string_set("n", "n").add(3)


def test_lineage_records_full_names():
    with using_container(MetricsContainer("Read")) as container:
        Lineage.sources().add("kafka", "cluster", "topic")
        Lineage.sources().add("file", "bucket", "a/b", subtype="local", last_segment_sep="/")
        Lineage.sources().add("kafka:whole.name")
        Lineage.sinks().add_raw("db:", "table")
    results = MetricResults(container.snapshot())
    names = {"kafka:cluster.topic", "file:local:bucket.a/b", "kafka:whole.name"}
    assert Lineage.query(results, Lineage.SOURCE) == names
    assert Lineage.query(results, Lineage.SINK) == {"db:table"}
    assert Lineage.get_fq_name("apache", "a b", "`c.d`", subtype="t") == "apache:t:`a b`.`c.d`"
    with pytest.raises(ValueError, match="no lineage is labelled"):
        Lineage("middle")


def test_labels_of_a_metric_tell_keys_apart_whether_they_are_a_set_or_a_mapping():
    name = MetricName("game", "moves")
    assert MetricKey("step", name, {"a", "b"}) == MetricKey("step", name, {"b", "a"})
    assert hash(MetricKey("step", name, {"a": "1"})) == hash(MetricKey("step", name, {"a": "1"}))
    keys = {MetricKey("step", name), MetricKey("step", name, {"a"}), MetricKey("step", name, {"b"})}
    assert len({hash(key) for key in keys}) == len(keys) == 3
