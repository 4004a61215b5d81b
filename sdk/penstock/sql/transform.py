"""The transform that computes a query: `SqlTransform`."""

from __future__ import annotations

import contextlib
import datetime
import logging
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import TypeVar

from penstock.checks.unsupported_arguments import refuse_unsupported
from penstock.construction.ptransform import PTransform
from penstock.construction.pvalue import PBegin, PCollection
from penstock.construction.retractions import may_retract
from penstock.elements.row import Row
from penstock.error import noun_for, refusal, split_hint, three_parts
from penstock.graph import Source
from penstock.io.query_source import QueryError, QuerySource, QueryTable, ResultColumns, RowsOfStep
from penstock.io.source_transforms import SourceTransform
from penstock.io.streaming.stream_sources import StreamSource
from penstock.options.pipeline_options import PipelineOptions, SparkOptions
from penstock.scalars.column_forms import FieldColumns, HasColumnForm
from penstock.scalars.nested_values import value_maker_of
from penstock.scalars.spark_forms import NotForSpark, quote_name
from penstock.scalars.tree import Column, Scalar
from penstock.scalars.types import TIMESTAMP, from_hint, to_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.catalog import Catalog
from penstock.sql.errors import SqlError, make_sql_error
from penstock.sql.execution.as_written import ComputeQuery, is_final, means_the_same, read_as_written
from penstock.sql.execution.lowering import Lowering, Mode, hint_of, hint_of_type
from penstock.sql.execution.rendering import list_kept_numbers, render_result, shows_time
from penstock.sql.execution.spark_query import column_type, spark_query
from penstock.sql.execution.steps import MakeRow, RowFunction, time_of
from penstock.sql.execution.unbounded_state import list_kept_state
from penstock.sql.language.dialect import parse_query
from penstock.sql.names import names_read
from penstock.sql.output_classes import MakeInstance, check_output_class, check_output_fields
from penstock.sql.plan.borders import find_borders
from penstock.sql.plan.lineage import add_change_keys
from penstock.sql.plan.pruning import columns_read, prune, with_limited_ranks
from penstock.sql.plan.relations import ColumnDef, Columns, Query, Relation, describe_plan
from penstock.sql.plan.restricted_groups import restrict_groups
from penstock.sql.plan.static_joins import join_static_first
from penstock.sql.sources import read_source
from penstock.transforms.elements.create import Create
from penstock.transforms.elements.pardo import Map
from penstock.transforms.grouping.windowing import WindowInto
from penstock.typehints import row_type
from penstock.typehints.column_types import UNSIGNED
from penstock.typehints.column_widths import options_of_widths, width_of_field
from penstock.typehints.containers import ListConstraint
from penstock.typehints.unions import without_none
from penstock.utils.timestamp import Timestamp
from penstock.windows.window_fn import GlobalWindows

_LOGGER = logging.getLogger(__name__)
_MAIN = "PCOLLECTION"
_NO_TABLE = "no table"
_HOW_TABLES = "pass the table: query(text, goals='goals.csv'), a Catalog with it, or a dict of PCollections"
_DEPTH = 5_000
_UNKNOWN = re.compile(r"not supported|^unknown function")
"""Found in errors of the binder about something that the engine may know."""
_INSTEAD = {
    "dialect": "leave it out: the language is Spark's SQL",
    "ddl": "pass a dict of PCollections by their names, and a Catalog with views and functions",
}


RowT = TypeVar("RowT", default=Any)
"""The class of a result's rows."""


class SqlTransform(PTransform[Any, PCollection[RowT]]):
    """Computes a query over one or several PCollections of rows (Beam's name).

    A query works as in *Streaming Systems*, chapter 8: its inputs and its result are relations that change over time.
    The language is Spark SQL, with the renderings ``SELECT STREAM``, ``TABLE`` and ``TVR``, windows, and ``EMIT``.

    It is applied to a PCollection, which the query calls ``PCOLLECTION``, or to a dict of PCollections by their names
    in the query. Elements are Rows, NamedTuples or dataclasses. If a query only reads tables of a catalog, the
    transform is applied to the pipeline.

    Args:
        query: The query.
        catalog: Tables, views and functions that the query may use.
        output: A NamedTuple or a dataclass whose instances the rows of the result become, so that editors know them.
            Its fields have the names and the types of the columns. By default, rows are Rows.
        expansion_service: Has no effect: there is nothing to expand.
        unsupported: Beam's ``dialect`` and ``ddl``, which are refused.

    Returns:
        Rows with the columns of the result. ``SELECT TABLE`` emits the final rows, and so does a query without a
        rendering if all inputs end. ``SELECT STREAM`` emits a row for each change, and ``SELECT TVR`` a
        `penstock.sql.execution.rendering.Snapshot` for each instant at which the relation changed. Otherwise the
        result has the changes themselves, as additions and retractions, for another query, a grouping, `Changelog` or
        `Upserts`.

    Raises:
        SqlError: The query is wrong; the message shows where.
        TypeError: An input is not a PCollection of rows, or an argument is wrong or unknown.
        UnsupportedByRunner: A Beam argument that penstock does not have is passed.

    Example: ``goals | SqlTransform("SELECT team, SUM(points) AS total FROM PCOLLECTION GROUP BY team")``.

    >>> SqlTransform("SELECT team FROM PCOLLECTION").label
    'SqlTransform(SELECT team FROM PCOLLECTION)'
    """

    def __init__(
        self,
        query: str,
        catalog: Catalog | None = None,
        *,
        output: type[RowT] | None = None,
        expansion_service: object = None,
        **unsupported: object,
    ) -> None:
        super().__init__()
        refuse_unsupported(SqlTransform, unsupported, _INSTEAD)
        if catalog is not None and not isinstance(catalog, Catalog):
            what = f"the catalog must be a Catalog, but is {noun_for(catalog)}"
            raise refusal(TypeError, what, hint="leave it out, or pass a penstock.transforms.sql.Catalog")
        self.query = query
        self.catalog = catalog or Catalog()
        self.output = None if output is None else check_output_class(output)
        self.order: tuple[tuple[str, bool, bool], ...] | None = ()

    def default_label(self) -> str:
        words = " ".join(str(getattr(self, "query", "")).split())
        return f"SqlTransform({words if len(words) <= 60 else words[:57] + '...'})"

    def _extract_input_pvalues(self, pvalueish: object) -> tuple[Any, tuple[Any, ...]]:
        if isinstance(pvalueish, PBegin):
            return pvalueish, (pvalueish,)
        named = pvalueish if isinstance(pvalueish, Mapping) else {_MAIN: pvalueish}
        for name, pcoll in named.items():
            if not isinstance(pcoll, PCollection):
                what = f"the input {name!r} is {noun_for(pcoll)}, and not a PCollection"
                raise refusal(
                    TypeError, what, where=self._where(), hint="apply it to a PCollection, or a dict of them"
                )
        return dict(named), tuple(named.values())

    def expand(self, pcolls: Any) -> PCollection[RowT]:
        """Binds the names of the query, and lowers its relations to transforms."""
        pcolls = self._with_tables(pcolls)
        columns = {name: self._columns(name, pcoll) for name, pcoll in pcolls.items()}
        named = {name: each for name, each in columns.items() if name != _NO_TABLE}
        tables = Tables(named, self.catalog.views, self.catalog.functions)
        ends = all(pcoll.is_bounded for pcoll in pcolls.values())
        try:
            with allow_deep_calls():
                query = bind(self.query, tables)
        except SqlError as error:
            what, hint = split_hint(str(error))
            hint = hint if named or hint != "there are none" else _HOW_TABLES
            whole = self._asked_of_spark(pcolls, what, hint) if ends and pcolls else None
            if whole is not None:
                return self._as_output(whole)
            text = three_parts(what, where=self._where(), hint=hint)
            raise SqlError(text, error.missing_table) from None
        if self.output is not None and query.rendering == "TVR":
            what = f"SELECT TVR makes snapshots, and output={self.output.__name__} is a class of rows"
            raise refusal(TypeError, what, where=self._where(), hint="leave output out")
        return self._as_output(self._computed(query, pcolls, columns, ends))

    def _with_tables(self, pcolls: PBegin | dict[str, PCollection[Any]]) -> dict[str, PCollection[Any]]:
        """The inputs, and the tables of the catalog that the query may read."""
        given = {} if isinstance(pcolls, PBegin) else pcolls
        pipeline = pcolls.pipeline if isinstance(pcolls, PBegin) else next(iter(pcolls.values())).pipeline
        taken = {name.lower() for name in given}
        named = names_read(self.query, self.catalog.views) if self.catalog.tables else frozenset()
        read = {
            name: pipeline | f"Table {name}" >> read_source(name, source)
            for name, source in self.catalog.tables.items()
            if name.lower() in named and name.lower() not in taken
        }
        # A query such as SELECT 1 reads nothing, and has one row.
        return {**given, **read} or {_NO_TABLE: pipeline | "No table" >> Create([Row(nothing=None)])}

    def _as_output(self, rows: PCollection[Any]) -> PCollection[Any]:
        """The rows, as instances of the class if there is one."""
        if self.output is None:
            return rows
        columns = rows.element_type
        assert isinstance(columns, row_type.RowTypeConstraint)
        check_output_fields(self.output, columns, self._where())
        make = MakeInstance(self.output, tuple(name for name, _ in columns.fields))
        made: PCollection[Any] = rows | "Output" >> Map(make).with_output_types(self.output)
        return made

    def _computed(
        self, query: Query, pcolls: Mapping[str, Any], columns: Mapping[str, Columns], ends: bool
    ) -> Any:
        """The result as Rows; `ends` says whether all inputs do."""
        self.order = listing_order(query)
        mode = Mode(final=ends and query.rendering in (None, "TABLE"))
        whole, computed_by = None, "the transforms, as changes"
        if mode.final:
            whole, computed_by = self._by_engine(query, pcolls)
            if whole is None and all(map(_is_table, pcolls.values())):
                # Spark is what the transforms are measured by.
                with contextlib.suppress(QueryError):
                    written = self._as_written(pcolls, f"not as our plan, since {computed_by}")
                    if written is not None:
                        return written
            if whole is None:
                computed_by = f"the transforms; Spark alone does not, since {computed_by}"
        plan = describe_plan(query.relation)
        self.explained = f"{self.query.strip()}\n\nplan:\n{plan}\n\ncomputed by: {computed_by}"
        endless = {name for name, pcoll in pcolls.items() if not pcoll.is_bounded}
        rendering = query.rendering or ("TABLE" if ends else "CHANGES")
        numbers = list_kept_numbers(query, rendering) if endless else ()
        if kept := list(
            dict.fromkeys([*list_kept_state(with_limited_ranks(query.relation), endless), *numbers])
        ):
            self.explained += "\n\nkept forever:\n" + "\n".join(f"- {each}" for each in kept)
            where = self._where() or f"at step {self.label!r}"
            _LOGGER.warning("A query keeps more and more:\n- %s\n  %s", "\n- ".join(kept), where)
        if whole is not None:
            return whole
        pipeline = next(iter(pcolls.values())).pipeline
        stamps = {name: column for name, pcoll in pcolls.items() if (column := stamps_of(pcoll)) is not None}
        changed: tuple[Scalar, ...] = ()
        if rendering == "STREAM" and shows_time(query):
            relation, changed = add_change_keys(query.relation)
            query = replace(query, relation=relation)
        retracting = {name for name, pcoll in pcolls.items() if may_retract(pcoll)}
        if mode.final:
            pruned = prune(query.relation, retracting)
        else:
            arranged = restrict_groups(join_static_first(query.relation, endless), endless)
            pruned = find_borders(prune(arranged, retracting))
        read = {**columns, **columns_read(pruned)}
        inputs = {name: self._rows(name, pcoll, read[name]) for name, pcoll in pcolls.items()}
        rows = Lowering(inputs, stamps, mode, pipeline).lower(pruned)
        names = tuple(name for name, _ in query.shown)
        return render_result(query, rows, MakeRow(names), rendering, result_hint(query), changed)

    def _by_engine(self, query: Query, pcolls: Mapping[str, Any]) -> tuple[Any, str]:
        """The result as one read of Spark, which computes the query whole, or None; and who computes it, and why."""
        tables = {name: f"input{number}" for number, name in enumerate(pcolls)}
        try:
            sources = tuple(_source_of(name, pcoll) for name, pcoll in pcolls.items())
            text = spark_query(query, tables)
            columns = query.relation.columns
            schema = ", ".join(
                f"{quote_name(name)} {column_type(columns[int(place)].type)}" for name, place in query.shown
            )
        except NotForSpark as reason:
            return None, reason.reason
        read = tuple(QueryTable(name, source) for name, source in zip(tables.values(), sources, strict=True))
        source = self._in_own_words(
            QuerySource(self.query, text, read, schema=schema),
            query.relation,
            dict(zip(pcolls, sources, strict=True)),
        )
        result = SourceTransform(source, "Query").with_output_types(result_hint(query))
        pipeline = next(iter(pcolls.values())).pipeline
        return pipeline | "Query" >> result, "Spark alone"

    def _in_own_words(
        self, planned: QuerySource, plan: Relation, sources: Mapping[str, object]
    ) -> QuerySource:
        """The query as the user wrote it, for which Spark's optimizer is made, if Spark means the same by it."""
        try:
            asked = read_as_written(self.query, sources, self.catalog.views, self.catalog.functions)
        except NotForSpark:
            return planned
        if not means_the_same(asked, plan):
            return planned
        tables = tuple(QueryTable(name, sources[name]) for name in asked.tables)
        return replace(planned, text=asked.text, tables=tables, views=asked.views, instead=planned)

    def _asked_of_spark(self, pcolls: Mapping[str, Any], what: str, hint: str) -> PCollection[Row] | None:
        """The result of a query that the binder refuses, by Spark; None if Spark does not have what it asks for.

        Raises:
            SqlError: Spark also refuses it.
        """
        reason = what.partition("\n")[0]
        if is_final(reason, hint, self.query):
            return None
        try:
            return self._as_written(pcolls, f"the transforms do not know it: {reason}")
        except QueryError as error:
            if _is_told_better(what, self.query, error):
                return None
            text = self.query if error.view is None else self.catalog.views[error.view]
            told, hint = split_hint(str(make_sql_error(error.what, text, error.offset, error.hint)))
            raise SqlError(three_parts(told, where=self._where(), hint=hint)) from None

    def _as_written(self, pcolls: Mapping[str, Any], reason: str) -> PCollection[Row] | None:
        """The result of a query as one read of Spark, which gets the user's own text; None if Spark cannot have it.

        Raises:
            QueryError: Spark refuses the query.
        """
        pipeline = next(iter(pcolls.values())).pipeline
        try:
            asked = read_as_written(self.query, pcolls, self.catalog.views, self.catalog.functions)
            tables = tuple(QueryTable(name, _rows_for_spark(name, pcolls[name])) for name in asked.tables)
        except NotForSpark:
            return None
        inputs = tuple(pcolls[each.name] for each in tables if isinstance(each.rows, RowsOfStep))
        if is_streaming(pipeline.options) and (inputs or not tables):
            return None
        source = QuerySource(self.query, asked.text, tables, asked.views)
        found = pipeline.runner.columns_of_query(source, pipeline.options, self._where() or "")
        if not isinstance(found, ResultColumns):
            return None
        source = replace(source, schema=found.schema)
        self.order = found.order
        self.explained = f"{self.query.strip()}\n\ncomputed by: Spark, as the query is written; {reason}"
        whole: PCollection[Row]
        if inputs:
            whole = inputs | "Query" >> ComputeQuery(source, "Query", found.element_type)
        else:
            read = SourceTransform[Row](source, "Query").with_output_types(found.element_type)
            whole = pipeline | "Query" >> read
        return whole

    def _columns(self, name: str, pcoll: PCollection[Any]) -> Columns:
        """The columns of an input."""
        row = pcoll.element_type
        if not isinstance(row, row_type.RowTypeConstraint):
            row = row_type.RowTypeConstraint.from_user_type(pcoll.element_type)
        if row is None:
            what = f"the elements of {name!r} are {pcoll.element_type}, and a query reads rows"
            hint = "make rows with Select(...), or declare their class with .with_output_types(...)"
            raise refusal(TypeError, what, where=self._where(), hint=hint)
        return tuple(
            ColumnDef(field, replace(from_hint(hint), bits=width_of_field(row, field)))
            for field, hint in row.fields
        )

    def _rows(self, name: str, pcoll: PCollection[Any], columns: Columns) -> Any:
        """The elements of an input as tuples."""
        label = "Input" if name == _MAIN else f"Input {name}"
        fields = FieldsOf(columns)
        rows = pcoll | f"{label} in all time" >> WindowInto(GlobalWindows())
        return rows | label >> Map(fields).with_output_types(hint_of(columns))


def _has_unsigned(hint: object) -> bool:
    """True if values of a hint, or elements of lists, are integers without a sign."""
    bare = without_none(hint)
    return bare == UNSIGNED or (isinstance(bare, ListConstraint) and _has_unsigned(bare.inner_type))


def _source_of(name: str, pcoll: PCollection[Any]) -> object:
    """Returns what an input is read from, if the engine reads it as a table.

    Raises:
        NotForSpark: It is not.
    """
    if not _is_table(pcoll):
        raise NotForSpark(f"the input {name!r} is not a table that Spark reads")
    _check_columns(name, pcoll)
    return _read_from(pcoll)


def _rows_for_spark(name: str, pcoll: PCollection[Any]) -> object:
    """Returns what has the rows of an input as a table: its source, or the step that makes them.

    Raises:
        NotForSpark: Spark has no such table.
    """
    _check_columns(name, pcoll)
    if _is_table(pcoll):
        return _read_from(pcoll)
    row = pcoll.element_type
    if not isinstance(row, row_type.RowTypeConstraint):
        row = row_type.RowTypeConstraint.from_user_type(row)
    return RowsOfStep(row)


def _is_table(pcoll: PCollection[Any]) -> bool:
    """True if Spark reads the rows of an input as a table."""
    source = _read_from(pcoll)
    return isinstance(source, Source) and source.is_table


def _check_columns(name: str, pcoll: PCollection[Any]) -> None:
    """Raises NotForSpark if Spark has no such columns."""
    row = pcoll.element_type
    fields = row.fields if isinstance(row, row_type.RowTypeConstraint) else ()
    if any(_has_unsigned(hint) for _, hint in fields):
        raise NotForSpark(f"the input {name!r} has integers without a sign")
    if len({field.lower() for field, _ in fields}) < len(fields):
        raise NotForSpark(f"the input {name!r} has columns whose names differ only in case")


def is_streaming(options: PipelineOptions) -> bool:
    """True if the options of a pipeline ask for a stream, even over inputs that end."""
    return options.view_as(SparkOptions).mode not in (None, "batch")


def _is_told_better(what: str, query: str, error: QueryError) -> bool:
    """True if the binder's error says more than the engine's of the same query."""
    if not error.is_vague:
        return False
    try:
        parse_query(query)
    except SqlError:
        return True
    return not _UNKNOWN.search(what)


def _read_from(pcoll: PCollection[Any]) -> object:
    """Returns the source whose unchanged elements an input has; None if a step made them, or they were rejected."""
    transform = None if pcoll.producer is None or pcoll.tag is not None else pcoll.producer.transform
    return getattr(transform, "source", None)


def stamps_of(pcoll: PCollection[Any]) -> str | None:
    """Returns the field that has the timestamps of elements, if they come so from their source; no element lacks it."""
    source = _read_from(pcoll)
    selector = source.event_time if isinstance(source, StreamSource) else None
    return selector if isinstance(selector, str) else None


@contextlib.contextmanager
def allow_deep_calls() -> Iterator[None]:
    """Lets functions call each other more deeply than Python allows: a parser goes down a level for each bracket."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class FieldsOf(RowFunction, HasColumnForm):
    """Makes a tuple of an element's fields; times become datetimes with a zone, and structs Rows.

    Args:
        columns: The names and the types of the fields.

    Attributes:
        column_form: The same in columns.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        # Python's getter takes dots apart, and returns a single value without a tuple.
        names = tuple(each.name for each in columns)
        is_plain = len(names) > 1 and not any("." in name for name in names)
        self._get: Callable[[Any], tuple[Any, ...]] = (
            operator.attrgetter(*names) if is_plain else _Attributes(names)
        )
        makers = [value_maker_of(each.type, _as_datetime) for each in columns]
        self._makers = [(at, maker) for at, maker in enumerate(makers) if maker is not None]
        if not any(each.type.is_nested for each in columns):
            self.column_form = FieldColumns(names, tuple(each.type for each in columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return FieldsOf, (self._columns,)

    def __call__(self, row: object) -> tuple[Any, ...]:
        values = self._get(row)
        for at, maker in self._makers:
            value = values[at]
            if type(value) is datetime.datetime and value.tzinfo is not None:
                continue
            if value is not None:
                values = (*values[:at], maker(value), *values[at + 1 :])
        return values


@dataclass(frozen=True)
class _Attributes:
    """Makes a tuple of an object's attributes."""

    names: tuple[str, ...]

    def __call__(self, row: object) -> tuple[Any, ...]:
        return tuple(getattr(row, name) for name in self.names)


def _as_datetime(value: object) -> object:
    """A time with a zone; UTC is the zone of a time that has none."""
    if isinstance(value, Timestamp):
        return time_of(value.micros, has_zone=True)
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=datetime.UTC)
    return value


def listing_order(query: Query) -> tuple[tuple[str, bool, bool], ...] | None:
    """Returns the order of listed rows: names, whether they descend, and whether NULL is first.

    None if they are ordered by something that is not among their columns.
    """
    names = {place: name for name, place in query.shown}
    if query.ordered is None:
        return None
    columns = [each.scalar.index if isinstance(each.scalar, Column) else -1 for each in query.ordered]
    if not names.keys() >= {*columns}:
        return None
    return tuple(
        (names[at], order.descending, order.nulls_first)
        for at, order in zip(columns, query.ordered, strict=True)
    )


def result_hint(query: Query) -> Any:
    """Returns the type of the rows of a query's result."""
    system = {
        "Undo": str,
        "EmitTiming": str,
        "EmitIndex": int,
        "Ver": int,
        "EmitTime": to_hint(TIMESTAMP.or_null(False)),
    }
    columns = query.relation.columns
    return row_type.RowTypeConstraint.from_fields(
        [
            (name, system[place] if isinstance(place, str) else hint_of_type(columns[place].type))
            for name, place in query.shown
        ],
        field_options=options_of_widths(
            (name, columns[place].type.bits) for name, place in query.shown if not isinstance(place, str)
        ),
    )
