"""Generators on Spark: as the user wrote them, and in a stream whose rows are retracted."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import penstock as beam
from penstock.io import WriteToMemory
from penstock.relations.changelog import Changelog
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import SqlTransform
from tests.sql.query_cases import CASES, shown

_NOT_IN_SPARK = re.compile(r"(, | JOIN )UNNEST\(")
"""In Spark, what reads tables before it needs the word LATERAL."""


class Goal(NamedTuple):
    team: str
    points: int | None


def test_spark_gives_the_rows_of_the_cases(spark: Any) -> None:
    own = [each for each in CASES if each.name.startswith("generators: ") and "Spark cannot" not in each.name]
    for case in own:
        for name, table in case.read.items():
            spark.createDataFrame(table.rows, table.spark_schema).createOrReplaceTempView(name)
        query = _NOT_IN_SPARK.sub(r"\1LATERAL UNNEST(", case.query)
        assert shown(map(tuple, spark.sql(query).collect())) == case.rows, case.name


def test_a_stream_retracts_what_it_made_of_a_retracted_row(spark: Any) -> None:
    goals = [Goal("red", 3), Goal("blue", 2), Goal("red", 1), Goal("blue", None), Goal("red", 4)]
    query = """
        SELECT t.team, x.place, x.points, EXISTS (SELECT 1 FROM UNNEST(t.own) AS y(n) WHERE n > 3) AS high
        FROM (SELECT team, ARRAY_AGG(points) AS own FROM PCOLLECTION GROUP BY team) AS t
        LATERAL VIEW POSEXPLODE(t.own) x AS place, points
        WHERE NOT EXISTS (SELECT 1 FROM UNNEST(t.own) AS z(n) WHERE n > 10)
    """
    changes: list[Any] = []
    with beam.Pipeline(spark=spark, mode="streaming", shuffle_partitions=2) as pipeline:
        stream = TestStream()
        for number, goal in enumerate(goals):
            stream = stream.add_elements([goal]).advance_watermark_to(number)
        rows = pipeline | stream.advance_watermark_to_infinity()
        typed = rows | beam.Map(lambda goal: goal).with_output_types(Goal)
        _ = typed | SqlTransform(query) | Changelog() | WriteToMemory(changes)
    net: Counter[Any] = Counter()
    for kind, row in changes:
        net[tuple(row)] += -1 if kind.is_retraction else 1
    assert any(kind.is_retraction for kind, _ in changes)
    assert sorted(net.elements()) == [
        ("blue", 0, 2, False),
        ("red", 0, 1, True),
        ("red", 1, 3, True),
        ("red", 2, 4, True),
    ]
