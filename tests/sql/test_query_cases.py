"""Each query of the cases gives its rows: in a batch, and in a stream whose input ends."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io import WriteToMemory
from penstock.transforms.sql import SqlTransform
from tests.runner.plain_runner import collect, run_plain
from tests.shards.toy_query import ToyQuery
from tests.sql.query_cases import CASES, Case, cases_of, shown


def result_of(pipeline: beam.Pipeline, case: Case) -> Any:
    tables = {name: pipeline | name >> table.create() for name, table in case.read.items()}
    return tables | "Query" >> SqlTransform(case.query)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_query_gives_its_rows_in_a_batch(case: Case) -> None:
    pipeline = beam.Pipeline()
    found = collect(result_of(pipeline, case))
    run_plain(pipeline)
    assert shown(found) == case.rows
    assert all(tuple(row._fields) == case.columns for row in found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_query_gives_its_rows_in_a_stream(case: Case) -> None:
    pipeline = beam.Pipeline()
    _ = result_of(pipeline, case) | WriteToMemory([])
    toy = ToyQuery(pipeline, "streaming", 2, None)
    batches = [toy.batch() for _ in range(toy.timeline.batches)]
    assert shown(row for batch in batches for given in batch.values() for row in given) == case.rows


def test_what_is_neither_a_table_nor_a_query_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a table nor a query: 'SELECT 1'"):
        cases_of("a", "SELECT 1\nrows: n\n[1]\n")
    with pytest.raises(ValueError, match="not enough values to unpack"):
        cases_of("a", "query: without rows\nSELECT 1\n")
