"""Values are equal in a query where they are in Spark, whatever compares them: Spark itself is asked."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.sql.execution import equality
from penstock.transforms.sql import SqlTransform
from tests.runner.plain_runner import collect, run_plain


class Thing(NamedTuple):
    """A row of the one table."""

    id: int
    d: Decimal | None
    e: Decimal | None
    i: int | None
    f: float | None
    day: datetime.date | None
    at: datetime.datetime | None
    s: str | None
    a: list[float | None] | None


SCHEMA = (
    "id bigint, d decimal(10, 2), e decimal(14, 5), i bigint, f double, "
    "day date, at timestamp, s string, a array<double>"
)
NUMBERS, TIMES = ("d", "e", "i", "f"), ("day", "at")
PAIRS = [*product(NUMBERS, repeat=2), *product(TIMES, repeat=2), ("s", "s"), ("a", "a")]
"""Columns whose values can be compared."""

CONSTRUCTS = {
    "GROUP BY": "SELECT {0}, COUNT(*) AS n, SUM(id) AS t FROM things GROUP BY {0}",
    "two keys": "SELECT {0}, {1} AS c, COUNT({0}) AS n FROM things GROUP BY {0}, {1}",
    "a key that is computed": "SELECT COALESCE({0}, {1}) AS c, COUNT(*) AS n FROM things GROUP BY COALESCE({0}, {1})",
    "HAVING": "SELECT {0}, COUNT(*) AS n FROM things GROUP BY {0} HAVING COUNT(*) > 1",
    "DISTINCT": "SELECT DISTINCT {0}, {1} AS c FROM things",
    "COUNT(DISTINCT)": "SELECT s, COUNT(DISTINCT {0}) AS n FROM things GROUP BY s",
    "MIN and MAX": "SELECT MAX({0}) = MAX({1}) AS x, MIN({0}) = MIN({1}) AS y FROM things",
    "UNION": "SELECT {0} AS c FROM things UNION SELECT {1} FROM things",
    "UNION ALL": "SELECT c, COUNT(*) AS n FROM (SELECT {0} AS c FROM things UNION ALL SELECT {1} FROM things) "
    "GROUP BY c",
    "EXCEPT": "SELECT {0} AS c FROM things EXCEPT SELECT {1} FROM things WHERE id % 2 = 0",
    "EXCEPT ALL": "SELECT {0} AS c FROM things EXCEPT ALL SELECT {1} FROM things WHERE id % 2 = 0",
    "INTERSECT": "SELECT {0} AS c FROM things INTERSECT SELECT {1} FROM things WHERE id % 2 = 0",
    "INTERSECT ALL": "SELECT {0} AS c FROM things INTERSECT ALL SELECT {1} FROM things WHERE id % 2 = 0",
    **{
        f"{kind} JOIN": "SELECT l.id, r.id AS other FROM things l "
        f"{kind} JOIN things r ON l.{{0}} = r.{{1}} AND r.id < 9"
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    "USING": "SELECT x.id, y.n FROM things x "
    "JOIN (SELECT {1} AS {0}, COUNT(*) AS n FROM things GROUP BY {1}) y USING ({0})",
    "a join with another condition": (
        "SELECT l.id, r.id AS other FROM things l LEFT JOIN things r ON l.{0} = r.{1} AND l.id < r.id"
    ),
    "CROSS JOIN": "SELECT l.id, r.id AS other FROM things l CROSS JOIN things r WHERE l.{0} = r.{1} AND l.id < r.id",
    "<=>": "SELECT l.id, r.id AS other FROM things l CROSS JOIN things r WHERE l.{0} <=> r.{1} AND l.id < r.id",
    "SEMI JOIN": "SELECT id FROM things l LEFT SEMI JOIN (SELECT {1} AS c FROM things WHERE id < 9) r ON l.{0} = r.c",
    "ANTI JOIN": "SELECT id FROM things l LEFT ANTI JOIN (SELECT {1} AS c FROM things WHERE id < 9) r ON l.{0} = r.c",
    "IN": "SELECT id FROM things WHERE {0} IN (SELECT {1} FROM things WHERE id < 9)",
    # Of a NULL, Spark says FALSE here, where SQL says NULL.
    "IN as a value": "SELECT id, COALESCE({0} IN (SELECT {1} FROM things WHERE id < 9), FALSE) AS x FROM things",
    "NOT IN": "SELECT id FROM things WHERE {0} NOT IN (SELECT {1} FROM things WHERE id < 9 AND {1} IS NOT NULL)",
    "PARTITION BY": "SELECT id, ROW_NUMBER() OVER (PARTITION BY {0} ORDER BY id) AS n FROM things",
    "LIMIT": "SELECT id FROM things ORDER BY {0} DESC, {1}, id LIMIT 7",
    "NULLIF": "SELECT id, NULLIF({0}, {1}) IS NULL AS x FROM things",
    "CASE": "SELECT id, CASE {0} WHEN {1} THEN 1 ELSE 2 END AS x FROM things",
}
"""Everything in a query by which two values are one, or are not."""

CASES = [(name, pair) for name in CONSTRUCTS for pair in PAIRS]
SAMPLE, BLOCK = 34, 60


def things(seed: int) -> list[Thing]:
    """Rows with many values that are equal and look different."""
    random = Random(seed)
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
    numbers = [None, 0, 0, 1, 1, 1.5, 2, -3]

    def decimal(scales: tuple[int, ...]) -> Decimal | None:
        value = random.choice(numbers)
        return None if value is None else round(Decimal(value), random.choice(scales))

    def number() -> float | None:
        value = random.choice([*numbers, math.nan, -0.0])
        return None if value is None else float(value)

    def time() -> datetime.datetime | None:
        hours = random.choice([None, -12, -12, 0, 3, 12])
        zone = datetime.timezone(datetime.timedelta(hours=random.choice([0, 5, -9])))
        return None if hours is None else (noon + datetime.timedelta(hours=hours)).astimezone(zone)

    def whole() -> int | None:
        value = random.choice(numbers)
        return None if value is None else int(value)

    return [
        Thing(
            identity,
            decimal((1, 2)),
            decimal((1, 3, 5)),
            whole(),
            number(),
            None if (day := time()) is None else day.astimezone(datetime.UTC).date(),
            time(),
            random.choice([None, "", "x", "X", "x "]),
            None if random.random() < 0.2 else [number() for _ in range(random.choice([0, 1, 1, 2]))],
        )
        for identity in range(16)
    ]


def test_the_cases_are_all_constructs_and_all_pairs_of_columns() -> None:
    sampled = sample(0)
    assert {name for name, _ in sampled} == {*CONSTRUCTS}
    assert {frozenset(pair) for _, pair in sampled} == {frozenset(pair) for pair in PAIRS}


def sample(seed: int) -> list[tuple[str, tuple[str, str]]]:
    """Cases with every construct, and every pair of columns."""
    random = Random(seed)
    shuffled = random.sample(PAIRS, len(PAIRS))
    names = [*CONSTRUCTS, *random.sample([*CONSTRUCTS], SAMPLE - len(CONSTRUCTS))]
    return [(name, shuffled[at % len(shuffled)]) for at, name in enumerate(names)]


BLOCKS = [
    pytest.param(sample(0), 0, id="a sample"),
    *(
        pytest.param(CASES[start : start + BLOCK], start, id=f"from {start}", marks=pytest.mark.soak)
        for start in range(0, len(CASES), BLOCK)
    ),
]


@pytest.mark.parametrize(("cases", "seed"), BLOCKS)
def test_values_are_equal_where_they_are_in_spark(spark, cases, seed) -> None:
    rows = things(seed)
    queries = [CONSTRUCTS[name].format(*pair) for name, pair in cases]
    wanted = by_spark(spark, rows, queries)
    for query, mine, others in zip(queries, by_penstock(rows, queries), wanted, strict=True):
        assert mine == others, (query, mine - others, others - mine)


def test_the_sample_finds_that_bytes_are_compared(monkeypatch) -> None:
    rows = things(0)
    queries = [CONSTRUCTS[name].format(*pair) for name, pair in sample(0)]
    wanted = by_penstock(rows, queries)
    for type_name in ("DECIMAL", "DOUBLE", "TIMESTAMP"):
        with monkeypatch.context() as patch:
            patch.delitem(equality._CANONICAL, type_name)
            assert by_penstock(rows, queries) != wanted, type_name


def by_penstock(rows: list[Thing], queries: list[str]) -> list[Counter[str]]:
    """The results of queries, as text, by the transforms."""
    pipeline = beam.Pipeline()
    table = pipeline | beam.Create(rows).with_output_types(Thing)
    found = [
        collect({"things": table} | f"Query {at}" >> SqlTransform(query), f"Rows of {at}")
        for at, query in enumerate(queries)
    ]
    run_plain(pipeline)
    return [Counter(f"{{{', '.join(map(text_of, row))}}}" for row in each) for each in found]


_ONE_STAGE = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""Of one partition, all queries are one stage then, and nothing is compiled for each."""


def by_spark(spark: Any, rows: list[Thing], queries: list[str]) -> list[Counter[str]]:
    """The results of queries, as text, by Spark in one job."""
    spark.createDataFrame([tuple(row) for row in rows], SCHEMA).coalesce(1).createOrReplaceTempView("things")
    parts = [
        f"SELECT {at} AS number, CAST(STRUCT(*) AS STRING) AS text FROM ({query})"
        for at, query in enumerate(queries)
    ]
    found: list[Counter[str]] = [Counter() for _ in queries]
    before = {name: spark.conf.get(name) for name in _ONE_STAGE}
    for name, value in _ONE_STAGE.items():
        spark.conf.set(name, value)
    results = spark.sql(" UNION ALL ".join(parts)).collect()
    for name, value in before.items():
        spark.conf.set(name, value)
    for number, text in results:
        # Decimals without their scale.
        found[number][re.sub(r"-?\d+\.\d+(E-?\d+)?", lambda number: f"{float(number[0]):.12g}", text)] += 1
    return found


def text_of(value: Any) -> str:
    """A value as text, without the scale of decimals."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return (
                "NaN"
                if math.isnan(value)
                else "-0"
                if not value and math.copysign(1, value) < 0
                else f"{value:.12g}"
            )
        case Decimal():
            return f"{float(value):.12g}" if value else "0"
        case datetime.datetime():
            return value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        case list():
            return f"[{', '.join(map(text_of, value))}]"
    return "null" if value is None else str(value)
