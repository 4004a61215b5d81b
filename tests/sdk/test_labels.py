"""Labels: where they come from, that they are unique, and what is left of a transform that failed."""

from __future__ import annotations

import pytest

import penstock as beam
from penstock import pvalue
from penstock.options.pipeline_options import PipelineOptions
from penstock.transforms.combiners import Largest, Smallest
from penstock.transforms.deduplicate import Deduplicate
from penstock.transforms.periodicsequence import PeriodicSequence
from penstock.transforms.ptransform import get_named_nested_pvalues


def labels(pipeline):
    return [step.label for step in pipeline.to_graph().steps]


def test_a_label_that_is_used_twice_names_both_places():
    pipeline = beam.Pipeline()
    pcoll = pipeline | beam.Create([1])
    pcoll | "Text" >> beam.Map(str)
    with pytest.raises(RuntimeError) as caught:
        pcoll | "Text" >> beam.Map(str)
    what, where, hint = str(caught.value).split("\n")
    assert what == 'A transform with label "Text" already exists in the pipeline'
    first = pcoll.pipeline.to_graph().steps[1].location.line
    assert where == f"  at test_labels.py:{first + 2}; the first one is at test_labels.py:{first}"
    assert "auto_unique_labels" in hint


def test_auto_unique_labels_makes_a_new_label_of_a_repeated_one():
    pipeline = beam.Pipeline(options=PipelineOptions(["--auto_unique_labels"]))
    pcoll = pipeline | beam.Create([1])
    pcoll | "Text" >> beam.Map(str)
    pcoll | "Text" >> beam.Map(str)
    first, second = labels(pipeline)[1:]
    assert first == "Text"
    assert second.startswith("Text_")


def test_the_same_label_may_stand_in_two_composites():
    pipeline = beam.Pipeline()
    pcoll = pipeline | beam.Create([1])
    for name in ("A", "B"):
        pcoll | name >> ("Text" >> beam.Map(str) | "Number" >> beam.Map(int))
    assert labels(pipeline) == ["Create", "A/Text", "A/Number", "B/Text", "B/Number"]


@pytest.mark.parametrize(
    ("transform", "label"),
    [
        (beam.Create([1]), "Create"),
        (beam.Map(len), "Map(len)"),
        (beam.Filter(str.isdigit), "Filter(isdigit)"),
        (beam.FlatMapTuple(range), "FlatMapTuple(range)"),
        (beam.CombinePerKey(sum), "CombinePerKey(sum)"),
        (beam.CombineGlobally(max).with_fanout(2), "CombineGlobally(max, fanout=2)"),
        (beam.GroupBy("team", hour=len), "GroupBy(team, hour)"),
        (beam.Select("team"), "ToRows(team)"),
        (beam.WindowInto(beam.window.FixedWindows(1)), "WindowInto(WindowIntoFn)"),
        (beam.Partition(lambda x, n: 0, 2), "Partition(CallableWrapperPartitionFn)"),
        (beam.FlatMap(str.split), "FlatMap(split)"),
        (beam.MapTuple(max), "MapTuple(max)"),
        (beam.ParDo(str.split), "ParDo(FlatMapDoFn)"),
        (beam.CombineGlobally(sum), "CombineGlobally(sum)"),
        (beam.CombineValues(sum), "CombineValues(sum)"),
        (beam.GroupByKey(), "GroupByKey"),
        (beam.CoGroupByKey(), "CoGroupByKey"),
        (beam.Flatten(), "Flatten"),
        (beam.Keys(), "Keys"),
        (beam.Values(), "Values"),
        (beam.KvSwap(), "KvSwap"),
        (beam.Distinct(), "Distinct"),
        (beam.RemoveDuplicates(), "RemoveDuplicates"),
        (beam.WithKeys("all"), "WithKeys(all)"),
        (beam.LogElements("Look"), "Look"),
        (beam.Tee(beam.Map(str)), "Tee"),
        (beam.WaitOn(), "WaitOn"),
        (beam.Regex.split(","), "split(,)"),
        (beam.Reify.Window(), "Window"),
        (beam.ToString.Iterables("; "), "IterablesToString"),
        (beam.Reshuffle(num_buckets=8), "Reshuffle"),
        (beam.ReshufflePerKey(), "ReshufflePerKey"),
        (beam.combiners.Top.Of(3), "Top(3)"),
        (beam.combiners.Sample.FixedSizePerKey(3), "FixedSizePerKey(3)"),
        (beam.ApproximateQuantiles.PerKey(5), "PerKey"),
        (beam.BatchElements(), "BatchElements"),
        (beam.SortAndBatchElements(1, 32, 4096), "SortAndBatchElements"),
        (beam.Changelog(), "Changelog"),
        (beam.JoinRows("left"), "JoinRows(left)"),
        (beam.ValidFrom(), "ValidFrom"),
        (beam.ValidityJoin("left"), "ValidityJoin(left)"),
        (beam.Upserts(), "Upserts"),
        (beam.Upserts(by_window=True), "Upserts(by_window)"),
        (beam.SetTrigger(beam.trigger.AfterWatermark()), "SetTrigger"),
        (beam.WithTimestamps("at"), "WithTimestamps(at)"),
        (Deduplicate(processing_time_duration=600), "Deduplicate"),
        (PeriodicSequence(), "PeriodicSequence"),
        (beam.Map(len) | beam.Map(str), "Map(len)|Map(str)"),
        ("Mine" >> beam.Map(len), "Mine"),
        ("Outer" >> ("Inner" >> beam.Map(len)), "Outer"),
        (("Mine" >> beam.ParDo(len)).with_outputs("a"), "Mine"),
    ],
)
def test_labels_by_default_are_those_of_beam(transform, label):
    assert transform.label == label


def test_a_label_names_how_many_a_combiner_keeps():
    fns = Largest(2), Smallest(2)
    assert [fn.default_label() for fn in fns] == ["Largest(2)", "Smallest(2)"]


def test_a_lambda_is_labelled_by_its_line():
    identity = lambda x: x  # noqa: E731
    line = identity.__code__.co_firstlineno
    assert beam.Map(identity).label == f"Map(<lambda at test_labels.py:{line}>)"


def test_a_transform_keeps_its_own_label_after_it_was_applied_under_another():
    transform = beam.Map(str)
    beam.Pipeline() | beam.Create([1]) | "Other" >> transform
    assert transform.label == "Map(str)"


def test_a_composite_that_fails_leaves_nothing_behind():
    class Fails(beam.PTransform):
        ready = False

        def expand(self, pcoll):
            result = pcoll | "Inside" >> beam.Map(str)
            if not self.ready:
                raise KeyError("not ready")
            return result

    pipeline = beam.Pipeline()
    pcoll = pipeline | beam.Create([1])
    transform = Fails()
    with pytest.raises(KeyError, match="not ready"):
        pcoll | transform
    assert labels(pipeline) == ["Create"]
    transform.ready = True
    pcoll | transform
    assert labels(pipeline) == ["Create", "Fails/Inside"]


def test_steps_know_the_line_that_applied_them_and_parts_the_line_inside():
    def line_of(step):
        return step.location.line

    @beam.ptransform_fn
    def Twice(pcoll):
        return pcoll | beam.Map(str) | beam.Map(int)

    pipeline = beam.Pipeline()
    pcoll = pipeline | beam.Create([1])
    pcoll | Twice()
    pcoll | beam.CombineGlobally(sum)
    steps = pipeline.to_graph().steps
    start = line_of(steps[0])
    assert [line_of(step) - start for step in steps[:3]] == [0, -3, -3]
    assert {line_of(step) - start for step in steps[3:]} == {2}
    assert steps[0].where == f"at step 'Create' (test_labels.py:{start})"


@pytest.mark.parametrize("bad", [len, beam.Create, "label", None])
def test_only_transforms_can_be_applied(bad):
    pcoll = beam.Pipeline() | beam.Create([1])
    with pytest.raises(TypeError, match="Expected a PTransform object"):
        pcoll.apply(bad)


def test_a_label_is_a_string():
    with pytest.raises(TypeError):
        3 >> beam.Map(len)


def test_nested_values_are_named_by_the_keys_on_the_way():
    pcoll = beam.Pipeline() | beam.Create([1])
    nested = {"a": (pcoll, [pcoll]), "b": 3}
    assert dict(get_named_nested_pvalues(nested)) == {"a.0": pcoll, "a.1.0": pcoll}
    assert isinstance(pcoll, pvalue.PCollection)


def test_what_a_program_gives_a_named_transform_as_annotations_is_that_of_the_transform() -> None:
    transform = beam.Impulse()
    named = "Name" >> transform
    named.annotations = lambda: {"team": "blue"}
    assert transform.annotations() == {"team": "blue"}
