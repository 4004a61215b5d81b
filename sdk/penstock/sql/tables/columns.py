"""The columns of a table: their types in queries, in Spark and as hints of Python."""

from __future__ import annotations

import re

from penstock.scalars.spark_forms import NotForSpark, quote_name, write_type
from penstock.scalars.types import ANY, SqlType, to_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.errors import SqlError
from penstock.sql.plan.relations import Columns
from penstock.typehints import row_type
from penstock.typehints.column_widths import options_of_widths

_NESTED = re.compile(r"(?i)\s*(ARRAY|MAP|STRUCT)\s*<")


def type_of_text(text: str) -> SqlType | None:
    """Returns the type that queries know for a declared type; ANY for one whose values they only pass on.

    >>> print(type_of_text("DECIMAL(10, 2)"), type_of_text("INT"), type_of_text("MAP<STRING, INT>"))
    DECIMAL(10, 2) INT MAP<STRING NOT NULL, INT>
    >>> type_of_text("STRNG") is None
    True
    """
    try:
        query = bind(f"SELECT CAST(NULL AS {text}) AS c", Tables({}, {}, {}))
    except SqlError:
        return ANY if _NESTED.match(text) else None
    return query.relation.columns[0].type.or_null()


def spark_type(text: str, kind: SqlType) -> str:
    """Returns a declared type as Spark writes it, with its width.

    >>> spark_type("INT", type_of_text("INT")), spark_type("TEXT", type_of_text("TEXT"))
    ('INT', 'STRING')
    """
    if kind.name == "ANY" or kind.is_nested:
        return text
    return write_type(kind)


def spark_schema(columns: Columns, declared: tuple[str, ...] = ()) -> str:
    """Returns columns as Spark's text.

    Args:
        columns: The columns.
        declared: Their types as statements declare them; empty for columns of a query.

    Raises:
        NotForSpark: Spark has no type with the same values.

    >>> from penstock.sql.plan.relations import ColumnDef
    >>> spark_schema((ColumnDef("the team", SqlType("STRING")), ColumnDef("n", SqlType("BIGINT", False))))
    '`the team` STRING, `n` BIGINT NOT NULL'
    """
    found = []
    for number, column in enumerate(columns):
        text = spark_type(declared[number], column.type) if declared else _known_type(column.type)
        found.append(f"{quote_name(column.name)} {text}{'' if column.type.nullable else ' NOT NULL'}")
    return ", ".join(found)


def _known_type(kind: SqlType) -> str:
    for name in ("ANY", "INTERVAL", "NULL", "WINDOW"):
        if kind.has(name):
            raise NotForSpark(f"a column of {name} has no type in a table")
    return write_type(kind)


def row_hint(columns: Columns) -> object:
    """Returns the type of rows with these columns.

    >>> from penstock.sql.plan.relations import ColumnDef
    >>> row_hint((ColumnDef("n", SqlType("BIGINT", False)),))
    Row(n=<class 'int'>)
    """
    return row_type.RowTypeConstraint.from_fields(
        [(each.name, to_hint(each.type)) for each in columns],
        field_options=options_of_widths((each.name, each.type.bits) for each in columns),
    )
