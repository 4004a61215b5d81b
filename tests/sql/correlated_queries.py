"""Random queries with subqueries that read the columns of the queries around them, in both languages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.sql.random_queries import (
    BOOLEAN,
    INTEGER,
    STRING,
    TIME,
    Generator,
    Query,
    Source,
    Text,
    Value,
    listed,
    text,
)

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
KINDS = ("EXISTS", "NOT EXISTS", "IN", "NOT IN", "ANY", "ALL", "aggregate", "first row", "OR", "CASE")
"""The kinds of conditions with a query."""
FORMS = ("plain", "grouped", "keyed", "DISTINCT", "set operation", "LIMIT", "nested", "join", "table")
"""The forms of a query inside another one."""


class CorrelatedGenerator(Generator):
    """Makes a query with subqueries that read columns of the queries around them.

    Args:
        random: Where chances come from.
        wanted: The kinds of conditions that it makes.

    Attributes:
        kinds: The kinds of conditions that it has made.
        forms: The forms of subqueries that it has made.
    """

    def __init__(self, random: Random, wanted: Sequence[str] = KINDS) -> None:
        super().__init__(random)
        self._chances = random
        self._wanted = wanted
        self._join_chances = Random(str(random.getstate()))
        self._new_chances = Random(f"new {random.getstate()}")
        self._around: list[list[Value]] = []
        self.kinds: set[str] = set()
        self.forms: set[str] = set()

    def correlated_query(self) -> Query:
        """A query of tables with one or two subqueries, in WHERE, SELECT or HAVING."""
        source = self._outer_source()
        place = self._chances.choice(["WHERE", "WHERE", "WHERE", "SELECT", "HAVING"])
        if place == "HAVING":
            return self._having(source)
        values = [each for each in source.values if self._chances.random() < 0.6] or source.values[:1]
        parts = [self._tested(source.values, 2)]
        if self._chances.random() < 0.3:
            parts.append(self._tested(source.values, 1))
        if self._chances.random() < 0.3:
            parts.append(self._condition(source.values, 1))
        if place == "SELECT":
            values = [
                *values,
                Value(self._chances.choice([parts[0], self._value_of(source.values, 2)]), INTEGER),
            ]
            parts = parts[1:]
        self._chances.shuffle(parts)
        where = text(" WHERE {}", listed(parts, " AND ")) if parts else Text("", "")
        items = listed([text(f"{{}} AS c{at}", value.text) for at, value in enumerate(values)])
        return Query(text("SELECT {} FROM {}{}", items, source.text, where), ())

    def _having(self, source: Source) -> Query:
        keys = self._chances.sample(source.values, self._chances.choice([1, 1, 2]))
        calls = [self._aggregate(source.values)]
        condition = self._tested(keys, 1)
        values = [*keys, *calls]
        if self._chances.random() < 0.3:
            values.append(Value(self._value_of(keys, 1), INTEGER))
        items = listed([text(f"{{}} AS c{at}", value.text) for at, value in enumerate(values)])
        by = listed([key.text for key in keys])
        return Query(text("SELECT {} FROM {} GROUP BY {} HAVING {}", items, source.text, by, condition), ())

    def _outer_source(self) -> Source:
        left = self._simple("table", 0)
        if self._chances.random() < 0.7:
            return left
        right = self._simple("table", 0)
        one, two = left.values[0].text, right.values[0].text
        join = self._chances.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        if join != "FULL JOIN" and self._join_chances.random() < 0.4:
            # DuckDB has no full join by another condition than an equality.
            join = self._join_chances.choice([join, "RIGHT JOIN"])
            operator = self._join_chances.choice(_COMPARISONS[1:])
            made = text("{} " + join + " {} ON {} " + operator + " {}", left.text, right.text, one, two)
            return Source(made, [*left.values, *right.values])
        made = text("{} " + join + " {} ON {} = {}", left.text, right.text, one, two)
        if join == "LEFT JOIN" and self._new_chances.random() < 0.4:
            # DuckDB takes queries in ON that read the rows which need not match.
            made = text("{} AND {}", made, self._tested(right.values, 0))
        return Source(made, [*left.values, *right.values])

    # Conditions

    def _tested(self, values: list[Value], depth: int) -> Text:
        """A condition of a query that may read these values."""
        kind = self._chances.choice(self._wanted)
        self.kinds.add(kind)
        match kind:
            case "EXISTS" | "NOT EXISTS":
                return text(kind + " ({})", self._inner(values, depth, ()))
            case "IN" | "NOT IN" if self._new_chances.random() < 0.3:
                return self._among_tuples(kind, values, depth)
            case "IN" | "NOT IN":
                wanted = self._chances.choice([INTEGER, INTEGER, STRING])
                mine = self._value(wanted, values, 0).text
                return text("{} " + kind + " ({})", mine, self._inner(values, depth, (wanted,)))
            case "ANY" | "ALL":
                operator = self._chances.choice(_COMPARISONS)
                mine = self._value(INTEGER, values, 0).text
                return text(f"{{}} {operator} {kind} ({{}})", mine, self._inner(values, depth, (INTEGER,)))
            case "aggregate" | "first row":
                mine = self._value(INTEGER, values, 0).text
                made = self._value_of(values, depth, kind)
                return text("{} " + self._chances.choice(_COMPARISONS) + " {}", mine, made)
            case "OR":
                return text("({} OR {})", self._tested(values, depth), self._condition(values, 0))
        return text(
            "CASE WHEN {} THEN {} ELSE {} END",
            self._tested(values, depth),
            self._condition(values, 0),
            self._condition(values, 0),
        )

    def _among_tuples(self, kind: str, values: list[Value], depth: int) -> Text:
        """A tuple among the rows of a query; DuckDB has another NULL there, so its text asks for rows instead."""
        first, second = self._value(INTEGER, values, 0).text, self._value(STRING, values, 0).text
        inner = self._plain_inner(values, depth, (INTEGER, STRING))
        equal = f"({first.other} = u.i1 AND {second.other} = u.i2)"
        rows = f"EXISTS (SELECT 1 FROM ({inner.other}) AS u(i1, i2) WHERE"
        other = f"CASE WHEN {rows} {equal}) THEN TRUE WHEN {rows} {equal} IS NULL) THEN NULL ELSE FALSE END"
        negation = "NOT " if kind == "NOT IN" else ""
        return Text(f"({first.own}, {second.own}) {kind} ({inner.own})", f"({negation}{other})")

    def _value_of(self, values: list[Value], depth: int, kind: str = "aggregate") -> Text:
        """A query with one row and one column, in parentheses."""
        if kind == "first row":
            inner = self._plain_inner(values, depth, (INTEGER,))
            order = self._chances.choice(["", " DESC"]) + self._chances.choice(["", " NULLS LAST"])
            return text("(SELECT * FROM ({}) AS l ORDER BY 1" + order + " LIMIT 1)", inner)
        source, where = self._inner_source(values, depth)
        call = self._chances.choice(["COUNT(*)", "COUNT", "MAX", "MIN", "SUM"])
        if call != "COUNT(*)":
            call_text = text(call + "({})", self._value(INTEGER, source.values, 0).text)
        else:
            call_text = Text(call, call)
        if self._chances.random() < 0.2:
            call_text = text("({} + 1)", call_text)
        if self._chances.random() < 0.15:
            numbers = [value.text for value in values if value.type == INTEGER]
            if numbers:
                call_text = text("({} + {})", call_text, self._chances.choice(numbers))
        having = Text("", "")
        if self._chances.random() < 0.15:
            having = text(" HAVING COUNT(*) " + self._chances.choice(_COMPARISONS) + " 1")
        return text("(SELECT {} AS c0 FROM {}{}{})", call_text, source.text, where, having)

    # Queries inside

    def _inner(self, values: list[Value], depth: int, types: Sequence[str]) -> Text:
        """A query that may read these values, with columns of some types."""
        form = self._chances.choice(FORMS)
        self.forms.add(form)
        match form:
            case "grouped":
                source, where = self._inner_source(values, depth)
                call = self._call(source.values, types)
                return text("SELECT {} AS c0 FROM {}{}", call, source.text, where)
            case "keyed":
                source, where = self._inner_source(values, depth)
                key = self._chances.choice(source.values)
                shown = key.text if list(types) == [key.type] else self._call(source.values, types)
                having = Text("", "")
                if self._chances.random() < 0.5:
                    having = text(" HAVING COUNT(*) " + self._chances.choice(_COMPARISONS) + " 1")
                return text(
                    "SELECT {} AS c0 FROM {}{} GROUP BY {}{}", shown, source.text, where, key.text, having
                )
            case "DISTINCT":
                inner = self._plain_inner(values, depth, types)
                return text("SELECT DISTINCT * FROM ({}) AS d", inner)
            case "set operation":
                kind = self._chances.choice(
                    ["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]
                )
                wanted = types or (INTEGER,)
                sides = [self._plain_inner(values, 0, wanted) for _ in range(2)]
                return text("({}) " + kind + " ({})", *sides)
            case "LIMIT":
                inner = self._plain_inner(values, depth, types or (INTEGER,))
                limit = self._chances.choice(["LIMIT 1", "LIMIT 2", "LIMIT 1 OFFSET 1", "LIMIT 0"])
                return text("SELECT * FROM ({}) AS l ORDER BY 1 " + limit, inner)
            case "table":
                inner = self._plain_inner(values, depth, types or (INTEGER,))
                return text("SELECT q.c0 FROM ({}) AS q WHERE q.c0 IS NOT NULL", inner)
        return self._plain_inner(values, depth, types, form)

    def _call(self, values: list[Value], types: Sequence[str]) -> Text:
        wanted = types[0] if types else INTEGER
        call = self._chances.choice(["MAX", "MIN"] if wanted != INTEGER else ["MAX", "COUNT", "SUM"])
        return text(call + "({})", self._value(wanted, values, 0, column_needed=True).text)

    def _plain_inner(
        self, values: list[Value], depth: int, types: Sequence[str], form: str = "plain"
    ) -> Text:
        source, where = self._inner_source(values, depth, form)
        shown = [self._value(each, source.values, 0).text for each in types or (INTEGER,)]
        if self._chances.random() < 0.1:
            shown = [self._value(each, values, 0).text for each in types or (INTEGER,)]
        items = listed([text(f"{{}} AS c{at}", each) for at, each in enumerate(shown)])
        return text("SELECT {} FROM {}{}", items, source.text, where)

    def _inner_source(self, values: list[Value], depth: int, form: str = "plain") -> tuple[Source, Text]:
        """A source, and a WHERE that reads these values, and perhaps those of queries further out."""
        source = self._simple("table", 0)
        if form == "join" or self._chances.random() < 0.15:
            source = self._inner_join(source, values)
        around = [*values, *(each for known in self._around for each in known)]
        outer = around if self._chances.random() < 0.3 else values
        parts = [self._link(source.values, outer) for _ in range(self._chances.choice([0, 1, 1, 1, 2]))]
        if self._chances.random() < 0.3:
            parts.append(self._condition(source.values, 1))
        if self._chances.random() < 0.1:
            parts.append(self._condition(values, 0))
        if depth > 0 and (form == "nested" or self._chances.random() < 0.2):
            self._around.append(values)
            mixed = source.values if self._chances.random() < 0.6 else [*source.values, *values]
            parts.append(self._tested(mixed, depth - 1))
            self._around.pop()
        self._chances.shuffle(parts)
        return source, text(" WHERE {}", listed(parts, " AND ")) if parts else Text("", "")

    def _inner_join(self, left: Source, values: list[Value]) -> Source:
        right = self._simple("table", 0)
        both = [*left.values, *right.values]
        if self._chances.random() < 0.3:
            return Source(text("{}, {}", left.text, right.text), both)
        kind = self._chances.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"])
        one, two = left.values[0].text, right.values[0].text
        on = text("{} = {}", one, two)
        if self._chances.random() < 0.3 and kind == "JOIN":
            on = text("{} AND {}", on, self._link(right.values, values))
        return Source(text("{} " + kind + " {} ON {}", left.text, right.text, on), both)

    def _link(self, inner: list[Value], outer: list[Value]) -> Text:
        """A condition of a value of a row and one of a row around it."""
        kinds = [each for each in (INTEGER, STRING, TIME, BOOLEAN) if _has(inner, each) and _has(outer, each)]
        if not kinds:
            return text("{} IS NOT NULL", self._chances.choice(inner).text)
        kind = self._chances.choice(kinds)
        mine = self._chances.choice([each.text for each in inner if each.type == kind])
        other = self._chances.choice([each.text for each in outer if each.type == kind])
        sides = (mine, other) if self._chances.random() < 0.6 else (other, mine)
        operator = "="
        if self._chances.random() < 0.3:
            operator = self._chances.choice(_COMPARISONS)
        if operator == "=" and self._chances.random() < 0.15:
            operator = "IS NOT DISTINCT FROM"
        if kind == INTEGER and self._chances.random() < 0.15:
            sides = (text("({} + 1)", sides[0]), sides[1])
        link = text("{} " + operator + " {}", *sides)
        if self._chances.random() < 0.12:
            nothing = self._chances.choice([other, mine])
            link = text("({} OR {} IS NULL)", link, nothing)
        return link


def _has(values: list[Value], kind: str) -> bool:
    return any(value.type == kind for value in values)


def correlated_query(seed: int, wanted: Sequence[str] = KINDS) -> tuple[Query, CorrelatedGenerator]:
    """The query of a seed with conditions of some kinds, and what has made it."""
    generator = CorrelatedGenerator(Random(seed), wanted)
    return generator.correlated_query(), generator
