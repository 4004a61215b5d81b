"""Describes Spark's work on the columns of a source without Python: the operations, and the table after each."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from pyspark.sql.types import DataType, DoubleType, LongType, TimestampType

from penstock.graph import Source, Step
from penstock.io.streaming.stream_sources import Streamable, StreamSource
from penstock.scalars.expressions import Expression
from penstock.scalars.tree import Field
from penstock.windows.window_fn import FixedWindows, SlidingWindows
from penstock.windows.windowing import Windowing
from penstock_spark.plan.column_bounds import UNBOUNDED, Bounds
from penstock_spark.plan.column_kinds import WINDOW_BOUNDS, Fields, column_type, name_kind

Named = tuple[tuple[str, Expression], ...]


def has_stream_columns(source: Source) -> bool:
    """True if a source has columns when it is read continuously: tasks of Python may read them, without its objects."""
    return isinstance(source, Streamable) and source.has_columns


@dataclass(frozen=True)
class ColumnAggregate:
    """An aggregate that Spark computes of columns exactly as Python would."""

    # The kinds of columns that it accepts (see `penstock_spark.plan.column_kinds`); None for all.
    kinds: frozenset[str] | None
    otherwise: str  # Why Python aggregates the others: a format of the result's name and the column's kind.
    result_kind: str | None  # None if the result has the column's kind.


_INTEGERS = frozenset({"int"})
_ORDERED = frozenset({"int", "str", "bool", "date", "instant"})
_UNORDERED = "{{}} is the {} of {{}}, which may be NaN or are not ordered"

COLUMN_AGGREGATES = {
    # A sum of floats depends on the order.
    "sum": ColumnAggregate(_INTEGERS, "{} is a sum of {}, not of int", "int"),
    "count": ColumnAggregate(None, "", "int"),
    "mean": ColumnAggregate(_INTEGERS, "{} is a mean of {}, not of int", "float"),
    "min": ColumnAggregate(_ORDERED, _UNORDERED.format("min"), None),
    "max": ColumnAggregate(_ORDERED, _UNORDERED.format("max"), None),
}
"""By the names of their folds. Spark's own ``top`` would order equal values in its own way."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns, and the elements that their rows stand for."""

    fields: Fields  # Names and Spark types, in order.
    # The kind of element: ``"dict"``, ``"row"``, ``"tuple"``, or ``"result"``, the named tuple of an aggregation.
    records: str
    # The timestamps: ``"start"``, the earliest possible; ``"column"``, in an extra column; ``"end"``, the end
    # of the window.
    time: str = "start"
    windowfn: FixedWindows | SlidingWindows | None = (
        None  # The FixedWindows or SlidingWindows of the elements; None for the global window.
    )
    is_in_several: bool = False  # Whether an element is in several windows, with a row for each.
    bounds: Bounds = UNBOUNDED  # The number of rows, and the size of their numbers.

    @property
    def readable(self) -> Fields:
        """The fields, and the bounds of the window."""
        if self.windowfn is None:
            return self.fields
        return (*self.fields, *((name, TimestampType()) for name in WINDOW_BOUNDS.values()))


@dataclass(frozen=True, eq=False)
class Filter:
    step: Step
    condition: Expression


@dataclass(frozen=True, eq=False)
class Select:
    step: Step
    fields: Named


@dataclass(frozen=True, eq=False)
class WithTimestamps:
    """A WithTimestamps: the expression returns the time, in seconds or as an instant."""

    step: Step
    moment: Expression


@dataclass(frozen=True, eq=False)
class Windowed:
    """A WindowInto: FixedWindows, SlidingWindows of a stream, or None for the global window."""

    step: Step
    windowfn: FixedWindows | SlidingWindows | None


@dataclass(frozen=True, eq=False)
class Grouped:
    """A grouping that Spark aggregates."""

    step: Step
    windowing: Windowing  # That of its input.
    around: tuple[Step, Step]  # The steps before and after it, which make keys and results.


@dataclass(frozen=True, eq=False)
class Combined(Grouped):
    keys: Named  # The parts of the key.
    # Name, kind (``sum``, ``count``, ``mean``, ``min`` or ``max``) and expression of each result.
    combines: tuple[tuple[str, str, Expression], ...]


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A column that is written in Spark's SQL, over the columns ``c0``, ``c1`` and up."""

    name: str
    text: str
    type: DataType


@dataclass(frozen=True, eq=False)
class SelectTexts:
    """A selection of a query, whose rows are tuples or Rows."""

    step: Step
    columns: tuple[TextColumn, ...]
    records: str  # As in `Table`.


@dataclass(frozen=True, eq=False)
class FieldsAsTuple:
    """Makes tuples of some fields of the elements, in the types of a query."""

    step: Step
    columns: tuple[TextColumn, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The fields that it reads."""
        return frozenset(each.name for each in self.columns)


@dataclass(frozen=True, eq=False)
class FilterByText:
    """A condition of a query."""

    step: Step
    condition: str


@dataclass(frozen=True, eq=False)
class CombinedTexts(Grouped):
    """A grouping of a query: its rows are tuples of the keys, with the bounds of the window among them, and results."""

    keys: tuple[TextColumn, ...]
    aggregates: tuple[TextColumn, ...]
    held: tuple[str, ...]  # What Spark keeps of each aggregate.
    bounds: tuple[
        tuple[int, str], ...
    ]  # The places of bounds in the row, in order, with ``start`` or ``end``.

    @property
    def columns(self) -> tuple[TextColumn, ...]:
        """The columns of its rows, over the columns ``k0`` and ``a0`` and up and the start ``w`` of the window."""
        keys = [(f"k{at}", each.type) for at, each in enumerate(self.keys)]
        for place, bound in self.bounds:
            size_micros = self.windowing.windowfn.size_micros if bound == "end" else 0
            keys.insert(place, (f"timestamp_micros(w + {size_micros}L)", TimestampType()))
        results = [(f"a{at}", each.type) for at, each in enumerate(self.aggregates)]
        return tuple(TextColumn(f"c{at}", text, kind) for at, (text, kind) in enumerate([*keys, *results]))


@dataclass(frozen=True, eq=False)
class Spread:
    """A Reshuffle before a write, with its number of partitions."""

    step: Step
    partitions: int


OfQuery = FieldsAsTuple | SelectTexts | FilterByText | CombinedTexts
"""The operations of the steps of a query in SQL."""

Operation = Filter | Select | WithTimestamps | Windowed | Combined | Spread | OfQuery


@dataclass(frozen=True, eq=False)
class Columns:
    """Spark's operations on the columns of a source before Python reads them or a sink takes them."""

    table: Table | None  # The source's columns; None if they are not needed, or not known yet.
    operations: tuple[Operation, ...]
    is_written: bool  # True if a sink takes the columns unchanged.
    ends: str  # Where the columns end, and why; a clause for `explain`.

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that the operations replace, in order."""
        return tuple(step for operation in self.operations for step in _steps(operation))

    @property
    def groupings(self) -> tuple[Grouped, ...]:
        return tuple(operation for operation in self.operations if isinstance(operation, Grouped))

    @property
    def grouping(self) -> Grouped | None:
        """The only grouping of a stream, if there is one."""
        return next(iter(self.groupings), None)

    @property
    def read_fields(self) -> frozenset[str]:
        """The fields of the source that operations read, up to a selection or a grouping, which leaves no others.

        All fields if there is neither.
        """
        assert self.table is not None
        read: set[str] = set()
        for operation in self.operations:
            match operation:
                case Filter(_, condition):
                    read.update(condition.fields())
                case WithTimestamps(_, moment):
                    read.update(moment.fields())
                case Select(_, fields):
                    return frozenset(read.union(*(each.fields() for _, each in fields)))
                case FieldsAsTuple():
                    return frozenset(read | operation.fields)
                case Combined(keys=keys, combines=combines):
                    expressions = [*(each for _, each in keys), *(each for _, _, each in combines)]
                    return frozenset(read.union(*(each.fields() for each in expressions)))
        return frozenset(name for name, _ in self.table.fields)

    def layout(self, grouping: Grouped) -> dict[str, str]:
        """The kinds of the columns that Spark keeps for a grouping; all integers have 64 bits there."""
        if isinstance(grouping, CombinedTexts):
            kept = ", ".join(each.type.simpleString() for each in grouping.keys)
            return {"keys": kept, "combine": ", ".join(grouping.held)}
        assert isinstance(grouping, Combined)
        table = self.table
        assert table is not None
        for operation in self.operations:
            if operation is grouping:
                break
            table = apply_to_table(operation, table)
        keys = [name_kind(each, table.fields) for _, each in grouping.keys]
        results = [f"{name} of {name_kind(each, table.fields)}" for _, name, each in grouping.combines]
        return {"keys": ", ".join(keys), "combine": ", ".join(results)}

    @property
    def has_windows(self) -> bool:
        """True if elements are put into windows of event time before they are grouped."""
        table = self.table
        for operation in self.operations:
            if isinstance(operation, Grouped):
                return table is not None and table.windowfn is not None
            table = None if table is None else apply_to_table(operation, table)
        return False


@dataclass(frozen=True, eq=False)
class ColumnsSource(Source):
    """A source of a batch, and what Spark does to its columns."""

    source: Source
    columns: Columns

    def describe(self) -> str:
        return self.source.describe()


@dataclass(frozen=True, eq=False)
class ColumnStream(StreamSource):
    """A source that is read continuously, and what Spark does to its columns in each micro-batch."""

    columns: Columns = field(kw_only=True)

    @staticmethod
    def of(stream: StreamSource, columns: Columns) -> ColumnStream:
        return ColumnStream(**arguments_of(stream), columns=columns)


def arguments_of(stream: StreamSource) -> dict[str, Any]:
    """The arguments that make the same stream, for a class with more of them."""
    return {each.name: getattr(stream, each.name) for each in fields(StreamSource)}


def event_time_field(stream: StreamSource) -> Expression | None:
    """The field with the event time of an element; None if the time is that of arrival, or a function's."""
    return Expression(Field(stream.event_time)) if isinstance(stream.event_time, str) else None


def _steps(operation: Operation) -> tuple[Step, ...]:
    if isinstance(operation, Grouped):
        first, last = operation.around
        return first, operation.step, last
    return (operation.step,)


def apply_to_table(operation: Operation, table: Table) -> Table:
    match operation:
        case Select(_, fields):
            bounds = table.bounds.project(fields)
            return replace(table, fields=_type_fields(fields, table), records="row", bounds=bounds)
        case WithTimestamps():
            return replace(table, time="column")
        case Windowed(_, windowfn):
            # An element whose time is the end of its old window has to keep that time in a column.
            left = table.time == "end" and table.windowfn is not None
            time = "column" if left else table.time
            return replace(
                table, windowfn=windowfn, time=time, is_in_several=type(windowfn) is SlidingWindows
            )
        case Combined(keys=keys, combines=combines):
            made = tuple((name, _type_of_combined(kind, each, table)) for name, kind, each in combines)
            bounds = table.bounds.project(keys)
            made = (*_type_fields(keys, table), *made)
            return replace(
                table, fields=made, records="result", time="end", bounds=bounds, is_in_several=False
            )
        case FieldsAsTuple(columns=columns):
            return replace(table, fields=_fields_of(columns), records="tuple", bounds=UNBOUNDED)
        case SelectTexts(columns=columns, records=records):
            return replace(table, fields=_fields_of(columns), records=records, bounds=UNBOUNDED)
        case CombinedTexts(columns=columns):
            return replace(
                table,
                fields=_fields_of(columns),
                records="tuple",
                time="end",
                bounds=UNBOUNDED,
                is_in_several=False,
            )
    return table


def _fields_of(columns: tuple[TextColumn, ...]) -> Fields:
    return tuple((each.name, each.type) for each in columns)


def _type_fields(fields: Named, table: Table) -> Fields:
    return tuple((name, type_of(each, table)) for name, each in fields)


def type_of(expression: Expression, table: Table) -> DataType:
    """The Spark type of an expression: a column that is passed on keeps its own type."""
    if expression.field_name is not None:
        return dict(table.fields)[expression.field_name]
    return column_type(expression, table.readable)


def _type_of_combined(kind: str, expression: Expression, table: Table) -> DataType:
    match COLUMN_AGGREGATES[kind].result_kind:
        case "int":
            return LongType()
        case "float":
            return DoubleType()
    return column_type(expression, table.fields)
