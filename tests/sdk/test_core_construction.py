"""The core transforms: what they refuse, what they hand on, and their code without a runner."""

from __future__ import annotations

import copy
import logging
import pickle
import threading

import pytest

import penstock as beam
from penstock import graph, pvalue
from penstock.error import SideInputError, TransformError, UnsupportedByRunner
from penstock.functions.combinefn import DefaultingCombineFn, curry_combine_fn
from penstock.io.custom.bounded import Read, SourceBase
from penstock.io.source_transforms import SourceTransform
from penstock.metrics.cells import DistributionData
from penstock.metrics.execution import MetricsContainer, set_current
from penstock.metrics.metric import Metrics
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.combining.combine import PostCombineFn, _PreCombineFn
from penstock.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark, Repeatedly
from penstock.transforms.window import FixedWindows, GlobalWindows, Sessions, TimestampCombiner
from penstock.typehints.decorators import TypeCheckError, with_input_types
from penstock.windows.windowing import Windowing, default_windowing


class Endless(graph.Source):
    is_bounded = False


def endless(pipeline=None):
    return (pipeline or beam.Pipeline()) | SourceTransform(Endless()) | beam.Map(lambda x: (x, x))


def test_grouping_what_never_ends_needs_windows_or_a_trigger():
    for transform in (beam.GroupByKey(), beam.CombinePerKey(sum)):
        with pytest.raises(
            ValueError, match="unbounded PCollection with global windowing and a default trigger"
        ):
            endless() | transform
    repeated = beam.WindowInto(
        GlobalWindows(), trigger=Repeatedly(AfterCount(3)), accumulation_mode=AccumulationMode.DISCARDING
    )
    assert not (endless() | repeated | beam.GroupByKey()).is_bounded
    assert not (endless() | beam.WindowInto(FixedWindows(5)) | beam.GroupByKey()).is_bounded
    allowed = beam.Pipeline(options=PipelineOptions(["--allow_unsafe_triggers"]))
    assert not (endless(allowed) | beam.GroupByKey()).is_bounded


def test_triggers_that_may_lose_data_are_refused():
    once = beam.WindowInto(
        FixedWindows(5), trigger=AfterCount(3), accumulation_mode=AccumulationMode.DISCARDING
    )
    with pytest.raises(ValueError, match="may lose data"):
        endless() | once | beam.GroupByKey()


def test_windowing_is_a_value_with_beams_defaults():
    plain = Windowing(FixedWindows(5))
    assert plain == Windowing(FixedWindows(5), allowed_lateness=0)
    assert hash(plain) == hash(Windowing(FixedWindows(5)))
    assert plain != Windowing(FixedWindows(5), allowed_lateness=1)
    assert (plain.accumulation_mode, plain.timestamp_combiner) == (
        AccumulationMode.DISCARDING,
        TimestampCombiner.OUTPUT_AT_EOW,
    )
    assert Windowing(FixedWindows(5), allowed_lateness=2).allowed_lateness.micros == 2_000_000
    assert (default_windowing().is_default(), plain.is_default()) == (True, False)
    assert pickle.loads(pickle.dumps(plain)) == plain
    with pytest.raises(ValueError, match="accumulation_mode must be provided"):
        Windowing(FixedWindows(5), triggerfn=AfterCount(2))
    with pytest.raises(ValueError, match="the allowed lateness"):
        Windowing(FixedWindows(5), allowed_lateness=-1)


def test_window_into_replaces_only_what_it_is_told():
    first = Windowing(FixedWindows(5), AfterWatermark(early=AfterCount(1)), AccumulationMode.ACCUMULATING)
    again = beam.WindowInto(first, accumulation_mode=AccumulationMode.DISCARDING).windowing
    assert (again.windowfn, again.triggerfn) == (first.windowfn, first.triggerfn)
    assert again.accumulation_mode == AccumulationMode.DISCARDING
    with pytest.raises(TypeError, match="takes a WindowFn"):
        beam.WindowInto(5)


def test_windows_are_inherited_and_groups_have_the_continuation_trigger():
    windows = beam.WindowInto(
        Sessions(5),
        trigger=AfterWatermark(early=AfterCount(7)),
        accumulation_mode=AccumulationMode.ACCUMULATING,
    )
    pcoll = beam.Pipeline() | beam.Create([("a", 1)]) | windows
    assert (pcoll | beam.Map(lambda x: x)).windowing == windows.windowing
    after = (pcoll | beam.GroupByKey()).windowing
    assert after.windowfn == Sessions(5)
    assert after.triggerfn == windows.windowing.triggerfn.get_continuation_trigger()
    assert (pcoll | beam.CombinePerKey(sum)).windowing == after


def test_combining_windows_globally_needs_a_word_about_empty_ones():
    pcoll = beam.Pipeline() | beam.Create([1]) | beam.WindowInto(FixedWindows(5))
    with pytest.raises(ValueError, match="Default values are not yet supported"):
        pcoll | "A" >> beam.CombineGlobally(sum)
    assert (pcoll | "A" >> beam.CombineGlobally(sum).without_defaults()).windowing.windowfn == FixedWindows(5)
    assert (pcoll | "B" >> beam.CombineGlobally(sum).as_singleton_view()).default == (0,)


def test_flattening_needs_something_to_flatten_and_may_have_nothing(caplog):
    pipeline = beam.Pipeline()
    one = pipeline | "One" >> beam.Create([1])
    with pytest.raises(ValueError, match="Input to Flatten must be an iterable"):
        one | beam.Flatten()
    with pytest.raises(TypeError, match="cannot include an iterable of PCollections"):
        (one, [one]) | beam.Flatten()
    with pytest.raises(ValueError, match="requires a pipeline"):
        () | beam.Flatten()
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        beam.Flatten(pipelines=pipeline)
    assert (() | beam.Flatten(pipeline=pipeline)).windowing.is_default()
    assert not ((one, endless(pipeline)) | "Both" >> beam.Flatten()).is_bounded
    with caplog.at_level(logging.WARNING):
        (one, one | beam.WindowInto(FixedWindows(5))) | "Differ" >> beam.Flatten()
    assert "different windowings" in caplog.text


def test_flatten_with_takes_pcollections_and_roots():
    pipeline = beam.Pipeline()
    one = pipeline | "One" >> beam.Create([1])
    one | beam.FlattenWith(pipeline | "Two" >> beam.Create([2]), "Three" >> beam.Create([3]))
    assert (
        graph.show(pipeline.to_graph()).split("\n")[-1].startswith("FlattenWith/Flatten = #0 #1 #2 Flatten")
    )
    with pytest.raises(TypeError, match="only takes other PCollections and PTransforms"):
        one | "Wrong" >> beam.FlattenWith(3)


def test_partition_numbers_are_checked():
    dofn = beam.Partition.ApplyPartitionFnFn()
    make = beam.transforms.core.CallableWrapperPartitionFn
    (output,) = dofn.process("x", make(lambda x, n: 1), 2)
    assert (output.tag, output.value) == ("1", "x")
    for wrong, problem in (
        (2, "out-of-bounds"),
        (-1, "out-of-bounds"),
        (1.0, "should only yield integers"),
        (True, "'bool'"),
    ):
        with pytest.raises(ValueError, match=problem):
            dofn.process("x", make(lambda x, n, wrong=wrong: wrong), 2)
    with pytest.raises(ValueError, match="number of parts"):
        beam.Pipeline() | beam.Create([1]) | beam.Partition(lambda x, n: 0)


def test_side_inputs_need_a_view():
    pcoll = beam.Pipeline() | beam.Create([1])
    with pytest.raises(SideInputError, match="used directly as side input"):
        pcoll | beam.Map(lambda x, y: x, pcoll)
    with pytest.raises(TypeError, match="AsList takes a PCollection"):
        pvalue.AsList([1])
    with pytest.raises(RuntimeError, match="Sessions is not allowed in side inputs"):
        pvalue.AsList(pcoll | beam.WindowInto(Sessions(5)))
    with pytest.raises(TransformError, match="Expecting a PCollection"):
        beam.GroupByKey().expand(3)


def test_tags_are_checked():
    pcoll = beam.Pipeline() | beam.Create([1])
    result = pcoll | beam.ParDo(range).with_outputs("a", main="m")
    assert result.a is result["a"]
    assert [pc.tag for pc in result] == [None, "a"]
    with pytest.raises(ValueError, match="Tag 'b' is neither the main tag 'm' nor one of"):
        _ = result.b
    with pytest.raises(ValueError, match="must be different"):
        beam.ParDo(range).with_outputs("a", main="a")
    with pytest.raises(TypeError, match="non-string tag"):
        pvalue.TaggedOutput(1, 2)
    assert (pcoll | "Any" >> beam.ParDo(range).with_outputs("a", allow_unknown_tags=True)).b.tag == "b"


def test_create_refuses_text_and_needs_a_pipeline():
    for text in ("abc", b"abc"):
        with pytest.raises(TypeError, match="Refusing to treat string as an iterable"):
            beam.Create(text)
    with pytest.raises(TypeError, match="must be a PBegin"):
        beam.Pipeline() | beam.Create([1]) | "Again" >> beam.Impulse()


def test_dead_letters_hold_the_element_and_what_went_wrong():
    called = []
    pipeline = beam.Pipeline()
    handling = beam.Map(lambda x: 1 // x).with_exception_handling(
        exc_class=ZeroDivisionError,
        on_failure_callback=lambda error, element: called.append((type(error), element)),
    )
    pipeline | beam.Create([1]) | handling
    dofn = pipeline.to_graph().steps[1].primitive.dofn
    assert list(dofn.process(1)) == [1]
    (letter,) = dofn.process(0)
    assert letter.tag == "bad"
    element, (kind, text, lines) = letter.value
    assert (element, kind, called) == (0, ZeroDivisionError, [(ZeroDivisionError, 0)])
    assert "division" in text
    assert lines[0].startswith("Traceback")
    with pytest.raises(TypeError):
        list(dofn.process("a"))


@pytest.mark.parametrize(("partial", "expected"), [(False, ["bad"]), (True, [1, "bad"])])
def test_what_came_before_a_failure_is_kept_only_if_asked_for(partial, expected):
    def halting(x):
        yield x
        raise ValueError(x)

    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | beam.FlatMap(halting).with_exception_handling(partial=partial)
    outputs = pipeline.to_graph().steps[1].primitive.dofn.process(1)
    assert [getattr(each, "tag", each) for each in outputs] == expected


def test_elements_that_take_too_long_are_dead_letters():
    wait = threading.Event()
    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | beam.Map(lambda x: wait.wait(5)).with_exception_handling(timeout=0.01)
    dofn = pipeline.to_graph().steps[1].primitive.dofn
    (letter,) = dofn.process(1)
    assert letter.value[1][0] is TimeoutError
    wait.set()
    dofn.teardown()


def test_what_a_dofn_counts_under_a_timeout_is_counted_also_where_it_fails_or_takes_too_long():
    wait = threading.Event()

    def counting(x):
        Metrics.counter("n", "seen").inc()
        Metrics.distribution("n", "values").update(x)
        Metrics.string_set("n", "texts").add(str(x))
        if x == 2:
            raise ValueError(x)
        if x == 3:
            wait.wait(5)
        return x

    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | beam.Map(counting).with_exception_handling(timeout=0.1)
    dofn = pipeline.to_graph().steps[1].primitive.dofn
    container = MetricsContainer("Map")
    set_current(container)
    try:
        outputs = [list(dofn.process(x)) for x in (1, 2, 3, 4)]
    finally:
        set_current(None)
        wait.set()
        dofn.teardown()
    assert [getattr(each, "tag", each) for (each,) in outputs] == [1, "bad", "bad", 4]
    counted = container.snapshot()
    assert counted["counters", "Map", "n", "seen"] == 4
    assert counted["distributions", "Map", "n", "values"] == DistributionData(10, 4, 1, 4)
    assert counted["string_sets", "Map", "n", "texts"].get_result() == {"1", "2", "3", "4"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"use_subprocess": True, "partial": True}, "partial and use_subprocess are mutually incompatible"),
        (
            {"use_subprocess": True, "allow_unsafe_userstate_in_process": True},
            "incompatible with use_subprocess",
        ),
        ({"threshold": 2}, "the threshold is 2"),
        ({"timeout": 1, "allow_unsafe_userstate_in_process": True}, "incompatible with timeout"),
    ],
)
def test_exception_handling_that_cannot_work_is_refused_by_name(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        beam.Map(str).with_exception_handling(**arguments)


def test_an_error_handler_takes_the_dead_letters():
    class Handler:
        def add_error_pcollection(self, pcoll):
            self.taken = pcoll

    handler = Handler()
    pcoll = beam.Pipeline() | beam.Create([1])
    good = pcoll | beam.Map(str).with_error_handler(handler)
    assert (good.element_type, handler.taken.tag) == (str, "bad")
    mapping = beam.Map(str)
    assert mapping.with_error_handler(None) is mapping


def test_with_outputs_and_exception_handling_go_together():
    pcoll = beam.Pipeline() | beam.Create([1])
    result = pcoll | beam.ParDo(range).with_outputs("a", main="m").with_exception_handling()
    assert [pc.tag for pc in (result.m, result.a, result.bad)] == [None, "a", "bad"]
    selected = pcoll | beam.Select(x=str).with_exception_handling(dead_letter_tag="wrong")
    assert {tag: pc.tag for tag, pc in selected.items()} == {"good": None, "wrong": "wrong"}


def run(combine_fn, *parts):
    accumulators = [combine_fn.add_inputs(combine_fn.create_accumulator(), part) for part in parts]
    merged = combine_fn.merge_accumulators([combine_fn.compact(each) for each in accumulators])
    return combine_fn.extract_output(merged)


def test_functions_become_combinefns():
    assert run(beam.CombineFn.from_callable(sum), [1, 2], range(30), []) == 438
    assert run(beam.CombineFn.maybe_from_callable(max, has_side_inputs=False), [1], [5, 2]) == 5
    assert run(curry_combine_fn(beam.CombineFn.from_callable(max), (), {"key": abs}), [1], [-5, 2]) == -5
    with pytest.raises(TypeError, match="Expected a CombineFn or callable"):
        beam.CombineFn.maybe_from_callable(3)
    with pytest.raises(TypeError, match="CombineGlobally can be used only"):
        beam.CombineGlobally(3)


def test_the_marker_of_an_empty_collection_is_no_value():
    pipeline = beam.Pipeline()
    pipeline | beam.Create([]) | beam.CombineGlobally(sum)
    marker = pipeline.to_graph().steps[2].primitive.source.values[0][1]
    combine_fn = pickle.loads(pickle.dumps(DefaultingCombineFn(beam.CombineFn.from_callable(sum))))
    marker = pickle.loads(pickle.dumps(marker))
    assert run(combine_fn, [marker]) == 0
    assert run(combine_fn, [marker, 1], [2]) == 3
    assert combine_fn.add_input([1], marker) == [1]


def test_two_rounds_of_combining_give_what_one_gives():
    mean = beam.combiners.MeanCombineFn()
    first, second = _PreCombineFn(mean), PostCombineFn(mean)
    parts = [run(first, [1, 2]), run(first, [3]), (False, 10)]
    assert run(second, parts) == 4


def test_rows_are_records():
    row = beam.Row(x=1, y="a")
    assert (row.x, row.as_dict(), list(row), row._asdict()) == (
        1,
        {"x": 1, "y": "a"},
        [1, "a"],
        {"x": 1, "y": "a"},
    )
    assert row == beam.Row(x=1, y="a") == pickle.loads(pickle.dumps(row)) == copy.copy(row)
    assert hash(row) == hash(beam.Row(x=1, y="a"))
    assert row != beam.Row(y="a", x=1)
    assert row != (1, "a")
    with pytest.raises(AttributeError, match="has no field 'z'"):
        _ = row.z


def test_group_by_keys_are_values_or_named_tuples_that_travel():
    alone, several = beam.GroupBy("real").key_function(), beam.GroupBy("real", i="imag").key_function()
    assert alone(1 + 2j) == 1
    key = pickle.loads(pickle.dumps(several(1 + 2j)))
    assert (key, key.real, key.i) == ((1, 2), 1, 2)
    with pytest.raises(TypeError, match="must be a callable or a string"):
        beam.GroupBy(3)


def test_every_name_of_a_pipeline_author_is_there():
    names = (
        "Map FlatMap Filter ParDo Create GroupByKey CoGroupByKey CombinePerKey Flatten WindowInto Read Row"
    )
    modules = (
        "io coders pvalue transforms metrics typehints options window trigger combiners runners testing utils"
    )
    assert all(hasattr(beam, name) for name in (names + " " + modules).split())
    assert set(beam.__all__) <= set(dir(beam)) | {"Read", "Write", "io", "metrics", "options", "runners"}
    with pytest.raises(AttributeError, match="nothing"):
        _ = beam.nothing


def test_flat_map_without_a_function_gives_the_items_of_texts_too_and_their_type():
    letters = beam.Pipeline() | beam.Create(["ab"]) | beam.FlatMap()
    assert letters.element_type is str
    numbers = beam.Pipeline() | beam.Create([[1, 2]]) | beam.FlatMap()
    assert numbers.element_type is int
    assert list(numbers.producer.transform.fn.process([1, 2])) == [1, 2]


def test_arguments_that_do_not_fit_are_a_type_check_error_with_the_step():
    with pytest.raises(TypeCheckError, match="passed to Map, is given 1 argument too many"):
        beam.Map(lambda x: x, 1)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        beam.Map(lambda x, y: x)


@pytest.mark.parametrize("above", [True, False])
def test_hints_above_and_below_ptransform_fn_are_checked(above):
    hinted = with_input_types(int)
    written = (
        (lambda fn: hinted(beam.ptransform_fn(fn))) if above else (lambda fn: beam.ptransform_fn(hinted(fn)))
    )
    MyMap = written(lambda pcoll: pcoll | beam.Map(lambda x: x))
    beam.Pipeline() | beam.Create([1]) | MyMap()
    with pytest.raises(TypeCheckError, match="expected <class 'int'>, got <class 'str'>"):
        beam.Pipeline() | beam.Create(["a"]) | MyMap()


def test_a_source_that_does_not_end_can_be_built_with_and_is_refused_before_anything_runs():
    class Endless(SourceBase):
        def is_bounded(self):
            return False

    pipeline = beam.Pipeline()
    read = pipeline | "Endless" >> Read(Endless())
    assert not read.is_bounded
    refusal = (
        r"(?s)the runner cannot read the source Endless as a stream\n  at step 'Endless' .*\n  hint: use a"
    )
    with pytest.raises(UnsupportedByRunner, match=refusal):
        pipeline.run()
