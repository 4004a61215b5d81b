"""Every mistake that can be seen while a pipeline is built is refused there: with what, where and what to do."""

import operator

import pytest

import penstock as beam
from penstock.error import SideInputError
from penstock.pipeline import Pipeline
from penstock.pvalue import AsList, AsSingleton
from penstock.transforms.window import FixedWindows
from penstock.typehints.decorators import TypeCheckError


def of_another_pipeline(p):
    return (p | beam.Create([1]), Pipeline() | beam.Create([2])) | beam.Flatten()


def side_input_of_another_pipeline(p):
    other = Pipeline() | beam.Create([2])
    return p | beam.Create([1]) | beam.Map(lambda x, s: x, AsList(other))


def label_twice(p):
    return p | "Same" >> beam.Create([1]) | "Same" >> beam.Map(str)


def annotated(number: int) -> str:
    return str(number)


MISTAKES = {
    "a type that does not fit": (
        lambda p: p | beam.Create(["x"]) | beam.Map(annotated),
        TypeCheckError,
        "Map(annotated)",
    ),
    "a declared type that does not fit": (
        lambda p: p | beam.Create(["x"]) | beam.Map(len).with_input_types(int),
        TypeCheckError,
        "Map(len)",
    ),
    "groups of what is no pair": (
        lambda p: p | beam.Create([1]) | beam.GroupByKey(),
        TypeCheckError,
        "GroupByKey",
    ),
    "sums of what is no pair": (
        lambda p: p | beam.Create(["a"]) | beam.CombinePerKey(sum),
        TypeCheckError,
        "Combine",
    ),
    "a lambda without parameters": (
        lambda p: p | beam.Create([1]) | beam.Map(lambda: 1),
        TypeError,
        "element",
    ),
    "a lambda of two": (lambda p: p | beam.Create([1]) | beam.Map(lambda x, y: 1), TypeError, "'y'"),
    "an argument too many": (lambda p: p | beam.Create([1]) | beam.Map(lambda x: 1, 2), TypeError, "Map"),
    "an argument nobody takes": (
        lambda p: p | beam.Create([1]) | beam.Filter(lambda x: 1, z=2),
        TypeError,
        "z",
    ),
    "a label used twice": (label_twice, RuntimeError, "Same"),
    "a PCollection of another pipeline": (of_another_pipeline, ValueError, "pipeline"),
    "a side input of another pipeline": (side_input_of_another_pipeline, ValueError, "pipeline"),
    "no function": (lambda p: p | beam.Create([1]) | beam.Map(5), TypeError, "callable"),
    "a DoFn for a function": (lambda p: p | beam.Create([1]) | beam.Map(beam.DoFn()), TypeError, "ParDo"),
    "a DoFn class": (lambda p: p | beam.Create([1]) | beam.ParDo(beam.DoFn), ValueError, "DoFn"),
    "no transform": (lambda p: p | beam.Create([1]) | 5, TypeError, "PTransform"),
    "a text to create from": (lambda p: p | beam.Create("text"), TypeError, "Create"),
    "a number to create from": (lambda p: p | beam.Create(5), TypeError, "Create"),
    "a transform on a pipeline": (lambda p: p | beam.Map(str), TypeCheckError, "Map(str)"),
    "a PCollection as a constant": (
        lambda p: (lambda one: one | beam.Map(lambda x, y: x, one))(p | beam.Create([1])),
        SideInputError,
        "AsSingleton",
    ),
    "a view as an input": (
        lambda p: AsSingleton(p | beam.Create([1])) | beam.Map(str),
        TypeError,
        "AsSingleton",
    ),
    "no number of parts": (
        lambda p: p | beam.Create([1]) | beam.Partition(lambda x, n: 0),
        ValueError,
        "Partition",
    ),
    "no windows": (lambda p: p | beam.Create([1]) | beam.WindowInto(5), TypeError, "Window"),
    "empty windows": (lambda p: p | beam.Create([1]) | beam.WindowInto(FixedWindows(0)), ValueError, "size"),
    "no combiner": (lambda p: p | beam.Create([(1, 2)]) | beam.CombinePerKey(5), TypeError, "5"),
    "a default for each window": (
        lambda p: p | beam.Create([1]) | beam.WindowInto(FixedWindows(1)) | beam.CombineGlobally(sum),
        ValueError,
        "without_defaults",
    ),
    "a field expression that is none": (lambda p: p | beam.Create([1]) | beam.GroupBy(5), TypeError, "5"),
    "a tag that is no text": (
        lambda p: p | beam.Create([1]) | beam.Map(str).with_outputs(1),
        TypeError,
        "tag",
    ),
    "an output that is not there": (
        lambda p: operator.getitem(p | beam.Create([1]) | beam.Map(str).with_outputs("a"), "b"),
        ValueError,
        "'b'",
    ),
    "an unknown option": (lambda p: Pipeline(no_such_option=1), TypeError, "no_such_option"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_what_where_and_what_to_do(mistake):
    make, error, names = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        make(Pipeline())
    text = str(caught.value)
    assert names in text
    assert "test_bad_input.py:" in text or mistake in ("an unknown option",)
    assert "hint: " in text
