"""Groups that a join with a table without changes drops are not kept: the same rows at every moment."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql import transform
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan import restricted_groups
from penstock.sql.plan.relations import Aggregate, Join, walk_plan
from penstock.sql.plan.restricted_groups import restrict_groups
from tests.sql.law import check_text, first_broken
from tests.sql.test_law import Patch
from tests.sql.test_static_joins import COLUMNS

QUERIES = (
    "SELECT x.v, y.w FROM a x JOIN b y ON x.k = y.k WHERE y.w > 1 "
    "AND x.v < (SELECT AVG(u.v) FROM a u WHERE u.k = y.k)",
    "SELECT y.s, t.n FROM (SELECT * FROM b WHERE w > 1) y "
    "LEFT JOIN (SELECT k, COUNT(*) AS n FROM a GROUP BY k) t ON y.k = t.k",
    "SELECT y.w, t.n FROM b y JOIN (SELECT k, s, COUNT(*) + 1 AS n FROM a GROUP BY k, s) t "
    "ON y.s = t.s AND y.k = t.k WHERE y.w < 3",
)
OTHERS = (
    # Each row of the right side is a row of the result.
    "SELECT y.s, t.n FROM (SELECT * FROM b WHERE w > 1) y "
    "RIGHT JOIN (SELECT k, COUNT(*) AS n FROM a GROUP BY k) t ON y.k = t.k",
    # The table has all of its rows.
    "SELECT y.s, t.n FROM b y JOIN (SELECT k, COUNT(*) AS n FROM a GROUP BY k) t ON y.k = t.k",
    # The key is a result and no group.
    "SELECT y.s FROM b y JOIN (SELECT k, COUNT(*) AS n FROM a GROUP BY k) t ON y.w = t.n WHERE y.k > 1",
    # Another join reads all groups.
    "WITH t AS (SELECT k, COUNT(*) AS n FROM a GROUP BY k) "
    "SELECT y.s FROM b y JOIN t ON y.k = t.k WHERE y.w > 1 UNION ALL SELECT s FROM b JOIN t ON b.w = t.n",
)
SEEDS, SEEDS_OF_MUTANTS = range(3), range(20)


@pytest.fixture(autouse=True)
def _b_is_static(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of the law change all; a semi join is also right for these."""
    monkeypatch.setattr(transform, "restrict_groups", lambda plan, _: restrict_groups(plan, {"a"}))


@pytest.mark.parametrize("query", QUERIES, ids=[f"query {at}" for at in range(len(QUERIES))])
def test_the_rows_are_the_same_at_every_moment(query: str) -> None:
    for seed in SEEDS:
        check_text(query, seed)


def _restricted(query: str) -> list[bool]:
    """Returns, for each grouping of the changing table, whether it reads only some keys."""
    plan = restrict_groups(bind(query, Tables(COLUMNS, {}, {})).relation, {"a"})
    groupings = {id(each): each for each in walk_plan(plan) if isinstance(each, Aggregate)}
    return [isinstance(each.input, Join) and each.input.kind == "semi" for each in groupings.values()]


def test_only_groups_are_kept_that_a_join_may_show() -> None:
    assert [_restricted(query) for query in QUERIES] == [[True]] * len(QUERIES)
    assert [_restricted(query) for query in OTHERS] == [[False]] * len(OTHERS)


def _all_joins_drop_groups(patch: Patch) -> None:
    patch.setattr(restricted_groups, "_DROPS_OTHERS", ("inner", "left", "right", "full"))


def _the_first_key_stands_for_all(patch: Patch) -> None:
    was = restricted_groups.origin_of

    def origin_of(relation: Any, scalar: Any) -> Any:
        return was(relation, relation.columns and restricted_groups.Column(0, "k", scalar.type))

    patch.setattr(restricted_groups, "origin_of", origin_of)


@pytest.mark.parametrize("mutant", [_all_joins_drop_groups, _the_first_key_stands_for_all])
def test_a_break_is_found(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(seed: int) -> None:
        for query in (*QUERIES, OTHERS[0]):
            check_text(query, seed)

    mutant(monkeypatch)
    assert first_broken(SEEDS_OF_MUTANTS, check) is not None
