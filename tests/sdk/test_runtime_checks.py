"""The option runtime_type_check: what it adds to a graph, and what its steps refuse."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock.graph import Graph, ParDo
from penstock.options.pipeline_options import PipelineOptions
from penstock.runtime_checks import CheckFn
from penstock.transforms.combine import NoValue
from penstock.typehints import Tuple
from penstock.typehints.decorators import TypeCheckError, with_input_types


def graph_with(option: str | None, transform: beam.PTransform) -> Graph:
    options = PipelineOptions([f"--{option}"] if option else [])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.Create([("a", 1)]) | "T" >> transform
    return pipeline.to_graph()


def labels(graph: Graph) -> list[str]:
    return [step.label for step in graph.steps]


def typed() -> beam.PTransform:
    return beam.Map(lambda pair: pair[1]).with_input_types(Tuple[str, int]).with_output_types(int)


@pytest.mark.parametrize("option", ["runtime_type_check", "performance_runtime_type_check"])
def test_a_step_before_and_one_behind_check_what_a_typed_step_takes_and_gives(option: str) -> None:
    graph = graph_with(option, typed())
    assert labels(graph)[-3:] == ["T/Check of the input", "T", "T/Check of the output"]
    before, at, behind = graph.steps[-3:]
    assert at.inputs == (before.outputs[0].edge,)
    assert behind.inputs == (at.outputs[0].edge,)


@pytest.mark.parametrize(
    ("option", "transform"), [(None, typed()), ("runtime_type_check", beam.Map(lambda x: x))]
)
def test_nothing_is_checked_without_the_option_or_without_hints(
    option: str | None, transform: beam.PTransform
) -> None:
    assert not any("Check" in label for label in labels(graph_with(option, transform)))


def test_combines_are_checked_too_and_the_stand_in_for_no_value_passes() -> None:
    graph = graph_with("runtime_type_check", beam.combiners.Count.PerKey())
    assert any(
        label.endswith("CombinePerKey(CountCombineFn)/Check of the output") for label in labels(graph)
    ), labels(graph)
    means = graph_with("runtime_type_check", beam.Map(lambda pair: pair[1]) | beam.combiners.Mean.Globally())
    checks = [step.primitive.dofn for step in means.steps if isinstance(step.primitive, ParDo)]
    check = next(each for each in checks if isinstance(each, CheckFn) and "element" in each._what)
    assert list(check.process((None, NoValue.MARKER))) == [(None, NoValue.MARKER)]
    with pytest.raises(TypeCheckError):
        list(check.process((None, "a")))


def test_an_element_of_another_type_is_an_error_that_shows_types_and_no_values() -> None:
    check = CheckFn(Tuple[str, int], "within ParDo(T):", samples=False)
    assert list(check.process(("a", 1))) == [("a", 1)]
    with pytest.raises(TypeCheckError, match=r"ParDo\(T\): The hint.*expected int, got str") as caught:
        list(check.process(("a", "secret")))
    assert "secret" not in str(caught.value)


def test_a_sample_is_the_beginning_of_a_bundle_and_each_hundredth_element_after_it() -> None:
    check = CheckFn(int, "within ParDo(T):", samples=True)
    check.start_bundle()
    for _ in range(100):
        list(check.process(1))
    assert list(check.process("unseen")) == ["unseen"]
    for _ in range(98):
        list(check.process(1))
    with pytest.raises(TypeCheckError):
        list(check.process("seen"))


def test_a_constant_argument_of_another_type_is_refused_before_anything_runs() -> None:
    @with_input_types(a=Tuple[str, int], b=int)
    def add(a, b):
        return a[1] + b

    options = PipelineOptions(["--runtime_type_check", "--no_pipeline_type_check"])
    pipeline = beam.Pipeline(options=options)
    _ = pipeline | beam.Create([("a", 1)]) | "T" >> beam.Map(add, 1.5)
    with pytest.raises(
        TypeCheckError, match=r"(?s)ParDo\(T\): Type-hint for argument: 'b' violated.*'float'"
    ):
        pipeline.to_graph()
