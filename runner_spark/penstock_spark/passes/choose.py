"""Chooses the Spark operators that run the units: this pass decides, and lowering obeys.

Units that can share a frame become one stage: all in-memory reads of a level, and all groupings of a level, whose
rows go through one exchange. So a small pipeline has one Spark stage for each grouping in its longest chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.graph import Graph, Grouping, InlineValues, Read, Reshuffle, Step, Write
from penstock_spark.passes.choose_folds import find_steps_done_by_readers
from penstock_spark.passes.fuse import DeferredInput, Unit
from penstock_spark.plan.batch_plan import (
    Aggregate,
    Deferred,
    Exchange,
    Inline,
    Node,
    Output,
    OutputReference,
    Plan,
    Query,
    Scan,
    Spread,
    Stage,
    StageRoot,
    ViewNode,
    WriteNode,
    Writing,
    Written,
)
from penstock_spark.plan.column_plan import ColumnsSource
from penstock_spark.plan.hosts import BySpark, Host

_REASONS = {
    "inline": "values of the program: one frame for all of a level",
    "exchange": "groupings of one level: one exchange, sorted, one pass",
    "aggregate": "sums of integers: Python makes partial sums, Spark adds them up",
    "scan": "reads the source's own frame",
    "query": "Spark computes with columns",
    "spread": "a Reshuffle ends fusion",
    "kept": "a side input of this stage comes from the elements that this stage reads",
    "written": "steps after a write see what was written",
}
_SHARED = ("inline", "exchange", "aggregate")


@dataclass(eq=False)
class _Draft:
    number: int
    kind: str  # A key of `_REASONS`.
    units: list[Unit]  # The units that it runs, all of one level.
    hosts: list[Host | None]  # What does the grouping of each unit; None for other units.
    outputs: dict[str, list[Writing]] = field(default_factory=dict)  # Its outputs, by reader.
    # The sources that it reads: numbers of stages, and its own name as their reader.
    sources: dict[tuple[int, str], None] = field(default_factory=dict)

    @property
    def level(self) -> int:
        return self.units[0].level

    @property
    def reader(self) -> str:
        root = self.units[0].root
        if self.kind == "written":
            assert isinstance(root, Step)
            return f"write {root.label!r}"
        return f"stage {self.number}"


def choose(graph: Graph, units: tuple[Unit, ...], hosts: dict[str, Host]) -> Plan:
    drafts = _drafts(units, hosts)
    makers: dict[int, list[_Draft]] = {}
    for draft in drafts:
        for edge in sorted({edge for unit in draft.units for edge in unit.edges}):
            makers.setdefault(edge, []).append(draft)
    of_unit = {unit.number: draft for draft in drafts for unit in draft.units}
    for draft in drafts:
        for tag, unit in enumerate(draft.units):
            _connect(draft, tag, unit, of_unit, makers)
    view_edges = dict.fromkeys(side.edge for step in graph.steps for side in step.side_inputs)
    for edge in view_edges:
        for draft in makers[edge]:
            draft.outputs[_view_reader(edge)] = [Writing(edge, 0)]
    views = [
        (
            max(draft.level for draft in makers[edge]) + 1,
            ViewNode(graph.edge(edge), _view_sources(edge, makers[edge])),
        )
        for edge in view_edges
    ]
    return Plan(tuple(_order(graph, drafts, views)), graph)


def _drafts(units: tuple[Unit, ...], hosts: dict[str, Host]) -> list[_Draft]:
    """Units by the stage that they share, in an order in which each comes after the stages that it needs."""
    found: dict[object, _Draft] = {}
    for unit in sorted(units, key=lambda unit: (unit.level, unit.number)):
        host = hosts.get(unit.root.label) if isinstance(unit.root, Step) else None
        kind = _kind(unit, host)
        key: object = (kind, unit.level) if kind in _SHARED else unit.number
        draft = found.setdefault(key, _Draft(len(found), kind, [], []))
        draft.units.append(unit)
        draft.hosts.append(host)
    return list(found.values())


def _kind(unit: Unit, host: Host | None) -> str:
    if isinstance(unit.root, DeferredInput):
        return "kept"
    match unit.root.primitive:
        case Read(InlineValues()):
            return "inline"
        case Read(ColumnsSource(columns=columns)) if columns.operations or columns.is_written:
            return "query"
        case Read():
            return "scan"
        case grouping if isinstance(grouping, Grouping):
            return "aggregate" if isinstance(host, BySpark) else "exchange"
        case Reshuffle():
            return "spread"
        case Write():
            return "written"
        case other:
            raise AssertionError(f"{other} cannot start a unit")


def _connect(
    target: _Draft,
    tag: int,
    unit: Unit,
    of_unit: dict[int, _Draft],
    makers: dict[int, list[_Draft]],
) -> None:
    """Gives each stage that feeds a unit an output for it, or a share of one."""
    if isinstance(unit.root, DeferredInput):
        feeds = [(unit.root.edge, of_unit[number]) for number in unit.root.sources]
    else:
        feeds = [(edge, draft) for edge in dict.fromkeys(unit.root.inputs) for draft in makers[edge]]
    step = unit.root if isinstance(unit.root, Step) else None
    for edge, draft in dict.fromkeys(feeds):
        draft.outputs.setdefault(target.reader, []).append(Writing(edge, tag, step, target.hosts[tag]))
        target.sources[draft.number, target.reader] = None


def _view_reader(edge: int) -> str:
    return f"view of #{edge}"


def _view_sources(edge: int, drafts: list[_Draft]) -> tuple[OutputReference, ...]:
    return tuple(
        OutputReference(draft.number, list(draft.outputs).index(_view_reader(edge))) for draft in drafts
    )


def _order(graph: Graph, drafts: list[_Draft], views: list[tuple[int, ViewNode]]) -> Iterator[Node]:
    """The nodes level by level: views of earlier stages, then writes, then stages."""
    ranks = {step.label: rank for rank, step in enumerate(graph.steps)}
    kept = _find_kept_writes(drafts)
    views_at: dict[int, list[ViewNode]] = {}
    drafts_at: dict[int, list[_Draft]] = {}
    for level, view in views:
        views_at.setdefault(level, []).append(view)
    for draft in drafts:
        drafts_at.setdefault(draft.level, []).append(draft)
    for level in sorted({*views_at, *drafts_at}):
        yield from views_at.get(level, ())
        for draft in drafts_at.get(level, ()):
            stage = _stage(graph, draft, drafts, ranks, kept)
            if isinstance(stage.root, Written):
                in_columns = any(_gives_columns(drafts[number]) for number, _ in draft.sources)
                yield WriteNode(stage.root.step, _sources(draft, drafts), draft.reader in kept, in_columns)
            if not isinstance(stage.root, Written) or stage.steps or stage.outputs:
                yield stage


def _find_kept_writes(drafts: list[_Draft]) -> set[str]:
    """The writes that read kept pages.

    The job that writes a sink's rows must also make them: the sink's encoder may write files, so it must not run
    when Spark only persists a frame for several readers.
    """
    return {
        draft.reader
        for draft in drafts
        if draft.kind == "written" and any(len(drafts[number].outputs) > 1 for number, _ in draft.sources)
    }


def _stage(graph: Graph, draft: _Draft, drafts: list[_Draft], ranks: dict[str, int], kept: set[str]) -> Stage:
    steps = {step.label: step for unit in draft.units for step in unit.steps}
    outputs = tuple(
        Output(
            number,
            reader,
            tuple(Writing(w.edge, w.tag) for w in writings) if reader in kept else tuple(writings),
        )
        for number, (reader, writings) in enumerate(draft.outputs.items())
    )
    in_order = tuple(sorted(steps.values(), key=lambda step: ranks[step.label]))
    readers: dict[int, list[Host | None]] = {}
    for output in outputs:
        for writing in output.writings:
            readers.setdefault(writing.edge, []).append(writing.host)
    left = find_steps_done_by_readers(in_order, graph, readers)
    return Stage(draft.number, draft.level, _root(draft, drafts), in_order, outputs, _reason(draft), left)


def _reason(draft: _Draft) -> str:
    reason, source = _REASONS[draft.kind], _columns_of(draft)
    return reason if source is None else f"{reason}; {source.columns.ends}"


def _columns_of(draft: _Draft) -> ColumnsSource | None:
    root = draft.units[0].root
    source = root.primitive.source if isinstance(root, Step) and isinstance(root.primitive, Read) else None
    return source if isinstance(source, ColumnsSource) else None


def _gives_columns(draft: _Draft) -> bool:
    source = _columns_of(draft)
    return source is not None and source.columns.is_written


def _root(draft: _Draft, drafts: list[_Draft]) -> StageRoot:
    sources = _sources(draft, drafts)
    first = draft.units[0].root
    if isinstance(first, DeferredInput):
        return Deferred(first.edge, sources)
    steps = tuple(unit.root for unit in draft.units if isinstance(unit.root, Step))
    match draft.kind:
        case "inline":
            return Inline(steps)
        case "scan":
            return Scan(first)
        case "query":
            return Query(first)
        case "exchange":
            return Exchange(steps, sources, tuple(host for host in draft.hosts if host is not None))
        case "aggregate":
            return Aggregate(steps, sources)
        case "spread":
            return Spread(first, sources)
        case _:
            return Written(first)


def _sources(draft: _Draft, drafts: list[_Draft]) -> tuple[OutputReference, ...]:
    return tuple(
        OutputReference(number, list(drafts[number].outputs).index(reader))
        for number, reader in draft.sources
    )
