"""The pipeline as a value: steps over a closed set of nine primitives, and the edges between them.

Everything a user can write is a composite of these primitives. Each interpreter (explain, check, optimise, lower)
matches on them; a tenth needs a decision record.

>>> source = Step("Create", Read(InlineValues((1, 2))), outputs=(Output(None, 0),))
>>> show(Graph((source,), (Edge(0, int),)))
"Create = Read(InlineValues(2 values)) -> #0 <class 'int'>"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.functions.combinefn import CombineFn
from penstock.typehints.constraints import show_type
from penstock.utils.window import BoundedWindow
from penstock.where import Location, at_step


class Source:
    """A source of a `Read`: a frozen dataclass in `penstock.io`, opened by the runner."""

    is_bounded: bool = True
    has_fields: bool = False
    """True if its elements have named fields, whose types the runner may find out."""
    is_table: bool = False
    """True if Spark reads it as a table in a batch, so that it may compute with its columns."""

    def describe(self) -> str:
        """One line for `explain`."""
        return type(self).__name__


class Sink:
    """A sink of a `Write`: a frozen dataclass in `penstock.io`, written by the runner."""

    key: tuple[str, ...] = ()
    """The columns of a row's key, if the elements are changes of rows, and not rows."""
    schema: Any = None
    """The user's columns; None takes them from the elements' type, or from the table."""
    triggering_frequency: float | None = None
    """The length in seconds of the windows by which an unbounded collection is written; None leaves its windows."""

    def names_windows(self) -> bool:
        """True if the names of its files have the window in them."""
        return False

    def describe(self) -> str:
        """One line for `explain`."""
        return type(self).__name__


@dataclass(frozen=True, eq=False)
class InlineValues(Source):
    """Values that the program holds in memory (Beam's ``Create`` and ``Impulse``)."""

    values: tuple[Any, ...]

    def describe(self) -> str:
        """Returns the count, never the values: they may be private."""
        return f"InlineValues({len(self.values)} value{'s' * (len(self.values) != 1)})"


@dataclass(frozen=True, eq=False)
class DriverList(Sink):
    """Appends elements to a list of the program that runs the pipeline (``[1, 2] | transform`` needs it).

    `first` limits their number, and then a batch computes no more than it needs to find that number; None takes all.
    """

    into: list[Any]
    first: int | None = None


@dataclass(frozen=True)
class SideInputSlot:
    """The place of the view of side input number `index` in a step's arguments."""

    index: int


@dataclass(frozen=True, eq=False)
class Read:
    """A root: elements come from `source`, in the global window, at the minimum timestamp unless it says otherwise."""

    source: Source


@dataclass(frozen=True, eq=False)
class ParDo:
    """A DoFn over each element (Beam's ``ParDo``).

    A `SideInputSlot` in `args` or `kwargs`, which are sorted pairs, is the place of a view.
    """

    dofn: Any
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class StatefulParDo(ParDo):
    """A DoFn with state or timers: a ParDo for its author, a grouping for an engine, as it needs elements by key."""


@dataclass(frozen=True, eq=False)
class GroupByKey:
    """All values of a key and window together (Beam's ``GroupByKey``)."""


@dataclass(frozen=True, eq=False)
class CombinePerKey:
    """A CombineFn, with bound arguments, over the values of each key and window (Beam's ``CombinePerKey``)."""

    fn: CombineFn


@dataclass(frozen=True, eq=False)
class AssignWindows:
    """Gives every element the windows of the output edge's windowing (Beam's ``WindowInto``)."""


@dataclass(frozen=True, eq=False)
class Flatten:
    """The union of its inputs (Beam's ``Flatten``)."""


@dataclass(frozen=True, eq=False)
class Reshuffle:
    """Redistributes elements evenly and prevents fusion; elements keep windows and timestamps (Beam's ``Reshuffle``).

    If `partitions` is None, the runner decides. With `by_key`, elements are KVs that stay together by key.
    """

    partitions: int | None = None
    by_key: bool = False


@dataclass(frozen=True, eq=False)
class Write:
    """Writes every element to `sink`; the output edge carries the results of the write (file names, for files)."""

    sink: Sink


Primitive = (
    Read | ParDo | StatefulParDo | GroupByKey | CombinePerKey | AssignWindows | Flatten | Reshuffle | Write
)

Grouping = GroupByKey | CombinePerKey | StatefulParDo
"""The primitives for which an engine brings elements together by key."""


@dataclass(frozen=True, eq=False)
class Edge:
    """A PCollection as the compiler sees it."""

    id: int
    element_type: Any
    windowing: Any = None
    """A `penstock.transforms.core.Windowing`; None means the global window and the default trigger."""
    is_bounded: bool = True


@dataclass(frozen=True)
class Output:
    """One output of a step: its tag (None for the main output) and its edge's number."""

    tag: str | None
    edge: int


@dataclass(frozen=True, eq=False)
class SideInput:
    """A PCollection seen as a whole by each call of another step."""

    edge: int
    view: str
    """``singleton``, ``iter``, ``list``, ``dict`` or ``multimap``."""
    default: tuple[Any, ...] = ()
    """For ``singleton``: a 1-tuple of the value for an empty PCollection; () if there is none."""
    window_mapping_fn: Callable[[BoundedWindow], BoundedWindow] | None = None
    """Maps a window of the main input to the window of the side input; None means the side input's WindowFn."""
    make: Callable[[list[Any]], Any] | None = None
    """Makes the view of a window's elements; None leaves it to `view`."""


@dataclass(frozen=True, eq=False)
class Step:
    """A primitive with its place in the graph."""

    label: str
    """The full label, unique in the graph, parts joined with ``/``."""
    primitive: Primitive
    inputs: tuple[int, ...] = ()
    side_inputs: tuple[SideInput, ...] = ()
    """Views, with the numbers of the `SideInputSlot` values in the primitive's arguments."""
    outputs: tuple[Output, ...] = ()
    """The main output comes first."""
    location: Location | None = None
    resource_hints: tuple[tuple[str, bytes], ...] = field(default=())

    @property
    def where(self) -> str:
        """The middle part of an error about this step."""
        return at_step(self.label, self.location)

    @property
    def combine_fn(self) -> CombineFn | None:
        """The CombineFn of a `CombinePerKey`; None if the primitive is another one."""
        return self.primitive.fn if isinstance(self.primitive, CombinePerKey) else None


@dataclass(frozen=True, eq=False)
class Graph:
    """Steps in an order in which every step comes after those it reads from, and the edges, by number."""

    steps: tuple[Step, ...]
    edges: tuple[Edge, ...]

    def edge(self, number: int) -> Edge:
        """Returns the edge of that number."""
        return self.edges[number]

    def producer(self, number: int) -> Step:
        """Returns the step that makes an edge."""
        return next(step for step in self.steps if any(out.edge == number for out in step.outputs))

    def consumers(self, number: int) -> Iterator[Step]:
        """Yields the steps that read an edge, as main or as side input."""
        for step in self.steps:
            if number in step.inputs or any(side.edge == number for side in step.side_inputs):
                yield step

    def leading_to(self, last: Step) -> Graph:
        """Returns the graph of a step and of the steps that it depends on."""
        needed = {*last.inputs, *(side.edge for side in last.side_inputs)}
        kept = [last]
        for step in reversed(self.steps):
            if any(output.edge in needed for output in step.outputs):
                kept.append(step)
                needed.update(step.inputs)
                needed.update(side.edge for side in step.side_inputs)
        return Graph(tuple(reversed(kept)), self.edges)


def describe(primitive: Primitive) -> str:
    """Returns a primitive in one line, without any user data."""
    match primitive:
        case Read(source):
            return f"Read({source.describe()})"
        case Write(sink):
            return f"Write({sink.describe()})"
        case ParDo(dofn):
            return f"{type(primitive).__name__}({_name(dofn)})"
        case CombinePerKey(fn):
            return f"CombinePerKey({_name(fn)})"
        case _:
            return type(primitive).__name__


def show(graph: Graph) -> str:
    """Returns the graph as text, a line a step; golden tests and people read this."""
    return "\n".join(_show_step(graph, step) for step in graph.steps)


def _show_step(graph: Graph, step: Step) -> str:
    ins = "".join(f"#{number} " for number in step.inputs)
    sides = "".join(f"+{side.view}#{side.edge} " for side in step.side_inputs)
    outs = ", ".join(
        f"{out.tag}:#{out.edge} {type_name(graph.edge(out.edge).element_type)}"
        if out.tag
        else f"#{out.edge} {type_name(graph.edge(out.edge).element_type)}"
        for out in step.outputs
    )
    arrow = "-> " if outs else ""
    return f"{step.label} = {ins}{sides}{describe(step.primitive)} {arrow}{outs}".rstrip()


_TYPE_CHARACTERS = 200


def type_name(hint: object) -> str:
    """Returns a type hint as text, which is truncated if it is very long."""
    try:
        name = show_type(hint)
    except RecursionError:
        # Groups of groups of groups have types that are deeper than Python's stack.
        return "..."
    return name if len(name) <= _TYPE_CHARACTERS else f"{name[:_TYPE_CHARACTERS]}..."


def _name(user_object: object) -> str:
    described = getattr(user_object, "describe", None)
    return str(described()) if callable(described) else type(user_object).__name__
