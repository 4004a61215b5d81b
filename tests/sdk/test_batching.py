"""Batches and sequences: what their DoFns give, how batch sizes are learnt, and when elements come."""

import random

import pytest

from penstock import graph
from penstock.functions.splitting import RestrictionCall, splits_of
from penstock.pipeline import Pipeline
from penstock.transforms import util
from penstock.transforms.core import Create, DoFn, ParDo, Partition
from penstock.transforms.grouping.batching import (
    BatchingDoFn,
    BatchSizeEstimator,
    BatchTargets,
    LengthOrOne,
    SortingBatchDoFn,
    linear_regression,
)
from penstock.transforms.grouping.group_into_batches import ShardingDoFn
from penstock.transforms.periodicsequence import (
    ImpulseSeqGenDoFn,
    PeriodicImpulse,
    PeriodicSequence,
    PeriodicSource,
    RebaseMode,
)
from penstock.transforms.window import FixedWindows, GlobalWindow, IntervalWindow
from penstock.utils import clock
from penstock.utils.timestamp import MAX_TIMESTAMP, Timestamp

FIXED = FixedWindows(10)


def batches_of(dofn, elements):
    """What a batching DoFn gives for one bundle of pairs of an element and its window."""
    dofn.start_bundle()
    out = [each for element, window in elements for each in dofn.process(element, window)]
    return [*out, *dofn.finish_bundle()]


def estimator(**targets):
    return BatchSizeEstimator(BatchTargets(**targets), record_metrics=False)


def test_batches_are_as_large_as_wished_and_keep_to_windows_buckets_and_weights():
    first, second = IntervalWindow(0, 10), IntervalWindow(10, 20)
    elements = [(number, first if number < 7 else second) for number in range(12)]
    three = batches_of(
        BatchingDoFn(estimator(min_batch_size=3, max_batch_size=3), lambda _: 1, None), elements
    )
    assert [(each.value, each.windows, each.timestamp) for each in three] == [
        ([0, 1, 2], (first,), first.max_timestamp()),
        ([3, 4, 5], (first,), first.max_timestamp()),
        ([7, 8, 9], (second,), second.max_timestamp()),
        ([6], (first,), first.max_timestamp()),
        ([10, 11], (second,), second.max_timestamp()),
    ]
    everything = GlobalWindow()
    words = [(word, everything) for word in ["aaaa", "b", "cc", "dddddddd", "e"]]
    weighed = batches_of(BatchingDoFn(estimator(min_batch_size=5, max_batch_size=5), len, None), words)
    assert [each.value for each in weighed] == [["aaaa", "b"], ["cc"], ["dddddddd"], ["e"]]
    bucketed = util.BatchElements(9, 9, length_fn=len, bucket_boundaries=[2, 4])
    batching = BatchingDoFn(estimator(min_batch_size=9, max_batch_size=9), lambda _: 1, bucketed._bucket_of)
    assert [each.value for each in batches_of(batching, words)] == [["aaaa", "dddddddd"], ["b", "e"], ["cc"]]
    by_size = batches_of(SortingBatchDoFn(3, 7, len), words)
    assert [each.value for each in by_size] == [["b", "e", "cc"], ["aaaa"], ["dddddddd"]]


def test_too_many_windows_at_once_are_not_all_kept_open():
    elements = [(number, IntervalWindow(number, number + 1)) for number in range(30)]
    for dofn in (
        BatchingDoFn(estimator(min_batch_size=9), lambda _: 1, None),
        SortingBatchDoFn(9, 9, lambda _: 1),
    ):
        dofn.start_bundle()
        early = [each for element, window in elements for each in dofn.process(element, window)]
        assert len(early) == 20
        assert sorted(each.value[0] for each in [*early, *dofn.finish_bundle()]) == list(range(30))


def test_batch_sizes_grow_to_the_size_at_which_a_batch_takes_as_long_as_wished():
    random.seed(3)
    clock = [0.0]
    targets = BatchTargets(overhead=None, duration_seconds=None, duration_with_fixed_cost_seconds=5)
    sizes = BatchSizeEstimator(targets, lambda: clock[0], record_metrics=False)
    last = 0
    for _ in range(60):
        last = sizes.next_batch_size()
        with sizes.record_time(last):
            clock[0] += 1 + 0.01 * last
    # A batch of 400 takes the five seconds.
    assert 300 <= last <= 500


def test_a_timing_that_is_ignored_is_asked_for_again():
    sizes = estimator(max_batch_size=100)
    sizes.ignore_next_timing()
    with sizes.record_time(7):
        pass
    assert [sizes.next_batch_size(), sizes.next_batch_size()] == [7, 1]


@pytest.mark.parametrize("count", [5, 40])
def test_the_regression_finds_the_line_and_overlooks_what_is_far_off(count):
    xs = [float(x) for x in range(1, count + 1)]
    ys = [3 + 2 * x for x in xs]
    assert linear_regression(xs, ys) == pytest.approx((3, 2))
    assert linear_regression([4, 4], [8.0, 12.0]) == (0, 2.5)
    if count >= 10:
        ys[-1] += 500
        assert linear_regression(xs, ys) == pytest.approx((3, 2))


def test_a_size_function_that_is_none_is_refused_and_what_has_no_length_has_size_one(caplog):
    with pytest.raises(TypeError, match="must be callable"):
        util.SortAndBatchElements(1, 2, 3, element_size_fn=7)
    size_of = LengthOrOne()
    assert [size_of("abc"), size_of(5), size_of(6)] == [3, 1, 1]
    assert len(caplog.records) == 1


def test_shards_of_a_key_fill_up_one_after_the_other_in_each_bundle():
    dofn = ShardingDoFn(2)
    for _ in range(2):
        dofn.start_bundle()
        sharded = [pair for key in "aabaaab" for pair in dofn.process((key, None))]
        ids = [(key.key, key.shard_id) for key, _ in sharded]
        assert ids == [
            (k, s.encode()) for k, s in zip("aabaaab", ["0", "0", "0", "1", "1", "2", "0"], strict=True)
        ]
    [(key, _)] = dofn.process((["no hash"], 1))
    assert key.shard_id == b"0"


def test_an_impulse_in_the_past_is_bounded_and_any_other_is_a_source():
    def outputs(*arguments, **keywords):
        pipeline = Pipeline()
        out = pipeline | PeriodicImpulse(*arguments, **keywords)
        return out.is_bounded, graph.show(pipeline.to_graph()), out

    bounded, shown, out = outputs(0, 60, 10, apply_windowing=True)
    assert bounded
    assert "PeriodicSource" not in shown
    assert out.windowing.windowfn == FIXED
    for arguments, keywords in (((0,), {}), ((0, 60, 10), {"rebase": RebaseMode.REBASE_ALL})):
        bounded, shown, _ = outputs(*arguments, **keywords)
        assert not bounded
        assert "Read(PeriodicSource(every" in shown


def test_an_impulse_that_starts_with_the_run_must_end_later():
    with pytest.raises(
        ValueError, match=r"(?s)REBASE_START.*in the past\n  at PeriodicImpulse\n  hint: give a later"
    ):
        PeriodicImpulse(1, 5, 1, rebase=RebaseMode.REBASE_START)


def test_sequences_of_elements_count_as_unbounded_as_every_dofn_that_says_so():
    class Endless(DoFn):
        @DoFn.unbounded_per_element()
        def process(self, element):
            yield element

    start = Pipeline() | Create([(0, 25, 10)])
    both = start | "Tagged" >> ParDo(Endless()).with_outputs("more", main="main")
    outputs = [start | PeriodicSequence(), start | "Plain" >> ParDo(Endless()), both.main, both.more]
    assert [output.is_bounded for output in outputs] == [False] * 4
    assert all(output.is_bounded for output in start | "One" >> Partition(lambda element, count: 0, 2))
    assert not any(
        output.is_bounded for output in both.main | "Two" >> Partition(lambda element, count: 0, 2)
    )


def called(dofn, element):
    """One call of a splittable DoFn: what it leaves, and its outputs."""
    splits = splits_of(dofn)
    [restriction] = splits.restrictions(element)
    part = RestrictionCall(splits, restriction, splits.estimator_state(element, restriction), clock.seconds)
    return part, list(part.outputs(dofn.process(element, part.view, part.estimator)))


def test_a_sequence_goes_on_when_its_next_element_is_due():
    start = Timestamp.now() - 15
    part, made = called(ImpulseSeqGenDoFn(), (start, MAX_TIMESTAMP, 10))
    assert [each.timestamp for each in made] == [start, start + 10]
    assert part.rest.restriction.start == 2
    assert part.rest.resume_micros == part.watermark_micros() == (start + 20).micros
    assert part.splits.truncated(None, part.rest.restriction) is None


@pytest.mark.parametrize("element", [(10, 0, 1), (0, 10, 0)])
def test_a_sequence_that_cannot_be_is_refused(element):
    with pytest.raises(ValueError, match=r"it stops|of a sequence is 0 seconds"):
        called(ImpulseSeqGenDoFn(), element)


def test_sequences_run_from_the_start_to_before_the_end():
    part, made = called(ImpulseSeqGenDoFn(), (Timestamp(0), 25, 10))
    assert [(each.value, each.timestamp) for each in made] == [
        (Timestamp(at), Timestamp(at)) for at in (0, 10, 20)
    ]
    assert (part.rest, part.watermark_micros()) == (None, 20_000_000)
    data = [(Timestamp(100), "x"), (Timestamp(50), "y")]
    part, made = called(ImpulseSeqGenDoFn(data), (0, 20, 10))
    assert [(e.value, e.timestamp) for e in made] == [("x", Timestamp(100)), ("y", Timestamp(50))]
    assert part.watermark_micros() == 100_000_000
    assert PeriodicImpulse(0, data=["a", "b"], fire_interval=5).source.stop_micros == 10_000_000
    with pytest.warns(UserWarning, match="repeated"):
        assert len(list(PeriodicImpulse(0, 40, 5, data=["a", "b"]).source.schedule())) == 8
    moved = PeriodicSource(0, 30, 10, rebase=RebaseMode.REBASE_ALL).starting_at(1000)
    assert (moved.start_micros, moved.stop_micros, moved.rebase) == (1000, 1030, RebaseMode.REBASE_NONE)
