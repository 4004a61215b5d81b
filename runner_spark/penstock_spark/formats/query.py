"""Queries that Spark computes whole, over the frames of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.graph import Source
from penstock.io.query_source import QueryError, QuerySource, ResultColumns, RowsOfStep
from penstock.scalars.spark_forms import quote_name
from penstock_spark.columns.records import schema_of
from penstock_spark.columns.types import find_doubled_names, leaves_of, value_in_spark
from penstock_spark.formats.format import Format
from penstock_spark.plan.schema_text import schema_of_text
from penstock_spark.reports.query_errors import explain_query_error
from penstock_spark.session.backend import TIME_ZONE
from penstock_spark.session.backends import backend_of
from penstock_spark.session.meaning import SQL_MEANING
from penstock_spark.session.spark_versions import from_arrow_schema
from penstock_spark.sources.column_hints import hint_of_schema
from penstock_spark.sources.frame_rows import rows_of
from penstock_spark.sources.scan import Scan

# Settings that the text of a query assumes. Its session begins with the settings of its program.
_SETTINGS = {**SQL_MEANING, TIME_ZONE: "UTC"}

Open = Callable[[Source, SparkSession, str], Scan]
"""Opens the source of a table."""


def make_query_format(open_table: Open) -> Format:
    """Returns the format of queries, given what opens their tables."""
    return Format(partial(_open_query, open_table), records=_records, schema=_schema)


def analyse_query(source: QuerySource, spark: SparkSession, where: str, open_table: Open) -> ResultColumns:
    """Returns the columns of a query's result, with Spark's types; computes no row.

    Raises:
        QueryError: The query has no meaning over its tables.
    """
    frame = _frame_of(source, spark, where, open_table)
    schema = frame.schema
    if twice := find_doubled_names(StructType(schema.fields)):
        what = f"two columns of the result have the name {twice[0]!r}"
        raise QueryError(what, hint="give one of them an alias with AS")
    for field in schema:
        if unknown := [each for each in leaves_of(field.dataType) if value_in_spark(each) is None]:
            kind = unknown[0].simpleString()
            what = f"the column {field.name!r} has values of the type {kind}, which Python does not have"
            raise QueryError(what, hint=f"write CAST({quote_name(field.name)} AS STRING)")
    return ResultColumns(schema, hint_of_schema(schema, "row"), backend_of(spark).order_of(frame))


def _open_query(open_table: Open, source: QuerySource, spark: SparkSession, where: str) -> Scan:
    frame = None if source.instead is None else _frame_as_planned(source, spark, where, open_table)
    if frame is None:
        frame = _frame_of(source.instead or source, spark, where, open_table)
    return rows_of(backend_of(spark).moved(frame), where)


def _frame_as_planned(
    source: QuerySource, spark: SparkSession, where: str, open_table: Open
) -> DataFrame | None:
    """The frame of the user's text with the columns of its plan; None if Spark finds others, or no meaning in it."""
    try:
        frame = _frame_of(source, spark, where, open_table)
    except QueryError:
        return None
    planned = _schema(source)
    if planned is None or _types_of(frame.schema) != _types_of(planned):
        return None
    return frame.toDF(*planned.names)


def _types_of(schema: StructType) -> list[str]:
    """The types of columns, whatever the names and wherever NULL may be."""
    return [field.dataType.simpleString() for field in schema]


def _frame_of(source: QuerySource, spark: SparkSession, where: str, open_table: Open) -> DataFrame:
    """The frame of a query in a session for queries, so that its settings and views affect nothing else."""
    session = backend_of(spark).session_of_queries(_SETTINGS, where)
    tables: dict[str, DataFrame] = {}
    for table in source.tables:
        tables[table.name] = backend_of(session).moved(_table(table.rows, spark, where, open_table))
    for name, text in source.views:
        tables[name] = _read(text, session, source, name, tables)
    return _read(source.text, session, source, None, tables)


def _table(rows: object, spark: SparkSession, where: str, open_table: Open) -> DataFrame:
    if isinstance(rows, RowsOfStep):
        return backend_of(spark).empty_frame(from_arrow_schema(schema_of(rows.element_type, where)))
    assert isinstance(rows, Source)
    scan = open_table(rows, spark, where)
    if not scan.has_columns:
        what = f"Spark has no types for the columns of {rows.describe()}"
        raise QueryError(what, hint="read the files with columns=[...], and leave those columns out")
    return scan.frame


def _read(
    text: str, session: SparkSession, source: QuerySource, view: str | None, tables: Mapping[str, DataFrame]
) -> DataFrame:
    """The frame of a text, which must be a query: Spark would carry out a command at once."""
    text = text.rstrip().rstrip(";")
    names = [table.name for table in source.tables] + [name for name, _ in source.views]
    try:
        backend_of(session).check_query(text)
        return backend_of(session).frame_of_query(text, tables)
    except Exception as error:
        raise explain_query_error(error, text, view, names, partial(_functions, session)) from None


def _functions(session: SparkSession) -> list[str]:
    return [row.function for row in session.sql("SHOW FUNCTIONS").collect()]


def _schema(source: QuerySource) -> StructType | None:
    return source.schema if isinstance(source.schema, StructType) else schema_of_text(str(source.schema))


def _records(source: object) -> str:
    return "row"
