"""TPC-H as views that change: after each part of orders, each query has the rows that DuckDB computes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.tpc import tpc_h
from tests.sql.tpch_views import Parts, loosen, play


def cases() -> list[Any]:
    return [pytest.param(number, id=f"q{number}") for number in range(1, 23)]


@pytest.mark.parametrize("number", cases())
def test_a_view_of_orders_that_come_and_go_is_the_query_of_those_that_are_there(number: int) -> None:
    bench, seen = tpc_h(0.001), 0
    parts = Parts(bench, 3, share=0.15)
    for part, (differences, count) in enumerate(play(parts, loosen(bench.queries[number]))):
        assert not differences, f"after part {part}"
        seen += count
    assert seen


@pytest.mark.soak
@pytest.mark.parametrize("number", cases())
def test_a_view_over_fifty_parts_is_the_query_of_the_orders_that_are_there(number: int) -> None:
    bench = tpc_h(0.01)
    for part, (differences, _) in enumerate(play(Parts(bench, 50), bench.queries[number])):
        assert not differences, f"after part {part}"
