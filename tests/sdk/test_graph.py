"""From pipelines to graphs: golden texts of what the compiler gets."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock import graph, pvalue
from penstock.error import TransformError
from penstock.io.source_transforms import SourceTransform


def shown(pipeline):
    return graph.show(pipeline.to_graph()).split("\n")


def test_a_word_count_is_four_steps():
    pipeline = beam.Pipeline()
    words = pipeline | beam.Create(["to be", "or"]) | "Split" >> beam.FlatMap(str.split)
    words | "Pair" >> beam.Map(lambda word: (word, 1)) | beam.CombinePerKey(sum)
    assert shown(pipeline) == [
        "Create = Read(InlineValues(2 values)) -> #0 <class 'str'>",
        "Split = #0 ParDo(split) -> #1 <class 'str'>",
        "Pair = #1 ParDo(<lambda>) -> #2 Tuple[<class 'str'>, <class 'int'>]",
        "CombinePerKey(sum) = #2 CombinePerKey(sum) -> #3 Tuple[<class 'str'>, <class 'int'>]",
    ]


def test_side_inputs_are_views_numbered_as_their_slots():
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1])
    pairs = pipeline | "Pairs" >> beam.Create([("a", 1)])
    views = [pvalue.AsDict(pairs), pvalue.AsMultiMap(pairs), pvalue.AsList(numbers), pvalue.AsIter(numbers)]
    one = pvalue.AsSingleton(numbers, default_value=7)
    numbers | "All" >> beam.Map(lambda *args, **kwargs: None, *views, 3, one=one, two=2)
    assert shown(pipeline)[2:] == [
        "All = #0 +dict#1 +multimap#1 +list#0 +iter#0 +singleton#0 ParDo(<lambda>) -> #2 <class 'NoneType'>"
    ]
    step = pipeline.to_graph().steps[2]
    slots = [graph.SideInputSlot(index) for index in range(5)]
    assert step.primitive.args == (*slots[:4], 3)
    assert step.primitive.kwargs == (("one", slots[4]), ("two", 2))
    assert [side.default for side in step.side_inputs] == [(), (), (), (), (7,)]


def test_outputs_are_the_main_one_then_those_declared_or_asked_for():
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1])
    open_outputs = numbers | "Open" >> beam.ParDo(range).with_outputs()
    _ = open_outputs.late, open_outputs[3]
    main, errors = numbers | "Closed" >> beam.ParDo(range).with_outputs("errors", main="good")
    assert (main, errors) == (main, errors)
    numbers | "Parts" >> beam.Partition(lambda x, n: 0, 2)
    assert shown(pipeline)[1:] == [
        "Open = #0 ParDo(range) -> #1 Any, late:#2 Any, 3:#3 Any",
        "Closed = #0 ParDo(range) -> #4 Any, errors:#5 Any",
        "Parts/Part = #0 ParDo(_ApplyPartitionFn) -> #6 <class 'int'>, 0:#7 <class 'int'>, 1:#8 <class 'int'>",
    ]


def test_combining_globally_gives_a_default_by_a_marker_and_a_view_by_its_value():
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1])
    numbers | "Sum" >> beam.CombineGlobally(sum)
    view = numbers | "View" >> beam.CombineGlobally(sum).as_singleton_view()
    bare = numbers | "Bare" >> beam.CombineGlobally(sum).without_defaults().as_singleton_view()
    assert (view.default, bare.default) == ((0,), ())
    assert shown(pipeline)[1:10] == [
        "Sum/KeyWithVoid = #0 ParDo(_KeyWithNone) -> #1 Tuple[<class 'NoneType'>, <class 'int'>]",
        "Sum/DoOnce = Read(InlineValues(1 value)) -> #2 Any",
        "Sum/WindowDefault = #2 AssignWindows -> #3 Any",
        # The marker of nothing is left out of what is combined, and so the input keeps its type.
        "Sum/WithDefault = #1 #3 Flatten -> #4 Tuple[<class 'NoneType'>, <class 'int'>]",
        "Sum/CombinePerKey = #4 CombinePerKey(sum) -> #5 Tuple[<class 'NoneType'>, <class 'int'>]",
        "Sum/UnKey = #5 ParDo(_Unkey) -> #6 <class 'int'>",
        "View/KeyWithVoid = #0 ParDo(_KeyWithNone) -> #7 Tuple[<class 'NoneType'>, <class 'int'>]",
        "View/CombinePerKey = #7 CombinePerKey(sum) -> #8 Tuple[<class 'NoneType'>, <class 'int'>]",
        "View/UnKey = #8 ParDo(_Unkey) -> #9 <class 'int'>",
    ]


def test_combining_with_side_inputs_goes_by_way_of_groups():
    pipeline = beam.Pipeline()
    limit = pipeline | "Limit" >> beam.Create([1])
    pairs = pipeline | beam.Create([("a", 1)])
    pairs | "Top" >> beam.CombinePerKey(lambda values, n: sorted(values)[:n], pvalue.AsSingleton(limit))
    assert shown(pipeline)[2:] == [
        "Top/GroupByKey = #1 GroupByKey -> #2 Tuple[<class 'str'>, Iterable[<class 'int'>]]",
        "Top/Combine/ParDo(CombineValuesDoFn) = "
        "#2 +singleton#0 ParDo(CombineValuesDoFn) -> #3 Tuple[<class 'str'>, Any]",
    ]


def test_hot_keys_are_combined_in_two_rounds():
    pipeline = beam.Pipeline()
    pairs = pipeline | beam.Create([("a", 1)])
    pairs | "Sum" >> beam.CombinePerKey(sum).with_hot_key_fanout(4)
    assert [line.split(" = ")[0] for line in shown(pipeline)[1:]] == [
        "Sum/Split",
        "Sum/PreCombine",
        "Sum/StripPart",
        "Sum/Flatten",
        "Sum/PostCombine",
    ]


def test_a_composite_that_hands_its_input_on_adds_no_step():
    class Same(beam.PTransform):
        def expand(self, pcoll):
            return pcoll

    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | Same() | beam.Map(str)
    assert [step.label for step in pipeline.to_graph().steps] == ["Create", "Map(str)"]


def test_an_output_that_no_primitive_makes_is_refused():
    class Invented(beam.PTransform):
        def expand(self, pcoll):
            return pvalue.PCollection(pcoll.pipeline)

    pipeline = beam.Pipeline()
    pipeline | beam.Create([1]) | Invented()
    with pytest.raises(TransformError, match="returns a PCollection that no transform makes"):
        pipeline.to_graph()


def test_edges_carry_windowing_and_boundedness():
    class Endless(graph.Source):
        is_bounded = False

    pipeline = beam.Pipeline()
    endless = pipeline | SourceTransform(Endless())
    windows = beam.window.FixedWindows(10)
    grouped = endless | beam.WindowInto(windows) | beam.Map(lambda x: (x, x)) | beam.GroupByKey()
    compiled = pipeline.to_graph()
    assert [edge.is_bounded for edge in compiled.edges] == [False] * 4
    assert compiled.edges[0].windowing.is_default()
    assert compiled.edges[3].windowing.windowfn == grouped.windowing.windowfn == windows


def test_the_graph_finds_producers_and_consumers():
    pipeline = beam.Pipeline()
    numbers = pipeline | beam.Create([1])
    numbers | "A" >> beam.Map(lambda x, y: x, pvalue.AsList(numbers))
    compiled = pipeline.to_graph()
    assert compiled.producer(1).label == "A"
    assert [step.label for step in compiled.consumers(0)] == ["A"]
    assert compiled.edge(0).id == 0


def test_text_of_a_graph_never_shows_the_values():
    pipeline = beam.Pipeline()
    pipeline | beam.Create(["secret"]) | beam.Map(lambda x, y: x, "secret too")
    assert "secret" not in graph.show(pipeline.to_graph())
