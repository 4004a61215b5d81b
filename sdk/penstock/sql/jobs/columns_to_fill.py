"""Which column of a query goes into which column of a table, and whether its type fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from penstock.checks.similar_names import hint_at_name
from penstock.scalars.spark_forms import quote_name
from penstock.scalars.types import SqlType
from penstock.sql.plan.relations import ColumnDef, Columns
from penstock.sql.statements.forms import Insert
from penstock.sql.statements.words import Script
from penstock.sql.tables.table import Table

_WIDER = {
    "BIGINT": ("DECIMAL", "DOUBLE"),
    "DECIMAL": ("DOUBLE",),
    "DATE": ("TIMESTAMP", "TIMESTAMP_NTZ"),
    "NULL": (
        *("ARRAY", "MAP", "STRUCT"),
        "BOOLEAN",
        "BIGINT",
        "DECIMAL",
        "DOUBLE",
        "STRING",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
    ),
}
"""The types into which a value is cast on its way: it loses nothing."""


@dataclass(frozen=True)
class Filling:
    """The way in which the result of a query fills a table.

    Attributes:
        columns: The columns that are written.
        scalars: What is selected from the result for them, as text; None if the result is written unchanged.
    """

    columns: Columns
    scalars: tuple[str, ...] | None


def fill_columns(insert: Insert, table: Table, result: Columns, script: Script) -> Filling:
    """Returns how a query fills a table.

    Args:
        insert: The statement.
        table: The table.
        result: The columns of the query.
        script: The text with the statement.

    Raises:
        SqlError: The columns do not fit.
    """
    targets = _targets(insert, table, result, script)
    by_name = {each.name.lower(): each for each in result}
    sources = [by_name[each.name.lower()] for each in targets] if insert.by_name else list(result)
    if not insert.by_name and not insert.columns:
        _check_order(insert, table, targets, result, script)
    filled = {}
    for source, target in zip(sources, targets, strict=True):
        filled[target.name.lower()] = _scalar(insert, table, source, target, script)
    columns = table.types or targets
    scalars = []
    for column in columns:
        scalar = filled.get(column.name.lower())
        if scalar is None and not column.type.nullable:
            what = f"the column {column.name!r} of the table {table.name!r} is NOT NULL, and is not filled"
            script.refuse(what, insert.at, "fill it, or declare it without NOT NULL")
        scalars.append(
            scalar or f"CAST(NULL AS {_declared_type(table, column)}) AS {quote_name(column.name)}"
        )
    unchanged = tuple(quote_name(each.name) for each in result)
    return Filling(columns, None if tuple(scalars) == unchanged else tuple(scalars))


def _targets(insert: Insert, table: Table, result: Columns, script: Script) -> Columns:
    """The columns that are filled, in the order of the query's."""
    known = {each.name.lower(): each for each in table.types}
    if insert.by_name:
        for each in result:
            if known and each.name.lower() not in known:
                _refuse_unknown(insert, table, each.name, script)
        return tuple(known.get(each.name.lower(), each) for each in result)
    targets = table.types or result
    if insert.columns:
        if len({name.lower() for name in insert.columns}) < len(insert.columns):
            script.refuse("a column is filled twice", insert.at, "name each column once")
        for name in insert.columns:
            if known and name.lower() not in known:
                _refuse_unknown(insert, table, name, script)
        if not known and len(insert.columns) == len(result):
            return tuple(
                ColumnDef(name, each.type) for name, each in zip(insert.columns, result, strict=True)
            )
        targets = tuple(known[name.lower()] for name in insert.columns) if known else targets
    if len(targets) != len(result):
        names = ", ".join(each.name for each in targets)
        what = f"the query has {_count(len(result))}, and {table.name!r} takes {len(targets)}: {names}"
        script.refuse(what, insert.at, "select as many, or name the columns to fill after the table")
    return targets


def _count(number: int) -> str:
    return f"{number} column{'s' * (number != 1)}"


def _refuse_unknown(insert: Insert, table: Table, name: str, script: Script) -> NoReturn:
    hint = hint_at_name(
        name, [each.name for each in table.types], f"it has {', '.join(each.name for each in table.types)}"
    )
    script.refuse(f"the table {table.name!r} has no column {name!r}", insert.at, hint)


def _check_order(insert: Insert, table: Table, targets: Columns, result: Columns, script: Script) -> None:
    """Refuses a column that has the name of a column that it does not fill."""
    names = {each.name.lower() for each in targets}
    for number, (source, target) in enumerate(zip(result, targets, strict=True), 1):
        if source.name.lower() != target.name.lower() and source.name.lower() in names:
            what = f"column {number} of the query is {source.name!r}, and would fill {target.name!r} of {table.name!r}"
            hint = f"write INSERT INTO {table.name} BY NAME, or give the columns the order of the table"
            script.refuse(what, insert.at, hint)


def _scalar(insert: Insert, table: Table, source: ColumnDef, target: ColumnDef, script: Script) -> str:
    """The text that is selected for a column of the table."""
    name = quote_name(source.name)
    if not needs_cast(source.type, target.type):
        if not fits(source.type, target.type):
            what = (
                f"the column {source.name!r} of the query is {_article(source.type)}, "
                f"and {target.name!r} of the table {table.name!r} {_article(target.type)}"
            )
            wanted = _declared_type(table, target)
            hint = f"write CAST({source.name} AS {wanted}) AS {target.name}"
            if source.type.name == "WINDOW":
                hint = f"write WINDOW_START({source.name}), or WINDOW_END"
            script.refuse(what, insert.at, hint)
        return name if source.name == target.name else f"{name} AS {quote_name(target.name)}"
    return f"CAST({name} AS {_declared_type(table, target)}) AS {quote_name(target.name)}"


def _declared_type(table: Table, column: ColumnDef) -> str:
    declared = {each.name: each.type for each in table.declared.columns}
    return declared.get(column.name, str(column.type.or_null()))


def _article(kind: SqlType) -> str:
    text = str(kind.or_null())
    return f"{'an' if text[0] in 'AI' else 'a'} {text}"


def needs_cast(source: SqlType, target: SqlType) -> bool:
    """True if a value is cast to another type on its way; a number that is too large for it is an error.

    >>> needs_cast(SqlType("BIGINT"), SqlType("DOUBLE")), needs_cast(SqlType("DOUBLE"), SqlType("BIGINT"))
    (True, False)
    """
    if source.is_nested and _is_alike(source, target):
        return any(map(needs_cast, source.parts, target.parts))
    if source.name == target.name == "DECIMAL":
        return (source.precision, source.scale) != (target.precision, target.scale)
    if source.name == target.name:
        return source.bits != target.bits
    return target.name in _WIDER.get(source.name, ())


def fits(source: SqlType, target: SqlType) -> bool:
    """True if a value is written unchanged.

    >>> fits(SqlType("BIGINT"), SqlType("BIGINT", False)), fits(SqlType("STRING"), SqlType("BIGINT"))
    (True, False)
    >>> from penstock.scalars.types import array_of
    >>> fits(array_of(SqlType("STRING")), array_of(SqlType("BIGINT")))
    False
    """
    if source.name == "WINDOW":
        return False
    if source.is_nested and target.is_nested:
        return _is_alike(source, target)
    return source.name == target.name or "ANY" in (source.name, target.name)


def select_from(text: str, at: int, name: str, selected: str) -> str:
    r"""Returns a query that selects of another; all words of the other stay at their lines and columns.

    Args:
        text: The other query, with blank text before it.
        at: Where it begins.
        name: What it is called.
        selected: What is selected.

    >>> select_from("\n  SELECT 1 AS a", 3, "inserted", "a AS b")
    'FROM (\n  SELECT 1 AS a\n) AS inserted SELECT a AS b'
    """
    opening = "FROM ("
    line_end = text.rfind("\n", 0, at)
    # On the first line, the words of the statement before the query are longer than this.
    start = max(0, at - len(opening)) if line_end < 0 else line_end
    rest = text[at:] if line_end < 0 else text[line_end:]
    return f"{text[:start]}{opening}{rest}\n) AS {name} SELECT {selected}"


def _is_alike(source: SqlType, target: SqlType) -> bool:
    """True if each part of an array, a map or a struct can be a part of the other, under the same name."""
    names = [name for name, _ in source.fields] == [name for name, _ in target.fields]
    pairs = zip(source.parts, target.parts, strict=False)
    return (
        source.name == target.name
        and names
        and len(source.parts) == len(target.parts)
        and all(fits(one, other) or needs_cast(one, other) for one, other in pairs)
    )
