"""The compiler's passes: golden files, laws over pipelines made at random, and mutants that the laws must find.

PENSTOCK_UPDATE_GOLDEN=1 writes the golden files again; read what changed before you keep it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import penstock as beam
from penstock import graph
from penstock.functions.splitting import PairWithRestriction
from penstock.options.optimisations import OPTIMISATIONS
from penstock.transforms.core import CombineValuesDoFn
from penstock_spark.compiler import PASSES, STREAM_PASSES, Pass, Target, batch_plan, optimise, rewrite_graph
from penstock_spark.formats.registry import table_of_schema
from penstock_spark.passes import choose, fuse, lift_combiners
from penstock_spark.passes.choose_folds import choose_folds, choose_shards
from penstock_spark.passes.levels import levels
from penstock_spark.passes.native_streams import reasons_for_python
from penstock_spark.passes.one_operator import one_operator
from penstock_spark.passes.query_rows import query_rows, rows_of_queries
from penstock_spark.passes.side_views import side_views
from penstock_spark.plan.batch_plan import OutputReference, Plan, Stage, ViewNode, WriteNode, show_plan
from penstock_spark.plan.column_plan import ColumnsSource, ColumnStream
from penstock_spark.plan.hosts import BySpark
from penstock_spark.plan.stream_plan import show_stream_plan
from tests.runner import golden_pipelines
from tests.runner.graph_meanings import meaning
from tests.runner.plain_runner import Settings, collect, plan_of, run_plain
from tests.runner.random_pipelines import random_pipeline

GOLDEN = Path(__file__).parents[1] / "golden" / "passes"
STATELESS = (graph.ParDo, graph.AssignWindows, graph.Flatten)
SEEDS = range(40)
NO_FAULTS: dict[int, list[str]] = {seed: [] for seed in SEEDS}
BY_NAME = {each.name: each for each in (*PASSES, *STREAM_PASSES)}
BATCH = Target(table_of=lambda step, source: table_of_schema(golden_pipelines.SCORES, "row"))
RECORDED = replace(BATCH, record_events=100)
STREAM = replace(BATCH, mode="streaming")


@cache
def random_graph(seed: int) -> graph.Graph:
    pipeline, made = random_pipeline(seed)
    for number, pcoll in enumerate(made):
        collect(pcoll, f"Out{number}")
    return pipeline.to_graph()


# Golden files.


def shown_units(units: tuple[fuse.Unit, ...]) -> str:
    return "\n".join(_unit_lines(units))


def _unit_lines(units: tuple[fuse.Unit, ...]) -> Iterator[str]:
    for unit in units:
        after = f" after {', '.join(map(str, sorted(unit.after)))}" if unit.after else ""
        yield f"unit {unit.number}, level {unit.level}{after}"
        yield f"  {unit.root.label}" if isinstance(unit.root, graph.Step) else f"  {unit.root}"
        yield from (f"  {step.label}" for step in unit.steps)


def _names(passes: Iterable[Pass]) -> list[str]:
    return [each.name for each in passes]


def target_of(run_pass: Pass) -> Target:
    targets = (BATCH, RECORDED, STREAM) if run_pass.name in _names(PASSES) else (STREAM,)
    return next(target for target in targets if run_pass.serves(target))


def before_and_after(run_pass: Pass, found: graph.Graph) -> tuple[graph.Graph, graph.Graph]:
    """The graph that a pass gets from the passes before it, and the graph that it makes."""
    target = target_of(run_pass)
    passes = PASSES if run_pass.name in _names(PASSES) else (*PASSES, *STREAM_PASSES)
    before, _ = rewrite_graph(found, passes[: _names(passes).index(run_pass.name)], target)
    return before, run_pass.rewrite(before, target)


def shown_modes(found: graph.Graph) -> str:
    modes = {edge.id: edge.windowing.accumulation_mode.name for edge in found.edges if edge.windowing}
    return "\n".join(
        f"{step.label} {modes[edge]}"
        for step in found.steps
        if isinstance(step.primitive, graph.CombinePerKey)
        for edge in step.inputs
    )


def texts_of(name: str, build: golden_pipelines.Build) -> Iterator[tuple[str, str]]:
    pipeline = beam.Pipeline()
    build(pipeline)
    found = pipeline.to_graph()
    if name in BY_NAME:
        before, after = before_and_after(BY_NAME[name], found)
        if name == "side_views":
            aside = side_views(before)
            yield "side inputs", "none" if aside is None else graph.show(aside)
        yield from (("before", graph.show(before)), ("after", graph.show(after)))
        if name == "single_panes":
            yield from (("modes before", shown_modes(before)), ("modes after", shown_modes(after)))
        if name == "columns":
            yield "plan", show_plan(batch_plan(after))
        if name == "native_streams":
            plan = choose_shards(levels(after, "streaming"), reasons_for_python(after, "streaming"))
            yield "query", show_stream_plan(plan)
        return
    if name == "levels":
        main, _ = rewrite_graph(found, (*PASSES, *STREAM_PASSES), STREAM)
        yield from (("graph", graph.show(main)), ("query", show_stream_plan(levels(main, "streaming"))))
        return
    if name == "one_operator":
        main, _ = rewrite_graph(found, (*PASSES, *STREAM_PASSES), STREAM)
        plan = levels(main, "streaming")
        for shards in (1, 2):
            yield f"shards: {shards}", show_stream_plan(one_operator(plan, shards, frozenset()))
        return
    optimised = optimise(found)
    yield "graph", graph.show(optimised)
    units = fuse.fuse(optimised)
    if name == "choose_folds":
        hosts = choose_folds(optimised, units).items()
        lines = (f"{label}: {host}" for label, host in hosts if not isinstance(host, BySpark))
        yield "hosted", "\n".join(lines)
    else:
        yield ("units", shown_units(units)) if name == "fuse" else ("plan", show_plan(plan_of(found)))


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


# Laws: each returns the faults it finds.


def user_code(found: graph.Graph) -> set[int]:
    return {identity for step in found.steps for identity in _user_code(step)}


def _user_code(step: graph.Step) -> Iterator[int]:
    match step.primitive:
        case graph.ParDo(CombineValuesDoFn() as dofn):
            yield id(dofn.combinefn)
        case graph.ParDo(PairWithRestriction()):
            # Its DoFn is the code of the step after it.
            pass
        case graph.ParDo(code) | graph.CombinePerKey(code) | graph.Write(code):
            yield id(code)


def order_faults(found: graph.Graph, made_before: Iterable[int] = ()) -> list[str]:
    made = set(made_before)
    faults = []
    for step in found.steps:
        reads = {*step.inputs, *(side.edge for side in step.side_inputs)}
        faults += [f"{step.label} reads #{edge} too early" for edge in reads - made]
        made |= {output.edge for output in step.outputs}
    return faults


def pass_faults(rewrite: Callable[[graph.Graph], graph.Graph], before: graph.Graph) -> list[str]:
    after = rewrite(before)
    faults = order_faults(after)
    if faults:
        return faults
    if not user_code(before) <= user_code(after):
        faults.append("user code is gone")
    if graph.show(rewrite(after)) != graph.show(after):
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
    writes = [step for step in plan.graph.steps if isinstance(step.primitive, graph.Write)]
    for step in writes:
        # Plans of one graph share its lists, and a run that failed leaves something there.
        step.primitive.sink.into.clear()
    run_plain(plan, settings)
    faults = [s.label for s in writes if sorted(s.primitive.sink.into) != sorted(expected[s.inputs[0]])]
    for step in writes:
        step.primitive.sink.into.clear()
    return faults


OPTIMISING = ("prune", "one_round", "lift_combiners", "spread_writes")


@pytest.mark.parametrize(
    "rewrite",
    [optimise, *(partial(BY_NAME[name].rewrite, target=BATCH) for name in OPTIMISING)],
    ids=["all", *OPTIMISING],
)
def test_an_optimisation_keeps_user_code_order_and_meaning_and_a_second_time_changes_nothing(rewrite):
    assert {seed: pass_faults(rewrite, random_graph(seed)) for seed in SEEDS} == NO_FAULTS


def unending(found: graph.Graph, seed: int) -> graph.Graph:
    """The graph with some of its sources unending, and what comes of them."""
    rng = Random(seed)
    open_edges: set[int] = set()
    for step in found.steps:
        sides = {side.edge for side in step.side_inputs}
        if (not step.inputs and rng.random() < 0.5) or not open_edges.isdisjoint({*step.inputs, *sides}):
            open_edges |= {output.edge for output in step.outputs}
    return replace(
        found, edges=tuple(replace(edge, is_bounded=edge.id not in open_edges) for edge in found.edges)
    )


def lasting_faults(run_pass: Pass, found: graph.Graph) -> list[str]:
    """The faults of order and of lost steps after a pass whose steps the oracle cannot play."""
    before, after = before_and_after(run_pass, found)
    aside = side_views(before) if run_pass.name == "side_views" else None
    parts = [after] if aside is None else [after, aside]
    steps = [step for part in parts for step in part.steps]
    for step in after.steps:
        if isinstance(step.primitive, graph.Read) and isinstance(
            step.primitive.source, ColumnsSource | ColumnStream
        ):
            steps += step.primitive.source.columns.steps
    steps += _steps_of_queries(after)
    everything = graph.Graph(tuple(steps), after.edges)
    # A write of files of windows becomes a grouping and a step of the runner's, which has the write's label.
    written = {id(step.primitive.sink) for step in before.steps if isinstance(step.primitive, graph.Write)}
    expected = user_code(before) - (written if run_pass.name == "windowed_writes" else set())
    labels = {step.label for step in steps}
    views = side_views(rewrite_graph(found, PASSES, STREAM)[0]) if run_pass in STREAM_PASSES else None
    made_before = {output.edge for step in (views.steps if views else ()) for output in step.outputs}
    return [
        *order_faults(after, made_before),
        *(order_faults(aside) if aside else ()),
        *([] if expected <= user_code(everything) else ["user code is gone"]),
        *(f"{step.label} is gone" for step in before.steps if step.label not in labels),
    ]


def _steps_of_queries(found: graph.Graph) -> list[graph.Step]:
    """The steps that queries have taken into themselves, at any depth."""
    inside = [rows.graph for rows in rows_of_queries(query_rows(found))]
    return [step for each in inside for step in (*each.steps, *_steps_of_queries(each))]


def graphs_for(name: str) -> list[graph.Graph]:
    """Graphs made at random, with sources that do not end, and those that the pass has its golden file for."""
    found = [unending(random_graph(seed), seed) for seed in SEEDS]
    for build in golden_pipelines.CASES[name]:
        pipeline = beam.Pipeline()
        build(pipeline)
        found.append(pipeline.to_graph())
    return found


@pytest.mark.parametrize(
    "name",
    [
        *("columns", "kept_restrictions", "native_streams", "query_rows", "record_groupings", "restrictions"),
        *("side_views", "single_panes", "stream_views", "windowed_writes"),
    ],
)
def test_a_pass_keeps_user_code_and_order(name):
    run_pass, found = BY_NAME[name], graphs_for(name)
    assert [fault for each in found for fault in lasting_faults(run_pass, each)] == []
    assert any(
        (graph.show(before), before.edges) != (graph.show(after), after.edges)
        for before, after in (before_and_after(run_pass, each) for each in found)
    )


def test_every_pass_has_a_law():
    laws = {
        *OPTIMISING,
        *("columns", "kept_restrictions", "native_streams", "query_rows", "record_groupings", "restrictions"),
        *("side_views", "single_panes", "stream_views", "windowed_writes"),
    }
    assert laws == set(BY_NAME)


def test_a_step_that_a_pass_forgets_is_found(monkeypatch):
    forgetful = replace(
        BY_NAME["stream_views"], function=lambda found: replace(found, steps=found.steps[:-1])
    )
    passes = tuple(forgetful if each.name == forgetful.name else each for each in STREAM_PASSES)
    monkeypatch.setitem(globals(), "STREAM_PASSES", passes)
    assert any("is gone" in fault for fault in lasting_faults(forgetful, unending(random_graph(1), 1)))


def test_a_step_that_a_query_does_not_take_with_it_is_found():
    def forgetful(found):
        return replace(query_rows(found), steps=query_rows(found).steps[:-1])

    broken = replace(BY_NAME["query_rows"], function=forgetful)
    assert any(
        "is gone" in fault for each in graphs_for("query_rows") for fault in lasting_faults(broken, each)
    )


def test_each_pass_that_changes_a_graph_is_told_with_the_steps_that_it_changed():
    pipeline = beam.Pipeline()
    golden_pipelines.combine_after_a_group(pipeline)
    _, lines = rewrite_graph(pipeline.to_graph(), PASSES, BATCH)
    assert lines == ("lift_combiners: drops Group; changes Sum/ParDo(CombineValuesDoFn)",)
    assert (
        rewrite_graph(pipeline.to_graph(), PASSES, replace(BATCH, without=frozenset({"lifted_combiners"})))[1]
        == ()
    )


def test_every_stateless_step_is_once_in_each_unit_that_feeds_it_and_no_unit_waits_for_itself():
    graphs = {seed: optimise(random_graph(seed)) for seed in SEEDS}
    assert {seed: fuse_faults(g, fuse.fuse(g)) for seed, g in graphs.items()} == NO_FAULTS


def test_every_node_of_a_plan_comes_after_what_it_reads():
    assert {seed: plan_faults(plan_of(random_graph(seed))) for seed in SEEDS} == NO_FAULTS


@pytest.mark.parametrize("seeds", [SEEDS[:20], pytest.param(SEEDS[20:], marks=pytest.mark.soak)])
@pytest.mark.parametrize("without", [frozenset(), frozenset(OPTIMISATIONS)])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_plan_gives_what_its_graph_means_with_and_without_optimisations(partitions, without, seeds):
    plans = {seed: plan_of(random_graph(seed), without) for seed in seeds}
    faults = {seed: plan_meaning_faults(plan, Settings(partitions)) for seed, plan in plans.items()}
    assert faults == {seed: [] for seed in seeds}


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

    monkeypatch.setattr(lift_combiners, "_only_combine", eager)
    pipeline = beam.Pipeline()
    golden_pipelines.a_group_with_two_readers(pipeline)
    assert order_faults(lift_combiners.lift_combiners(pipeline.to_graph()))


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

    assert any(faults(seed) for seed in SEEDS[:20])
