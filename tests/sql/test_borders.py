"""Rows that are compared with one changing value: at every moment those that pass, and only they change."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from penstock.scalars.tree import Column
from penstock.scalars.types import BIGINT
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution import borders
from penstock.sql.execution.borders import Comparing, change_border
from penstock.sql.execution.row_order import RowOrder
from penstock.sql.execution.sorted_rows import SortedRows
from penstock.sql.plan.borders import find_borders
from penstock.sql.plan.pruning import prune
from penstock.sql.plan.relations import Border, ColumnDef, Order, walk_plan
from tests.sql.law import check_text, first_broken
from tests.sql.test_law import Patch

COMPARISONS = ("<", "<=", ">=", ">")
QUERIES = (
    "SELECT k, v FROM a WHERE v > (SELECT AVG(w) FROM b)",
    "SELECT k, v FROM a WHERE (SELECT MAX(w) FROM b WHERE w < 3) >= v",
    "SELECT v FROM a WHERE v <= (SELECT SUM(k) FROM b) AND k > 1",
    "SELECT s, COUNT(*) AS n FROM a WHERE v < (SELECT COUNT(*) FROM a) GROUP BY s",
    "SELECT k, SUM(v) AS total FROM a GROUP BY k HAVING SUM(v) > (SELECT SUM(v) * 0.2 FROM a)",
    "SELECT k FROM a WHERE ts >= (SELECT MAX(ts) FROM b)",
    "SELECT x.k, y.w FROM a x JOIN b y ON x.k = y.k WHERE y.w + 1 >= (SELECT MIN(v) FROM a)",
)
SEEDS, SEEDS_OF_MUTANTS = range(3), range(12)


def _check(seed: int) -> None:
    for query in QUERIES:
        check_text(query, seed)


@pytest.mark.parametrize("query", QUERIES, ids=[f"query {at}" for at in range(len(QUERIES))])
def test_rows_that_pass_are_those_of_the_query_at_every_moment(query: str) -> None:
    for seed in SEEDS:
        check_text(query, seed)


COLUMNS = {
    "a": (ColumnDef("k", BIGINT), ColumnDef("v", BIGINT.or_null(False))),
    "b": (ColumnDef("w", BIGINT),),
}


def _borders(query: str) -> list[Border]:
    plan = find_borders(prune(bind(query, Tables(COLUMNS, {}, {})).relation))
    return [each for each in walk_plan(plan) if isinstance(each, Border)]


def test_a_comparison_with_one_row_is_a_border_where_nothing_reads_the_row() -> None:
    total = "(SELECT SUM(w) AS w FROM b)"
    for name, mirrored in zip(COMPARISONS, (">", ">=", "<=", "<"), strict=True):
        [found] = _borders(f"SELECT k FROM a, {total} AS t WHERE k {name} t.w")
        [other] = _borders(f"SELECT k FROM a WHERE {total} {name} k")
        assert (found.comparison, other.comparison) == (name, mirrored)
    for query in (
        f"SELECT k, t.w FROM a, {total} AS t WHERE k > t.w",
        f"SELECT k FROM a, {total} AS t WHERE k + t.w > 3",
        f"SELECT k FROM a, {total} AS t WHERE k > t.w AND k < t.w + 5",
        f"SELECT k FROM a, {total} AS t WHERE k <> t.w",
        "SELECT k FROM a, b WHERE k > w",
    ):
        assert not _borders(query), query


def _passes(name: str, value: int, bound: int | None) -> bool:
    return (
        bound is not None
        and {
            "<": value < bound,
            "<=": value <= bound,
            ">=": value >= bound,
            ">": value > bound,
        }[name]
    )


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_changes_are_the_rows_that_cross_the_border(name: str) -> None:
    random = Random(name)
    order = RowOrder((Order(Column(0, "v", BIGINT), False, True),), (BIGINT, BIGINT))
    rows, comparing = SortedRows(order), Comparing(name, BIGINT)
    there: Counter[Any] = Counter()
    passing: Counter[Any] = Counter()
    bound: int | None = None
    for _ in range(60):
        gone = [row for row in there.elements() if random.random() < 0.1]
        come = [(random.randrange(9), random.randrange(2)) for _ in range(random.randrange(4))]
        after = random.choice([None, *range(-1, 10), bound, bound])
        there = there - Counter(gone) + Counter(come)
        retracted, inserted = change_border(comparing, rows, (gone, come), (bound, after), None)
        bound = after
        wanted = Counter({row: count for row, count in there.items() if _passes(name, row[0], bound)})
        assert passing - Counter(retracted) + Counter(inserted) == wanted
        # A row is retracted and inserted at once only if it leaves and comes.
        assert not (Counter(retracted) & Counter(inserted)) - Counter(come)
        passing = wanted


def _stale_bound(patch: pytest.MonkeyPatch) -> None:
    was = borders.change_border
    patch.setattr(
        borders,
        "change_border",
        lambda one, rows, change, bounds, form: was(one, rows, change, bounds[1:] * 2, form),
    )


def _border_is_inside(patch: pytest.MonkeyPatch) -> None:
    was = Comparing.passing

    def passing(self: Any, rows: Any, bound: object) -> Any:
        first, last = was(self, rows, bound)
        return (first, last) if self._name != ">" else was(Comparing(">=", BIGINT), rows, bound)

    patch.setattr(Comparing, "passing", passing)


@pytest.mark.parametrize("mutant", [_stale_bound, _border_is_inside])
def test_the_law_finds_a_border_that_is_wrong(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert first_broken(SEEDS_OF_MUTANTS, _check) is not None
