"""The physical plan: what Spark runs, as frozen values in the order in which they are built.

A stage is one Python pass over a frame. Rows leave it through outputs, one for each reader; a stage with several
outputs is computed once and persisted. Each view and each write is a separate job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.graph import Edge, Graph, InlineValues, Read, Step, Write, describe
from penstock_spark.plan.column_plan import Columns, ColumnsSource
from penstock_spark.plan.hosts import Host


@dataclass(frozen=True, eq=False)
class Writing:
    """One kind of rows that an output carries."""

    edge: int  # The edge whose elements are written.
    tag: int  # Distinguishes the writings of one output.
    # The step that reads the rows: a grouping, a Reshuffle or a Write; None for plain pages.
    step: Step | None = None
    host: Host | None = None  # What does the grouping that reads the rows; None if no grouping does.


@dataclass(frozen=True, eq=False)
class Output:
    """An output of a stage, with the reader of its rows."""

    number: int
    reader: str  # Who reads it, for `explain`: ``stage 2``, ``view of #3``, ``write 'Out'``.
    writings: tuple[Writing, ...]


@dataclass(frozen=True)
class OutputReference:
    stage: int
    output: int


@dataclass(frozen=True, eq=False)
class Inline:
    reads: tuple[Step, ...]
    # True if the driver makes the rows of the stage; otherwise the values are distributed to tasks.
    by_driver: bool = False

    @property
    def values(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(map(_values_of, self.reads))


def _values_of(read: Step) -> tuple[Any, ...]:
    assert isinstance(read.primitive, Read)
    assert isinstance(read.primitive.source, InlineValues)
    return read.primitive.source.values


@dataclass(frozen=True, eq=False)
class Scan:
    """A source's own frame."""

    read: Step


@dataclass(frozen=True, eq=False)
class Query:
    """A source's own frame with Spark's operations on its columns; the source of the Read is a `ColumnsSource`."""

    read: Step

    @property
    def columns(self) -> Columns:
        assert isinstance(self.read.primitive, Read)
        assert isinstance(self.read.primitive.source, ColumnsSource)
        return self.read.primitive.source.columns


@dataclass(frozen=True, eq=False)
class Exchange:
    """Rows by key hash, sorted, read in one pass; several groupings share it."""

    groupings: tuple[Step, ...]  # The tag of a row is the place of the grouping that reads it.
    sources: tuple[OutputReference, ...]
    hosts: tuple[Host, ...]  # What does each grouping.


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Partial sums by key and window, which Spark's own aggregate adds up; several combines share it."""

    groupings: tuple[Step, ...]  # The tag of a row is the place of the combine that reads it.
    sources: tuple[OutputReference, ...]


@dataclass(frozen=True, eq=False)
class Spread:
    """Pages that Spark redistributes over partitions (a Reshuffle)."""

    step: Step
    sources: tuple[OutputReference, ...]


@dataclass(frozen=True, eq=False)
class Deferred:
    """Pages that earlier stages kept, read again because a side input had to come first."""

    edge: int
    sources: tuple[OutputReference, ...]


@dataclass(frozen=True, eq=False)
class Written:
    step: Step


StageRoot = Inline | Scan | Query | Exchange | Aggregate | Spread | Deferred | Written


@dataclass(frozen=True, eq=False)
class Stage:
    """One fused Python pass."""

    number: int
    level: int  # The length of the longest chain of stages before it.
    root: StageRoot  # Where its elements come from.
    steps: tuple[Step, ...]  # Stateless steps, in topological order.
    outputs: tuple[Output, ...]
    reason: str  # Why this root was chosen.
    # The labels of the steps whose work their readers do themselves.
    left: frozenset[str] = frozenset()

    @property
    def first_steps(self) -> tuple[Step, ...]:
        """The steps that its root stands for; of a query only the Read, since Spark does the other steps."""
        return (self.root.read,) if isinstance(self.root, Query) else root_steps(self.root)

    @property
    def made_edges(self) -> frozenset[int]:
        """The edges whose elements its Python pass makes, and no other stage; of a Flatten, a part of them."""
        if isinstance(self.root, Query) and self.root.columns.is_written:
            return frozenset()
        return edges_of((*self.first_steps, *self.steps))

    @property
    def scanned_edges(self) -> frozenset[int]:
        """The edges of a source whose elements its Python pass reads."""
        return edges_of((self.root.read,)) if isinstance(self.root, Scan) else frozenset()


@dataclass(frozen=True, eq=False)
class ViewNode:
    """A job that broadcasts the elements of an edge to the workers as a side input."""

    edge: Edge
    sources: tuple[OutputReference, ...]


@dataclass(frozen=True, eq=False)
class WriteNode:
    """A job that writes the elements of an edge to a sink."""

    step: Step
    sources: tuple[OutputReference, ...]
    # True if elements come as pages, because their stages have other readers too; otherwise as the sink's
    # rows.
    kept: bool
    in_columns: bool = False  # Whether those rows are columns that Spark made without Python.


Node = Stage | ViewNode | WriteNode


@dataclass(frozen=True, eq=False)
class Plan:
    """Nodes in the order in which they are built and run."""

    nodes: tuple[Node, ...]
    graph: Graph
    # The plans of the rows that queries read from other steps, by the names of these tables. Each ends with a frame.
    tables: Mapping[str, Plan] = field(default_factory=dict)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Stage))

    def count_stages(self) -> int:
        """Returns the number of its own stages and of its tables' stages."""
        return len(self.stages) + sum(each.count_stages() for each in self.tables.values())


def edges_of(steps: Iterable[Step]) -> frozenset[int]:
    """The edges that steps make."""
    return frozenset(output.edge for step in steps for output in step.outputs)


def show_plan(plan: Plan) -> str:
    lines = [line for node in plan.nodes for line in _show_node(node)]
    for name, rows in plan.tables.items():
        lines += [f"table {name!r} of a query:", *(f"  {line}" for line in show_plan(rows).splitlines())]
    return "\n".join(lines)


def _show_node(node: Node) -> list[str]:
    if isinstance(node, ViewNode):
        return [f"view of #{node.edge.id} = broadcast({_sources(node.sources)})"]
    if isinstance(node, WriteNode):
        assert isinstance(node.step.primitive, Write)
        way = "  # columns, without Python" if node.in_columns else ""
        return [f"write {node.step.label!r} = {describe(node.step.primitive)}({_sources(node.sources)}){way}"]
    lines = [f"stage {node.number} = {_show_root(node.root)}  # {node.reason}"]
    lines += [f"  {label}" for label in _root_labels(node.root)]
    lines += [f"  {step.label} = {describe(step.primitive)}" for step in node.steps]
    lines += [f"  -> {output.reader}: {_show_writings(output)}" for output in node.outputs]
    return lines


def _show_root(root: StageRoot) -> str:
    match root:
        case Inline():
            return "values of the program"
        case Scan():
            return "scan"
        case Query():
            return "query of columns"
        case Exchange(_, sources, _):
            return f"exchange by key({_sources(sources)})"
        case Aggregate(_, sources):
            return f"aggregate by key({_sources(sources)})"
        case Spread(_, sources):
            return f"spread({_sources(sources)})"
        case Deferred(edge, sources):
            return f"kept #{edge}({_sources(sources)})"
        case Written():
            return "results of the write"


def root_steps(root: StageRoot) -> tuple[Step, ...]:
    """The steps that a root stands for."""
    match root:
        case Inline(steps) | Exchange(steps) | Aggregate(steps):
            return steps
        case Query(step):
            return step, *root.columns.steps
        case Scan(step) | Spread(step, _) | Written(step):
            return (step,)
        case Deferred():
            return ()


def _root_labels(root: StageRoot) -> list[str]:
    labels = map(_show_label, root_steps(root))
    if isinstance(root, Exchange):
        return [f"{label}  # {host}" for label, host in zip(labels, root.hosts, strict=True)]
    return [*labels]


def _show_label(step: Step) -> str:
    return f"{step.label} = {describe(step.primitive)}"


def _show_writings(output: Output) -> str:
    return ", ".join(f"#{w.edge} for {w.step.label}" if w.step else f"#{w.edge}" for w in output.writings)


def _sources(references: tuple[OutputReference, ...]) -> str:
    return ", ".join(f"stage {reference.stage}" for reference in references)
