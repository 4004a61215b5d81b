"""The types of arrays, maps and structs, as a query writes them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.scalars.types import SqlType, array_of, is_key_of_map, map_of, struct_of
from penstock.sql.binding.statement import Statement
from penstock.sql.errors import SqlError
from penstock.sql.language.dialect import parse_query


def nested_type(
    statement: Statement, node: exp.DataType, plain_type: Callable[[exp.DataType], SqlType]
) -> SqlType:
    """Returns a type that a query names.

    Args:
        statement: The query.
        node: The type in its tree.
        plain_type: Returns a type that holds no others.
    """

    def type_of(part: exp.DataType) -> SqlType:
        return nested_type(statement, part, plain_type)

    kind, parts = node.this.name, node.expressions
    if kind == "ARRAY" and len(parts) == 1:
        return array_of(type_of(parts[0]))
    if kind == "MAP" and len(parts) == 2:
        key, value = map(type_of, parts)
        refuse_key(statement, node, key)
        return map_of(key, value)
    if kind == "STRUCT":
        fields = [(each.name, type_of(_kind_of(statement, each))) for each in parts]
        seen: set[str] = set()
        for name, _ in fields:
            if name.lower() in seen:
                statement.refuse(node, f"the struct has two fields {name!r}", "give them different names")
            seen.add(name.lower())
        return struct_of(fields)
    if kind in ("ARRAY", "MAP"):
        shown = "ARRAY<BIGINT>" if kind == "ARRAY" else "MAP<STRING, BIGINT>"
        statement.refuse(node, f"{kind} needs the types of what it holds", f"write them, as in {shown}")
    return plain_type(node)


def _kind_of(statement: Statement, field: exp.Expression) -> exp.DataType:
    kind = field.args.get("kind")
    if not isinstance(kind, exp.DataType):
        statement.refuse(field, "a field of a STRUCT needs a name and a type", "write STRUCT<team: STRING>")
    return kind


def schema_of(
    statement: Statement, node: exp.Expression, plain_type: Callable[[exp.DataType], SqlType]
) -> SqlType:
    """Returns the type that the text of a schema names: names with types, or one type.

    Args:
        statement: The query.
        node: The text in its tree.
        plain_type: Returns a type that holds no others.
    """
    for text in (node.name, f"STRUCT<{node.name}>"):
        try:
            [selected] = parse_query(f"SELECT CAST(NULL AS {text})").expressions
        except SqlError:
            continue
        if isinstance(selected, exp.Cast) and selected.to.this.name in ("ARRAY", "MAP", "STRUCT"):
            return nested_type(statement, selected.to, plain_type)
    what = f"{node.name!r} is not a schema"
    return statement.refuse(node, what, "write names and types, such as 'team STRING, points BIGINT'")


def refuse_key(statement: Statement, node: exp.Expression, key: SqlType) -> None:
    """Refuses a type of keys that maps in Python cannot have."""
    if not is_key_of_map(key):
        what = f"a MAP with keys of {key.or_null()} is not supported"
        statement.refuse(node, what, "use strings, numbers or times, e.g. CAST(key AS STRING)")
