"""The compiler's passes: golden texts, laws over pipelines made at random, and mutants that the laws must find.

PENSTOCK_UPDATE_GOLDEN=1 writes the golden files anew; read what changed before you keep it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import golden_pipelines
import pytest
from plain_runner import Settings, collect, plan_of, run_plain
from random_pipelines import meaning, random_pipeline

import penstock as beam
from penstock import graph
from penstock.options.spark import OPTIMISATIONS
from penstock.transforms.core import CombineValuesDoFn
from penstock_spark.formats.registry import table_of_schema
from penstock_spark.passes import GRAPH_PASSES, choose, fuse, lift_combiners, optimise
from penstock_spark.passes.columns import columns
from penstock_spark.passes.levels import levels
from penstock_spark.passes.native import hosted_groupings
from penstock_spark.passes.record_groupings import record_groupings
from penstock_spark.passes.side_views import side_views, without_side_views
from penstock_spark.passes.stream_views import stream_views
from penstock_spark.passes.windowed_writes import windowed_writes
from penstock_spark.plan.batch_plan import OutputReference, Plan, Stage, ViewNode, WriteNode, show_plan
from penstock_spark.plan.stream_plan import show_stream_plan

GOLDEN = Path(__file__).parents[1] / "golden" / "passes"
STATELESS = (graph.ParDo, graph.AssignWindows, graph.Flatten)
SEEDS = range(40)
NO_FAULTS: dict[int, list[str]] = {seed: [] for seed in SEEDS}
BY_NAME = {run_pass.__name__: run_pass for run_pass in GRAPH_PASSES}


def random_graph(seed: int) -> graph.Graph:
    pipeline, made = random_pipeline(seed)
    for number, pcoll in enumerate(made):
        collect(pcoll, f"Out{number}")
    return pipeline.to_graph()


# Golden texts.


def shown_units(units: tuple[fuse.Unit, ...]) -> str:
    return "\n".join(_unit_lines(units))


def _unit_lines(units: tuple[fuse.Unit, ...]) -> Iterator[str]:
    for unit in units:
        after = f" after {', '.join(map(str, sorted(unit.after)))}" if unit.after else ""
        yield f"unit {unit.number}, level {unit.level}{after}"
        yield f"  {unit.root.label}" if isinstance(unit.root, graph.Step) else f"  {unit.root}"
        yield from (f"  {step.label}" for step in unit.steps)


def texts_of(name: str, build: golden_pipelines.Build) -> Iterator[tuple[str, str]]:
    pipeline = beam.Pipeline()
    build(pipeline)
    before = pipeline.to_graph()
    if name in BY_NAME:
        yield from (("before", graph.show(before)), ("after", graph.show(BY_NAME[name](before))))
        return
    if name == "windowed_writes":
        yield from (("before", graph.show(before)), ("after", graph.show(windowed_writes(before))))
        return
    yield "graph", graph.show(optimise(before))
    if name == "levels":
        main = stream_views(without_side_views(optimise(before)))
        yield "query", show_stream_plan(levels(main, "streaming"))
        return
    if name == "record_groupings":
        yield "recorded", graph.show(record_groupings(optimise(before), 100))
        return
    if name == "columns":
        after = columns(
            optimise(before), lambda step, source: table_of_schema(golden_pipelines.SCORES, "row")
        )
        yield from (("after", graph.show(after)), ("plan", show_plan(choose.choose(after, fuse.fuse(after)))))
        return
    if name == "stream_views":
        yield "after", graph.show(stream_views(without_side_views(optimise(before))))
        return
    if name == "side_views":
        aside = side_views(optimise(before))
        yield "side inputs", "none" if aside is None else graph.show(aside)
        yield "the rest", graph.show(without_side_views(optimise(before)))
        return
    units = fuse.fuse(optimise(before))
    if name == "native":
        hosted = hosted_groupings(optimise(before), units)
        yield "hosted", "\n".join(f"{label}: {strategy}" for label, strategy in hosted.items())
    else:
        yield ("units", shown_units(units)) if name == "fuse" else ("plan", show_plan(plan_of(before)))


@pytest.mark.parametrize("name", golden_pipelines.CASES)
def test_a_pass_does_what_its_golden_file_says(name):
    parts = (
        "\n".join([f"# {build.__name__}", *(f"## {title}\n{text}" for title, text in texts_of(name, build))])
        for build in golden_pipelines.CASES[name]
    )
    text = "\n\n".join(parts) + "\n"
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


# Laws: each gives the faults it finds.


def user_code(found: graph.Graph) -> set[int]:
    return {identity for step in found.steps for identity in _user_code(step)}


def _user_code(step: graph.Step) -> Iterator[int]:
    match step.primitive:
        case graph.ParDo(CombineValuesDoFn() as dofn):
            yield id(dofn.combinefn)
        case graph.ParDo(code) | graph.CombinePerKey(code) | graph.Write(code):
            yield id(code)


def order_faults(found: graph.Graph) -> list[str]:
    made: set[int] = set()
    faults = []
    for step in found.steps:
        reads = {*step.inputs, *(side.edge for side in step.side_inputs)}
        faults += [f"{step.label} reads #{edge} too early" for edge in reads - made]
        made |= {output.edge for output in step.outputs}
    return faults


def pass_faults(run_pass: Callable[[graph.Graph], graph.Graph], before: graph.Graph) -> list[str]:
    after = run_pass(before)
    faults = order_faults(after)
    if faults:
        return faults
    if not user_code(before) <= user_code(after):
        faults.append("user code is gone")
    if graph.show(run_pass(after)) != graph.show(after):
        faults.append("a second time changes more")
    edges_before, edges_after = meaning(before), meaning(after)
    for step in after.steps:
        if isinstance(step.primitive, graph.Write):
            (was,) = (old.inputs[0] for old in before.steps if old.label == step.label)
            if sorted(edges_before[was]) != sorted(edges_after[step.inputs[0]]):
                faults.append(f"{step.label} gets other elements")
    return faults


def fuse_faults(found: graph.Graph, units: tuple[fuse.Unit, ...]) -> list[str]:
    faults = [
        f"unit {unit.number} is after itself" for unit in units if unit.number in _all_before(units, unit)
    ]
    for unit in units:
        chain = max((units[before].level + 1 for before in unit.after), default=0)
        # Values of the program may be read later than they could be.
        is_wrong = unit.level < chain if _is_inline(unit.root) else unit.level != chain
        faults += [f"unit {unit.number} has a wrong level"] if is_wrong else []
    makers = {
        output.edge: [unit for unit in units if step.label in _labels(unit)]
        for step in found.steps
        for output in step.outputs
    }
    for step in found.steps:
        at_work = [unit for unit in units if step.label in _labels(unit)]
        for side in step.side_inputs:
            sides = {unit.number for unit in makers[side.edge]}
            faults += [f"{step.label} does not wait" for unit in at_work if not sides <= unit.after]
        if not isinstance(step.primitive, STATELESS):
            faults += [] if len(at_work) == 1 else [f"{step.label} starts {len(at_work)} units"]
            continue
        for edge in step.inputs:
            for maker in makers[edge]:
                ways = (maker in at_work) + sum(
                    maker.number in _relayed(unit, step, edge) for unit in at_work
                )
                faults += (
                    [] if ways == 1 else [f"#{edge} of unit {maker.number} reaches {step.label} {ways} times"]
                )
    return faults


def _relayed(unit: fuse.Unit, step: graph.Step, edge: int) -> tuple[int, ...]:
    """The units whose elements of an edge reach a step by the unit's deferred input."""
    if not isinstance(unit.root, fuse.DeferredInput) or unit.root.edge != edge:
        return ()
    return unit.root.sources if any(s.label == step.label and edge in s.inputs for s in unit.steps) else ()


def _is_inline(root: graph.Step | fuse.DeferredInput) -> bool:
    primitive = root.primitive if isinstance(root, graph.Step) else None
    return isinstance(primitive, graph.Read) and isinstance(primitive.source, graph.InlineValues)


def _labels(unit: fuse.Unit) -> list[str]:
    root = [unit.root.label] if isinstance(unit.root, graph.Step) else []
    return [*root, *(step.label for step in unit.steps)]


def _all_before(units: tuple[fuse.Unit, ...], unit: fuse.Unit) -> set[int]:
    found: set[int] = set()
    waiting = list(unit.after)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting.extend(units[number].after)
    return found


def plan_faults(plan: Plan) -> list[str]:
    ready: dict[int, Stage] = {}
    views: set[int] = set()
    written: set[str] = set()
    faults = []
    for node in plan.nodes:
        for reference in _sources(node):
            outputs = ready[reference.stage].outputs if reference.stage in ready else ()
            faults += [] if reference.output < len(outputs) else [f"{reference} is not there yet"]
        match node:
            case ViewNode(edge):
                views.add(edge.id)
            case WriteNode(step):
                written.add(step.label)
            case Stage():
                faults += [
                    f"{s.label} has no view" for s in node.steps for v in s.side_inputs if v.edge not in views
                ]
                ready[node.number] = node
                readers = [output.reader for output in node.outputs]
                faults += [] if len(readers) == len(set(readers)) else ["two ports for one reader"]
    writes = {step.label for step in plan.graph.steps if isinstance(step.primitive, graph.Write)}
    read = {reference for node in plan.nodes for reference in _sources(node)}
    outputs = {
        OutputReference(stage.number, output.number) for stage in plan.stages for output in stage.outputs
    }
    return (
        faults
        + ([] if writes == written else ["a write is missing"])
        + ([] if read == outputs else ["unread ports"])
    )


def _sources(node: Any) -> tuple[OutputReference, ...]:
    return getattr(node.root if isinstance(node, Stage) else node, "sources", ())


def plan_meaning_faults(plan: Plan, settings: Settings) -> list[str]:
    """Runs a plan; each list must get the elements that the graph means."""
    expected = meaning(plan.graph)
    run_plain(plan, settings)
    writes = [step for step in plan.graph.steps if isinstance(step.primitive, graph.Write)]
    faults = [s.label for s in writes if sorted(s.primitive.sink.into) != sorted(expected[s.inputs[0]])]
    for step in writes:
        step.primitive.sink.into.clear()
    return faults


@pytest.mark.parametrize("run_pass", [*GRAPH_PASSES, optimise])
def test_a_pass_keeps_user_code_order_and_meaning_and_a_second_time_changes_nothing(run_pass):
    assert {seed: pass_faults(run_pass, random_graph(seed)) for seed in SEEDS} == NO_FAULTS


def test_every_stateless_step_is_once_in_each_unit_that_feeds_it_and_no_unit_waits_for_itself():
    graphs = {seed: optimise(random_graph(seed)) for seed in SEEDS}
    assert {seed: fuse_faults(g, fuse.fuse(g)) for seed, g in graphs.items()} == NO_FAULTS


def test_every_node_of_a_plan_comes_after_what_it_reads():
    assert {seed: plan_faults(plan_of(random_graph(seed))) for seed in SEEDS} == NO_FAULTS


@pytest.mark.parametrize("without", [frozenset(), frozenset(OPTIMISATIONS)])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_plan_gives_what_its_graph_means_with_and_without_optimisations(partitions, without):
    plans = {seed: plan_of(random_graph(seed), without) for seed in SEEDS}
    faults = {seed: plan_meaning_faults(plan, Settings(partitions)) for seed, plan in plans.items()}
    assert faults == NO_FAULTS


# Mutants: each is a pass with a mistake, and some graph on which a law must find it.


def without_last_user_code(found: graph.Graph) -> graph.Graph:
    steps = list(found.steps)
    del steps[max(number for number, step in enumerate(steps) if isinstance(step.primitive, graph.Write))]
    return replace(found, steps=tuple(steps))


def without_first_step(found: graph.Graph) -> graph.Graph:
    return replace(found, steps=found.steps[1:])


def with_a_value_less(found: graph.Graph) -> graph.Graph:
    first = found.steps[0]
    read = replace(first, primitive=graph.Read(graph.InlineValues(first.primitive.source.values[1:])))
    return replace(found, steps=(read, *found.steps[1:]))


@pytest.mark.parametrize(
    ("mutant", "fault"),
    [
        (without_last_user_code, "user code is gone"),
        (without_first_step, "too early"),
        (without_last_user_code, "a second time changes more"),
        (with_a_value_less, "gets other elements"),
    ],
)
def test_the_laws_of_graph_passes_find_a_mutant(mutant, fault):
    assert any(fault in found for found in pass_faults(mutant, random_graph(1)))


def test_the_laws_find_a_lift_of_a_group_that_others_read_too(monkeypatch):
    def eager(group, readers):
        for combine in readers.get(group.outputs[0].edge, []) if group.outputs else []:
            if (
                isinstance(combine.primitive, graph.ParDo)
                and type(combine.primitive.dofn) is CombineValuesDoFn
            ):
                return combine
        return None

    monkeypatch.setitem(lift_combiners.__globals__, "_only_combine", eager)
    pipeline = beam.Pipeline()
    golden_pipelines.a_group_with_two_readers(pipeline)
    assert order_faults(lift_combiners(pipeline.to_graph()))


def with_unit(units: tuple[fuse.Unit, ...], number: int, **changes: Any) -> tuple[fuse.Unit, ...]:
    return tuple(replace(unit, **changes) if unit.number == number else unit for unit in units)


@pytest.mark.parametrize(
    ("mutate", "fault"),
    [
        (lambda units, unit: {"steps": unit.steps[1:]}, "0 times"),
        (lambda units, unit: {"after": unit.after | {unit.number}}, "after itself"),
        (lambda units, unit: {"after": frozenset()}, "does not wait"),
        (lambda units, unit: {"level": unit.level - 1}, "wrong level"),
    ],
)
def test_the_laws_of_fuse_find_a_mutant(mutate, fault):
    pipeline = beam.Pipeline()
    golden_pipelines.a_side_input_from_elsewhere(pipeline)
    found = optimise(pipeline.to_graph())
    units = fuse.fuse(found)
    (unit,) = (unit for unit in units if any(step.label == "Use" for step in unit.steps))
    mutated = with_unit(units, unit.number, **mutate(units, unit))
    assert any(fault in text for text in fuse_faults(found, mutated))


def makes_what_it_relays(unit: fuse.Unit) -> frozenset[int]:
    own = frozenset(out.edge for step in unit.steps for out in step.outputs)
    return own | (
        {unit.root.edge} if isinstance(unit.root, fuse.DeferredInput) else {o.edge for o in unit.root.outputs}
    )


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "a relay makes what it relays": (fuse.Unit, "edges", property(makes_what_it_relays)),
    "a Flatten below a relay takes all": (fuse, "_below", lambda root, step: step),
    "no port for views": (choose, "_view_reader", lambda edge: "view"),
    "groupings share a tag": (choose, "Writing", lambda edge, tag, *rest: choose_writing(edge, 0, *rest)),
}
choose_writing = choose.Writing


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_laws_of_plans_find_a_mutant(mutant, monkeypatch):
    owner, name, broken = MUTANTS[mutant]
    monkeypatch.setattr(owner, name, broken)

    def faults(seed: int) -> list[str]:
        try:
            plan = plan_of(random_graph(seed))
            return plan_faults(plan) or plan_meaning_faults(plan, Settings())
        except Exception as error:
            return [str(error)]

    assert any(faults(seed) for seed in SEEDS)
