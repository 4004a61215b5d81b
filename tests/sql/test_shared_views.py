"""A view that several queries name is one relation for all of them."""

from __future__ import annotations

from penstock.scalars.types import BIGINT
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.plan.relations import ColumnDef, Join, Scan, count_uses, walk_plan

COLUMNS = (ColumnDef("k", BIGINT), ColumnDef("v", BIGINT))
DEPTH = 12


def doubling(depth: int) -> dict[str, str]:
    """Views of which each joins the one before with itself."""
    views = {"v0": "SELECT k, v FROM t"}
    for at in range(depth):
        views[f"v{at + 1}"] = f"SELECT a.k, a.v + b.v AS v FROM v{at} a JOIN V{at} b ON a.k = b.k"
    return views


def test_a_chain_of_views_that_doubles_has_each_view_once() -> None:
    plan = bind(f"SELECT * FROM v{DEPTH}", Tables({"t": COLUMNS}, doubling(DEPTH), {})).relation
    kinds = [type(each) for each in walk_plan(plan)]
    assert (kinds.count(Join), kinds.count(Scan)) == (DEPTH, 1)
    assert count_uses(plan) > 2**DEPTH


def test_a_subquery_beside_a_view_adds_nothing_to_the_view() -> None:
    views = {"w": "SELECT k, v FROM t"}
    text = """
        SELECT a.v AS own, (SELECT MAX(v) FROM w) AS most, b.*
        FROM w AS a JOIN (SELECT *, (SELECT COUNT(*) FROM w) AS n FROM w) AS b ON a.k = b.k
    """
    found = bind(text, Tables({"t": COLUMNS}, views, {}))
    assert [name for name, _ in found.shown] == ["own", "most", "k", "v", "n"]
