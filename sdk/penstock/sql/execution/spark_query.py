"""Writes a plan as one query in Spark's SQL, where Spark computes exactly what the transforms compute.

Each relation becomes a query in parentheses whose columns are ``c0``, ``c1`` and up, so that no names can clash. The
optimizer of Spark makes one plan of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.scalars.spark_forms import NotForSpark, quote_name, write_type
from penstock.scalars.tree import Literal, Scalar
from penstock.scalars.types import SqlType
from penstock.sql.execution.aggregating import argument_of
from penstock.sql.execution.spark_aggregates import write_aggregate
from penstock.sql.execution.spark_aggregates import write_over_columns as _text
from penstock.sql.execution.spark_generating import write_generated
from penstock.sql.execution.spark_over import write_order, write_over
from penstock.sql.plan.relations import (
    Aggregate,
    Emitted,
    Expand,
    Filter,
    Generate,
    Join,
    Over,
    Project,
    Query,
    Relation,
    Scan,
    SetOperation,
    Top,
    Union_,
    Values,
    Windowed,
    count_uses,
)

_USES_MAX = 500
"""The maximum number of relations in a text; one that several others read counts several times."""

_JOINS = {
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "left_anti": "LEFT ANTI JOIN",
}


def spark_query(query: Query, tables: Mapping[str, str]) -> str:
    """Returns a query as text of Spark SQL.

    Args:
        query: The plan.
        tables: The name that each input has in Spark.

    Raises:
        NotForSpark: Spark would not give exactly the same.
    """
    if count_uses(query.relation) > _USES_MAX:
        raise NotForSpark("the plan reads its parts so often that its SQL would be too long")
    rows = _Text(tables).of(query.relation)
    places = [place for _, place in query.shown]
    if any(isinstance(place, str) for place in places):
        raise NotForSpark("system columns describe changes, which a table does not have")
    shown = ", ".join(f"c{place} AS {quote_name(name)}" for name, place in query.shown)
    return f"SELECT {shown} FROM ({rows})"


def column_type(kind: SqlType) -> str:
    """Returns the type of a column in Spark's SQL.

    Raises:
        NotForSpark: Spark has no type with the same values.
    """
    for each in kind.parts:
        column_type(each)
    if kind.name in ("ANY", "INTERVAL", "NULL", "WINDOW"):
        raise NotForSpark(f"values of {kind.name} differ in Spark")
    return write_type(kind)


class _Text:
    """Writes relations as text."""

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._tables = tables

    def of(self, relation: Relation) -> str:
        """Returns the query for a relation."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Values():
                return _values(relation)
            case Project():
                return f"SELECT {_listed(relation.scalars)} FROM ({self.of(relation.input)})"
            case Filter():
                return f"SELECT * FROM ({self.of(relation.input)}) WHERE {_text(relation.condition)}"
            case Windowed():
                return self._windows(relation)
            case Aggregate():
                return self._aggregate(relation)
            case Expand():
                return self._expand(relation)
            case Generate():
                return write_generated(relation, self.of(relation.input), _text)
            case Join():
                return self._join(relation)
            case Union_():
                return " UNION ALL ".join(f"({self.of(each)})" for each in relation.inputs)
            case SetOperation():
                kind = f"{relation.kind.upper()}{' ALL' if relation.all else ''}"
                return f"({self.of(relation.left)}) {kind} ({self.of(relation.right)})"
            case Top():
                return self._top(relation)
            case Over():
                return write_over(relation, self.of(relation.input), _text, argument_of)
            case Emitted():
                # Only the last rows of a table are seen, whenever they are emitted.
                return self.of(relation.input)
        raise NotForSpark("Spark has no windows of validity")

    def _scan(self, relation: Scan) -> str:
        if relation.arrival:
            raise NotForSpark("Spark does not know when a row arrived")
        columns = ", ".join(
            f"CAST({quote_name(each.name)} AS {column_type(each.type)}) AS c{at}"
            for at, each in enumerate(relation.columns)
        )
        return f"SELECT {columns} FROM {self._tables[relation.name]}"

    def _windows(self, relation: Windowed) -> str:
        if relation.kind == "session" or relation.time.type.name != "TIMESTAMP":
            raise NotForSpark("Spark has other sessions, and windows of times with a zone only")
        width = len(relation.input.columns)
        size, step, offset = relation.size_micros, relation.step_micros, relation.offset_micros
        micros = f"UNIX_MICROS({_text(relation.time)})"
        rows, known = self.of(relation.input), f"{_text(relation.time)} IS NOT NULL"
        inner = f"SELECT *, {micros} AS micros FROM ({rows}) WHERE {known}"
        if relation.kind == "cumulate":
            first = f"micros - PMOD(micros - {offset}L, {size}L)"
            last = f"{first} + (1 + PMOD(micros - {offset}L, {size}L) DIV {step}L) * {step}L"
            ends = f"EXPLODE(SEQUENCE({last}, {first} + {size}L, {step}L))"
            bounds = f"SELECT *, {first} AS start_micros, {ends} AS end_micros FROM ({inner})"
        elif relation.kind == "hop":
            last = f"micros - PMOD(micros - {offset}L, {step}L)"
            starts = f"EXPLODE(SEQUENCE({last} - {(size - 1) // step * step}L, {last}, {step}L))"
            every = f"SELECT *, {starts} AS start_micros FROM ({inner})"
            end = f"start_micros + {size}L"
            bounds = f"SELECT *, {end} AS end_micros FROM ({every}) WHERE {end} > micros"
        else:
            start = f"micros - PMOD(micros - {offset}L, {size}L)"
            bounds = f"SELECT *, {start} AS start_micros, {start} + {size}L AS end_micros FROM ({inner})"
        kept = "".join(f"c{at}, " for at in range(width))
        window = f"TIMESTAMP_MICROS(start_micros) AS c{width}, TIMESTAMP_MICROS(end_micros) AS c{width + 1}"
        return f"SELECT {kept}{window} FROM ({bounds})"

    def _aggregate(self, relation: Aggregate) -> str:
        inner = self.of(relation.input)
        single = _has_one_row(relation.input)
        keys = [_text(key) for key in relation.keys]
        aggregates = [write_aggregate(call, single) for call in relation.calls]
        selected = ", ".join(f"{each} AS c{at}" for at, each in enumerate([*keys, *aggregates]))
        if not keys:
            return f"SELECT {selected} FROM ({inner})"
        if not aggregates:
            return f"SELECT DISTINCT {selected} FROM ({inner})"
        return f"SELECT {selected} FROM ({inner}) GROUP BY {', '.join(keys)}"

    def _expand(self, relation: Expand) -> str:
        width = len(relation.input.columns)
        shown = []
        for at, key in enumerate(relation.keys):
            own = [str(place) for place, each in enumerate(relation.sets) if at in each] or ["-1"]
            shown.append(f"CASE WHEN place IN ({', '.join(own)}) THEN {_text(key)} END")
        for at in range(len(relation.tails[0])):
            values = ", ".join(f"{tail[at]}L" for tail in relation.tails)
            shown.append(f"ELEMENT_AT(ARRAY({values}), place + 1)")
        columns = ", ".join(f"{each} AS c{width + at}" for at, each in enumerate(shown))
        places = ", ".join(map(str, range(len(relation.sets))))
        rows = f"SELECT *, EXPLODE(ARRAY({places})) AS place FROM ({self.of(relation.input)})"
        return f"SELECT *, {columns} FROM ({rows})"

    def _join(self, relation: Join) -> str:
        widths = len(relation.left.columns), len(relation.right.columns)
        if relation.kind == "inner":
            return self._inner_joins(relation)
        if relation.kind not in _JOINS:
            raise NotForSpark("Spark's anti join returns the rows of the left side only")
        lefts = [f"c{at}" for at in range(widths[0])]
        rights = [f"r{at}" for at in range(widths[1])]
        renamed = ", ".join(f"c{at} AS {name}" for at, name in enumerate(rights)) or "1"
        equal = _equalities(relation, lefts, rights)
        kind = _JOINS[relation.kind]
        sides = f"({self.of(relation.left)}) {kind} (SELECT {renamed} FROM ({self.of(relation.right)}))"
        on = f" ON {' AND '.join(equal)}" if equal else ""
        if relation.kind in ("semi", "left_anti"):
            return f"SELECT * FROM {sides}{on}"
        moved = [*lefts, *(f"{name} AS c{widths[0] + at}" for at, name in enumerate(rights))]
        return f"SELECT {', '.join(moved)} FROM {sides}{on}"

    def _inner_joins(self, relation: Join) -> str:
        """Writes joins inside each other as one, so that Spark's optimizer may choose their order."""
        tables: list[str] = []
        conditions: list[str] = []

        def visit(each: Relation) -> list[str]:
            """Returns the names of the columns of a side, whose tables and conditions it adds."""
            if isinstance(each, Join) and each.kind == "inner":
                lefts, rights = visit(each.left), visit(each.right)
                conditions.extend(_equalities(each, lefts, rights))
                return lefts + rights
            if isinstance(each, Filter) and isinstance(each.input, Join) and each.input.kind == "inner":
                found = visit(each.input)
                conditions.append(_text(each.condition, found))
                return found
            names = [f"t{len(tables)}_{at}" for at in range(len(each.columns))]
            renamed = ", ".join(f"c{at} AS {name}" for at, name in enumerate(names)) or "1 AS nothing"
            tables.append(f"(SELECT {renamed} FROM ({self.of(each)}))")
            return names

        names = visit(relation)
        columns = ", ".join(f"{name} AS c{at}" for at, name in enumerate(names)) or "1 AS nothing"
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {columns} FROM {' CROSS JOIN '.join(tables)}{where}"

    def _top(self, relation: Top) -> str:
        inner = self.of(relation.input)
        width = len(relation.input.columns)
        order = ", ".join(
            [*(write_order(each, _text) for each in relation.orders), *(f"c{at}" for at in range(width))]
        )
        if not relation.keys and not relation.numbered:
            limit = "" if relation.limit is None else f" LIMIT {relation.limit}"
            offset = f" OFFSET {relation.offset}" if relation.offset else ""
            return f"SELECT * FROM ({inner}) ORDER BY {order}{limit}{offset}"
        partition = ", ".join(map(_text, relation.keys))
        over = f"{'PARTITION BY ' + partition if partition else ''} ORDER BY {order}"
        place = f"c{width}"
        numbered = f"SELECT *, ROW_NUMBER() OVER ({over}) AS {place} FROM ({inner})"
        if relation.numbered:
            return (
                numbered
                if relation.limit is None
                else f"SELECT * FROM ({numbered}) WHERE {place} <= {relation.limit}"
            )
        shown = ", ".join(f"c{at}" for at in range(width)) or "1 AS nothing"
        last = "" if relation.limit is None else f" AND {place} <= {relation.offset + relation.limit}"
        return f"SELECT {shown} FROM ({numbered}) WHERE {place} > {relation.offset}{last}"


def _equalities(relation: Join, lefts: list[str], rights: list[str]) -> list[str]:
    """The conditions of a join, given the names of the columns of both sides."""
    found = [
        f"{_text(mine, lefts)} {'<=>' if place in relation.null_safe else '='} {_text(other, rights)}"
        for place, (mine, other) in enumerate(zip(relation.left_keys, relation.right_keys, strict=True))
    ]
    if relation.condition is not None:
        found.append(_text(relation.condition, lefts + rights))
    return found


def _values(relation: Values) -> str:
    if not relation.columns:
        return "SELECT 1 AS nothing"
    rows = []
    for row in relation.rows:
        values = zip(row, relation.columns, strict=True)
        cells = [
            f"CAST({_text(Literal(value, column.type))} AS {column_type(column.type)}) AS c{at}"
            for at, (value, column) in enumerate(values)
        ]
        rows.append(f"SELECT {', '.join(cells)}")
    return " UNION ALL ".join(rows)


def _has_one_row(relation: Relation) -> bool:
    while isinstance(relation, Project):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


def _listed(scalars: Sequence[Scalar]) -> str:
    return ", ".join(f"{_text(each)} AS c{at}" for at, each in enumerate(scalars)) or "1 AS nothing"
