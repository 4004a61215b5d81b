"""Queries that Spark computes as written: whatever the text, it is a query or is refused in three parts."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.transforms.sql import SqlTransform
from tests.fuzzing.chance import Chance
from tests.fuzzing.refused import each_seed, refusal_of, seeds
from tests.fuzzing.test_queries import WORDS, Goal

pytestmark = pytest.mark.spark

QUERIES = (
    "SELECT team, RANK() OVER (PARTITION BY team ORDER BY points DESC) AS r FROM goals QUALIFY r < 3",
    "SELECT team, STDDEV(points) AS s FROM goals GROUP BY CUBE (team) HAVING MEDIAN(points) > 1.5",
    "SELECT TRANSFORM(ARRAY(points, 2), x -> x + 1) AS t, MAP('a', STRUCT(points AS p)) AS m FROM goals",
    "SELECT * FROM goals g WHERE EXISTS (SELECT 1 FROM rates r WHERE r.team = g.team AND r.points > g.points)",
    "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a WHERE x < 3) SELECT x FROM a, goals",
    "FROM goals |> WHERE points > 3 |> AGGREGATE MODE(team) AS m GROUP BY points |> ORDER BY points",
    "SELECT g.team, INTERVAL '1' DAY * 2 AS d FROM goals g JOIN rates r ON g.points < r.points "
    "LATERAL VIEW EXPLODE(ARRAY(1)) e",
)
OF_JAVA = ("org.apache", "java.", "py4j", "SQLSTATE", "scala.", "'Project", "spark_catalog")


@pytest.mark.usefixtures("spark")
@seeds(40, 5_000)
def test_a_damaged_query_is_refused_without_a_word_of_java(count: int) -> None:
    pipeline = beam.Pipeline()
    goals = pipeline | beam.Create([]).with_output_types(Goal)
    refused: list[str] = []

    def law(chance: Chance) -> None:
        query = chance.damaged_text(chance.one_of(QUERIES), [*WORDS, "->", "|>", "INTERVAL", "STRUCT", "`"])
        tables: dict[str, Any] = {"goals": goals, "rates": goals}
        label = f"Query {chance.random()}"
        error = refusal_of(lambda: tables | label >> SqlTransform(query))
        if error is not None:
            refused.append(str(error))
            assert [word for word in OF_JAVA if word in str(error) and word not in query] == []

    each_seed(count, law)
    assert len(refused) > count // 4
