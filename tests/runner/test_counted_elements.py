"""Workers of a batch count elements for the view of the run: each edge has as many as the graph means."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.metrics.execution import ELEMENTS, take_out
from penstock.pvalue import AsList, TaggedOutput
from penstock.transforms.window import FixedWindows, Sessions, SlidingWindows, TimestampedValue
from penstock_spark.folding.direct_steps import DirectCounting
from penstock_spark.plan.batch_plan import Deferred, Plan, Stage
from penstock_spark.stages.stage import Counting
from tests.runner.graph_meanings import meaning
from tests.runner.plain_runner import Settings, collect, plan_of, run_plain
from tests.runner.random_pipelines import random_pipeline

SEEDS = range(60)


def counted(plan: Plan, settings: Settings = Settings()) -> dict[int, int]:
    """The numbers of elements that the edges of a plan have carried, as its workers have counted them."""
    counts = take_out(run_plain(plan, settings, made_edges(plan)), ELEMENTS)[1]
    return {int(edge): count for edge, count in counts.items()}


def made_edges(plan: Plan) -> frozenset[int]:
    return frozenset().union(*(stage.made_edges for stage in plan.stages))


def by_step(pipeline: beam.Pipeline) -> dict[str, Any]:
    """The numbers of elements by the label of the step and, if it has several outputs, the tag."""
    plan = plan_of(pipeline.to_graph())
    counts = counted(plan)
    return {
        step.label if len(step.outputs) == 1 else f"{step.label}.{output.tag}": counts[output.edge]
        for step in plan.graph.steps
        for output in step.outputs
        if output.edge in counts
    }


def random_plan(seed: int) -> Plan:
    pipeline, made = random_pipeline(seed)
    for number, pcoll in enumerate(made[-4:]):
        collect(pcoll, f"Collect {number}")
    return plan_of(pipeline.to_graph())


def faults(seeds: range = SEEDS) -> dict[int, Any]:
    """The edges of random pipelines on which workers count something else than the graph means, by seed."""
    found = {}
    for seed in seeds:
        plan = random_plan(seed)
        counts = counted(plan, Settings(1 + seed % 3, rows=1 + seed % 4))
        expected = {edge: len(elements) for edge, elements in meaning(plan.graph).items()}
        wrong = {edge: (count, expected[edge]) for edge, count in counts.items() if count != expected[edge]}
        made = made_edges(plan)
        if wrong or counts.keys() != made:
            found[seed] = (wrong, counts.keys() ^ made)
    return found


def test_workers_count_on_each_edge_what_the_graph_means() -> None:
    assert faults() == {}


def test_the_law_finds_elements_that_are_counted_where_they_are_only_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges_of_stage = Stage.made_edges.fget
    assert edges_of_stage is not None

    def with_deferred(stage: Stage) -> frozenset[int]:
        read = {stage.root.edge} if isinstance(stage.root, Deferred) else set()
        return edges_of_stage(stage) | read

    monkeypatch.setattr(Stage, "made_edges", property(with_deferred))
    assert any(faults(range(seed, seed + 1)) for seed in SEEDS)


def test_a_run_without_a_view_counts_nothing_and_has_no_counter_in_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    for kind in (Counting, DirectCounting):
        before = kind.__init__

        def noted(self: Any, *arguments: Any, before: Any = before) -> None:
            made.append(self)
            before(self, *arguments)

        monkeypatch.setattr(kind, "__init__", noted)
    plan = random_plan(3)
    assert take_out(run_plain(plan), ELEMENTS)[1] == {}
    assert made == []
    run_plain(plan, counted=made_edges(plan))
    assert made != []


def test_outputs_with_tags_side_inputs_and_empty_inputs_are_counted() -> None:
    pipeline = beam.Pipeline()
    numbers = pipeline | "Read" >> beam.Create(range(10))
    nothing = pipeline | "Nothing" >> beam.Create([])
    split = numbers | "Split" >> beam.FlatMap(
        lambda x: [x, TaggedOutput("odd", x)] if x % 2 else [x]
    ).with_outputs("odd", main="all")
    sides = split.odd | "Third" >> beam.Filter(lambda x: x % 3 == 0)
    joined = split["all"] | "Join" >> beam.FlatMap(lambda x, side: [x] * len(side), AsList(sides))
    collect((joined, nothing | "Same" >> beam.Map(lambda x: x)) | "All" >> beam.Flatten())
    assert by_step(pipeline) == {
        "Read": 10,
        "Nothing": 0,
        "Split.None": 10,
        "Split.odd": 5,
        "Third": 2,
        "Join": 20,
        "Same": 0,
        "All": 20,
    }


def at_second(pair: tuple[str, int]) -> TimestampedValue[Any]:
    return TimestampedValue(pair, pair[1])


@pytest.mark.parametrize(
    ("windows", "assigned"), [(FixedWindows(10), 30), (Sessions(5), 30), (SlidingWindows(10, 5), 30)]
)
def test_pairs_that_a_grouping_puts_into_windows_itself_are_counted_like_others(
    windows: Any, assigned: int
) -> None:
    pairs = [(f"key {second % 3}", second) for second in range(30)]

    def counts(**options: Any) -> dict[str, Any]:
        pipeline = beam.Pipeline(**options)
        timed = pipeline | "Read" >> beam.Create(pairs) | "At" >> beam.Map(at_second)
        collect(timed | "In" >> beam.WindowInto(windows) | "Sum" >> beam.CombinePerKey(sum))
        return by_step(pipeline)

    found = counts()
    assert (found["Read"], found["At"], found["In"]) == (30, 30, assigned)
    assert found == counts(without=["shortcuts"])


def test_elements_that_only_a_grouping_pairs_with_nothing_are_counted_like_pairs() -> None:
    pipeline = beam.Pipeline()
    collect(pipeline | "Read" >> beam.Create(["a", "b", "c", "a"]) | "Distinct" >> beam.Distinct())
    found = by_step(pipeline)
    assert found["Read"] == 4
    pairs, *_, distinct = (count for label, count in found.items() if label.startswith("Distinct/"))
    assert (pairs, distinct) == (4, 3)
