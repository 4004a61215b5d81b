"""Relations that are divided by the same key are one step, and give what they would give one by one."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution import chain_steps, key_chains, lowering
from penstock.sql.plan.key_chains import KeyChain, chain_of
from penstock.sql.plan.pruning import prune
from penstock.sql.plan.relations import ColumnDef, Join, Relation, inputs_of
from penstock.typehints import row_type
from tests.sql.law import Broken, _nets, first_broken
from tests.sql.random_queries import Text
from tests.sql.relations import EPOCH, KINDS, Advance, Change, Input, Rows, changes, expected, random_input

_ORDER = "b.w DESC, a.v, a.s, b.s, a.ts, b.ts"
QUERIES = {
    "ranked pairs": f"""
        SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k
        QUALIFY ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY {_ORDER}) <= 2
    """,
    "numbered pairs": f"""
        SELECT a.k, b.w, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY {_ORDER}) AS place
        FROM a JOIN b ON a.k = b.k AND a.v >= b.w QUALIFY place <= 3
    """,
    "sums of pairs": """
        SELECT a.v, COUNT(*) AS n, SUM(w) AS t FROM a JOIN b ON a.v = b.w GROUP BY a.v HAVING SUM(b.k) > 0
    """,
    "joined groups": """
        SELECT c.k, n, m FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) AS c
        JOIN (SELECT k, MAX(w) AS m FROM b GROUP BY k) AS d ON c.k = d.k
    """,
    "sums of first rows": """
        SELECT v, SUM(k) AS t FROM (
            SELECT k, v FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY v ORDER BY k DESC, s, ts) <= 2
        ) GROUP BY v
    """,
    "groups of an outer join": """
        SELECT a.k, COUNT(b.w) AS n, SUM(a.v) AS t FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k
    """,
    "first rows of an outer join": """
        SELECT a.k, a.v, b.w FROM a LEFT JOIN b ON a.k = b.k AND a.v >= b.w
        QUALIFY ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY b.w DESC, a.v, a.s, b.s, a.ts, b.ts) <= 2
    """,
    "groups with a partner": """
        SELECT k, COUNT(*) AS n, SUM(v) AS t FROM a
        WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w <> a.v) GROUP BY k
    """,
    "groups without a partner": """
        SELECT k, COUNT(*) AS n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > a.v) GROUP BY k
    """,
    "rows of arrays of groups": """
        SELECT c.k, n, x.m FROM
            (SELECT k, COUNT(*) AS n, ARRAY_AGG(v) FILTER (WHERE v IS NOT NULL) AS vs FROM a GROUP BY k) AS c
            CROSS JOIN UNNEST(c.vs) AS x(m)
        QUALIFY ROW_NUMBER() OVER (PARTITION BY c.k ORDER BY x.m DESC) <= 2
    """,
    "a table with itself": """
        SELECT c.k, v, n FROM a JOIN (SELECT k, COUNT(v) AS n FROM a GROUP BY k) AS c ON a.k = c.k WHERE n > 1
    """,
}
HELD = {
    "ranked pairs": f"{QUERIES['ranked pairs'].replace('a.v, b.w', 'a.v, b.w, a.ts')} EMIT WHEN WATERMARK PAST ts",
    "the most of a window": """
        WITH counts AS (
            SELECT window_end, k, COUNT(*) AS n FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECOND)
            GROUP BY window_start, window_end, k EMIT AFTER WATERMARK
        )
        SELECT counts.window_end, k, n FROM counts
        JOIN (SELECT window_end, MAX(n) AS most FROM counts GROUP BY window_end) AS highest
        ON counts.window_end = highest.window_end AND n = most EMIT AFTER WATERMARK
    """,
}


def _chains(query: str) -> list[KeyChain]:
    columns = {}
    for name, kind in KINDS.items():
        row = row_type.RowTypeConstraint.from_user_type(kind)
        assert row is not None
        columns[name] = tuple(ColumnDef(field, from_hint(hint)) for field, hint in row.fields)
    waiting: list[Relation] = [prune(bind(query, Tables(columns, {}, {})).relation)]
    found = []
    while waiting:
        relation = waiting.pop()
        waiting += inputs_of(relation)
        if (chain := chain_of(relation, lowering._has_windows)) is not None:
            found.append(chain)
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_relations_with_one_key_are_one_chain(name: str) -> None:
    sizes = {"joined groups": 3}
    assert max(chain.size for chain in _chains(QUERIES[name])) == sizes.get(name, 2)


@pytest.mark.parametrize("name", HELD)
def test_what_holds_rows_back_is_in_the_chain(name: str) -> None:
    longest = max(_chains(HELD[name]), key=lambda chain: chain.size)
    assert (longest.size, longest.emitted is not None) == (3, True)
    assert longest.is_one_time == (name == "the most of a window")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, SUM(a.v) AS t FROM a JOIN b ON a.k = b.k AND a.s = b.s GROUP BY a.k",
        "SELECT a.s, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.s",
        "SELECT b.k, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.k",
        "SELECT a.k, COUNT(*) AS n FROM a FULL JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT v, COUNT(*) AS n FROM (SELECT EXPLODE(ARRAY_AGG(v)) AS v FROM a GROUP BY k) GROUP BY v",
    ],
)
def test_relations_with_other_keys_are_no_chain(query: str) -> None:
    assert _chains(query) == []


def check_chain(seed: int, query: str, has_forms: bool = False) -> None:
    """Checks the changes of a query over the input of a seed.

    Raises:
        Broken: They are others.
    """
    given = random_input(seed)
    if has_forms:
        given = given.in_forms(Random(seed))
    found = list(changes(query, given, shards=Random(seed).choice([1, 2])))
    wanted = expected(Text(query, query), given, [each.events for each in found])
    for place, (net, rows) in enumerate(zip(_nets(found, "CHANGES", has_forms), wanted, strict=True)):
        if net != rows:
            raise Broken(f"seed {seed}, after {place} events: {net} instead of {rows}\n{query}")


@pytest.mark.parametrize("name", QUERIES)
def test_a_chain_always_gives_what_it_means_of_the_rows_so_far(name: str) -> None:
    for seed in range(12):
        check_chain(seed, QUERIES[name])


@pytest.mark.parametrize("name", ["ranked pairs", "sums of pairs", "joined groups"])
def test_a_chain_takes_equal_values_for_one_whatever_they_look_like(name: str) -> None:
    for seed in range(12):
        check_chain(seed, QUERIES[name], has_forms=True)


def _given(query: str, seed: int) -> list[Rows]:
    """What is left after each micro-batch."""
    given = random_input(seed, retracts=False)
    found = changes(query, Input((*given.events, Advance(None, 1_000)), False))
    return list(_nets(found, "CHANGES"))


@pytest.mark.parametrize("name", HELD)
def test_a_chain_holds_back_and_drops_what_its_relations_do_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(12):
        together = _given(HELD[name], seed)
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "chain_of", lambda relation, is_alone: None)
            assert together == _given(HELD[name], seed), seed


Patch = Callable[[pytest.MonkeyPatch], None]


def _no_retraction_of_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chain_steps, "compute_difference", lambda before, after: ((), after))


def _null_is_a_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lowering, "_not_null", lambda scalars: None)


def _one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    """Pairs of rows that come together on both sides are seen from both sides."""
    was = chain_steps.JoinPairs.advance

    def advance(self: Any, held: Any, given: Any) -> Any:
        found = was(self, held, given)
        return [*found, *found] if all(given) else found

    patch.setattr(chain_steps.JoinPairs, "advance", advance)


def _bytes_are_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lowering, "canonicalize_keys", tuple)


def _any_row_leaves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chain_steps.JoinPairs, "_take", lambda self, held, key, row, form: row)


def _a_partner_changes_no_left_row(patch: pytest.MonkeyPatch) -> None:
    was = chain_steps.JoinPairs._changes_of_lefts

    def changes(self: Any, held: Any, key: object, sign: int, row: Any) -> Any:
        return [each for each in was(self, held, key, sign, row) if self._kind == "left" and each[0] == sign]

    patch.setattr(chain_steps.JoinPairs, "_changes_of_lefts", changes)


def _each_partner_counts(patch: pytest.MonkeyPatch) -> None:
    was = chain_steps.JoinPairs._pairs
    patch.setattr(
        chain_steps.JoinPairs,
        "_pairs",
        lambda self, held, key, side, sign, row: was(self, held, key, side, sign, row)[: 1 - side or None],
    )


def _rows_without_a_partner_stay(patch: pytest.MonkeyPatch) -> None:
    was = lowering.may_change_rows
    patch.setattr(
        lowering, "may_change_rows", lambda relation: not isinstance(relation, Join) and was(relation)
    )


BREAKS: dict[str, tuple[Patch, str, bool]] = {
    "a group does not take its old row back": (_no_retraction_of_groups, "joined groups", False),
    "NULL equals NULL": (_null_is_a_key, "ranked pairs", False),
    "pairs that come together count twice": (_one_after_the_other, "a table with itself", False),
    "a row that is taken back stays": (_any_row_leaves, "ranked pairs", False),
    "a left row keeps its NULLs": (_a_partner_changes_no_left_row, "groups of an outer join", False),
    "a partner that comes lets no left row through": (
        _a_partner_changes_no_left_row,
        "groups with a partner",
        False,
    ),
    "a left row stays although it has a partner": (
        _a_partner_changes_no_left_row,
        "groups without a partner",
        False,
    ),
    "a second partner is as good as the first": (_each_partner_counts, "groups with a partner", False),
    "nothing is retracted behind an outer join": (
        _rows_without_a_partner_stay,
        "groups of an outer join",
        False,
    ),
    "keys are compared by their bytes": (_bytes_are_compared, "sums of pairs", True),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_law_of_chains_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, query, has_forms = BREAKS[name]
    patch(monkeypatch)
    assert first_broken(range(30), lambda seed: check_chain(seed, QUERIES[query], has_forms)) is not None


def test_rows_whose_time_has_passed_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    late = [
        Change("a", ((1, (1, "x", 5, EPOCH + datetime.timedelta(seconds=seconds))),)) for seconds in (8, 2)
    ]
    other = Change("b", ((1, (1, "x", 7, EPOCH)),))
    given = Input((other, Advance("b", 5), late[0], Advance("a", 5), late[1], Advance(None, 1)), False)
    query = """
        SELECT a.k, a.v, a.ts FROM a JOIN b ON a.k = b.k
        QUALIFY ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY a.ts) <= 2 EMIT WHEN WATERMARK PAST ts
    """

    def seconds() -> list[int]:
        return [row.ts.second for each in changes(query, given) for _, row in each.changes]

    assert seconds() == [8]
    monkeypatch.setattr(key_chains.HeldChainFn, "_is_late", lambda self, passed, end: False)
    assert seconds() == [2, 8]
