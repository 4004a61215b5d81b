"""Tables that do not change are joined with each other first: the same rows at every moment, by fewer levels."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.scalars.types import BIGINT, STRING
from penstock.sql import transform
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan import static_joins
from penstock.sql.plan.relations import ColumnDef, Join, Relation, Scan, inputs_of, walk_plan
from penstock.sql.plan.static_joins import join_static_first
from tests.sql.law import check_text, first_broken
from tests.sql.test_law import Patch
from tests.sql.tpc import tpc_h
from tests.sql.tpch_views import Parts, loosen, play

QUERIES = (
    "SELECT x.v, y.w, z.s FROM a x JOIN b y ON x.k = y.k JOIN b z ON y.w = z.w",
    "SELECT y.s, x.v, z.w FROM b y JOIN a x ON x.k = y.k JOIN b z ON y.w = z.w AND y.s = z.s",
    "SELECT z.w, COUNT(*) AS n FROM (SELECT x.v + 1 AS v, y.w, y.s FROM a x JOIN b y USING (k)) t "
    "JOIN b z ON t.s = z.s WHERE t.v > z.k GROUP BY z.w",
    "SELECT t.k, z.s FROM (SELECT y.k, y.w FROM b y JOIN a x ON x.k = y.k WHERE EXISTS "
    "(SELECT 1 FROM a u WHERE u.k = y.k AND u.v <> x.v)) t JOIN b z ON t.w = z.w",
    "SELECT x.s, y.k, z.w FROM a x, b y, b z, b u WHERE x.k = y.k AND y.w = z.w AND z.k = u.k",
)
SEEDS, SEEDS_OF_MUTANTS = range(3), range(20)


@pytest.fixture(autouse=True)
def _b_is_static(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of the law change all; the order of joins is right for these, too."""
    monkeypatch.setattr(transform, "join_static_first", lambda plan, _: join_static_first(plan, {"a"}))


def _check(seed: int) -> None:
    for query in QUERIES:
        check_text(query, seed)


@pytest.mark.parametrize("query", QUERIES, ids=[f"query {at}" for at in range(len(QUERIES))])
def test_the_rows_are_the_same_at_every_moment(query: str) -> None:
    for seed in SEEDS:
        check_text(query, seed)


_KINDS = {"k": BIGINT, "s": STRING, "v": BIGINT, "w": BIGINT}
COLUMNS = {
    name: tuple(ColumnDef(each, _KINDS[each].or_null()) for each in columns)
    for name, columns in (("a", "ksv"), ("b", "ksw"))
}


def _depth(relation: Relation) -> int:
    """The most joins of the changing table that stand above each other."""
    changes = any(isinstance(each, Scan) and each.name == "a" for each in walk_plan(relation))
    own = isinstance(relation, Join) and changes
    return own + max(map(_depth, inputs_of(relation)), default=0)


@pytest.mark.parametrize(
    ("query", "before", "after"),
    [
        (QUERIES[0], 2, 1),
        (QUERIES[1], 2, 1),
        (QUERIES[3], 3, 2),
        (QUERIES[4], 3, 1),
        ("SELECT x.v FROM a x JOIN b y ON x.k = y.k JOIN b z ON x.v = z.w", 2, 2),
        ("SELECT x.v FROM a x JOIN b y ON x.k = y.k LEFT JOIN b z ON y.w = z.w", 2, 2),
        ("SELECT x.v FROM a x JOIN b y ON x.k = y.k JOIN a z ON y.w = z.v", 2, 2),
    ],
)
def test_rows_of_a_stream_meet_static_tables_in_one_join(query: str, before: int, after: int) -> None:
    plan = bind(query, Tables(COLUMNS, {}, {})).relation
    moved = join_static_first(plan, {"a"})
    assert (_depth(plan), _depth(moved)) == (before, after)
    assert moved.columns == plan.columns


def test_a_join_that_something_else_also_reads_stays() -> None:
    views = {"both": "SELECT x.v, y.w FROM a x JOIN b y ON x.k = y.k"}
    query = "SELECT v, w FROM both UNION ALL SELECT t.v, z.w FROM both t JOIN b z ON t.w = z.w"
    moved = join_static_first(bind(query, Tables(COLUMNS, views, {})).relation, {"a"})
    assert sum(isinstance(each, Join) for each in walk_plan(moved)) == 2


@pytest.mark.soak
@pytest.mark.parametrize("number", [5, 7, 8, 9, 10, 20, 21])
def test_queries_of_tpc_h_have_the_same_rows_with_static_tables(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = {"orders", "lineitem"}
    monkeypatch.setattr(transform, "join_static_first", lambda plan, _: join_static_first(plan, growing))
    bench, seen = tpc_h(0.001), 0
    for differences, count in play(Parts(bench, 3, share=0.15), loosen(bench.queries[number])):
        assert not differences
        seen += count
    assert seen


def _keys_are_not_moved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(static_joins, "shift_columns", lambda scalar, _: scalar)


def _columns_are_in_another_order(patch: pytest.MonkeyPatch) -> None:
    was = static_joins._Mover._attached_to_side

    def attached(self: Any, *given: Any) -> Any:
        made = was(self, *given)
        if isinstance(made, static_joins.Project):
            made = static_joins.Project(made.input, made.scalars[::-1], made.columns)
        return made

    patch.setattr(static_joins._Mover, "_attached_to_side", attached)


@pytest.mark.parametrize("mutant", [_keys_are_not_moved, _columns_are_in_another_order])
def test_the_law_finds_a_join_that_is_wrong(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    def check(seed: int) -> None:
        try:
            _check(seed)
        except (IndexError, KeyError, AttributeError, TypeError) as error:
            raise AssertionError from error

    with pytest.raises(AssertionError):
        assert first_broken(SEEDS_OF_MUTANTS, check) is None
