"""Subqueries on Spark: the joins that they become, as Spark's text; and a stream whose rows have them."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.scalars.tree import Literal
from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution.spark_query import spark_query
from penstock.sql.plan import decorrelation
from penstock.sql.plan.relations import ColumnDef
from penstock.testing.test_stream import TestStream
from penstock.transforms.sql import SqlTransform
from tests.sql.query_cases import CASES, Case, shown

SUBQUERIES = [case for case in CASES if case.name.startswith("subqueries: ")]


def wrong(spark: Any, cases: list[Case]) -> list[str]:
    """The names of the cases of which Spark computes others rows by the joins that they become."""
    known: dict[str, Any] = {}
    for case in cases:
        for name, table in case.tables.items():
            if known.get(name) is not table:
                known[name] = table
                spark.createDataFrame(table.rows, table.spark_schema).createOrReplaceTempView(f"of_{name}")
    found = []
    for case in cases:
        columns = {
            name: tuple(ColumnDef(column, from_hint(hint)) for column, hint in table.row_type.fields)
            for name, table in case.tables.items()
        }
        plan = bind(case.query, Tables(columns, {}, {}))
        text = spark_query(plan, {name: f"of_{name}" for name in case.tables})
        if shown(spark.sql(text).collect()) != case.rows:
            found.append(case.name)
    return found


def test_the_joins_of_subqueries_give_their_rows_in_spark(spark: Any) -> None:
    assert len({id(case.tables) for case in SUBQUERIES}) == 1
    assert len(SUBQUERIES) > 40
    assert not wrong(spark, SUBQUERIES)


def test_a_break_of_the_joins_of_subqueries_is_found_in_spark(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decorrelation, "_of_nothing", lambda call: Literal(None, call.type))
    assert "subqueries: count of no rows" in wrong(spark, SUBQUERIES)


class Goal(NamedTuple):
    team: str
    points: int


class Rate(NamedTuple):
    team: str
    rate: int


QUERY = """
SELECT g.team, g.points,
       (SELECT MAX(r.rate) FROM rates AS r WHERE r.team = g.team AND r.rate < g.points) AS below, l.n
FROM goals AS g, LATERAL (SELECT COUNT(*) AS n FROM rates AS r WHERE r.team = g.team) AS l
WHERE g.points > ANY (SELECT r.rate FROM rates AS r WHERE r.team = g.team)
  AND NOT EXISTS (SELECT 1 FROM goals AS h WHERE h.team = g.team AND h.points > g.points)"""


def test_a_stream_changes_what_its_subqueries_give(spark: Any) -> None:
    stream = (
        TestStream(output_tags=["goals", "rates"])
        .add_elements([Goal("red", 3), Goal("blue", 2)], "goals")
        .add_elements([Rate("red", 1)], "rates")
        .add_elements([Rate("red", 2), Rate("blue", 9)], "rates")
        .add_elements([Goal("red", 7)], "goals")
        .add_elements([Rate("red", 5), Rate("blue", 1)], "rates")
        .advance_watermark_to_infinity("goals")
        .advance_watermark_to_infinity("rates")
    )
    changes: list[Any] = []
    with beam.Pipeline(spark=spark, mode="streaming", shuffle_partitions=2, events_per_batch=1) as pipeline:
        streams = pipeline | stream
        tables = {
            name: streams[name] | name >> beam.Map(lambda row: row).with_output_types(kind)
            for name, kind in (("goals", Goal), ("rates", Rate))
        }
        _ = tables | SqlTransform(QUERY) | beam.Changelog() | WriteToMemory(changes)
    net: Counter[Any] = Counter()
    for kind, row in changes:
        net[tuple(row)] += -1 if kind.is_retraction else 1
    assert +net == net
    assert sorted(+net) == [("blue", 2, 1, 2), ("red", 7, 5, 3)]
    gone = {tuple(row) for kind, row in changes if kind.is_retraction}
    assert {("red", 3, 1, 1), ("red", 3, 2, 2), ("red", 7, 2, 2)} <= gone
