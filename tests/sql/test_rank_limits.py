"""A limited rank is computed for the first rows only, and a change touches only rows that enter or leave them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from penstock.scalars.types import BIGINT
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution import over, sorted_rows
from penstock.sql.execution.lowering import argument_of
from penstock.sql.execution.over import change_partition
from penstock.sql.execution.over_results import OverResults
from penstock.sql.execution.sorted_rows import SortedRows
from penstock.sql.execution.unbounded_state import list_kept_state
from penstock.sql.plan.pruning import prune, with_limited_ranks
from penstock.sql.plan.relations import ColumnDef, Filter, Over, walk_plan
from tests.sql.law import check_text, first_broken
from tests.sql.test_law import Patch

RANKS = ("RANK", "DENSE_RANK")
COLUMNS = {"a": (ColumnDef("k", BIGINT), ColumnDef("v", BIGINT))}
QUERIES = (
    "SELECT s, v, RANK() OVER (PARTITION BY s ORDER BY v) AS r FROM a QUALIFY r <= 2",
    "SELECT s, v FROM a QUALIFY DENSE_RANK() OVER (PARTITION BY s ORDER BY v DESC) < 3",
    "SELECT * FROM (SELECT k, v, RANK() OVER (ORDER BY v DESC, k) AS r FROM a) WHERE r <= 3 AND k > 1",
    "SELECT k, n FROM (SELECT k, n, RANK() OVER (ORDER BY n DESC) AS r FROM "
    "(SELECT k, COUNT(*) AS n FROM a GROUP BY k)) WHERE r = 1",
    "SELECT k, v, r FROM (SELECT k, v, DENSE_RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM a) WHERE r = 2",
)
SEEDS, SEEDS_OF_MUTANTS = range(3), range(12)


def _check(seed: int) -> None:
    for query in QUERIES:
        check_text(query, seed)


@pytest.mark.parametrize("query", QUERIES, ids=[f"query {at}" for at in range(len(QUERIES))])
def test_the_first_ranks_are_those_of_the_query_at_every_moment(query: str) -> None:
    for seed in SEEDS:
        check_text(query, seed)


def _limited(query: str) -> tuple[Over, bool]:
    """The window function of a query, and whether a filter is left above it."""
    plan = list(walk_plan(prune(bind(query, Tables(COLUMNS, {}, {})).relation)))
    [found] = (each for each in plan if isinstance(each, Over))
    return found, any(isinstance(each, Filter) for each in plan)


def test_a_condition_limits_the_ranks_that_are_computed() -> None:
    numbered = "SELECT k, {} AS x FROM (SELECT k, {}() OVER (ORDER BY v) AS r FROM a) AS t WHERE {}"
    for name in RANKS:
        for condition, count, is_left in (("r <= 5", 5, False), ("4 > r", 3, False), ("r = 2", 2, True)):
            found, has_filter = _limited(numbered.format("r", name, condition))
            assert found.limit is not None
            assert (found.limit.name, found.limit.count) == (name.lower(), count)
            assert (len(found.calls), has_filter) == (1, is_left)
        found, _ = _limited(numbered.format("k", name, "r <= 5"))
        assert (found.calls, [each.name for each in found.columns]) == ((), ["k", "v"])
        for condition in ("r >= 5", "r <= k", "r + 1 <= 5"):
            assert _limited(numbered.format("r", name, condition))[0].limit is None
    assert _limited(numbered.format("r", "PERCENT_RANK", "r <= 5"))[0].limit is None


def test_a_limit_is_asked_for_and_then_no_row_behind_it_is_said_to_be_kept() -> None:
    query = "SELECT k, v, RANK() OVER ({}ORDER BY v) AS r FROM a QUALIFY r <= {}"
    for keys, limit, told in (
        ("PARTITION BY k ", "v", ["RANK OVER keeps all rows of each partition forever; add a condition"]),
        ("PARTITION BY k ", "3", ["RANK keeps rows of each partition forever"]),
        ("", "3", []),
    ):
        plan = with_limited_ranks(bind(query.format(keys, limit), Tables(COLUMNS, {}, {})).relation)
        found = list(list_kept_state(plan, {"a"}))
        assert len(found) == len(told)
        assert all(each.startswith(start) for each, start in zip(found, told, strict=True))


class Blocks(dict[int, Any]):
    """Blocks, of which it notes those that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[int] = set()

    def get(self, key: int, default: Any = None) -> Any:
        self.read.add(key)
        return [list(entry) for entry in self[key]]

    def put(self, key: int, value: Any) -> None:
        self[key] = [list(entry) for entry in value]

    def remove(self, key: int) -> None:
        # A block may come and go at once.
        self.pop(key, None)


def _results(name: str, count: int, is_shown: bool) -> OverResults:
    shown = "r" if is_shown else "v"
    ranked = f"SELECT k, v, {name}() OVER (ORDER BY v) AS r FROM a"
    query = f"SELECT k, v, {shown} AS x FROM ({ranked}) AS t WHERE r <= {count}"
    return OverResults(_limited(query)[0], argument_of)


@pytest.mark.parametrize("retracts", [True, False])
@pytest.mark.parametrize("name", RANKS)
def test_the_net_of_changes_has_the_first_ranks(
    name: str, retracts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_rows, "BLOCK_ROWS", 2)
    for seed in range(12):
        random = Random(seed)
        results = _results(name, random.choice([0, 1, 2, 5]), seed % 2 == 0)
        blocks, index, there, net = Blocks(), [], list[Any](), Counter[Any]()
        for _ in range(25):
            gone = [row for row in there if retracts and random.random() < 0.15]
            come = [(random.randrange(3), random.randrange(6)) for _ in range(random.choice([0, 1, 2, 8]))]
            come = [row for row in come if row not in gone]
            there = [*(Counter(there) - Counter(gone)).elements(), *come]
            rows = SortedRows(results.order, index, blocks)
            retracted, inserted = change_partition(results, rows, (gone, come), None, retracts)
            index = rows.save()
            net.subtract(retracted)
            net.update(inserted)
            assert +net == Counter(results.compute_all(there))
            assert min(net.values(), default=0) >= 0
            assert retracts or sum(each[1] for each in index) == results.count(rows) == net.total()


@pytest.mark.parametrize("name", RANKS)
def test_a_change_opens_only_what_can_enter(name: str) -> None:
    results, blocks = _results(name, 3, True), Blocks()
    rows = SortedRows(results.order, [], blocks)
    change_partition(results, rows, ([], [(0, value) for value in range(10_000)]), None)
    index = rows.save()
    for change, found in (
        (([], [(0, 5_000)]), ([], [])),
        (([(0, 5_000)], []), ([], [])),
        (([(0, 1)], []), ([(0, 1, 2), (0, 2, 3)], [(0, 2, 2), (0, 3, 3)])),
        (([], [(0, 1)]), ([(0, 2, 2), (0, 3, 3)], [(0, 1, 2), (0, 2, 3)])),
    ):
        blocks.read.clear()
        rows = SortedRows(results.order, index, blocks)
        retracted, inserted = change_partition(results, rows, change, None)
        index = rows.save()
        assert (sorted(retracted), sorted(inserted)) == found
        assert len(blocks.read) <= 2


def _no_reserve(patch: pytest.MonkeyPatch) -> None:
    was = over.change_partition
    patch.setattr(over, "change_partition", lambda *given: was(*given[:4], False))


def _ties_are_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OverResults, "count", lambda self, rows: min(self._limit.count, len(rows)))


def _nothing_leaves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SortedRows, "clear_results", lambda self, span: ())


@pytest.mark.parametrize("mutant", [_no_reserve, _ties_are_cut, _nothing_leaves])
def test_the_law_finds_a_limit_that_is_wrong(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert first_broken(SEEDS_OF_MUTANTS, _check) is not None
