"""Random queries as text, each in penstock's language and in DuckDB's.

DuckDB does not have windows and validity: there, arithmetic on times and window functions make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

INTEGER, STRING, BOOLEAN, TIME, DOUBLE = "INTEGER", "STRING", "BOOLEAN", "TIME", "DOUBLE"
END = "END"
"""A time that may be the last one that there is, which is in no window."""
TABLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "a": (("k", INTEGER), ("s", STRING), ("v", INTEGER), ("ts", TIME)),
    "b": (("k", INTEGER), ("s", STRING), ("w", INTEGER), ("ts", TIME)),
}
WEIGHTS: Mapping[str, float] = {
    # The kinds of a query.
    "plain": 4,
    "grouped": 5,
    "set operation": 2.5,
    # The kinds of a set operation.
    "UNION": 1,
    "UNION ALL": 1,
    "EXCEPT": 1,
    "EXCEPT ALL": 1,
    "INTERSECT": 1,
    "INTERSECT ALL": 1,
    # The sources of a query.
    "table": 6,
    "subquery": 3,
    "named": 2,
    "windows": 2,
    "join": 4,
    # The kinds of a join.
    "JOIN": 3,
    "LEFT JOIN": 2,
    "RIGHT JOIN": 1,
    "FULL JOIN": 2,
    "LEFT SEMI JOIN": 1,
    "LEFT ANTI JOIN": 1,
    "CROSS JOIN": 0.7,
    # The windows.
    "TUMBLE": 1,
    "HOP": 1,
    "CUMULATE": 1,
    # What is valid until the next row.
    "VALIDITY_WINDOW": 1,
    "ASOF JOIN": 1,
    "FOR SYSTEM_TIME AS OF": 1,
    "JOIN VALIDITY_WINDOW": 1,
    # How often, of 1.
    "WITH": 0.15,
    "USING": 0.2,
    "residual": 0.3,
    "WHERE": 0.45,
    "DISTINCT": 0.15,
    "LIMIT": 0.12,
    "QUALIFY": 0.12,
    "HAVING": 0.3,
    "FILTER": 0.2,
    "DOUBLE": 0.3,
    "sessions": 0.12,
    "window keys": 0.8,
    "GROUP BY windows": 0.12,
    "condition with a subquery": 0.2,
    "value of a subquery": 0.06,
    "no keys": 0.2,
    "more aggregates": 0,
    "grouping sets": 0,
    "validity": 0,
    "GROUP BY validity": 0,
    "generators": 0,
}


@dataclass(frozen=True)
class Text:
    """A part of a query: as penstock has it, and as DuckDB does."""

    own: str
    other: str

    @property
    def languages(self) -> tuple[str, str]:
        return self.own, self.other


def text(template: str, *parts: Any) -> Text:
    """A template with its parts, in both languages."""
    filled = [
        template.format(*(part.languages[at] if isinstance(part, Text) else part for part in parts))
        for at in (0, 1)
    ]
    return Text(*filled)


def listed(parts: Sequence[Any], between: str = ", ") -> Text:
    return text(between.join(["{}"] * len(parts)), *parts)


class Value(NamedTuple):
    """What may be written for a value, and its type."""

    text: Text
    type: str


class Form(NamedTuple):
    """An aggregate of the integers n and m, the text s and the condition c, and its type.

    Attributes:
        type: The type of the result.
        own: The call.
        other: The same for DuckDB, if it is not the call.
    """

    type: str
    own: str
    other: str = ""


def _scaled(call: str, other: str = "") -> Form:
    """A float as an integer, since engines differ in its last digits; none of it is near to a half."""
    template = "CAST(ROUND({} * CAST('1000.12345' AS DOUBLE)) AS BIGINT)"
    return Form(INTEGER, template.format(call), template.format(other or call))


MORE_AGGREGATES = (
    Form(BOOLEAN, "BOOL_AND({c})"),
    Form(BOOLEAN, "BOOL_OR({c}) FILTER (WHERE {n} < 3)"),
    Form(BOOLEAN, "EVERY({c})", "BOOL_AND({c})"),
    Form(INTEGER, "BIT_AND({n})"),
    Form(INTEGER, "BIT_OR({n})"),
    Form(INTEGER, "BIT_XOR({n})"),
    Form(INTEGER, "COUNT_IF({c})", "COUNT(*) FILTER (WHERE {c})"),
    Form(INTEGER, "COUNT({n}, {s})", "COUNT(CASE WHEN {n} IS NOT NULL THEN {s} END)"),
    Form(
        INTEGER,
        "COUNT(DISTINCT {n}, {s})",
        "COUNT(DISTINCT CASE WHEN {n} IS NOT NULL AND {s} IS NOT NULL THEN ({n}, {s}) END)",
    ),
    Form(INTEGER, "APPROX_COUNT_DISTINCT({n})", "COUNT(DISTINCT {n})"),
    Form(INTEGER, "ANY_VALUE({n})", "MIN({n})"),
    Form(INTEGER, "MAX_BY({n}, -{n})", "MIN({n})"),
    Form(INTEGER, "MIN_BY({n}, -{n})", "MAX({n})"),
    Form(INTEGER, "TRY_SUM({n})", "SUM({n})"),
    Form(INTEGER, "REGR_COUNT({n}, {m})"),
    _scaled("VAR_POP({n})"),
    _scaled("VAR_SAMP({n})"),
    _scaled("STDDEV({n})"),
    _scaled("STDDEV_POP(DISTINCT {n})"),
    _scaled("KURTOSIS({n})", "CASE WHEN VAR_POP({n}) > 0 THEN KURTOSIS_POP({n}) END"),
    _scaled("COVAR_POP({n}, {m})"),
    _scaled("COVAR_SAMP({n}, {m})"),
    _scaled("REGR_SXY({n}, {m})"),
    _scaled("REGR_AVGX({n}, {m})"),
    _scaled("AVG(DISTINCT {n})"),
    _scaled("MEDIAN({n})"),
    _scaled("PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY {n})"),
    Form(INTEGER, "CAST(PERCENTILE_DISC(0.6) WITHIN GROUP (ORDER BY {n}) AS BIGINT)"),
    Form(STRING, "LISTAGG({s}, ',') WITHIN GROUP (ORDER BY {s})", "STRING_AGG({s}, ',' ORDER BY {s})"),
    Form(STRING, "STRING_AGG(DISTINCT {s}, '-')", "STRING_AGG(DISTINCT {s}, '-' ORDER BY {s})"),
    Form(INTEGER, "SIZE(ARRAY_AGG({n} ORDER BY {m}))", "COUNT({n})"),
    Form(INTEGER, "SIZE(COLLECT_SET({n}))", "COUNT(DISTINCT {n})"),
)
"""Aggregates that are in few queries."""


class Source(NamedTuple):
    """What may follow FROM.

    Attributes:
        text: It.
        values: The values of its rows.
        window: The bounds of its windows.
        rows: The rows without their name.
        is_whole: Whether all of its rows are needed to tell its windows, so that no WHERE may follow.
    """

    text: Text
    values: list[Value]
    window: tuple[Value, Value] | None = None
    rows: Text = Text("", "")
    is_whole: bool = False


@dataclass(frozen=True)
class Window:
    """A window function, with lengths in seconds.

    Attributes:
        kind: ``TUMBLE``, ``HOP`` or ``CUMULATE``.
        step: The distance of starts, or of the ends of cumulating windows.
        size: The length, or the length of the largest.
        lateness: Which rows of windows there are: ``any``, ``on time`` or ``late``. To tell them apart, the name of
            the table ends with ``_seen``, and its rows have the watermark of their arrival in microseconds, ``seen``.
    """

    kind: str
    step: int
    size: int
    lateness: str = "any"

    @property
    def lengths(self) -> str:
        given = (self.size,) if self.kind == "TUMBLE" else (self.step, self.size)
        return ", ".join(f"INTERVAL '{each}' SECOND" for each in given)

    def rows(self, table: str, time: str) -> str:
        """Rows with ``window_start`` and ``window_end``, in DuckDB's language.

        Args:
            table: A table's name, or a query in parentheses.
            time: The column of the time.
        """
        at, step, size = f"epoch_us(r.{time})", self.step * 1_000_000, self.size * 1_000_000
        if self.kind == "CUMULATE":
            start = f"({at} - {at} % {size})"
            first = f"{start} + (({at} - {start}) // {step} + 1) * {step}"
            bounds = f"{start} AS ws, unnest(range({first}, {start} + {size + 1}, {step})) AS we"
        else:
            last = f"({at} - {at} % {step})"
            starts = f"unnest(range({last} - {size - step}, {last} + 1, {step}))"
            bounds = f"{starts} AS ws, ws + {size} AS we"
        shown = "make_timestamp(x.ws) AS window_start, make_timestamp(x.we) AS window_end"
        if self.lateness == "any":
            rows = f"SELECT r.*, {bounds} FROM {table} AS r"
            return f"(SELECT x.* EXCLUDE (ws, we), {shown} FROM ({rows}) AS x)"
        rows = f"SELECT r.*, {bounds} FROM {table}_seen AS r"
        there = "we > seen" if self.lateness == "on time" else "we <= seen"
        return f"(SELECT x.* EXCLUDE (ws, we, seen), {shown} FROM ({rows}) AS x WHERE {there})"


def sessions(table: str, time: str, keys: Sequence[str], gap: int) -> str:
    """Rows with the bounds of their session as ``window_start`` and ``window_end``, in DuckDB's language.

    A session goes on as long as a row comes no later than the gap, in seconds, after the one before it.
    """
    of_keys = f"PARTITION BY {', '.join(keys)} " if keys else ""
    of_session = f"PARTITION BY {', '.join([*keys, 'number'])}"
    length = f"INTERVAL '{gap}' SECOND"
    begins = (
        f"CASE WHEN r.{time} - LAG(r.{time}) OVER ({of_keys}ORDER BY r.{time}) <= {length} THEN 0 ELSE 1 END"
    )
    first = f"SELECT r.*, {begins} AS begins FROM {table} AS r WHERE r.{time} IS NOT NULL"
    numbered = f"SELECT *, SUM(begins) OVER ({of_keys}ORDER BY {time}) AS number FROM ({first})"
    start, end = f"MIN({time}) OVER ({of_session})", f"MAX({time}) OVER ({of_session}) + {length}"
    return (
        f"(SELECT * EXCLUDE (begins, number), {start} AS window_start, {end} AS window_end FROM ({numbered}))"
    )


def validity(table: str, keys: Sequence[str], columns: str = "r.*") -> str:
    """Rows with the bounds of their validity, which ends at the next time of their keys, in DuckDB's language.

    Args:
        table: A table's name, or a query in parentheses.
        keys: The columns that tell timelines apart.
        columns: What is shown besides ``window_start`` and ``window_end``.
    """
    of_keys = f"PARTITION BY {', '.join(f'r.{key}' for key in keys)} " if keys else ""
    following = "GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING"
    end = f"MIN(r.ts) OVER ({of_keys}ORDER BY r.ts {following})"
    bounds = f"r.ts AS window_start, COALESCE({end}, TIMESTAMP '9999-12-31 23:59:59.999999') AS window_end"
    return f"(SELECT {columns}, {bounds} FROM {table} AS r WHERE r.ts IS NOT NULL)"


class Query(NamedTuple):
    """A query, the columns of its result, and the rows that it computes them of, as may follow FROM."""

    text: Text
    columns: tuple[tuple[str, str], ...]
    rows: Text = Text("", "")


class Generator:
    """Makes one query.

    Args:
        random: Where chances come from.
        weights: How likely features are, where that is not as in `WEIGHTS`.
        depth: How deeply queries are nested at most.
        lateness: The lateness of windows.
    """

    def __init__(
        self,
        random: Random,
        weights: Mapping[str, float] | None = None,
        depth: int = 3,
        lateness: str = "any",
    ) -> None:
        self._lateness = lateness
        self._random = random
        # Some features have chances of their own: without them, the queries are what they were.
        own_random, validity_random, aggregates_random = Random(), Random(), Random()
        own_random.setstate(random.getstate())
        validity_random.setstate(random.getstate())
        aggregates_random.setstate(random.getstate())
        validity_random = Random(validity_random.random())
        aggregates_random = Random(f"aggregates {aggregates_random.random()}")
        self._aggregates_random = aggregates_random
        generators_random = Random()
        generators_random.setstate(random.getstate())
        self.generators_random = Random(f"generators {generators_random.random()}")
        self._own_randoms = {
            **dict.fromkeys(("sessions", "DOUBLE"), own_random),
            **dict.fromkeys(("validity", "GROUP BY validity"), validity_random),
            **dict.fromkeys(("more aggregates", "grouping sets"), aggregates_random),
            "generators": self.generators_random,
        }
        self._weights = {**WEIGHTS, **(weights or {})}
        self._depth = depth
        self._aliases = 0
        self._named: list[Query] = []

    def query(self) -> Query:
        """A query, perhaps with another one that it names."""
        if self._happens("WITH"):
            self._named = [self._query(self._depth - 2)]
            query = self._query(self._depth)
            [named] = self._named
            return Query(text("WITH named AS ({}) {}", named.text, query.text), query.columns)
        return self._query(self._depth)

    def _happens(self, feature: str) -> bool:
        random = self._own_randoms.get(feature, self._random)
        return random.random() < self._weights[feature]

    def _one_of(self, *features: str) -> str:
        return self._random.choices(features, [self._weights[each] for each in features])[0]

    def alias(self) -> str:
        """A name that no other rows have."""
        return self._alias()

    def condition(self, values: list[Value]) -> Text:
        """A condition of values."""
        return self._condition(values, 1)

    def value(self, wanted: str, values: list[Value]) -> Text:
        """A value of a type that names others."""
        return self._value(wanted, values, 1, column_needed=True).text

    def wrapped(self, source: Source) -> Source:
        """A source as a subquery."""
        return self._wrapped(source)

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    # Queries

    def _query(self, depth: int) -> Query:
        if depth <= 0:
            return self._plain(0) if self._random.random() < 0.5 else self._grouped(0)
        match self._one_of("plain", "grouped", "set operation"):
            case "plain":
                return self._plain(depth)
            case "grouped":
                return self._grouped(depth)
        return self._set_operation(depth)

    def _plain(self, depth: int, types: Sequence[str] = ()) -> Query:
        source = self._source(depth)
        values = [self._value(each, source.values, 2) for each in types]
        if not values:
            kept = [each for each in source.values if self._random.random() < 0.6]
            made = [
                self._value(self._random.choice([INTEGER, STRING, BOOLEAN]), source.values, 2)
                for _ in range(self._random.choice([0, 0, 1, 2]))
            ]
            values = (kept + made)[:6] or [self._value(INTEGER, source.values, 1)]
        if not types and self._happens("value of a subquery"):
            values.append(Value(self._scalar_subquery(), INTEGER))
        where = self._where(source, depth)
        return self._finished(values, source.text, where, Text("", ""), source.values)

    def _grouped(self, depth: int, types: Sequence[str] = ()) -> Query:
        source, keys, shown_keys = self._keyed_source(depth)
        if not keys and not self._happens("no keys"):
            keys = [self._key(source.values) for _ in range(self._random.choice([1, 1, 2]))]
            shown_keys = keys
        calls = [self._aggregate(source.values) for _ in range(self._random.choice([1, 1, 2, 3]))]
        where = self._where(source, depth)
        inner = [*shown_keys, *calls]
        if types:
            values = [self._value(each, inner, 1, keyed=True) for each in types]
        else:
            values = [*[each for each in shown_keys if self._random.random() < 0.8], *calls]
            if self._random.random() < 0.3:
                values.append(self._value(INTEGER, inner, 1, keyed=True))
        has_sets = False
        grouping = text(" GROUP BY {}", listed([key.text for key in keys])) if keys else Text("", "")
        if keys and keys is shown_keys and self._happens("grouping sets"):
            grouping, has_sets = self._grouping_sets(source, keys), True
            if not types:
                values.append(Value(text("GROUPING({})", keys[-1].text), INTEGER))
        if not types and self._happens("value of a subquery"):
            values.append(Value(self._scalar_subquery(), INTEGER))
        # Of no rows, DuckDB has a row for the set without keys.
        having = [Text("COUNT(*) > 0", "COUNT(*) > 0")] if has_sets else []
        if self._happens("HAVING"):
            condition = self._condition(inner, 1, keyed=True)
            if self._happens("value of a subquery"):
                value = self._value(INTEGER, inner, 0, keyed=True)
                condition = text("{} {} {}", value.text, self._comparison(), self._scalar_subquery())
            having.append(condition)
        if having:
            grouping = text("{} HAVING {}", grouping, listed(having, " AND "))
        return self._finished(values, source.text, where, grouping, [])

    def _grouping_sets(self, source: Source, keys: list[Value]) -> Text:
        """GROUP BY with several sets of keys; of windows, each set has the bounds."""
        unique = list(dict.fromkeys(key.text for key in keys))
        plain = [] if source.window is None else [each.text for each in source.window if each.text in unique]
        others = [each for each in unique if each not in plain]
        kinds = ["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())", "GROUPING SETS ({}, ({}), ({}))"]
        kind = self._aggregates_random.choice(kinds)
        listed_keys = listed(others) if others else Text("", "")
        if not others:
            sets = Text("GROUPING SETS ((), ())", "GROUPING SETS ((), ())")
        else:
            sets = text(kind, *[listed_keys] * kind.count("{}"))
        return text(" GROUP BY {}", listed([*plain, sets]))

    def _more_aggregates(self, values: list[Value]) -> Value:
        """A call of one of the aggregates that people use less often."""
        random = self._aggregates_random
        weights = [self._weights.get(each.own, 1) for each in MORE_AGGREGATES]
        [form] = random.choices(MORE_AGGREGATES, weights)
        parts = {
            name: random.choice(
                [each.text for each in values if each.type == kind] or [Text(literal, literal)]
            )
            for name, kind, literal in (
                ("n", INTEGER, "1"),
                ("m", INTEGER, "2"),
                ("s", STRING, "NULLIF('x', '')"),
            )
        }
        parts["c"] = text("({} > 1)", parts["m"])
        own, other = (
            each.format(**{name: part.languages[at] for name, part in parts.items()})
            for at, each in enumerate((form.own, form.other or form.own))
        )
        return Value(Text(own, other), form.type)

    def _keyed_source(self, depth: int) -> tuple[Source, list[Value], list[Value]]:
        """A source, and what the windows of it must be grouped by: as GROUP BY has it, and as SELECT has it."""
        if self._happens("sessions"):
            return self._sessions()
        if self._happens("GROUP BY validity"):
            return self._validity_groups()
        if self._happens("GROUP BY windows"):
            name, alias = self._random.choice(list(TABLES)), self._alias()
            window = self._window()
            rows = Text(name, window.rows(name, "ts"))
            values = [Value(text("{}.{}", alias, column), kind) for column, kind in TABLES[name]]
            call = f"{window.kind}({alias}.ts, {window.lengths})"
            keys = [Value(Text(call, f"{alias}.window_start, {alias}.window_end"), TIME)]
            shown = [
                Value(Text(f"WINDOW_{bound}({call})", f"{alias}.window_{bound.lower()}"), TIME)
                for bound in ("START", "END")
            ]
            if self._random.random() < 0.5:
                extra = self._random.choice(values)
                keys.append(extra)
                shown.append(extra)
            return Source(text("{} AS {}", rows, alias), values), keys, shown
        source = self._source(depth)
        if source.window is not None and self._happens("window keys"):
            keys = [*source.window]
            if self._random.random() < 0.5:
                keys.append(self._key(source.values))
            return source, keys, keys
        return source, [], []

    def _filtered(self, name: str, alias: str, keys: list[str]) -> tuple[Text, list[Value], list[Value]]:
        """A table, perhaps filtered; its columns by an alias; and those of them that are keys."""
        rows = Text(name, name)
        if self._happens("WHERE"):
            inner = [Value(Text(*(column,) * 2), kind) for column, kind in TABLES[name]]
            rows = text("(SELECT * FROM {} WHERE {})", name, self._condition(inner, 1))
        values = [Value(Text(*(f"{alias}.{column}",) * 2), kind) for column, kind in TABLES[name]]
        by = [value for value in values if value.text.own.split(".")[1] in keys]
        return rows, values, by

    def _sessions(self) -> tuple[Source, list[Value], list[Value]]:
        """The same of a table in sessions; its rows are filtered before they are in sessions."""
        name, alias, gap = self._random.choice(list(TABLES)), self._alias(), self._random.choice([2, 4, 7])
        keys = self._random.choice([[], ["k"], ["k"], ["s"], ["k", "s"]])
        rows, values, by = self._filtered(name, alias, keys)
        bounds = [Value(Text(*(f"{alias}.window_{bound}",) * 2), TIME) for bound in ("start", "end")]
        other = f"{sessions(rows.other, 'ts', keys, gap)} AS {alias}"
        length = f"INTERVAL '{gap}' SECOND"
        if rows.own == name and self._random.random() < 0.7:
            table = f"TABLE {name}"
            partition = f" PARTITION BY {', '.join(keys)}" if keys else ""
            own = f"SESSION({table}{partition}, DESCRIPTOR(ts), {length}) AS {alias}"
            source = Source(Text(own, other), values, (bounds[0], bounds[1]), is_whole=True)
            return source, [*bounds, *by], [*bounds, *by]
        call = f"SESSION({alias}.ts, {length})"
        window = Value(Text(call, ", ".join(bound.text.other for bound in bounds)), TIME)
        shown = [
            Value(Text(f"WINDOW_{name}({call})", bound.text.other), TIME)
            for name, bound in zip(("START", "END"), bounds, strict=True)
        ]
        source = Source(Text(f"{rows.own} AS {alias}", other), values, is_whole=True)
        return source, [window, *by], [*shown, *by]

    def _validity_groups(self) -> tuple[Source, list[Value], list[Value]]:
        """The same of a table whose groups are valid until the next; its rows are filtered before that."""
        name, alias = self._random.choice(list(TABLES)), self._alias()
        keys = self._random.choice([[], ["k"], ["k"], ["s"], ["k", "s"]])
        rows, values, by = self._filtered(name, alias, keys)
        call = f"VALIDITY_WINDOW({alias}.ts)"
        window = Value(Text(call, f"{alias}.window_start, {alias}.window_end"), TIME)
        shown = [
            Value(Text(f"WINDOW_{bound}({call})", f"{alias}.window_{bound.lower()}"), kind)
            for bound, kind in (("START", TIME), ("END", END))
        ]
        source = text("{} AS {}", Text(rows.own, validity(rows.other, keys)), alias)
        return Source(source, values, is_whole=True), [window, *by], [*shown, *by]

    def _key(self, values: list[Value]) -> Value:
        if self._random.random() < 0.7:
            return self._random.choice(values)
        return self._value(self._random.choice([INTEGER, STRING, BOOLEAN]), values, 1, column_needed=True)

    def _finished(
        self, values: list[Value], source: Text, where: Text, grouping: Text, numberable: list[Value]
    ) -> Query:
        """A SELECT with what may stand around it."""
        columns = tuple((f"c{at}", value.type) for at, value in enumerate(values))
        items = [text("{} AS {}", value.text, name) for value, (name, _) in zip(values, columns, strict=True)]
        distinct = tail = Text("", "")
        if numberable and self._happens("QUALIFY"):
            partition = ""
            if self._random.random() < 0.7:
                partition = "PARTITION BY {} "
            order = self._orders([value.text for value in [*values, *numberable]])
            key = self._random.choice(numberable).text
            call = text(f"ROW_NUMBER() OVER ({partition}ORDER BY {{}})", *([key] if partition else []), order)
            limit = self._random.choice([1, 1, 2])
            tail = text("{} QUALIFY {} <= {}", tail, call, limit)
        elif self._happens("DISTINCT"):
            distinct = Text("DISTINCT ", "DISTINCT ")
        made = text("SELECT {}{} FROM {}{}{}{}", distinct, listed(items), source, where, grouping, tail)
        query = Query(made, columns, text("{}{}", source, where))
        if self._happens("LIMIT"):
            query = self._limited(query)
        return query

    def _limited(self, query: Query) -> Query:
        order = self._orders([Text(name, name) for name, _ in query.columns])
        limit = f" LIMIT {self._random.choice([0, 1, 2, 3])}" if self._random.random() < 0.85 else ""
        offset = (
            f" OFFSET {self._random.choice([0, 1, 2])}" if not limit or self._random.random() < 0.3 else ""
        )
        return query._replace(
            text=text("SELECT * FROM ({}) AS l ORDER BY {}" + limit + offset, query.text, order)
        )

    def _orders(self, values: list[Text]) -> Text:
        """A total order: by all values."""
        values = list(dict.fromkeys(values))
        self._random.shuffle(values)
        parts = []
        for value in values:
            nulls = self._random.choice(["", " NULLS FIRST", " NULLS LAST"])
            parts.append(text("{}" + self._random.choice(["", " DESC", " ASC"]) + nulls, value))
        return listed(parts)

    def _set_operation(self, depth: int) -> Query:
        kind = self._one_of("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
        types = [
            self._random.choice([INTEGER, INTEGER, STRING, BOOLEAN, TIME])
            for _ in range(self._random.choice([1, 1, 2, 3]))
        ]
        sides = [
            (self._plain if self._random.random() < 0.7 else self._grouped)(depth - 1, types)
            for _ in range(2)
        ]
        made = text("({}) " + kind + " ({})", *(side.text for side in sides))
        query = Query(text("SELECT * FROM ({}) AS s", made), sides[0].columns)
        return self._limited(query) if self._happens("LIMIT") else query

    # FROM

    def _source(self, depth: int) -> Source:
        if self._happens("generators"):
            from tests.sql.random_generators import generated

            return generated(self, self._source_of_rows(min(depth - 1, 0)))
        return self._source_of_rows(depth)

    def _source_of_rows(self, depth: int) -> Source:
        if self._happens("validity"):
            return self._validity(depth)
        kinds = ["table", "windows"]
        if depth > 0:
            kinds += ["subquery", "join"]
        if self._named:
            kinds.append("named")
        match self._one_of(*kinds):
            case "join":
                return self._join(depth - 1)
            case "windows":
                return self._windows(depth)
            case kind:
                return self._simple(kind, depth)

    def _simple(self, kind: str, depth: int) -> Source:
        alias = self._alias()
        if kind == "table":
            name = self._random.choice(list(TABLES))
            columns, rows = TABLES[name], Text(name, name)
        elif kind == "named":
            columns, rows = self._named[0].columns, Text("named", "named")
        else:
            query = self._query(depth - 1)
            columns, rows = query.columns, text("({})", query.text)
        values = [Value(text("{}.{}", alias, name), kind) for name, kind in columns]
        return Source(text("{} AS {}", rows, alias), values, rows=rows)

    def _windows(self, depth: int) -> Source:
        """Rows in windows."""
        window, alias = self._window(), self._alias()
        simple = self._simple(self._one_of("table", "subquery") if depth > 0 else "table", depth)
        columns = [value for value in simple.values if value.type == TIME]
        rows = simple.rows
        if not columns:
            simple = self._simple("table", 0)
            rows = simple.rows
            columns = [value for value in simple.values if value.type == TIME]
        time = self._random.choice(columns).text.own.split(".")[1]
        table = f"TABLE {rows.own}" if rows.own.isidentifier() else rows.own
        call = f"{window.kind}({table}, DESCRIPTOR({time}), {window.lengths})"
        values = [
            Value(Text(*(f"{alias}.{each.text.own.split('.')[1]}",) * 2), each.type) for each in simple.values
        ]
        bounds = [Value(Text(*(f"{alias}.window_{bound}",) * 2), TIME) for bound in ("start", "end")]
        source = Text(f"{call} AS {alias}", f"{window.rows(rows.other, time)} AS {alias}")
        return Source(source, [*values, *bounds], (bounds[0], bounds[1]))

    def _window(self) -> Window:
        kind = self._one_of("TUMBLE", "HOP", "CUMULATE")
        step = self._random.choice([5, 10])
        size = step if kind == "TUMBLE" else step * self._random.choice([1, 2, 3])
        return Window(kind, step, size, self._lateness)

    def _join(self, depth: int) -> Source:
        kind = self._one_of(
            "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN"
        )
        left = self._source(depth)
        right = self._windows(0) if self._random.random() < 0.1 else self._joined_source(depth)
        other = kind.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
        join = Text(kind, other)
        both = [*left.values, *right.values]
        shown = left.values if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else both
        if kind == "CROSS JOIN":
            return Source(text("{} CROSS JOIN {}", left.text, right.text), both)
        if self._happens("USING"):
            return self._using(join, shown is left.values)
        pairs = [(one, two) for one in left.values for two in right.values if one.type == two.type]
        if not pairs:
            return Source(text("{} CROSS JOIN {}", left.text, right.text), both)
        equal = self._random.sample(pairs, min(len(pairs), self._random.choice([1, 1, 2])))
        parts = []
        for one, two in equal:
            if one.type == INTEGER and self._random.random() < 0.15:
                one = Value(text("({} + 1)", one.text), INTEGER)
            first, second = (one, two) if self._random.random() < 0.7 else (two, one)
            parts.append(text("{} = {}", first.text, second.text))
        if self._happens("residual"):
            parts.append(self._condition(both, 1))
        on = listed(parts, " AND ")
        return Source(text("{} {} {} ON {}", left.text, join, right.text, on), shown)

    def _validity(self, depth: int) -> Source:
        """Rows with the time in which they are valid, or a join with the row that is valid at a time."""
        kind = self._one_of("VALIDITY_WINDOW", "ASOF JOIN", "FOR SYSTEM_TIME AS OF", "JOIN VALIDITY_WINDOW")
        keys = self._random.choice([["k"], ["k"], ["s"], ["k", "s"]])
        if kind == "VALIDITY_WINDOW":
            return self._with_plain_bounds(self._valid_rows(keys if self._random.random() < 0.8 else []))
        right = self._valid_rows(keys) if kind == "JOIN VALIDITY_WINDOW" else self._timeline(keys)
        left = self._source(depth - 1) if depth > 0 else self._simple("table", 0)
        own_keys, others = right.values[: len(keys)], right.values[len(keys) :]
        if not {TIME, *(key.type for key in own_keys)} <= {value.type for value in left.values}:
            left = self._simple("table", 0)
        time = self._random.choice([value.text for value in left.values if value.type == TIME])
        parts = []
        for key in own_keys:
            mine = self._random.choice([value.text for value in left.values if value.type == key.type])
            if key.type == INTEGER and self._random.random() < 0.15:
                mine = text("({} + 1)", mine)
            one, two = (mine, key.text) if self._random.random() < 0.7 else (key.text, mine)
            parts.append(text("{} = {}", one, two))
        both = [*left.values, *right.values]
        if right.window is not None:
            start, end = (bound.text for bound in right.window)
            on = listed([*parts, text("{} <= {}", start, time), text("{} < {}", time, end)], " AND ")
            join = self._random.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN"])
            made = Source(text("{} " + join + " {} ON {}", left.text, right.text, on), both, right.window)
            return self._with_plain_bounds(made)._replace(window=None)
        since, outer = others[0].text, self._random.choice(["", "LEFT "])
        template = "{} >= {}" if self._random.random() < 0.7 else "{1} <= {0}"
        asof_on = listed([*parts, text(template, time, since)], " AND ")
        asof = text("{} ASOF " + outer + "JOIN {} ON {}", left.text, right.text, asof_on)
        if kind == "ASOF JOIN":
            return Source(asof, both)
        # What has a system time has a name.
        name, named, alias = right.rows.own, Text("", ""), since.own.split(".")[0]
        if not name.isidentifier():
            name = self._alias()
            named = text("WITH {} AS {} ", name, right.rows)
        version = text("{} FOR SYSTEM_TIME AS OF {} AS {}", name, time.own, alias)
        join = text("{} " + outer + "JOIN {} ON {}", left.text, version, listed(parts, " AND "))
        source = Text(join.own, asof.other)
        if not named.own:
            return Source(source, both)
        return self._wrapped(Source(source, both), named)

    def _wrapped(self, source: Source, named: Text = Text("", "")) -> Source:
        """A source as a subquery, which may name another one."""
        items = listed([text(f"{{}} AS c{at}", value.text) for at, value in enumerate(source.values)])
        alias = self._alias()
        values = [Value(Text(*(f"{alias}.c{at}",) * 2), value.type) for at, value in enumerate(source.values)]
        return Source(text("({}SELECT {} FROM {}) AS {}", named, items, source.text, alias), values)

    def _with_plain_bounds(self, source: Source) -> Source:
        """A source whose bounds of windows are columns, since a grouping takes no bound of a window of a row."""
        assert source.window is not None
        return self._wrapped(source) if "(" in source.window[0].text.own else source

    def _timeline(self, keys: list[str]) -> Source:
        """Rows whose values, first the keys and the time, all rows of one time and the same keys have in common.

        So it does not matter which of them is valid.
        """
        alias, name = self._alias(), self._random.choice(list(TABLES))
        columns = [(column, dict(TABLES[name])[column]) for column in [*keys, "ts"]]
        rows = Text(name, name)
        if self._random.random() < 0.6:
            columns += [("x", INTEGER), ("n", INTEGER)]
            having = " HAVING COUNT(*) = 1" if self._random.random() < 0.2 else ""
            rows = text("({}" + having + ")", self._one_at_a_time(name, keys, Text("ts", "ts")))
        values = [Value(Text(*(f"{alias}.{column}",) * 2), kind) for column, kind in columns]
        return Source(text("{} AS {}", rows, alias), values, rows=rows)

    def _one_at_a_time(self, name: str, keys: list[str], window: Text) -> Text:
        """A query of one row for each time of the rows of a table that have the same keys."""
        values = [Value(Text(*(column,) * 2), kind) for column, kind in TABLES[name]]
        where = text(" WHERE {}", self._condition(values, 1)) if self._happens("WHERE") else Text("", "")
        shown = listed([*keys, text("{} AS " + ("ts" if window.own == "ts" else "w"), window)])
        number = TABLES[name][2][0]
        calls = f"MAX({number}) AS x, COUNT(*) AS n"
        return text("SELECT {}, {} FROM {}{} GROUP BY {}", shown, calls, name, where, listed([*keys, window]))

    def _valid_rows(self, keys: list[str]) -> Source:
        """Rows with the time in which they are valid; their values are first the keys."""
        if self._random.random() < 0.25:
            alias, name = self._alias(), self._random.choice(list(TABLES))
            rows = self._one_at_a_time(name, keys, Text("VALIDITY_WINDOW(ts)", "ts"))
            rows = Text(f"({rows.own})", validity(f"({rows.other.replace('ts AS w', 'ts')})", keys))
            columns = [*((key, dict(TABLES[name])[key]) for key in keys), ("x", INTEGER), ("n", INTEGER)]
            bounds = [
                Value(Text(f"WINDOW_{bound}({alias}.w)", f"{alias}.window_{bound.lower()}"), kind)
                for bound, kind in (("START", TIME), ("END", END))
            ]
        else:
            timeline = self._timeline(keys)
            alias = timeline.values[0].text.own.split(".")[0]
            columns = [(value.text.own.split(".")[1], value.type) for value in timeline.values]
            by = f" PARTITION BY {', '.join(keys)}" if keys else ""
            shown = ", ".join(f"r.{column}" for column, _ in columns)
            rows = Text(
                f"VALIDITY_WINDOW(TABLE {timeline.rows.own}{by}, DESCRIPTOR(ts))",
                validity(timeline.rows.other, keys, f"DISTINCT {shown}"),
            )
            bounds = [
                Value(Text(*(f"{alias}.window_{bound}",) * 2), kind)
                for bound, kind in (("start", TIME), ("end", END))
            ]
        values = [Value(Text(*(f"{alias}.{column}",) * 2), kind) for column, kind in columns]
        return Source(text("{} AS {}", rows, alias), [*values, *bounds], (bounds[0], bounds[1]))

    def _joined_source(self, depth: int) -> Source:
        """What may stand on the right of a join."""
        kinds = ["table"] + ["subquery"] * (depth > 0) + ["named"] * bool(self._named)
        return self._simple(self._one_of(*kinds), min(depth, 1))

    def _using(self, join: Text, left_only: bool) -> Source:
        """A join of the two tables themselves by columns of one name, in a subquery of its own."""
        left, right, alias = self._alias(), self._alias(), self._alias()
        names = self._random.choice([["k"], ["s"], ["k", "s"]])
        columns = [(name, kind, name if name in names else f"{left}.{name}") for name, kind in TABLES["a"]]
        columns += [
            (f"{name}2" if name == "ts" else name, kind, f"{right}.{name}")
            for name, kind in TABLES["b"]
            if name not in names and not left_only and name in ("w", "ts")
        ]
        items = ", ".join(f"{column} AS {name}" for name, _, column in columns)
        source = text(
            f"(SELECT {items} FROM a AS {left} {{}} b AS {right} USING ({', '.join(names)})) AS {alias}", join
        )
        return Source(source, [Value(text("{}.{}", alias, name), kind) for name, kind, _ in columns])

    # Values

    def _where(self, source: Source, depth: int) -> Text:
        if source.is_whole:
            return Text("", "")
        parts = []
        if self._happens("WHERE"):
            parts.append(self._condition(source.values, 2))
        if self._happens("condition with a subquery"):
            parts.append(self._subquery_condition(source.values))
            self._random.shuffle(parts)
        return text(" WHERE {}", listed(parts, " AND ")) if parts else Text("", "")

    def _subquery_condition(self, values: list[Value]) -> Text:
        kind = self._random.choice(["IN", "IN", "NOT IN", "NOT IN", "EXISTS", "NOT EXISTS", "compared", "OR"])
        if kind == "compared":
            value = self._value(INTEGER, values, 1)
            return text("{} " + self._comparison() + " {}", value.text, self._scalar_subquery())
        if kind.endswith("EXISTS"):
            inner = self._plain(0)
            return text(kind + " ({})", inner.text)
        wanted = self._random.choice([INTEGER, INTEGER, STRING])
        value = self._value(wanted, values, 1, column_needed=True)
        inner = self._plain(0, [wanted])
        if kind == "OR":
            return text("({} IN ({}) OR {})", value.text, inner.text, self._condition(values, 1))
        return text("{} " + kind + " ({})", value.text, inner.text)

    def _scalar_subquery(self) -> Text:
        """A query of one row and one column in parentheses."""
        source = self._simple("table", 0)
        numbers = [value.text for value in source.values if value.type == INTEGER]
        call = self._random.choice(["MAX", "MIN", "SUM", "COUNT"])
        where = self._where_plain(source)
        return text(
            "(SELECT " + call + "({}) AS c0 FROM {}{})", self._random.choice(numbers), source.text, where
        )

    def _where_plain(self, source: Source) -> Text:
        return (
            text(" WHERE {}", self._condition(source.values, 1))
            if self._random.random() < 0.5
            else Text("", "")
        )

    def _aggregate(self, values: list[Value]) -> Value:
        if self._happens("more aggregates"):
            return self._more_aggregates(values)
        numbers = [value for value in values if value.type == INTEGER]
        name = self._random.choice(
            ["COUNT(*)", "COUNT", "COUNT(DISTINCT", "SUM", "MIN", "MAX", "AVG", "SUM(DISTINCT"]
        )
        if name == "COUNT(*)":
            call, kind = Text(name, name), INTEGER
        elif name in ("SUM", "AVG", "SUM(DISTINCT"):
            value = self._value(INTEGER, numbers or values, 1, column_needed=bool(numbers))
            kind = DOUBLE if name == "AVG" else INTEGER
            added = value.text
            if self._happens("DOUBLE"):
                # Sums of quarters are exact, in any order.
                kind, added = DOUBLE, text("(CAST({} AS DOUBLE) / 4)", added)
            call = text(name + (" {})" if "(" in name else "({})"), added)
        else:
            value = self._random.choice(values)
            call = text(name + (" {})" if "(" in name else "({})"), value.text)
            kind = value.type if name in ("MIN", "MAX") else INTEGER
        if self._happens("FILTER"):
            call = text("{} FILTER (WHERE {})", call, self._condition(values, 1))
        return Value(call, kind)

    def _value(
        self, wanted: str, values: list[Value], depth: int, column_needed: bool = False, keyed: bool = False
    ) -> Value:
        """A value of a type.

        Args:
            wanted: The type.
            values: What may be named.
            depth: How deeply operators are nested.
            column_needed: Whether it must name a value.
            keyed: Whether `values` are those of groups.
        """
        fitting = [value for value in values if value.type == wanted]
        typed = {TIME: "TIMESTAMP", END: "TIMESTAMP", DOUBLE: "DOUBLE"}
        if wanted in typed or (depth <= 0 and fitting) or (fitting and self._random.random() < 0.4):
            if fitting:
                return self._random.choice(fitting)
            literal = f"CAST(NULL AS {typed[wanted]})" if wanted in typed else self._literal(wanted)
            return Value(Text(literal, literal), wanted)
        if depth <= 0:
            literal = self._literal(wanted)
            if column_needed and values:
                return Value(
                    text("CASE WHEN {} IS NULL THEN {} END", self._random.choice(values).text, literal),
                    wanted,
                )
            return Value(Text(literal, literal), wanted)

        def inner(kind: str = wanted) -> Text:
            return self._value(kind, values, depth - 1, column_needed, keyed).text

        match self._random.choice(["CASE", "COALESCE", "own", "own", "own"]):
            case "CASE":
                made = text(
                    "CASE WHEN {} THEN {} ELSE {} END", self._condition(values, depth - 1), inner(), inner()
                )
            case "COALESCE":
                made = text("COALESCE({}, {})", inner(), inner())
            case _ if wanted == INTEGER:
                operator = self._random.choice(["+", "-", "*"])
                right = self._literal(INTEGER) if operator == "*" else inner()
                made = text("({} " + operator + " {})", inner(), right)
            case _ if wanted == STRING:
                made = text("({} || {})", inner(), inner())
            case _:
                made = text("({})", self._condition(values, depth))
        return Value(made, wanted)

    def _literal(self, kind: str) -> str:
        return str(
            {
                INTEGER: self._random.randint(0, 4),
                STRING: self._random.choice(["'x'", "'y'", "''"]),
                BOOLEAN: self._random.choice(["TRUE", "FALSE"]),
            }[kind]
        )

    def _comparison(self) -> str:
        return self._random.choice(["=", "<>", "<", "<=", ">", ">="])

    def _condition(self, values: list[Value], depth: int, keyed: bool = False) -> Text:
        kind = self._random.choice(
            ["compare", "compare", "compare", "null", "in", "and", "or", "not", "between"]
        )
        if kind in ("and", "or", "not") and depth > 0:
            if kind == "not":
                return text("NOT ({})", self._condition(values, depth - 1, keyed))
            parts = [self._condition(values, depth - 1, keyed) for _ in range(2)]
            return text("({} " + kind.upper() + " {})", *parts)
        value = self._random.choice(values)
        match kind:
            case "null":
                return text("{} IS" + self._random.choice(["", " NOT"]) + " NULL", value.text)
            case "in" if value.type in (INTEGER, STRING):
                literals = ", ".join(self._literal(value.type) for _ in range(2))
                return text("{}" + self._random.choice(["", " NOT"]) + " IN (" + literals + ")", value.text)
            case "between" if value.type == INTEGER:
                low = self._random.randint(0, 2)
                return text(f"{{}} BETWEEN {low} AND {low + 2}", value.text)
        if value.type == BOOLEAN and self._random.random() < 0.5:
            return value.text
        if value.type == DOUBLE:
            return text("{} " + self._comparison() + " CAST(2 AS DOUBLE)", value.text)
        other = self._value(value.type, values, max(0, depth - 1), keyed=keyed)
        return text("{} " + self._comparison() + " {}", value.text, other.text)


def random_query(seed: int, weights: Mapping[str, float] | None = None) -> Query:
    """The query of a seed."""
    return Generator(Random(seed), weights).query()


_ONLY_WINDOWS = {
    **dict.fromkeys(("table", "condition with a subquery", "LIMIT", "QUALIFY", "DISTINCT", "FILTER"), 0),
    **dict.fromkeys(("value of a subquery", "GROUP BY windows"), 0),
    "window keys": 1,
}


def random_windowed_query(seed: int, lateness: str = "any", sessions: bool = False) -> Query:
    """A grouping of a table by windows, whose result has their ends; of sessions, or of other windows.

    Its meaning is that of the rows with a lateness.
    """
    random, weights = Random(seed), {**_ONLY_WINDOWS, "sessions": float(sessions)}
    while True:
        query = Generator(random, weights, lateness=lateness)._grouped(0)
        if ".window_end AS " in query.text.own:
            return query
