"""Queries: whatever the text, it is a query or is refused with its place."""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import penstock as beam
from penstock.transforms.sql import SqlTransform
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, result_or_refusal, seeds

QUERIES = (
    "SELECT team, SUM(points) AS total FROM goals GROUP BY team HAVING SUM(points) > 3 ORDER BY total DESC LIMIT 2",
    "SELECT a.team, b.points FROM goals a LEFT JOIN rates b ON a.team = b.team AND a.points < 5 WHERE b.points IS NULL",
    "SELECT STREAM team, window_end, COUNT(*) AS n FROM TUMBLE(TABLE goals, DESCRIPTOR(at), INTERVAL '1' MINUTE) "
    "GROUP BY team, window_end EMIT AFTER WATERMARK",
    "WITH best AS (SELECT MAX(points) AS most FROM goals) SELECT team FROM goals, best WHERE points = most",
    "SELECT CASE WHEN points BETWEEN 1 AND 3 THEN UPPER(team) ELSE 'x' || team END AS name FROM goals",
    "SELECT team FROM goals UNION ALL SELECT team FROM rates WHERE team IN ('a', 'b') AND at > TIMESTAMP '2020-01-01'",
    "SELECT CAST(points AS STRING) AS text, points / 2 AS half, -points % 7 AS rest FROM goals WHERE team LIKE 'a%'",
)
WORDS = sorted({word for query in QUERIES for word in query.split()}) + [
    "(",
    ")",
    ",",
    "--",
    "/*",
    "\x00",
    "OVER",
    "*",
]


class Goal(NamedTuple):
    team: str
    points: int
    at: datetime.datetime


@seeds(150, 20_000)
def test_a_damaged_query_is_refused_with_its_place_or_is_another_one(count: int) -> None:
    pipeline = beam.Pipeline(mode="streaming")
    goals = pipeline | beam.Create([]).with_output_types(Goal)

    def law(chance: Chance) -> None:
        query = chance.damaged_text(chance.one_of(QUERIES), WORDS)
        tables: dict[str, Any] = {"goals": goals, "rates": goals}
        label = f"Query {chance.random()}"
        result_or_refusal(lambda: tables | label >> SqlTransform(query))

    each_seed(count, law)
