"""Random queries with two kinds of clauses in each, of which every pair comes up, in both languages."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

from tests.sql.correlated_queries import CorrelatedGenerator
from tests.sql.random_over import FAMILIES, random_over
from tests.sql.random_queries import (
    BOOLEAN,
    INTEGER,
    STRING,
    TIME,
    Query,
    Source,
    Text,
    Value,
    listed,
    text,
)

_CONDITIONS = {
    "EXISTS": ("EXISTS", "NOT EXISTS"),
    "IN": ("IN", "NOT IN"),
    "quantified": ("ANY", "ALL"),
    "value": ("aggregate", "first row"),
}
"""The kinds of correlated subqueries, and what `CorrelatedGenerator` calls them."""
CLAUSES = (
    *_CONDITIONS,
    "LATERAL",
    "functions",
    "OVER",
    "grouping sets",
    "any join",
    "aggregates",
    "set operation",
    "windows",
    "DISTINCT",
    "LIMIT",
)
"""The kinds of clauses."""
PAIRS = [*itertools.combinations(CLAUSES, 2)]
"""All pairs of them."""

_FUNCTIONS: dict[str, list[tuple[str, str]]] = {
    INTEGER: [
        ("ABS({n})", ""),
        ("CAST(SIGN({n}) AS BIGINT)", ""),
        ("LENGTH({s})", ""),
        ("({n} % 3)", ""),
        ("PMOD({n}, 3)", "((({n} % 3) + 3) % 3)"),
        ("({n} DIV 2)", "({n} // 2)"),
        ("GREATEST({n}, {m})", ""),
        ("LEAST({n}, {m}, 1)", ""),
        ("NULLIF({n}, {m})", ""),
        ("NVL({n}, {m})", "COALESCE({n}, {m})"),
        ("NVL2({s}, {n}, {m})", "CASE WHEN {s} IS NOT NULL THEN {n} ELSE {m} END"),
        ("IF({c}, {n}, {m})", "CASE WHEN {c} THEN {n} ELSE {m} END"),
        ("INSTR({s}, 'y')", ""),
        ("ASCII({s})", "CASE WHEN {s} = '' THEN 0 ELSE ASCII({s}) END"),
        ("BIT_COUNT({n})", ""),
        ("({n} & {m})", ""),
        ("({n} | 4)", ""),
        ("TRY_CAST({s} AS BIGINT)", ""),
        ("CAST({c} AS INT)", "CAST({c} AS BIGINT)"),
        ("SECOND({t})", "EXTRACT(SECOND FROM {t})"),
        ("DAYOFYEAR({t})", ""),
        ("EXTRACT(MINUTE FROM {t})", ""),
        (
            "DATEDIFF(CAST({t} AS DATE), DATE '2025-12-30')",
            "DATE_DIFF('day', DATE '2025-12-30', CAST({t} AS DATE))",
        ),
        ("CAST(ROUND({n} / 2.0D) AS BIGINT)", "CAST(ROUND({n} / 2.0::DOUBLE) AS BIGINT)"),
        ("CAST({n} * 1.5 AS BIGINT)", "CAST(TRUNC({n} * 1.5) AS BIGINT)"),
    ],
    STRING: [
        ("UPPER({s})", ""),
        ("LOWER({s})", ""),
        ("REVERSE({s})", ""),
        ("CONCAT({s}, '-', {r})", "({s} || '-' || {r})"),
        ("CONCAT_WS('-', {s}, {r})", ""),
        ("SUBSTRING({s}, 1, 1)", ""),
        ("LPAD({s}, 3, '-')", ""),
        ("REPLACE({s}, 'y', 'zz')", ""),
        ("TRANSLATE({s}, 'xy', 'ab')", ""),
        ("TRIM({s})", ""),
        ("REPEAT({s}, 2)", ""),
        ("CAST({n} AS STRING)", "CAST({n} AS VARCHAR)"),
        ("DATE_FORMAT({t}, 'yyyy-MM-dd HH:mm:ss')", "STRFTIME({t}, '%Y-%m-%d %H:%M:%S')"),
        ("DECODE({n}, 1, 'a', {s})", "CASE WHEN {n} = 1 THEN 'a' ELSE {s} END"),
        ("REGEXP_REPLACE({s}, '[xy]', 'q')", "REGEXP_REPLACE({s}, '[xy]', 'q', 'g')"),
        ("MD5({s})", ""),
    ],
    BOOLEAN: [
        ("({s} LIKE '%y%')", ""),
        ("({s} ILIKE 'X%')", ""),
        ("({s} RLIKE '^[xy]')", "REGEXP_MATCHES({s}, '^[xy]')"),
        ("STARTSWITH({s}, 'x')", "STARTS_WITH({s}, 'x')"),
        ("({n} <=> {m})", "({n} IS NOT DISTINCT FROM {m})"),
        ("ISNULL({s})", "({s} IS NULL)"),
        ("({c} IS NOT TRUE)", ""),
        ("({t} > TIMESTAMP_NTZ '2026-01-01 00:00:05')", "({t} > TIMESTAMP '2026-01-01 00:00:05')"),
    ],
    TIME: [
        ("({t} + INTERVAL '3' SECOND)", ""),
        ("GREATEST({t}, {u})", ""),
        ("IF({c}, {t}, {u})", "CASE WHEN {c} THEN {t} ELSE {u} END"),
    ],
}
"""Calls of numbers n and m, texts s and r, a condition c and times t and u; and the same for DuckDB, if it differs."""
_PARTS = {"n": INTEGER, "m": INTEGER, "s": STRING, "r": STRING, "t": TIME, "u": TIME}


class PairGenerator(CorrelatedGenerator):
    """Makes a query in which some kinds of clauses are frequent.

    Args:
        random: Where chances come from.
        wanted: These kinds.

    Attributes:
        clauses: The kinds that it has made.
    """

    def __init__(self, random: Random, wanted: Sequence[str]) -> None:
        super().__init__(random)
        self.clauses: set[str] = set()
        self._clauses_wanted = wanted
        self._has_types: list[bool] = []
        is_grouped = {"grouping sets", "aggregates"} & {*wanted}
        self._weights = {
            **self._weights,
            "grouped": 14 if is_grouped else 3,
            "set operation": 9 if "set operation" in wanted else 0.3,
            "windows": 9 if "windows" in wanted else 0.5,
            "join": 9 if "any join" in wanted else 2,
            "QUALIFY": 0.05,
            "condition with a subquery": 0.05,
            "value of a subquery": 0.03,
        }

    def paired_query(self) -> Query:
        """A query."""
        return self._query(2)

    def _wants(self, clause: str) -> bool:
        """True by chance; often for what is wanted."""
        chance = 0.55 if clause in self._clauses_wanted else 0.03
        if self._random.random() >= chance:
            return False
        self.clauses.add(clause)
        return True

    def _happens(self, feature: str) -> bool:
        if feature == "more aggregates":
            return self._wants("aggregates")
        if feature in ("grouping sets", "DISTINCT", "LIMIT"):
            return self._wants(feature)
        return super()._happens(feature)

    # Queries

    def _plain(self, depth: int, types: Sequence[str] = ()) -> Query:
        self._has_types.append(bool(types))
        query = super()._plain(depth, types)
        self._has_types.pop()
        return query

    def _grouped(self, depth: int, types: Sequence[str] = ()) -> Query:
        self._has_types.append(bool(types))
        query = super()._grouped(depth, types)
        self._has_types.pop()
        return query

    def _set_operation(self, depth: int) -> Query:
        self.clauses.add("set operation")
        return super()._set_operation(depth)

    def _finished(
        self, values: list[Value], source: Text, where: Text, grouping: Text, numberable: list[Value]
    ) -> Query:
        more = []
        if not self._has_types[-1]:
            if self._wants("OVER"):
                rows = [*values, *numberable] if numberable else values
                more.append(random_over(self._random, rows, FAMILIES))
                numberable = []
            if numberable and self._wants("value"):
                more.append(Value(self._value_of(numberable, 1), INTEGER))
            if numberable and self._random.random() < 0.15:
                more.append(self._tested_case(numberable))
        return super()._finished([*values, *more], source, where, grouping, numberable)

    def _tested_case(self, values: list[Value]) -> Value:
        condition = self._correlated(self._random.choice([*_CONDITIONS]), values)
        return Value(text("CASE WHEN {} THEN 1 ELSE 0 END", condition), INTEGER)

    def _where(self, source: Source, depth: int) -> Text:
        made = super()._where(source, depth)
        if source.is_whole:
            return made
        tests = [self._correlated(each, source.values) for each in _CONDITIONS if self._wants(each)]
        if not tests:
            return made
        return text("{} " + ("AND" if made.own else "WHERE") + " {}", made, listed(tests, " AND "))

    def _correlated(self, clause: str, values: list[Value]) -> Text:
        """A condition with a subquery of a kind."""
        self.clauses.add(clause)
        kept, self._wanted = self._wanted, _CONDITIONS[clause]
        test = self._tested(values, 1)
        self._wanted = kept
        return test

    # FROM

    def _source(self, depth: int) -> Source:
        if depth > 0 and self._wants("LATERAL"):
            return self._lateral()
        return super()._source(depth)

    def _windows(self, depth: int) -> Source:
        self.clauses.add("windows")
        return super()._windows(depth)

    def _lateral(self) -> Source:
        """A table with a subquery that reads its rows."""
        left, alias = self._simple("table", 0), self._alias()
        types = self._random.choice([(INTEGER,), (INTEGER, STRING), (STRING, INTEGER)])
        if self._random.random() < 0.4:
            types = (INTEGER,)
            inner = self._inner(left.values, 1, types)
        else:
            inner = self._plain_inner(left.values, 1, types)
            if self._random.random() < 0.4:
                order = ", ".join(str(at + 1) for at in range(len(types)))
                inner = text(f"SELECT * FROM ({{}}) AS l ORDER BY {order} LIMIT 1", inner)
        kind = self._random.choice([", LATERAL ({}) AS {}", " CROSS JOIN LATERAL ({}) AS {}"])
        if self._random.random() < 0.4:
            kind = " LEFT JOIN LATERAL ({}) AS {} ON TRUE"
        values = [Value(Text(*(f"{alias}.c{at}",) * 2), each) for at, each in enumerate(types)]
        made = Source(text("{}" + kind, left.text, inner, alias), [*left.values, *values])
        # In Spark, a JOIN behind a comma joins all that stand before it; in DuckDB, the last one alone.
        return self._wrapped(made) if kind.startswith(",") else made

    def _join(self, depth: int) -> Source:
        if not self._wants("any join"):
            return super()._join(depth)
        left, right = self._source(depth), self._simple("table", 0)
        kind = self._random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        join = Text(kind, kind.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI"))
        both = [*left.values, *right.values]
        pairs = [(one, two) for one in left.values for two in right.values if one.type == two.type]
        one, two = self._random.choice(pairs or [(right.values[0], right.values[0])])
        operator = self._random.choice(["<", "<=", ">", ">=", "<>", "IS DISTINCT FROM"])
        on = text("{} " + operator + " {}", one.text, two.text)
        if self._random.random() < 0.5:
            on = text("{} AND {}", on, self._condition(both, 1))
        if self._random.random() < 0.2:
            on = text("({} OR {})", on, self._condition(both, 0))
        shown = left.values if "SEMI" in kind or "ANTI" in kind else both
        return Source(text("{} {} {} ON {}", left.text, join, right.text, on), shown)

    # Values

    def _value(
        self, wanted: str, values: list[Value], depth: int, column_needed: bool = False, keyed: bool = False
    ) -> Value:
        if depth <= 0 or wanted not in _FUNCTIONS or not self._wants("functions"):
            return super()._value(wanted, values, depth, column_needed, keyed)
        own, other = self._random.choice(_FUNCTIONS[wanted])
        parts = {
            name: super(PairGenerator, self)._value(kind, values, depth - 1, column_needed, keyed).text
            for name, kind in _PARTS.items()
        }
        parts["c"] = self._condition(values, 0, keyed)
        # NULL of no type would be of another one in each engine.
        filled = [
            form.format(**{name: part.languages[at] for name, part in parts.items()})
            for at, form in enumerate((own, other or own))
        ]
        return Value(Text(*filled), wanted)


def paired_query(seed: int, pair: Sequence[str] = ()) -> tuple[Query, set[str]]:
    """The query of a seed, and the kinds of its clauses.

    Args:
        seed: The seed.
        pair: The kinds that it has; by default, one of the `PAIRS`.
    """
    pair = pair or PAIRS[seed % len(PAIRS)]
    for attempt in itertools.count():
        generator = PairGenerator(Random(f"{seed} {attempt}"), pair)
        query = generator.paired_query()
        if {*pair} <= generator.clauses:
            return query, generator.clauses
    raise AssertionError
