"""TPC-H and TPC-DS in a batch: each query as it is written has the answer of an independent engine."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as beam
from penstock.io import ReadFromParquet, WriteToMemory
from penstock.transforms.sql import SqlTransform
from tests.sql.tpc import Benchmark, differences, tpc_ds, tpc_h

_AT_ONCE = 11


def wrong_answers(bench: Benchmark, numbers: list[int]) -> dict[int, list[str]]:
    """Returns what differs in the answers of some queries, which one pipeline computes."""
    found: dict[int, list[Any]] = {number: [] for number in numbers}
    with beam.Pipeline() as pipeline:
        tables = {
            name: pipeline | name >> ReadFromParquet(str(path), as_rows=True)
            for name, path in bench.paths.items()
        }
        for number in numbers:
            query = bench.for_spark[number]
            named = {name: table for name, table in tables.items() if name in query.lower()}
            _ = named | f"q{number}" >> SqlTransform(query) | f"Keep {number}" >> WriteToMemory(found[number])
    compared = {number: differences(bench.answer(number), map(tuple, found[number])) for number in numbers}
    return {number: wrong[:3] for number, wrong in compared.items() if wrong}


def _parts(bench: Benchmark) -> list[list[int]]:
    numbers = sorted(bench.queries)
    return [numbers[at : at + _AT_ONCE] for at in range(0, len(numbers), _AT_ONCE)]


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_all_queries_of_tpc_h_have_their_answers() -> None:
    bench = tpc_h(0.01)
    assert wrong_answers(bench, sorted(bench.queries)) == {}


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("place", range(2))
def test_all_queries_of_tpc_h_have_their_answers_over_more_rows(place: int) -> None:
    bench = tpc_h(0.1)
    assert wrong_answers(bench, _parts(bench)[place]) == {}


@pytest.mark.soak
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("place", range(9))
def test_all_queries_of_tpc_ds_have_their_answers(place: int) -> None:
    bench = tpc_ds(0.01)
    assert wrong_answers(bench, _parts(bench)[place]) == {}
