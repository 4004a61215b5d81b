"""Queries with two kinds of clauses in each, at every moment, against DuckDB."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from penstock.scalars.function import choose_always
from penstock.scalars.functions import RECORDS
from penstock.sql.aggregates import extremes
from penstock.sql.binding import groupings
from penstock.sql.plan import decorrelation
from tests.sql.law import check, first_broken
from tests.sql.paired_queries import CLAUSES, PAIRS, paired_query
from tests.sql.test_correlated import (
    _count_of_nothing,
    _never_unknown,
    _no_nulls_in_not_in,
    _semi_as_inner,
)
from tests.sql.test_law import (
    Patch,
    _as_all,
    _first_rows,
    _joins,
    _no_residual,
    _one_row_too_many,
    _sets_changed,
    _windows,
    starts,
)
from tests.sql.test_over import _frames

ALWAYS, ALL, BLOCK = 7, 1_092, 7


def check_pair(seed: int, pair: tuple[str, ...] = ()) -> None:
    """Checks the query of a seed, with the clauses of a pair; by default of the next of `PAIRS`."""
    query, _ = paired_query(seed, pair)
    # DuckDB itself fails at one query in a few hundred.
    with contextlib.suppress(duckdb.Error):
        check(seed, query=query)


@pytest.mark.parametrize("start", starts(ALL, BLOCK, ALWAYS))
def test_a_query_with_two_kinds_of_clauses_always_gives_what_it_means(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check_pair(seed)


def test_each_pair_of_clauses_has_queries() -> None:
    assert 10 * len(PAIRS) <= ALL
    assert len(PAIRS) == len(CLAUSES) * (len(CLAUSES) - 1) // 2
    for seed in range(0, len(PAIRS), 7):
        query, clauses = paired_query(seed)
        assert {*PAIRS[seed]} <= clauses, query.text.own


# Mutants: each breaks a rule of one kind of clauses.


def _inner_lateral(patch: pytest.MonkeyPatch) -> None:
    was = decorrelation.Correlation.join

    def join(self: Any, left: Any, right: Any, kind: str, *others: Any, **named: Any) -> Any:
        return was(self, left, right, "inner" if kind == "left" else kind, *others, **named)

    patch.setattr(decorrelation.Correlation, "join", join)


def _give_their_arguments(patch: pytest.MonkeyPatch) -> None:
    for name in ("ABS", "UPPER", "REVERSE", "BIT_COUNT", "NULLIF", "REPLACE", "LPAD"):
        given = choose_always(lambda value, *others: value)
        patch.setitem(RECORDS, name, replace(RECORDS[name], python=given))


MUTANTS: dict[str, tuple[str, Patch]] = {
    "a semi join repeats rows": ("EXISTS", _semi_as_inner),
    "NOT IN overlooks NULL": ("IN", _no_nulls_in_not_in),
    "ANY and ALL are never NULL": ("quantified", _never_unknown),
    "COUNT of no rows is NULL": ("value", _count_of_nothing),
    "a left join with LATERAL keeps no rows": ("LATERAL", _inner_lateral),
    "some functions give their arguments": ("functions", _give_their_arguments),
    "a frame has no end": ("OVER", _frames(lambda frame: replace(frame, end=None))),
    "a grouping set is missing": ("grouping sets", _sets_changed(lambda sets: sets[1:])),
    "other conditions of joins are ignored": ("any join", _joins(_no_residual)),
    "MIN is MAX": ("aggregates", lambda patch: patch.setattr(extremes, "least", extremes.greatest)),
    "EXCEPT keeps copies": ("set operation", _as_all),
    "a window is missing": ("windows", _windows(lambda found: found[1:], "hop")),
    "DISTINCT is ignored": (
        "DISTINCT",
        lambda patch: patch.setattr(groupings, "distinct", lambda relation: relation),
    ),
    "LIMIT gives a row too many": ("LIMIT", _first_rows(_one_row_too_many)),
}
SEEDS = {
    "a semi join repeats rows": 17,
    "ANY and ALL are never NULL": 6,
    "a frame has no end": 31,
    "a grouping set is missing": 6,
    "other conditions of joins are ignored": 11,
    "EXCEPT keeps copies": 33,
    "a window is missing": 18,
    "DISTINCT is ignored": 31,
    "NOT IN overlooks NULL": 6,
    "a left join with LATERAL keeps no rows": 7,
    "some functions give their arguments": 22,
    "MIN is MAX": 33,
}
"""Where the queries that find some of them begin."""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_pairs_find(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clause, patch = MUTANTS[name]
    patch(monkeypatch)
    others = [each for each in CLAUSES if each != clause]
    seeds = sorted(range(120), key=lambda seed: seed < SEEDS.get(name, 0))
    assert (
        first_broken(seeds, lambda seed: check_pair(seed, (clause, others[seed % len(others)]))) is not None
    )


def test_each_kind_of_clauses_has_a_mutant() -> None:
    assert {clause for clause, _ in MUTANTS.values()} == {*CLAUSES}
