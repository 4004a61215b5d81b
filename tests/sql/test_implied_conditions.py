"""What the branches of an OR say of one table acts before the join: the same rows at every moment."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.scalars.tree import Scalar
from penstock.sql.binding import join_order
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan import conditions
from penstock.sql.plan.relations import Filter, Scan, walk_plan
from tests.sql.law import check_text, first_broken
from tests.sql.test_static_joins import COLUMNS

QUERIES = (
    "SELECT x.v, y.w FROM a x, b y WHERE x.k = y.k AND ((x.v > 2 AND y.w = 1) OR (x.v < 2 AND y.w = 2))",
    "SELECT x.k FROM a x JOIN b y ON x.k = y.k WHERE (x.v IN (1, 2) AND y.w > 1) OR (x.v = 3 AND y.w < 2 AND x.k > 0)",
)
OTHERS = (
    # A branch says nothing of either table.
    "SELECT x.v FROM a x, b y WHERE x.k = y.k AND ((x.v > 2 AND y.w = 1) OR x.v < y.w)",
    # It may fail for rows that have no partner.
    "SELECT x.v FROM a x, b y WHERE x.k = y.k AND ((7 / x.v > 2 AND 7 / y.w > 1) OR (7 / x.v < 2 AND 7 / y.w = 2))",
)
SEEDS, SEEDS_OF_MUTANTS = range(3), range(20)


@pytest.mark.parametrize("query", QUERIES, ids=[f"query {at}" for at in range(len(QUERIES))])
def test_the_rows_are_the_same_at_every_moment(query: str) -> None:
    for seed in SEEDS:
        check_text(query, seed)


def _filtered_tables(query: str) -> int:
    """Returns how many tables have a filter of their own."""
    plan = bind(query, Tables(COLUMNS, {}, {})).relation
    return sum(isinstance(each, Filter) and isinstance(each.input, Scan) for each in walk_plan(plan))


def test_only_conditions_act_before_a_join_that_each_branch_has() -> None:
    assert [_filtered_tables(query) for query in QUERIES] == [2, 2]
    assert [_filtered_tables(query) for query in OTHERS] == [0, 0]


def test_a_branch_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def implied(part: Scalar, columns: Any) -> Scalar | None:
        found = conditions.find_implied(part, columns)
        return found if found is None else conditions._split_disjuncts(found)[0]

    def check(seed: int) -> None:
        for query in QUERIES:
            check_text(query, seed)

    monkeypatch.setattr(join_order, "find_implied", implied)
    assert first_broken(SEEDS_OF_MUTANTS, check) is not None
