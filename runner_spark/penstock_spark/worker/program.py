"""Describes the work of a fused stage, as values that travel to the workers: its roots, its steps and its writers.

Edges are numbers, as in the graph. A root puts batches on an edge; a step reads the batches of its input edges and
puts batches on its output edges; a writer turns the batches of its edge into rows of the stage's output frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from penstock.functions.batches import BatchTypes
from penstock.functions.combinefn import CombineFn
from penstock.graph import AssignWindows, ParDo
from penstock.utils.window import BoundedWindow
from penstock.windows.window_fn import WindowFn
from penstock.windows.windowing import Windowing
from penstock_spark.plan.hosts import BySpark, InPython
from penstock_spark.reports.reporting import Reporting, current_reporting
from penstock_spark.worker.batch import Batch


@dataclass(frozen=True, eq=False)
class InlineRoot:
    """Values of the program; partition i of n takes slice i of n."""

    edge: int
    values: tuple[Any, ...]  # A TimestampedValue or WindowedValue brings its own timestamp.


@dataclass(frozen=True, eq=False)
class ScanRoot:
    """Rows of a source's frame; each task calls `make_reader()` once, for a function from an Arrow batch to
    lists of values.
    """

    edge: int
    make_reader: Callable[[], Callable[[Any], Iterable[list[Any] | Batch]]]
    where: str = ""


@dataclass(frozen=True, eq=False)
class ColumnsRoot:
    """Rows of columns that Spark has computed; `read` makes a batch of an Arrow batch."""

    edge: int
    read: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class PageRoot:
    """Rows that hold whole pickled batches (a `PageWriter`'s)."""

    edge: int
    tag: int = 0


@dataclass(frozen=True, eq=False)
class SortedRoot:
    """Sorted rows of a grouping exchange."""

    edge: int  # The edge of (key, values) or (key, result) elements.
    tag: int  # Several groupings share one exchange.
    windowing: Windowing
    combine: CombineFn | None  # None for a GroupByKey.
    where: str
    label: str


@dataclass(frozen=True, eq=False)
class GroupRoot(SortedRoot):
    """Rows of values, or of what a fold holds of some, read one key and window at a time."""

    host: InPython


@dataclass(frozen=True, eq=False)
class MachineRoot(SortedRoot):
    """Rows of one element each, for the grouping's machine."""

    input_retracts: bool  # True if elements may retract earlier ones.
    # The edge of elements that a window no longer takes; None if they are only counted.
    late_edge: int | None = None


@dataclass(frozen=True, eq=False)
class StatefulRoot:
    """Sorted rows of a grouping exchange, of one element each, for the machine of a stateful DoFn."""

    label: str  # The label of the step, which is also one of the program's steps.
    tag: int
    lateness_micros: int  # How long after a window's end its state is kept.


@dataclass(frozen=True, eq=False)
class TotalsRoot:
    """Rows of totals that Spark has added up, each of one key and window."""

    edge: int  # The edge of (key, total) elements.
    tag: int
    windowing: Windowing


Root = InlineRoot | ScanRoot | ColumnsRoot | PageRoot | GroupRoot | MachineRoot | StatefulRoot | TotalsRoot


@dataclass(frozen=True, eq=False)
class ViewSpec:
    """A side input in the worker."""

    edge: int  # The task has its pages under this number.
    kind: str  # ``singleton``, ``iter``, ``list``, ``dict`` or ``multimap``.
    default: tuple[Any, ...]  # As in `penstock.graph.SideInput`, like `window_mapping_fn` and `make`.
    windowfn: WindowFn
    window_mapping_fn: Callable[[BoundedWindow], BoundedWindow] | None
    make: Callable[[list[Any]], Any] | None
    where: str  # The consuming step.


@dataclass(frozen=True, eq=False)
class StepSpec:
    """A stateless step: a ParDo, an AssignWindows, or a Flatten (which only joins edges)."""

    label: str  # The full label.
    where: str
    primitive: ParDo | AssignWindows | None  # None for a Flatten.
    inputs: tuple[int, ...]  # The edges that it reads and that this stage produces.
    outputs: tuple[tuple[str | None, int], ...]
    views: tuple[ViewSpec, ...] = ()
    windowing: Any = None  # The input's windowing for a ParDo; the output's for an AssignWindows.
    batches: BatchTypes | None = None  # The converters of its DoFn's batches, if it takes or yields some.
    # True if batches stay whole between DoFns, and DoFns that need no batches get some.
    whole_batches: bool = True
    # True if a function of an element and its window may get columns; the results are the same.
    shortcuts: bool = True


@dataclass(frozen=True, eq=False)
class DirectStepSpec(StepSpec):
    """A step whose work the groupings behind it do: it makes no pair and finds no window for each element."""


@dataclass(frozen=True, eq=False)
class RowsSpec:
    """Rows for a reader in another stage."""

    edge: int
    output: int
    tag: int
    where: str
    label: str


@dataclass(frozen=True, eq=False)
class GroupWriterSpec(RowsSpec):
    """Rows for a grouping: values, or what a fold holds of them if `combine` is set, by key and window."""

    windowing: Windowing
    combine: CombineFn | None
    host: BySpark | InPython


@dataclass(frozen=True, eq=False)
class ElementWriterSpec(RowsSpec):
    """Rows for a grouping's machine, of one element each."""

    may_retract: bool = False  # True if elements may retract earlier ones.


@dataclass(frozen=True, eq=False)
class PageWriterSpec(RowsSpec):
    """Rows that hold whole pickled batches."""

    # The number of keys to spread over, one page for each key and batch (a Reshuffle); 0 writes batches as they come.
    shards: int = 0
    # True if the shard is a hash of the element's key; otherwise elements are dealt out in turn.
    by_key: bool = False


@dataclass(frozen=True, eq=False)
class SinkWriterSpec:
    """Rows of a sink's own schema; each task calls `make_encoder()` once."""

    edge: int
    make_encoder: Callable[[], Any]
    where: str


WriterSpec = GroupWriterSpec | ElementWriterSpec | PageWriterSpec | SinkWriterSpec


W = TypeVar("W")


@dataclass(frozen=True, eq=False)
class StageProgram(Generic[W]):
    """A fused stage, or what has no state in a level of a streaming query."""

    run: str  # Metrics of several runs share one accumulator.
    stage: int  # Its number in the plan, or the level's.
    roots: tuple[Root, ...]
    steps: tuple[StepSpec, ...]
    writers: tuple[W, ...]
    partitions: int = 1  # The number of partitions that inline roots are dealt out to.
    # The edges whose elements are counted for the view of the run: no other stage makes these elements.
    counted: frozenset[int] = frozenset()
    # The seed of its tasks' random numbers, together with the number of the task; empty for other numbers in each run.
    seed: str = ""
    # The way in which its tasks report, from the run for which the program is made.
    reporting: Reporting = field(default_factory=current_reporting)
