"""Element types: how they travel through a pipeline, and what is refused because of them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

import penstock as beam
from penstock import pvalue
from penstock.transforms.window import TimestampedValue
from penstock.typehints import TypeCheckError, typehints

K = TypeVar("K")
V = TypeVar("V")


def text_of(number: int) -> str:
    return str(number)


class Words(beam.DoFn):
    def process(self, element: str) -> Iterable[str]:
        yield from element.split()


@beam.typehints.with_input_types(beam.typehints.Tuple[K, V])
@beam.typehints.with_output_types(beam.typehints.Tuple[V, K])
class Swap(beam.PTransform):
    def expand(self, pcoll):
        return pcoll | beam.Map(lambda pair: (pair[1], pair[0]))


class Annotated(beam.PTransform):
    def expand(self, pcoll: beam.PCollection[int]) -> beam.PCollection[str]:
        return pcoll | beam.Map(str)


def type_after(values, *transforms):
    pcoll = beam.Pipeline() | beam.Create(values)
    for transform in transforms:
        pcoll = pcoll | transform
    return typehints.show_type(pcoll.element_type)


@pytest.mark.parametrize(
    ("values", "transform", "expected"),
    [
        ([1], beam.Map(text_of), "<class 'str'>"),
        ([1], beam.Map(lambda x: (x, str(x))), "Tuple[<class 'int'>, <class 'str'>]"),
        ([1], beam.Map(lambda x: x.unknown).with_output_types(float), "<class 'float'>"),
        (["a"], beam.FlatMap(str.split), "<class 'str'>"),
        (["a"], beam.ParDo(Words()), "<class 'str'>"),
        ([1], beam.Filter(lambda x: x > 0), "<class 'int'>"),
        ([(1, "a")], beam.MapTuple(lambda a, b: (b, a)), "Tuple[<class 'str'>, <class 'int'>]"),
        ([(1, "a")], beam.GroupByKey(), "Tuple[<class 'int'>, Iterable[<class 'str'>]]"),
        ([("a", 1)], beam.CombinePerKey(sum), "Tuple[<class 'str'>, <class 'int'>]"),
        (
            [("a", 1)],
            beam.CombinePerKey(beam.combiners.MeanCombineFn()),
            "Tuple[<class 'str'>, <class 'float'>]",
        ),
        ([1.5], beam.CombineGlobally(max), "<class 'float'>"),
        ([(1, "a")], Swap(), "Tuple[<class 'str'>, <class 'int'>]"),
        ([1], Annotated(), "<class 'str'>"),
        ([1], beam.WindowInto(beam.window.FixedWindows(1)), "<class 'int'>"),
        (
            [beam.Row(a=1, b="x")],
            beam.Select("b", c=lambda row: row.a),
            "Row(b=<class 'str'>, c=<class 'int'>)",
        ),
        (
            [beam.Row(a=1, b="x")],
            beam.GroupBy("a"),
            "Tuple[<class 'int'>, Iterable[Row(a=<class 'int'>, b=<class 'str'>)]]",
        ),
        ([1], beam.Map(lambda x: beam.Row(x=x)), "Row(x=<class 'int'>)"),
    ],
)
def test_types_travel(values, transform, expected):
    assert type_after(values, transform) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "Any"),
        ([1, "a", None], "Union[<class 'NoneType'>, <class 'int'>, <class 'str'>]"),
        ({"a": 1}, "Tuple[<class 'str'>, <class 'int'>]"),
        (
            [beam.Row(a=1, b="x"), beam.Row(a=None, b="y")],
            "Row(a=Union[<class 'NoneType'>, <class 'int'>], b=<class 'str'>)",
        ),
    ],
)
def test_created_values_have_the_union_of_their_types(values, expected):
    assert type_after(values) == expected


def test_flattening_gives_the_union_of_the_types():
    pipeline = beam.Pipeline()
    parts = (pipeline | "A" >> beam.Create([1]), pipeline | "B" >> beam.Create(["a"]))
    assert str((parts | beam.Flatten()).element_type) == "Union[<class 'int'>, <class 'str'>]"


@pytest.mark.parametrize(
    ("values", "transform", "problem"),
    [
        (
            ["a"],
            beam.Map(text_of),
            "'Map(text_of)' requires PCollections of type '<class 'int'>' but was applied to",
        ),
        ([1], beam.ParDo(Words()), "requires PCollections of type '<class 'str'>'"),
        (["a"], beam.Map(lambda x: x).with_input_types(int), "requires PCollections of type '<class 'int'>'"),
        (
            [1],
            beam.Map(lambda x, y: x, "b").with_input_types(int, int),
            "requires <class 'int'> but got <class 'str'> for y",
        ),
        (
            ["a"],
            Annotated(),
            "Input type hint violation at Annotated: expected <class 'int'>, got <class 'str'>",
        ),
        ([1], beam.GroupByKey(), "expected Tuple[TypeVariable[K], TypeVariable[V]], got <class 'int'>"),
        ([1], beam.CombinePerKey(sum), "expected Tuple[TypeVariable[K], TypeVariable[V]], got <class 'int'>"),
        (
            ["a"],
            beam.CombineGlobally(beam.combiners.MeanCombineFn()),
            "Union[<class 'float'>, <class 'int'>, <class 'numbers.Real'>]",
        ),
        ([1], beam.FlatMap(text_of), "Return value not iterable: text_of"),
        ([1], beam.Map(str) | Annotated(), "Input type hint violation"),
    ],
)
def test_types_that_do_not_fit_are_refused_with_step_and_line(values, transform, problem):
    pcoll = beam.Pipeline() | beam.Create(values)
    with pytest.raises(TypeCheckError) as caught:
        pcoll | transform
    lines = str(caught.value).split("\n")
    assert problem in lines[0]
    assert "test_type_checks.py:" in lines[1]
    assert lines[-1].startswith("  hint: ")


def test_a_wrong_output_type_of_a_composite_is_refused():
    class Wrong(beam.PTransform):
        def expand(self, pcoll: beam.PCollection[int]) -> beam.PCollection[int]:
            return pcoll | beam.Map(str)

    pcoll = beam.Pipeline() | beam.Create([1])
    with pytest.raises(TypeCheckError, match="Output type hint violation at Wrong"):
        pcoll | Wrong()


def test_side_inputs_are_checked_as_what_the_function_receives():
    pipeline = beam.Pipeline()
    texts = pipeline | "Texts" >> beam.Create(["a"])
    numbers = pipeline | beam.Create([1])

    def add(x: int, y: int) -> int:
        return x + y

    numbers | "Fits" >> beam.Map(add, pvalue.AsSingleton(numbers))
    with pytest.raises(TypeCheckError, match="requires <class 'int'> but got <class 'str'> for y"):
        numbers | "Misfits" >> beam.Map(add, pvalue.AsSingleton(texts))


def test_transforms_for_elements_are_refused_where_there_are_none():
    pipeline = beam.Pipeline()
    with pytest.raises(TypeCheckError, match=r"Transform 'Map.str.'.*Got a PBegin/Pipeline instead"):
        pipeline | beam.Map(str)
    with pytest.raises(TypeCheckError, match="an object of type None"):
        pipeline.apply(beam.Map(str), None)


def test_tagged_outputs_have_the_types_declared_for_them():
    pcoll = beam.Pipeline() | beam.Create([1])
    pardo = beam.ParDo(lambda x: [x]).with_output_types(int, errors=str)
    result = pcoll | pardo.with_outputs("errors", main="good")
    assert (result.good.element_type, result.errors.element_type) == (int, str)


def test_dead_letters_are_typed_and_the_good_ones_keep_their_type():
    pcoll = beam.Pipeline() | beam.Create([1])
    good, bad = pcoll | beam.Map(text_of).with_exception_handling()
    assert good.element_type is str
    assert bad.element_type == beam.DeadLetter.__class_getitem__(int)


def test_hints_on_either_side_of_ptransform_fn_are_checked() -> None:
    def same(pcoll):
        return pcoll

    inside = beam.ptransform_fn(beam.typehints.with_input_types(int)(same))
    outside = beam.typehints.with_input_types(int)(beam.ptransform_fn(lambda pcoll: pcoll))
    for make in (inside, outside):
        _ = beam.Pipeline() | beam.Create([1]) | make()
        with pytest.raises(beam.typehints.TypeCheckError, match="expected <class 'int'>, got <class 'str'>"):
            _ = beam.Pipeline() | beam.Create(["a"]) | make()


@pytest.mark.parametrize("kind", [TypeError, beam.typehints.TypeCheckError])
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [((1, 2), "is given 2 arguments too many"), ((), "is missing a required argument: 'times'")],
)
def test_arguments_that_do_not_fit_are_an_error_of_beams_type_and_of_pythons(
    kind, arguments, problem
) -> None:
    def repeat(text, times):
        return text * times

    with pytest.raises(kind, match=rf"(?s)repeat, passed to Map, {problem}.*test_type_checks.py"):
        beam.Map(repeat, *(arguments and (3, *arguments)))


def stamped(x: Any) -> TimestampedValue[list[int]]:
    return TimestampedValue(x, 1)


def stamped_somehow(x: Any) -> TimestampedValue:
    return TimestampedValue(x, 1)


def test_a_hint_of_timestamped_values_tells_the_type_of_the_elements() -> None:
    pcoll = beam.Pipeline() | beam.Create([1])
    assert (pcoll | beam.Map(stamped)).element_type == beam.typehints.List[int]
    assert (pcoll | beam.Map(stamped_somehow)).element_type == beam.typehints.Any


def test_an_error_has_what_is_wrong_as_its_argument_and_the_rest_in_its_text() -> None:
    with pytest.raises(TypeCheckError) as failure:
        _ = beam.Pipeline() | beam.Create([1]) | "D" >> beam.GroupByKey()
    what = (
        "Input type hint violation at D: expected Tuple[TypeVariable[K], TypeVariable[V]], got <class 'int'>"
    )
    assert failure.value.args == (what,)
    assert "test_type_checks.py" in str(failure.value)
    assert "hint: make pairs first" in str(pickle.loads(pickle.dumps(failure.value)))


@pytest.mark.parametrize(
    "split",
    [
        lambda line: line.split(","),
        lambda line: line.rsplit(",", 1),
        lambda line: line.split(",")[:2],
        lambda line: line.replace(" ", "").split(",")[::-1],
        lambda line: [line, *line.split(",")[:0]] + line.split(",")[1:],
        lambda line: sorted(line.split(",")),
        lambda line: line.split(",") if line else None,
    ],
)
def test_a_list_that_a_method_gives_may_be_a_pair_as_in_beam(split):
    for sdk in (beam, pytest.importorskip("apache_beam")):
        count = sdk.transforms.userstate.CombiningValueStateSpec("count", combine_fn=sum)

        class Number(sdk.DoFn):
            def process(self, pair, count=sdk.DoFn.StateParam(count)):
                yield pair[0], count.read()

        pairs = sdk.Pipeline() | sdk.Create(["a,1"]) | sdk.Map(split)
        steps = (
            sdk.GroupByKey(),
            sdk.CombinePerKey(max),
            sdk.GroupIntoBatches(2),
            sdk.ParDo(Number()),
            sdk.Keys(),
            sdk.Values(),
            sdk.KvSwap(),
            sdk.combiners.Count.PerKey(),
        )
        for step in steps:
            pairs | step


def test_a_list_that_a_program_makes_or_declares_is_no_pair_as_in_beam():
    for sdk in (beam, pytest.importorskip("apache_beam")):
        lines = sdk.Pipeline() | sdk.Create(["a,1"])
        for at, lists in enumerate(
            (
                sdk.Map(lambda line: [line, line]),
                sdk.Map(lambda line: line.split(",")).with_output_types(list[str]),
            )
        ):
            with pytest.raises(sdk.typehints.TypeCheckError, match="violation"):
                lines | f"lists {at}" >> lists | f"group {at}" >> sdk.GroupByKey()


def test_what_a_method_gives_is_known_to_be_a_list_of_texts():
    fields = beam.Pipeline() | beam.Create(["a,1"]) | beam.Map(lambda line: line.split(","))
    assert repr(fields.element_type) == repr(beam.typehints.List[str])
    assert typehints.is_consistent_with(beam.typehints.List[str], fields.element_type)
    assert typehints.is_consistent_with(fields.element_type, beam.typehints.List[str])
    assert (fields | beam.GroupByKey()).element_type == beam.typehints.KV[str, beam.typehints.Iterable[str]]
    assert (fields | beam.FlatMap(lambda each: each)).element_type is str
    with pytest.raises(TypeCheckError):
        fields | beam.Map(lambda pair: pair).with_input_types(beam.typehints.Tuple[int, int])


def test_inside_of_another_type_an_inferred_list_stays_apart_from_a_declared_one():
    numbered = beam.Pipeline() | beam.Create(["a,1"]) | beam.Map(lambda line: (line.split(","), 1))
    pairs = beam.typehints.Tuple[beam.typehints.KV[str, str], int]
    assert not typehints.is_consistent_with(beam.typehints.Tuple[beam.typehints.List[str], int], pairs)
    assert typehints.is_consistent_with(numbered.element_type, pairs)
