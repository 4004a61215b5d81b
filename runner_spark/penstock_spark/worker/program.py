"""What a fused stage does, as values that travel to the workers: its roots, its steps and its writers.

Edges are numbers, as in the graph. A root puts batches on an edge; a step reads the batches of its input edges and
puts batches on its output edges; a writer turns the batches of its edge into rows of the stage's output frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.functions.batches import BatchTypes
from penstock.graph import AssignWindows, ParDo
from penstock_spark.reports.reporting import Reporting, reporting_now


@dataclass(frozen=True, eq=False)
class InlineRoot:
    """Values of the program; partition i of n takes slice i of n.

    Attributes:
        edge: Where the elements go.
        values: The values; a TimestampedValue or WindowedValue brings its own timestamp.
    """

    edge: int
    values: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class ScanRoot:
    """Rows of a source's frame; `make_reader()` gives the function from an Arrow batch to lists of values, once
    a task.
    """

    edge: int
    make_reader: Callable[[], Callable[[Any], Iterable[list[Any]]]]


@dataclass(frozen=True, eq=False)
class ColumnsRoot:
    """Rows of columns that Spark has computed; `read` gives the batch of an Arrow batch."""

    edge: int
    read: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class PageRoot:
    """Rows that hold whole pickled batches (a `PageWriter`'s)."""

    edge: int
    tag: int = 0


@dataclass(frozen=True, eq=False)
class GroupRoot:
    """Sorted rows of a grouping exchange, read one key and window at a time.

    Attributes:
        edge: Where the (key, values) or (key, result) elements go.
        tag: The rows' tag; several groupings share one exchange.
        windowing: The input's windowing.
        combine: The CombineFn whose accumulators the rows hold; None for a GroupByKey.
        where: The step, for errors.
        label: The step's label, for metrics.
    """

    edge: int
    tag: int
    windowing: Any
    combine: Any
    where: str
    label: str


@dataclass(frozen=True, eq=False)
class MachineRoot:
    """Sorted rows of a grouping exchange, of one element each, played on the grouping's machine.

    Attributes:
        edge: Where the panes go, as (key, values) or (key, result).
        tag: The rows' tag.
        windowing: The input's windowing.
        combine: The CombineFn; None for a GroupByKey.
        input_retracts: Whether elements may take back earlier ones.
        where: The step, for errors.
        label: The step's label, for metrics.
        late_edge: Where elements go that a window no longer takes; None if they are only counted.
    """

    edge: int
    tag: int
    windowing: Any
    combine: Any
    input_retracts: bool
    where: str
    label: str
    late_edge: int | None = None


@dataclass(frozen=True, eq=False)
class StatefulRoot:
    """Sorted rows of a grouping exchange, of one element each, for the machine of a stateful DoFn.

    Attributes:
        label: The label of the step, which is one of the program's steps as well.
        tag: The rows' tag.
        lateness_micros: How long after a window's end its state is kept.
    """

    label: str
    tag: int
    lateness_micros: int


@dataclass(frozen=True, eq=False)
class TotalsRoot:
    """Rows of totals that Spark has added up, each of one key and window.

    Attributes:
        edge: Where the (key, total) elements go.
        tag: The rows' tag.
        windowing: The input's windowing.
    """

    edge: int
    tag: int
    windowing: Any


Root = InlineRoot | ScanRoot | ColumnsRoot | PageRoot | GroupRoot | MachineRoot | StatefulRoot | TotalsRoot


@dataclass(frozen=True, eq=False)
class ViewSpec:
    """A side input in the worker.

    Attributes:
        edge: The number of its edge; the task has its pages under it.
        kind: ``singleton``, ``iter``, ``list``, ``dict`` or ``multimap``.
        default: As in `penstock.graph.SideInput`.
        windowfn: The side input's WindowFn.
        window_mapping_fn: As in `penstock.graph.SideInput`.
        where: The consuming step, for errors.
    """

    edge: int
    kind: str
    default: tuple[Any, ...]
    windowfn: Any
    window_mapping_fn: Any
    where: str


@dataclass(frozen=True, eq=False)
class StepSpec:
    """A stateless step: a ParDo, an AssignWindows, or a Flatten (which only joins edges).

    Attributes:
        label: The full label.
        where: The step, for errors.
        primitive: What it does; None for a Flatten.
        inputs: Edges it reads that this stage produces.
        outputs: Tags and edges.
        views: Its side inputs.
        windowing: The input's windowing for a ParDo; the output's for an AssignWindows.
        batches: How elements become batches and the other way round, if its DoFn takes or gives some.
        whole_batches: Whether batches go from DoFn to DoFn as they are, and DoFns that can do without are given some.
        shortcuts: Whether a function of an element and its window may be given columns; the results are the same.
    """

    label: str
    where: str
    primitive: ParDo | AssignWindows | None
    inputs: tuple[int, ...]
    outputs: tuple[tuple[str | None, int], ...]
    views: tuple[ViewSpec, ...] = ()
    windowing: Any = None
    batches: BatchTypes | None = None
    whole_batches: bool = True
    shortcuts: bool = True


@dataclass(frozen=True, eq=False)
class GroupWriterSpec:
    """Rows for a grouping: values (or accumulators, if `combine` is set) by key and window.

    Attributes:
        edge: The edge to write.
        output: The number of the output.
        tag: The rows' tag.
        windowing: The windowing of the edge.
        combine: The CombineFn; None for a GroupByKey.
        where: The step, for errors.
        label: The step's label, for metrics.
        as_numbers: Whether the accumulators are integers that Spark adds up.
    """

    edge: int
    output: int
    tag: int
    windowing: Any
    combine: Any
    where: str
    label: str
    as_numbers: bool = False


@dataclass(frozen=True, eq=False)
class ElementWriterSpec:
    """Rows for a grouping's machine, of one element each.

    Attributes:
        edge: The edge to write.
        output: The number of the output.
        tag: The rows' tag.
        where: The step, for errors.
        label: The step's label, for metrics.
        may_retract: Whether elements may take back earlier ones.
    """

    edge: int
    output: int
    tag: int
    where: str
    label: str
    may_retract: bool = False


@dataclass(frozen=True, eq=False)
class PageWriterSpec:
    """Rows that hold whole pickled batches.

    Attributes:
        shards: Spread over so many keys, one page a key and batch (a Reshuffle); 0 writes batches as they come.
        by_key: Whether the shard is a hash of the element's key; otherwise elements are dealt out in turn.
    """

    edge: int
    output: int
    tag: int
    where: str
    label: str
    shards: int = 0
    by_key: bool = False


@dataclass(frozen=True, eq=False)
class SinkWriterSpec:
    """Rows of a sink's own schema; `make_encoder()` gives the encoder, once a task."""

    edge: int
    make_encoder: Callable[[], Any]
    where: str


WriterSpec = GroupWriterSpec | ElementWriterSpec | PageWriterSpec | SinkWriterSpec


@dataclass(frozen=True, eq=False)
class StageProgram:
    """A fused stage.

    Attributes:
        run: Names the run; metrics of several runs share one accumulator.
        stage: Its number in the plan.
        roots: Where elements come from.
        steps: In topological order.
        writers: Where elements leave the stage.
        partitions: The number of partitions that inline roots are dealt out to.
        reporting: How its tasks report; that of the run for which the program is made.
        shortcuts: Whether the sums of a window may be taken together; the results are the same.
    """

    run: str
    stage: int
    roots: tuple[Root, ...]
    steps: tuple[StepSpec, ...]
    writers: tuple[WriterSpec, ...]
    partitions: int = 1
    reporting: Reporting = field(default_factory=reporting_now)
    shortcuts: bool = True
