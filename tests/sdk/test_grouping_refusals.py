"""What groupings and stateful steps refuse where the pipeline is built: waiting for ever, and retractions."""

from __future__ import annotations

import logging
import pickle

import pytest

import penstock as beam
from penstock import graph
from penstock.coders import VarIntCoder
from penstock.construction.retractions import may_retract
from penstock.functions.combinefn import DefaultingCombineFn, curry_combine_fn
from penstock.io.source_transforms import SourceTransform
from penstock.transforms.combiners import CountCombineFn, MeanCombineFn
from penstock.transforms.timeutil import TimeDomain
from penstock.transforms.trigger import (
    AccumulationMode,
    AfterAll,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterSignal,
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    DefaultTrigger,
    Never,
    Repeatedly,
)
from penstock.transforms.userstate import BagStateSpec, TimerSpec, on_timer
from penstock.transforms.window import FixedWindows, GlobalWindows, IntervalWindow, Sessions

RETRACTING = AccumulationMode.ACCUMULATING_AND_RETRACTING


class Endless(graph.Source):
    is_bounded = False


def endless(trigger, windowfn=None, options=None):
    pipeline = beam.Pipeline(**(options or {}))
    windows = beam.WindowInto(windowfn or GlobalWindows(), trigger, AccumulationMode.DISCARDING)
    return pipeline | SourceTransform(Endless()) | beam.Map(lambda x: (x, x)) | windows


@pytest.mark.parametrize(
    "trigger",
    [
        AfterWatermark(late=Repeatedly(AfterCount(1))),
        Repeatedly(AfterWatermarkPercentile(0.9)),
        Never(),
        AfterAll(Never(), Always()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("grouping", [beam.GroupByKey, lambda: beam.CombinePerKey(sum)])
def test_what_never_ends_is_not_grouped_by_a_trigger_that_waits_for_the_end(
    trigger, grouping, caplog
) -> None:
    with pytest.raises(ValueError, match="which never fires before the end of all time") as caught:
        endless(trigger) | grouping()
    assert "unbounded PCollection with global windowing" in str(caught.value)
    assert repr(trigger) in str(caught.value)
    assert not (endless(trigger, FixedWindows(5)) | grouping()).is_bounded
    with caplog.at_level(logging.WARNING):
        assert endless(trigger, options={"allow_unsafe_triggers": True}) | grouping()
    assert "which never fires before the end of all time; allowed because of" in caplog.text


def test_the_default_trigger_is_refused_in_the_words_of_beam() -> None:
    with pytest.raises(ValueError, match="with global windowing and a default trigger\n"):
        endless(DefaultTrigger()) | beam.GroupByKey()


@pytest.mark.parametrize(
    "once", [AfterBytes(10), AfterSignal("flush"), AfterWatermarkPercentile(0.9)], ids=repr
)
def test_triggers_beyond_beam_that_fire_once_are_refused_as_beams_are(once) -> None:
    with pytest.raises(ValueError, match=r"Unsafe trigger: .* may lose data. Reason: MAY_FINISH"):
        endless(once, FixedWindows(5)) | beam.GroupByKey()
    assert endless(Repeatedly(once), FixedWindows(5)) | beam.GroupByKey()


def test_lists_of_values_are_not_subtracted_from_each_other() -> None:
    moved = endless(Repeatedly(AfterDelta(5)), FixedWindows(5))
    with pytest.raises(
        ValueError, match="AfterDelta\\(5\\) subtracts results, but those of GroupByKey are lists"
    ):
        moved | beam.GroupByKey()
    assert moved | beam.CombinePerKey(sum)
    lengths = AfterDelta(5, [], lambda before, now: len(now) - len(before))
    assert endless(lengths, FixedWindows(5)) | beam.GroupByKey()


def scores(mode=RETRACTING):
    often = beam.SetTrigger(Repeatedly(AfterCount(1)), mode)
    return beam.Pipeline() | beam.Create([("a", 1)]) | "Mode" >> often


class Remembering(beam.DoFn):
    def process(self, element, seen=beam.DoFn.StateParam(BagStateSpec("seen", VarIntCoder()))):
        seen.add(element[1])


class Waiting(beam.DoFn):
    TIMER = TimerSpec("later", TimeDomain.WATERMARK)

    def process(self, element, timer=beam.DoFn.TimerParam(TIMER)):
        timer.set(5)

    @on_timer(TIMER)
    def later(self):
        yield 1


class Understanding(Remembering):
    accepts_retractions = True


class Irreversible(beam.CombineFn):
    accepts_retractions = False


class Steps(beam.CombineFn):
    def subtract_input(self, accumulator, element, step=2):
        return accumulator - step


def to_pairs(pcoll, name):
    return pcoll | name >> beam.Map(lambda x: ("a", x)).with_output_types(beam.typehints.KV[str, int])


def test_retractions_come_out_of_a_grouping_and_go_up_to_the_next() -> None:
    grouped = scores() | beam.GroupByKey()
    assert not may_retract(scores())
    assert may_retract(grouped)
    assert may_retract(grouped | beam.Map(lambda x: x) | beam.WindowInto(FixedWindows(5)) | beam.Reshuffle())
    assert may_retract(grouped | "Again" >> beam.GroupByKey())
    plain = beam.SetTrigger(accumulation_mode=AccumulationMode.ACCUMULATING)
    accumulating = grouped | plain
    assert may_retract(accumulating)
    assert not may_retract(accumulating | beam.CombinePerKey(sum))
    assert not may_retract(scores(AccumulationMode.ACCUMULATING) | beam.GroupByKey())


def test_retractions_come_with_any_of_several_inputs_and_with_any_output() -> None:
    grouped = scores() | beam.CombinePerKey(sum)
    other = grouped.pipeline | "Other" >> beam.Create([("b", 2)])
    assert may_retract((other, grouped) | beam.Flatten())
    tagged = grouped | beam.ParDo(beam.DoFn.from_callable(lambda x: [x])).with_outputs("rest")
    assert may_retract(tagged.rest)
    # A side input changes no element into a retraction.
    assert not may_retract(other | beam.Map(lambda x, _: x, beam.pvalue.AsList(grouped)))


@pytest.mark.parametrize("dofn", [Remembering, Waiting])
def test_a_dofn_with_state_that_says_nothing_about_retractions_is_not_given_any(dofn) -> None:
    counted = to_pairs(scores() | beam.CombinePerKey(sum), "Pair")
    with pytest.raises(
        ValueError, match=f"{dofn.__name__} has state or timers, and does not declare"
    ) as caught:
        counted | beam.ParDo(dofn())
    assert "'CombinePerKey(sum)' accumulates and retracts" in str(caught.value)
    assert "accepts_retractions = True" in str(caught.value)
    with pytest.raises(ValueError, match="has state or timers"):
        counted | "Tagged" >> beam.ParDo(dofn()).with_outputs("rest")
    assert to_pairs(scores(AccumulationMode.ACCUMULATING) | beam.CombinePerKey(sum), "Pair") | beam.ParDo(
        dofn()
    )
    assert scores() | beam.ParDo(dofn())


def test_a_dofn_with_state_that_takes_retractions_gets_them() -> None:
    counted = to_pairs(scores() | beam.CombinePerKey(sum), "Pair")
    assert may_retract(counted | beam.ParDo(Understanding()))
    handling = beam.ParDo(Understanding()).with_exception_handling(allow_unsafe_userstate_in_process=True)
    assert counted | "Handling" >> handling
    handling = beam.ParDo(Remembering()).with_exception_handling(allow_unsafe_userstate_in_process=True)
    with pytest.raises(ValueError, match="Remembering has state or timers"):
        counted | "Not handling" >> handling


@pytest.mark.parametrize(
    "combine",
    [
        lambda: beam.CombinePerKey(Irreversible()),
        lambda: beam.CombinePerKey(Irreversible(), 1),
        lambda: beam.CombineGlobally(Irreversible()).without_defaults(),
        lambda: beam.CombineGlobally(Irreversible()),
    ],
)
def test_a_combine_fn_that_takes_no_retractions_is_not_given_any(combine) -> None:
    counted = to_pairs(scores() | beam.CombinePerKey(sum), "Pair")
    with pytest.raises(ValueError, match="the CombineFn Irreversible does not accept retractions"):
        counted | "Combine" >> combine()
    assert scores() | "Combine" >> combine()


def test_only_what_is_exact_is_subtracted() -> None:
    count = CountCombineFn()
    assert count.subtract_input(count.add_inputs(0, "abc"), "b") == 2
    for fn in (MeanCombineFn(), beam.CombineFn.from_callable(sum)):
        assert [fn.subtracts(number) for number in (1, 1.0)] == [True, False]
    for fn in (beam.CombineFn.from_callable(max), beam.CombineFn()):
        assert not hasattr(fn, "subtract_input")


@pytest.mark.parametrize(
    ("wrapped", "left"), [(lambda fn: curry_combine_fn(fn, (), {"step": 1}), 4), (DefaultingCombineFn, 3)]
)
def test_a_wrapped_combine_fn_takes_retractions_as_the_one_inside_does(wrapped, left) -> None:
    assert not wrapped(Irreversible()).accepts_retractions
    assert wrapped(MeanCombineFn()).accepts_retractions
    assert not hasattr(wrapped(beam.CombineFn.from_callable(max)), "subtract_input")
    assert not hasattr(wrapped(Steps()), "subtracts")
    assert pickle.loads(pickle.dumps(wrapped(Steps()))).subtract_input(5, None) == left


class Neighbourly(Sessions):
    """Merges each window with one that nobody has seen."""

    def merge(self, merge_context):
        for window in merge_context.windows:
            invented = IntervalWindow(window.end, window.end + 1)
            merge_context.merge([window, invented], window.union(invented))


def test_a_merge_that_invents_windows_is_refused_where_the_pipeline_is_built():
    goals = beam.Pipeline() | beam.Create([("blue", 3)]) | beam.WindowInto(Neighbourly(10))
    with pytest.raises(
        ValueError, match=r"(?s)Neighbourly.merge merges windows that no element is in.*at step.*hint"
    ):
        _ = goals | beam.GroupByKey()


def test_a_merge_that_needs_real_elements_is_left_for_run_time():
    class ByPart(Sessions):
        def assign(self, context):
            return super().assign(context) if context.element[1] + 1 else []

    goals = beam.Pipeline() | beam.Create([("blue", 3)]) | beam.WindowInto(ByPart(10))
    _ = goals | beam.GroupByKey()
