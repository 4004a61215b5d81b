"""Translates the steps of a query in SQL into operations on columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import types as T

from penstock.functions.dofn import FilterDoFn, MapDoFn
from penstock.graph import AssignWindows, CombinePerKey, Graph, ParDo, Step
from penstock.scalars.column_forms import (
    FieldColumns,
    GroupedColumns,
    HasColumnForm,
    NamedColumns,
    NotColumns,
    TypedText,
)
from penstock.scalars.row_functions import AtTime, Pairing, Predicate, Projection
from penstock.scalars.spark_forms import NotForSpark, write_literal, write_type
from penstock.scalars.spark_writer import write_scalar
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import SqlType
from penstock.windows.output_times import TimestampCombiner
from penstock_spark.columns.common_types import is_wider
from penstock_spark.plan.column_kinds import NotInColumns, is_flat
from penstock_spark.plan.column_plan import (
    CombinedTexts,
    FieldsAsTuple,
    FilterByText,
    Operation,
    SelectTexts,
    Table,
    TextColumn,
    apply_to_table,
)
from penstock_spark.plan.schema_text import schema_of_text
from penstock_spark.plan.steps_behind import find_only_reader, translate_windowing
from penstock_spark.plan.windowing import windowing_of

_KEYS = (
    *(T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.StringType, T.BooleanType, T.BinaryType),
    *(T.DateType, T.TimestampType, T.TimestampNTZType, T.DecimalType),
)
"""The types of keys for which equal values are equal in Spark's state, too: not floats, of which zero has two."""

Check = Callable[[Step, Table], None]


def is_of_query(step: Step) -> bool:
    """True if a step is one of a query in SQL that may be an operation on columns."""
    function = _function_of(step)
    return isinstance(function, HasColumnForm | Projection | Predicate | AtTime | Pairing)


def is_grouping_of_query(graph: Graph, grouping: Step) -> bool:
    """True if the results of a grouping become the rows of a query."""
    functions = (_function_of(reader) for reader in graph.consumers(grouping.outputs[0].edge))
    return any(
        isinstance(each, HasColumnForm) and isinstance(each.column_form, GroupedColumns | NotColumns)
        for each in functions
    )


def _function_of(step: Step) -> object:
    if not isinstance(step.primitive, ParDo) or step.side_inputs or len(step.outputs) != 1:
        return None
    dofn = step.primitive.dofn
    return dofn.fn if type(dofn) in (FilterDoFn, MapDoFn) else dofn


def find_query_operations(graph: Graph, step: Step, table: Table, check: Check) -> tuple[Operation, ...]:
    """The operations of a step of a query; a pair of key and values has the grouping behind it as well.

    Raises:
        NotInColumns: Spark does not compute exactly the same.
    """
    function = _function_of(step)
    form = function.column_form if isinstance(function, HasColumnForm) else None
    try:
        match function:
            case Projection(scalars):
                return (SelectTexts(step, _columns(scalars, table), "tuple"),)
            case Predicate(scalar):
                return (FilterByText(step, _text(scalar, table)),)
            case AtTime(time):
                raise NotInColumns(f"elements get the time {time}, and the watermark follows others")
            case Pairing():
                return _translate_grouping(graph, step, table, check)
        match form:
            case FieldColumns():
                return (FieldsAsTuple(step, _translate_fields(form, table)),)
            case NamedColumns(places, names):
                return (SelectTexts(step, _translate_names(places, names, table), "row"),)
    except NotForSpark as reason:
        raise NotInColumns(f"{step.label!r}: {reason.reason}") from None
    except NotInColumns as reason:
        raise NotInColumns(f"{step.label!r}: {reason}") from None
    raise NotInColumns(f"{step.label!r} is a function that only Python can call")


def _translate_fields(form: FieldColumns, table: Table) -> tuple[TextColumn, ...]:
    places = {name: (place, own) for place, (name, own) in enumerate(table.fields)}
    found = []
    for name, kind in zip(form.names, form.types, strict=True):
        if name not in places:
            raise NotInColumns(f"the column {name} does not exist")
        place, own = places[name]
        wanted = _spark_type(kind)
        if not is_wider(wanted, own):
            raise NotInColumns(f"the column {name} has the type {own.simpleString()}, and not {kind}")
        text = f"c{place}" if own == wanted else f"CAST(c{place} AS {write_type(kind)})"
        found.append(TextColumn(name, text, wanted))
    return tuple(found)


def _translate_names(
    places: Sequence[int | Literal], names: Sequence[str], table: Table
) -> tuple[TextColumn, ...]:
    found = []
    for name, place in zip(names, places, strict=True):
        if isinstance(place, Literal):
            text = write_literal(place.value, place.type)
            found.append(TextColumn(name, text, _spark_type(place.type)))
        else:
            found.append(TextColumn(name, f"c{place}", table.fields[place][1]))
    return tuple(found)


def _columns(scalars: Sequence[Scalar], table: Table) -> tuple[TextColumn, ...]:
    return tuple(
        TextColumn(f"c{place}", _text(each, table), _spark_type(each.type))
        for place, each in enumerate(scalars)
    )


def _text(scalar: Scalar, table: Table) -> str:
    return write_scalar(scalar, [f"c{place}" for place in range(len(table.fields))])


def _spark_type(kind: SqlType) -> T.DataType:
    schema = schema_of_text(f"c {write_type(kind)}")
    found = None if schema is None else schema[0].dataType
    inner = found.elementType if isinstance(found, T.ArrayType) else found
    if found is None or inner is None or not is_flat(inner):
        raise NotInColumns(f"values of {kind} differ in Spark")
    return found


def _translate_grouping(graph: Graph, step: Step, table: Table, check: Check) -> tuple[Operation, ...]:
    """A window, and the grouping with the steps around it that make its keys and results."""
    assign = find_only_reader(graph, step.outputs[0].edge)
    if not isinstance(assign.primitive, AssignWindows):
        raise NotInColumns("the next step does not make windows")
    combine = find_only_reader(graph, assign.outputs[0].edge)
    if not isinstance(combine.primitive, CombinePerKey) or len(combine.outputs) != 1:
        raise NotInColumns("the next step does not aggregate values")
    rows = find_only_reader(graph, combine.outputs[0].edge)
    function = _function_of(rows)
    form = function.column_form if isinstance(function, HasColumnForm) else None
    if isinstance(form, NotColumns):
        raise NotInColumns(form.reason)
    if not isinstance(form, GroupedColumns):
        raise NotInColumns("the next step does not aggregate values")
    windowing = windowing_of(graph, combine.inputs[0])
    windowed = translate_windowing(graph, assign, table, True)
    check(combine, apply_to_table(windowed, table))
    if windowing.timestamp_combiner != TimestampCombiner.OUTPUT_AT_EOW:
        raise NotInColumns("its output time is not the end of the window")
    keys = _typed(form.keys)
    for each in keys:
        if not isinstance(each.type, _KEYS):
            raise NotInColumns(f"a key has the type {each.type.simpleString()}")
    bounds = [
        (place, bound) for place, bound in ((form.start, "start"), (form.end, "end")) if place is not None
    ]
    grouped = CombinedTexts(
        combine,
        windowing,
        (step, rows),
        keys,
        _typed(form.aggregates),
        tuple(each.held for each in form.aggregates),
        tuple(sorted(bounds)),
    )
    return windowed, grouped


def _typed(given: Sequence[TypedText]) -> tuple[TextColumn, ...]:
    return tuple(
        TextColumn(f"c{place}", each.text, _spark_type(each.type)) for place, each in enumerate(given)
    )
