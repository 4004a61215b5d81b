"""What a pipeline does around its transforms: options, runners, running, visiting."""

from __future__ import annotations

import pickle
import time

import pytest

import penstock as beam
from penstock import graph, pvalue
from penstock.options.pipeline_options import PipelineOptions, StandardOptions, TypeOptions
from penstock.pipeline import PipelineVisitor
from penstock.runners.runner import PipelineResult, PipelineRunner, PipelineState
from penstock.transforms.resources import parse_resource_hints


class NotingRunner(PipelineRunner):
    """Runs nothing, and notes what it is given."""

    def __init__(self):
        self.ran = []

    def run_pipeline(self, pipeline, options):
        self.ran.append((pipeline, options))
        return PipelineResult(PipelineState.DONE)

    def explain(self, pipeline, options):
        return f"{len(pipeline.to_graph().steps)} steps"


def test_leaving_the_block_runs_the_pipeline_once_and_keeps_the_result():
    runner = NotingRunner()
    with beam.Pipeline(runner) as pipeline:
        pipeline | beam.Create([1])
    assert runner.ran == [(pipeline, pipeline.options)]
    assert pipeline.result.state == PipelineState.DONE


def test_an_error_in_the_block_runs_nothing():
    runner = NotingRunner()
    with pytest.raises(KeyError), beam.Pipeline(runner):
        raise KeyError("mine")
    assert runner.ran == []


def test_explain_asks_the_runner_and_runs_nothing():
    runner = NotingRunner()
    pipeline = beam.Pipeline(runner)
    pipeline | beam.Create([1]) | beam.Map(str)
    assert pipeline.explain() == "2 steps"
    assert runner.ran == []


def test_options_are_copied_so_that_later_changes_do_not_leak():
    options = PipelineOptions(["--streaming"])
    pipeline = beam.Pipeline(options=options)
    pipeline.options.view_as(StandardOptions).streaming = False
    assert options.view_as(StandardOptions).streaming is True
    assert beam.Pipeline(argv=["--streaming"]).options.view_as(StandardOptions).streaming is True


def test_keyword_arguments_become_options_and_unknown_ones_are_refused():
    session = object()
    pipeline = beam.Pipeline(mode="batch", spark=session)
    assert pipeline.runner_arguments == {"mode": "batch", "spark": session}
    with pytest.raises(TypeError, match="no argument or option 'moed'"):
        beam.Pipeline(moed="batch")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"options": {"streaming": True}}, ValueError),
        ({"argv": "--streaming"}, ValueError),
        ({"runner": 3}, TypeError),
    ],
)
def test_arguments_of_the_wrong_type_are_refused(arguments, error):
    with pytest.raises(error):
        beam.Pipeline(**arguments)


def test_a_pickled_pipeline_or_pcollection_is_a_stand_in():
    pipeline = beam.Pipeline()
    pcoll = pipeline | beam.Create([1])
    assert isinstance(pickle.loads(pickle.dumps(pipeline)), str)
    assert not isinstance(pickle.loads(pickle.dumps(pcoll)), pvalue.PCollection)


def test_a_pcollection_cannot_be_iterated():
    with pytest.raises(TypeError, match="AsIter"):
        list(beam.Pipeline() | beam.Create([1]))


def test_values_of_two_pipelines_cannot_be_mixed():
    first, second = (beam.Pipeline() | beam.Create([1]) for _ in range(2))
    with pytest.raises(ValueError, match="Mixing values in different pipelines"):
        first | beam.Map(lambda x, y: x, pvalue.AsList(second))
    with pytest.raises(ValueError, match="Mixing values in different pipelines"):
        (first, second) | beam.Flatten()


class Noting(PipelineVisitor):
    def __init__(self):
        self.seen = []

    def visit_transform(self, transform_node):
        self.seen.append(transform_node.full_label)

    def enter_composite_transform(self, transform_node):
        self.seen.append(f"> {transform_node.full_label}")

    def leave_composite_transform(self, transform_node):
        self.seen.append(f"< {transform_node.full_label}")

    def visit_value(self, value, producer_node):
        self.seen.append(f"{producer_node.full_label}.{value.tag}")


def test_a_visitor_sees_every_node_and_value_in_the_order_of_application():
    pipeline = beam.Pipeline()
    pipeline | "A" >> beam.Create([1]) | "C" >> ("B" >> beam.Map(str) | "D" >> beam.Map(int))
    visitor = Noting()
    pipeline.visit(visitor)
    assert visitor.seen == ["> ", "A", "A.None", "> C", "C/B", "C/B.None", "C/D", "C/D.None", "< C", "< "]


def test_annotations_reach_the_transforms_applied_in_their_block():
    pipeline = beam.Pipeline()
    with beam.transform_annotations(team="blue"):
        inside = pipeline | "A" >> beam.Create([1])
    outside = pipeline | "B" >> beam.Create([1])
    assert inside.producer.annotations["team"] == b"blue"
    assert "team" not in outside.producer.annotations


def test_resource_hints_of_composites_reach_their_parts():
    pipeline = beam.Pipeline()
    composite = "A" >> beam.Create([1]).with_resource_hints(min_ram="1 GiB") | beam.Map(str)
    pipeline | "C" >> composite.with_resource_hints(min_ram="2 GiB", cpu_count="2")
    first, second = pipeline.to_graph().steps
    expected = parse_resource_hints({"min_ram": 2 * 1024**3, "cpu_count": "2"})
    assert dict(first.resource_hints) == dict(second.resource_hints) == expected


def test_an_error_handler_that_was_left_open_stops_the_run():
    class Open:
        def verify_closed(self):
            raise RuntimeError("still open")

    pipeline = beam.Pipeline(NotingRunner())
    pipeline.register_error_handler(Open())
    with pytest.raises(RuntimeError, match="still open"):
        pipeline.run()


def test_type_checks_can_be_switched_off_and_declarations_demanded():
    pipeline = beam.Pipeline(options=PipelineOptions(["--no_pipeline_type_check"]))
    assert (pipeline | beam.Create(["a"]) | beam.Map(abs).with_input_types(int)) is not None
    strict = beam.Pipeline()
    strict.options.view_as(TypeOptions).type_check_strictness = "ALL_REQUIRED"
    with pytest.raises(beam.typehints.TypeCheckError, match=r"however no .* Create\(Ones\)") as failure:
        strict | "Ones" >> beam.Create([1])
    assert failure.value.args[0].endswith("Create(Ones)")
    assert "hint: call with_output_types" in str(failure.value)


def test_plain_values_run_at_once_and_come_back_as_lists(monkeypatch):
    class Collecting(PipelineRunner):
        def run_pipeline(self, pipeline, options):
            for step in pipeline.to_graph().steps:
                if isinstance(step.primitive, graph.Write):
                    step.primitive.sink.into.append(step.label)
            return PipelineResult(PipelineState.DONE)

    monkeypatch.setattr("penstock.construction.pipeline.create_runner", lambda name: Collecting())
    assert ([1, 2] | beam.Map(str)) == ["Materialize1"]
    assert (([1], [2]) | beam.Flatten()) == ["Materialize1"]
    outputs = [1] | beam.ParDo(range).with_outputs("a", main="m")
    assert list(outputs) == [outputs["m"], outputs.a] == [["Materialize1"], ["Materialize2"]]
    with pytest.raises(KeyError, match="Tag 'b' is not a defined output tag"):
        _ = outputs["b"]
    assert not hasattr(outputs, "b")


def test_a_thousand_transforms_are_built_and_compiled_in_time():
    start = time.process_time()
    pipeline = beam.Pipeline()
    pcoll = pipeline | beam.Create([1])
    for index in range(1000):
        pcoll = pcoll | f"Step{index}" >> beam.Map(lambda x: x + 1)
    steps = pipeline.to_graph().steps
    assert time.process_time() - start < 1
    assert len(steps) == 1001
    assert pcoll.element_type is int


def test_a_pipeline_tells_the_labels_that_are_applied() -> None:
    pipeline = beam.Pipeline()
    pipeline | "A" >> beam.Create([1]) | "B" >> (beam.Map(str) | "C" >> beam.Map(len))
    assert pipeline.applied_labels == {"A", "B", "B/Map(str)", "B/C"}
    pipeline.applied_labels.clear()
    assert pipeline.applied_labels


def test_modules_that_beam_shows_at_its_top_are_at_the_top_of_penstock() -> None:
    assert beam.core.Map is beam.combiners.core.Map is beam.Map
    assert beam.trigger.GlobalWindow is beam.window.GlobalWindow
