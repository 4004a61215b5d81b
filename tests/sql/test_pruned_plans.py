"""A plan is made smaller before it is lowered: equal parts are one, and nothing holds what nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.scalars.types import BIGINT, STRING
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan.pruning import prune
from penstock.sql.plan.relations import ColumnDef, Filter, Join, Over, Relation, Scan, Top, Union_, inputs_of

COLUMNS = {
    "bids": tuple(ColumnDef(name, BIGINT) for name in ("auction", "price", "at", "bidder"))
    + (ColumnDef("url", STRING),),
    "items": (ColumnDef("id", BIGINT), ColumnDef("seller", BIGINT), ColumnDef("text", STRING)),
}
BEST = """
    SELECT seller, price FROM items JOIN bids ON id = auction
    QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY price) {}
"""


def _pruned(query: str) -> Relation:
    return prune(bind(query, Tables(COLUMNS, {"best": BEST.format("= 1")}, {})).relation)


def _all(relation: Relation) -> Iterator[Relation]:
    yield relation
    for each in inputs_of(relation):
        yield from _all(each)


def _names(relation: Relation) -> list[str]:
    return [column.name for column in relation.columns]


def test_joins_and_rankings_hold_only_what_is_read() -> None:
    plan = _pruned(BEST.format("<= 2"))
    [join] = (each for each in _all(plan) if isinstance(each, Join))
    [top] = (each for each in _all(plan) if isinstance(each, Top))
    assert (_names(join.left), _names(join.right)) == (["id", "seller"], ["auction", "price"])
    assert _names(top) == ["id", "seller", "price"]


def test_a_number_that_only_its_limit_reads_is_not_given() -> None:
    for condition, is_numbered in (("<= 2", False), ("= 1", False), ("= 2", True)):
        plan = _pruned(BEST.format(condition))
        [top] = (each for each in _all(plan) if isinstance(each, Top))
        assert (top.numbered, any(isinstance(each, Filter) for each in _all(plan))) == (is_numbered,) * 2
    assert any(isinstance(each, Over) for each in _all(_pruned(BEST.format("< 2.5"))))


def test_a_view_that_is_read_twice_is_computed_once() -> None:
    most = "(SELECT MAX(seller) AS seller FROM best)"
    query = f"SELECT a.seller, b.price FROM {most} AS a JOIN best AS b ON a.seller = b.seller"
    tops = [each for each in _all(_pruned(query)) if isinstance(each, Top)]
    assert len(tops) == 2
    assert tops[0] is tops[1]


def test_parts_that_python_finds_equal_stay_apart() -> None:
    query = "SELECT -0.0D * price AS a FROM bids UNION ALL SELECT 0.0D * price AS a FROM bids"
    [union] = [each for each in _all(_pruned(query)) if len(list(inputs_of(each))) == 2]
    left, right = inputs_of(union)
    assert left is not right


def test_a_row_that_may_be_taken_back_is_whole_where_it_has_an_arrival_time() -> None:
    plan = bind("SELECT price, Sys.MTime FROM bids", Tables(COLUMNS, {}, {})).relation
    whole = [each.name for each in COLUMNS["bids"]]
    for retracting, names in ((frozenset[str](), ["price"]), (frozenset(["bids"]), whole)):
        [scan] = (each for each in _all(prune(plan, retracting)) if isinstance(each, Scan))
        assert _names(scan) == [*names, "Sys.MTime"]


def test_each_input_is_read_with_the_columns_of_all_its_uses() -> None:
    plan = _pruned("SELECT price FROM bids WHERE at > 5 UNION ALL SELECT bidder FROM bids")
    assert {tuple(_names(each)) for each in _all(plan) if isinstance(each, Scan)} == {
        ("price", "at", "bidder")
    }


def test_a_plan_whose_parts_have_many_readers_is_read_once() -> None:
    plan = bind("SELECT price FROM bids", Tables(COLUMNS, {}, {})).relation
    for _ in range(40):
        plan = Union_((plan, plan), plan.columns)
    pruned = prune(plan)
    for _ in range(40):
        left, right = inputs_of(pruned)
        assert left is right
        pruned = left
    assert _names(pruned) == ["price"]
