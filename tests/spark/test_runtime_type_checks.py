"""Type hints that are checked while a pipeline runs."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

import penstock as beam
from penstock.options.pipeline_options import PipelineOptions
from penstock.testing.test_pipeline import TestPipeline
from penstock.testing.util import assert_that, equal_to
from penstock.transforms.userstate import CombiningValueStateSpec
from penstock.transforms.window import TimestampedValue

OPTIONS = PipelineOptions(["--runtime_type_check", "--no_pipeline_type_check"])


class Tag(beam.DoFn):
    """Gives an output of the wrong type with a tag, and another one with a timestamp."""

    def process(self, element):
        yield beam.pvalue.TaggedOutput("side", element)
        yield TimestampedValue(element, 1)


def _identity(x: Any) -> Any:
    return x


def _stamped(x: Any) -> TimestampedValue[str]:
    return TimestampedValue(x, 1)


STEPS = {
    "argument of a function": (
        lambda: beam.Map(_identity).with_input_types(str),
        r"within ParDo\(Bad\): Type-hint for argument: 'x' violated\. Expected an instance of <class 'str'>, "
        r"instead found an instance of <class 'int'>",
    ),
    "further argument": (
        lambda: beam.Map(lambda x, one: x + one, 1.0).with_input_types(int, int),
        "Type-hint for argument: 'one' violated",
    ),
    "composite argument": (
        lambda: beam.Map(_identity).with_input_types(tuple[int, int]),
        r"'x' violated: Tuple type constraint violated\..* instance of 'int' was received\.(?s:.*)hint Tuple\[<class",
    ),
    "output": (
        lambda: beam.FlatMap(lambda x: [float(x)]).with_output_types(int),
        "output should be of type <class 'int'>. Instead, received an instance of type <class 'float'>",
    ),
    "output with a timestamp": (
        lambda: beam.ParDo(Tag()).with_output_types(str),
        "received .*type <class 'int'>",
    ),
    "output in a declared timestamp": (
        lambda: beam.Map(_stamped),
        "expected output should be of type <class 'str'>. Instead, received an instance of type <class 'int'>",
    ),
    "composite output": (
        lambda: beam.Map(_identity).with_output_types(tuple[int, int]),
        r"within ParDo\(Bad\): Tuple type constraint violated\.",
    ),
    "tagged output": (
        lambda: beam.ParDo(Tag()).with_output_types(int, side=str).with_outputs("side"),
        "expected output should be of type <class 'str'>",
    ),
    "combined value": (
        lambda: beam.CombineGlobally(sum).with_input_types(str).with_output_types(str),
        "Runtime type violation detected within .*Expected an instance of <class 'str'>",
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_value_that_violates_a_hint_fails_the_run_and_is_not_shown(step: str) -> None:
    make, text = STEPS[step]
    with pytest.raises(beam.typehints.TypeCheckError) as caught, TestPipeline(options=OPTIONS) as pipeline:
        _ = pipeline | beam.Create([717171]) | "Bad" >> make()
    assert re.search(text, str(caught.value))
    assert "Runtime type violation detected" in str(caught.value)
    assert "717171" not in str(caught.value).partition("Traceback")[0]


def test_values_that_satisfy_their_hints_pass_and_nothing_else_changes() -> None:
    def pair(x: int, window=beam.DoFn.WindowParam, side: list[int] = ()) -> tuple[str, int]:
        return str(x % 2), x + len(side)

    class Lengths(beam.DoFn):
        def setup(self) -> None:
            self.ready = True

        def process(self, element: tuple[str, Iterable[int]]) -> Iterable[int]:
            assert self.ready
            yield len(list(element[1]))

    with TestPipeline(options=OPTIONS) as pipeline:
        numbers = pipeline | beam.Create([1, 2, 3])
        pairs = numbers | "Pair" >> beam.Map(pair, side=beam.pvalue.AsList(numbers))
        assert_that(pairs | beam.CombinePerKey(sum), equal_to([("1", 10), ("0", 5)]), label="Sums")
        lengths = pairs | beam.GroupByKey() | beam.ParDo(Lengths())
        assert_that(lengths, equal_to([2, 1]), label="Lengths")
        total = numbers | beam.CombineGlobally(sum).with_input_types(int).with_output_types(int)
        assert_that(total, equal_to([6]), label="Total")
        counted = pairs | beam.ParDo(Counting())
        assert_that(counted, equal_to([1, 1, 2]), label="Counted")


class Counting(beam.DoFn):
    """Counts the elements of a key in a state."""

    SEEN = CombiningValueStateSpec("seen", sum)

    def process(self, element: tuple[str, int], seen: Any = beam.DoFn.StateParam(SEEN)) -> Iterable[int]:
        seen.add(1)
        yield seen.read()


def test_a_sample_is_the_first_element_and_every_hundredth_after_it() -> None:
    options = PipelineOptions(["--performance_runtime_type_check", "--no_pipeline_type_check"])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.Create([1]) | "Typed" >> beam.Map(_identity).with_input_types(int)
    (dofn,) = [step.primitive.dofn for step in pipeline.to_graph().steps if step.label == "Typed"]
    violated = []
    for place in range(250):
        try:
            dofn.process("a")
        except beam.typehints.TypeCheckError:
            violated.append(place)
    assert violated == [0, 100, 200]


def test_without_the_option_no_hint_is_checked_while_it_runs() -> None:
    with TestPipeline(options=PipelineOptions(["--no_pipeline_type_check"])) as pipeline:
        wrong = pipeline | beam.Create([1]) | beam.Map(_identity).with_input_types(str)
        assert_that(wrong, equal_to([1]))


def test_the_errors_of_a_sample_have_words_of_their_own_as_in_beam() -> None:
    options = PipelineOptions(["--performance_runtime_type_check", "--no_pipeline_type_check"])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.Create([1]) | "Typed" >> beam.Map(_identity).with_output_types(int)
    (dofn,) = [step.primitive.dofn for step in pipeline.to_graph().steps if step.label == "Typed"]
    text = "Type-hint for return type violated. Expected an instance of <class 'int'>, instead found an instance of"
    with pytest.raises(beam.typehints.TypeCheckError, match=re.escape(text)):
        list(dofn.process("a"))
