"""Reads the statements of a job; the parser of queries reads the queries in them."""

from __future__ import annotations

from penstock.checks.similar_names import find_nearest, hint_at_name
from penstock.sql.language.dialect import micros_of
from penstock.sql.statements.forms import (
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    QueryText,
    Select,
    SetOption,
    Show,
    Statement,
    TableOption,
    TypedColumn,
    Watermark,
)
from penstock.sql.statements.words import Cursor, Script, split_statements

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "(")
_VERBS = ("CREATE", "DROP", "SET", "INSERT", "EXPLAIN", "DESCRIBE", "SHOW", "SELECT", "WITH", "VALUES")
_ADDS = "a job adds rows: INSERT INTO a table with PRIMARY KEY (…) NOT ENFORCED replaces those with its key"
_INSTEAD = {
    **dict.fromkeys(("UPDATE", "MERGE", "DELETE", "UPSERT"), _ADDS),
    "TABLE": "write SELECT * FROM the table",
    "USE": "name the folder or the database of each table in its WITH",
    "TRUNCATE": "write INSERT OVERWRITE with a query",
    "ALTER": "change the CREATE statement: a job declares its tables each time it starts",
    "CACHE": "write CREATE MATERIALIZED VIEW, which is computed once",
    "BEGIN": "leave it out: all INSERT statements form one pipeline",
}
"""Hints for statements of other systems."""
_COLUMNS = "write (team STRING, points BIGINT, WATERMARK FOR at AS at - INTERVAL '5' SECONDS)"
_OPTIONS = "write WITH (format = 'csv', path = '/data/goals', header = 'true')"
_WATERMARK = "write WATERMARK FOR at AS at - INTERVAL '5' SECONDS"
_AFTER_TYPE = frozenset(["NOT", "NULL", "PRIMARY", "COMMENT", "METADATA", ","])


def parse_script(script: Script) -> list[Statement]:
    """Returns the statements of a text.

    Raises:
        SqlError: A statement breaks the grammar.

    >>> parse_script(Script("DROP VIEW IF EXISTS totals;"))
    [Drop(kind='VIEW', name='totals', at=20, if_there=True)]
    """
    return [_parse(cursor) for cursor in split_statements(script)]


def _parse(cursor: Cursor) -> Statement:
    start = cursor.start
    if cursor.next is not None and cursor.next.keyword in _QUERIES:
        return Select(_query(cursor))
    verb = cursor.take().keyword
    match verb:
        case "CREATE":
            return _create(cursor)
        case "INSERT":
            return _insert(cursor)
        case "DROP":
            return _drop(cursor)
        case "SET":
            return _set(cursor)
        case "DESCRIBE" | "DESC":
            cursor.accept("TABLE")
            at = cursor.start
            return _finished(cursor, Describe(cursor.name("a table or a view"), at))
        case "SHOW":
            return _show(cursor)
        case "EXPLAIN":
            return _explain(cursor)
    meant = None if verb in _INSTEAD else find_nearest(verb, _VERBS)
    known = f"a statement begins with {', '.join(_VERBS[:-2])}"
    hint = f"did you mean {meant}?" if meant else _INSTEAD.get(verb, known)
    return cursor.refuse("no statement of a job begins like this", hint, start)


def _finished(cursor: Cursor, statement: Statement) -> Statement:
    cursor.finish()
    return statement


def _query(cursor: Cursor) -> QueryText:
    """All that is left, which is a query."""
    word = cursor.next
    if word is None or word.keyword not in _QUERIES:
        cursor.refuse("expected a query here", "write SELECT …")
    start = cursor.start
    cursor.skip_rest()
    return QueryText(cursor.script.only(start, cursor.end), start)


def _create(cursor: Cursor) -> Statement:
    replace = cursor.accept("OR", "REPLACE")
    is_temporary = cursor.accept("TEMPORARY") or cursor.accept("TEMP")
    if cursor.accept("MATERIALIZED"):
        cursor.expect("VIEW", hint="write CREATE MATERIALIZED VIEW name AS SELECT …")
        return _view(cursor, replace, materialized=True)
    if cursor.accept("VIEW"):
        return _view(cursor, replace, materialized=False)
    if cursor.accept("FUNCTION"):
        return _function(cursor, replace)
    if not is_temporary and cursor.accept("TABLE"):
        return _table(cursor, replace)
    if cursor.accept("TABLE"):
        cursor.refuse("a temporary table is not supported", "write CREATE VIEW, which keeps nothing")
    return cursor.refuse(
        "CREATE makes a TABLE, a VIEW, a MATERIALIZED VIEW or a FUNCTION", "name one of them"
    )


def _view(cursor: Cursor, replace: bool, *, materialized: bool) -> CreateView:
    if_absent = cursor.accept("IF", "NOT", "EXISTS")
    at = cursor.start
    name = cursor.name("the view")
    columns = cursor.names("view") if cursor.next is not None and cursor.next.keyword == "(" else ()
    cursor.expect("AS", hint=f"write CREATE VIEW {name} AS SELECT …")
    return CreateView(name, at, columns, _query(cursor), replace, if_absent, materialized)


def _function(cursor: Cursor, replace: bool) -> Statement:
    at = cursor.start
    name = cursor.name("the function")
    cursor.expect("AS", hint=f"write CREATE FUNCTION {name} AS 'module:function'")
    path = cursor.string("the function of Python", "AS 'module:function'")
    return _finished(cursor, CreateFunction(name, at, path.text, path.start, replace))


def _table(cursor: Cursor, replace: bool) -> CreateTable:
    if_absent = cursor.accept("IF", "NOT", "EXISTS")
    at = cursor.start
    name = cursor.name("the table")
    columns: list[TypedColumn] = []
    marks: list[Watermark] = []
    keys: list[tuple[str, ...]] = []
    if cursor.accept("("):
        _declarations(cursor, columns, marks, keys)
    partition_by, options = _clauses(cursor)
    if len(marks) > 1:
        cursor.refuse("a table has one watermark", "leave the second one out", marks[1].at)
    if len(keys) > 1:
        cursor.refuse("a table has one primary key", "write PRIMARY KEY (team, day) NOT ENFORCED", at)
    query = _query(cursor) if cursor.accept("AS") else None
    cursor.finish()
    table = CreateTable(
        name,
        at,
        tuple(columns),
        next(iter(marks), None),
        next(iter(keys), ()),
        partition_by,
        options,
        query,
        replace,
        if_absent,
    )
    _check_columns(cursor, table)
    return table


def _clauses(cursor: Cursor) -> tuple[tuple[str, ...], tuple[TableOption, ...]]:
    """Reads what follows the columns of a table: its partitions, and its settings in our form or in Spark's."""
    partition_by: tuple[str, ...] = ()
    found: list[TableOption] = []
    while True:
        at = cursor.start
        if cursor.accept("COMMENT"):
            cursor.string("the comment", "COMMENT 'all goals'")
        elif cursor.accept("PARTITIONED", "BY"):
            partition_by = cursor.names("partitions")
        elif cursor.accept("USING"):
            value_at = cursor.start
            found.append(TableOption("format", cursor.name("the format"), at, value_at))
        elif cursor.accept("LOCATION"):
            path = cursor.string("the path", "LOCATION '/data/goals'")
            found.append(TableOption("path", path.text, at, path.start))
        elif cursor.accept("WITH") or cursor.accept("OPTIONS"):
            found += _options(cursor)
        else:
            break
    names = [each.name.lower() for each in found]
    for number, each in enumerate(found):
        if each.name.lower() in names[:number]:
            cursor.refuse(f"{each.name!r} is set twice", "leave one of them out", each.at)
    return partition_by, tuple(found)


def _check_columns(cursor: Cursor, table: CreateTable) -> None:
    """Refuses columns of one name, and keys and watermarks of columns that are not declared."""
    names = [each.name.lower() for each in table.columns]
    for each in table.columns:
        if names.count(each.name.lower()) > 1:
            cursor.refuse(f"two columns have the name {each.name!r}", "rename one of them", each.at)
    if not names:
        return
    named = [*table.key, *table.partition_by]
    places = [table.at] * len(named)
    if table.watermark is not None:
        named.append(table.watermark.column)
        places.append(table.watermark.at)
    for name, at in zip(named, places, strict=True):
        if name.lower() not in names:
            hint = hint_at_name(name, [each.name for each in table.columns], "declare it among the columns")
            cursor.refuse(f"the table {table.name!r} declares no column {name!r}", hint, at)


def _declarations(
    cursor: Cursor, columns: list[TypedColumn], marks: list[Watermark], keys: list[tuple[str, ...]]
) -> None:
    """Reads the columns, the watermark and the primary key of a table."""
    while True:
        at = cursor.start
        if cursor.accept("WATERMARK", "FOR"):
            marks.append(_watermark(cursor, at))
        elif cursor.accept("PRIMARY", "KEY"):
            keys.append(cursor.names("primary key"))
            cursor.accept("NOT", "ENFORCED")
        else:
            columns.append(_column(cursor, keys))
        if not cursor.accept(","):
            break
    cursor.expect(")", hint=_COLUMNS)


def _column(cursor: Cursor, keys: list[tuple[str, ...]]) -> TypedColumn:
    at = cursor.start
    name = cursor.name("a column")
    kind = _type(cursor, name)
    nullable = True
    metadata: str | None = None
    while True:
        if cursor.accept("METADATA"):
            metadata = name
            if cursor.accept("FROM"):
                metadata = cursor.string("what is known of a record", "METADATA FROM 'timestamp'").text
            cursor.accept("VIRTUAL")
        elif cursor.accept("NOT", "NULL"):
            nullable = False
        elif cursor.accept("PRIMARY", "KEY"):
            cursor.accept("NOT", "ENFORCED")
            keys.append((name,))
        elif cursor.accept("COMMENT"):
            cursor.string("the comment", "COMMENT 'the name of the team'")
        elif not cursor.accept("NULL"):
            return TypedColumn(name, kind, nullable, at, metadata)


def _type(cursor: Cursor, column: str) -> str:
    """Reads a type, which ends with a comma, a parenthesis or a word such as NOT."""
    start, end, depth = cursor.start, cursor.start, 0
    while (word := cursor.next) is not None:
        if depth == 0 and (word.keyword in _AFTER_TYPE or word.keyword == ")"):
            break
        depth += word.keyword in ("(", "<")
        depth -= word.keyword in (")", ">")
        end = cursor.take().end
    if end == start:
        cursor.refuse(f"the column {column!r} has no type", f"write {column} STRING, for example")
    return " ".join(cursor.script.text[start:end].split())


def _watermark(cursor: Cursor, at: int) -> Watermark:
    column = cursor.name("the column with the time")
    cursor.expect("AS", hint=_WATERMARK)
    again = cursor.start
    if cursor.name("the column with the time").lower() != column.lower():
        cursor.refuse(f"the watermark of {column!r} follows another column", _WATERMARK, again)
    if not cursor.accept("-"):
        return Watermark(column, 0, at)
    cursor.accept("INTERVAL")
    length_at = cursor.start
    words = cursor.take().text.split()
    if len(words) == 1 and cursor.next is not None and cursor.next.kind == "word":
        words.append(cursor.take().text)
    micros = micros_of(words)
    if micros is None or micros < 0:
        cursor.refuse("the watermark needs an interval", _WATERMARK, length_at)
    return Watermark(column, micros / 1_000_000, at)


def _options(cursor: Cursor) -> tuple[TableOption, ...]:
    cursor.expect("(", hint=_OPTIONS)
    found = [_option(cursor)]
    while cursor.accept(","):
        found.append(_option(cursor))
    cursor.expect(")", hint=_OPTIONS)
    return tuple(found)


def _option(cursor: Cursor) -> TableOption:
    at = cursor.start
    name = _dotted(cursor, _OPTIONS)
    # Spark's OPTIONS (header 'true') has no sign between.
    if cursor.next is None or cursor.next.kind != "string":
        cursor.expect("=", hint=_OPTIONS)
    value_at = cursor.start
    return TableOption(name, _value(cursor, _OPTIONS), at, value_at)


def _dotted(cursor: Cursor, hint: str) -> str:
    """Reads a name in quotes, or names with dots and dashes between them."""
    word = cursor.next
    if word is None or word.kind not in ("word", "name", "string"):
        cursor.refuse("expected the name of a setting here", hint)
    name = cursor.take().text
    while cursor.next is not None and cursor.next.keyword in (".", "-"):
        name += cursor.take().text + cursor.take().text
    return name


def _value(cursor: Cursor, hint: str) -> str:
    """Reads a value: a text, a number, or a word such as true."""
    sign = "-" if cursor.accept("-") else ""
    word = cursor.next
    if word is None or word.kind not in ("word", "string", "number"):
        cursor.refuse("expected a value: a string in quotes, a number, true or false", hint)
    return sign + cursor.take().text


def _insert(cursor: Cursor) -> Insert:
    overwrite = cursor.accept("OVERWRITE")
    if not overwrite:
        cursor.expect("INTO", hint="write INSERT INTO table SELECT …")
    cursor.accept("TABLE")
    at = cursor.start
    table = cursor.name("the table")
    by_name = cursor.accept("BY", "NAME")
    columns: tuple[str, ...] = ()
    if not by_name and cursor.next is not None and cursor.next.keyword == "(":
        columns = cursor.names("columns to fill")
    return Insert(table, at, columns, _query(cursor), overwrite, by_name)


def _drop(cursor: Cursor) -> Statement:
    cursor.accept("TEMPORARY")
    cursor.accept("MATERIALIZED")
    kind = cursor.next.keyword if cursor.next is not None else ""
    if kind not in ("TABLE", "VIEW", "FUNCTION"):
        cursor.refuse("DROP takes TABLE, VIEW or FUNCTION", "write DROP VIEW totals, for example")
    cursor.take()
    if_there = cursor.accept("IF", "EXISTS")
    at = cursor.start
    return _finished(cursor, Drop(kind, cursor.name(f"the {kind.lower()}"), at, if_there))


def _set(cursor: Cursor) -> Statement:
    hint = "write SET checkpoint = '/data/checkpoint', for example"
    at = cursor.start
    name = _dotted(cursor, hint)
    cursor.expect("=", hint=hint)
    value_at = cursor.start
    return _finished(cursor, SetOption(name, _value(cursor, hint), at, value_at))


def _show(cursor: Cursor) -> Statement:
    at = cursor.start
    for kind in ("TABLES", "VIEWS", "FUNCTIONS"):
        if cursor.accept(kind):
            return _finished(cursor, Show(kind, "", at))
    if cursor.accept("CREATE", "TABLE"):
        at = cursor.start
        return _finished(cursor, Show("CREATE TABLE", cursor.name("the table"), at))
    shows_columns = cursor.next is not None and cursor.next.keyword == "COLUMNS"
    hint = "write DESCRIBE and the name of the table" if shows_columns else "write SHOW TABLES"
    return cursor.refuse("SHOW takes TABLES, VIEWS, FUNCTIONS or CREATE TABLE and a name", hint)


def _explain(cursor: Cursor) -> Explain:
    if cursor.accept("INSERT"):
        return Explain(_insert(cursor))
    return Explain(Select(_query(cursor)))
