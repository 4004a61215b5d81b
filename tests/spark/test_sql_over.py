"""Spark computes the same results of window functions."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from penstock.scalars.row_functions import Projection
from penstock.sql.execution.lowering import argument_of
from penstock.sql.execution.over_results import OverResults
from tests.sql.random_over import FAMILIES, random_over
from tests.sql.random_queries import TABLES, Text, Value
from tests.sql.relations import Rows, as_rows, random_input
from tests.sql.test_over import overs

_VALUES = [Value(Text(name, name), kind) for name, kind in TABLES["a"]]
_SCHEMA = "k BIGINT, s STRING, v BIGINT, ts TIMESTAMP"


def _calls(seed: int) -> list[str]:
    random = Random(seed)
    calls = [random_over(random, _VALUES, FAMILIES).text.own for _ in range(40)]
    # Spark refuses FILTER with OVER.
    return [call for call in calls if " FILTER " not in call]


def _own(call: str, rows: list[Any]) -> Rows:
    [relation] = overs(f"SELECT {call} AS c0 FROM a")
    keys, results = Projection(relation.keys).function, OverResults(relation, argument_of)
    partitions: dict[str, list[Any]] = {}
    for row in rows:
        partitions.setdefault(repr(keys(row)), []).append(row)
    return as_rows(row for own in partitions.values() for row in results.compute_all(own))


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.soak] if seed else []) for seed in range(50)]
)
def test_spark_computes_the_same_results(spark: Any, seed: int) -> None:
    rows = [row for at in range(seed, seed + 3) for row in random_input(at, retracts=False).rows("a", 99)]
    calls = _calls(seed)
    spark.createDataFrame(rows, _SCHEMA).coalesce(1).createOrReplaceTempView("a")
    listed = ", ".join(f"{call} AS c{at}" for at, call in enumerate(calls))
    found = [tuple(row) for row in spark.sql(f"SELECT k, s, v, ts, {listed} FROM a").collect()]
    for at, call in enumerate(calls):
        assert as_rows((*row[:4], row[4 + at]) for row in found) == _own(call, rows), call
