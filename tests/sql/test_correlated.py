"""Queries with subqueries that read the queries around them, at every moment, against DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import duckdb
import pytest

from penstock.scalars.tree import Literal
from penstock.scalars.types import BOOLEAN
from penstock.sql.binding import joining, on_queries, subqueries
from penstock.sql.execution import lowering
from penstock.sql.plan import decorrelation
from penstock.sql.plan.relations import Filter
from penstock_spark.reports.failure import StepFailure, find_failure
from tests.sql.correlated_queries import FORMS, KINDS, correlated_query
from tests.sql.law import Broken, check_net, first_broken
from tests.sql.relations import Change, Input, as_rows, changes, expected, final_rows, random_input
from tests.sql.test_law import Patch, starts

ALWAYS, ALL, BLOCK = 30, 900, 30


def check(seed: int, wanted: Sequence[str] = KINDS) -> None:
    """Checks the query of a seed over the input of the seed: after each micro-batch, and perhaps in a batch.

    Raises:
        Broken: Its result is not what it must be.
    """
    query, _ = correlated_query(seed, wanted)
    given, random = random_input(seed), Random(seed)
    settings = random.choice(["streaming", "micro_batch"]), random.choice([1, 2]), random.choice([None, 1, 2])
    check_net(seed, query.text, given, *settings)
    if random.random() < 0.3:
        found = final_rows(query.text.own, given)
        [rows] = expected(query.text, given, [len(given.happenings)])
        if found != rows:
            raise Broken(f"seed {seed}, in batch: {found} is not {rows}\n{query.text.own}")


@pytest.mark.parametrize("start", starts(ALL, BLOCK, ALWAYS))
def test_a_subquery_means_its_rows_for_each_row_around_it(start: int) -> None:
    for seed in range(start, start + BLOCK):
        try:
            check(seed)
        except duckdb.Error:
            # DuckDB itself fails at one query in a few hundred.
            continue


def test_the_queries_have_all_kinds_and_forms() -> None:
    made = [correlated_query(seed)[1] for seed in range(ALWAYS)]
    assert set().union(*(each.kinds for each in made)) == {*KINDS}
    assert set().union(*(each.forms for each in made)) == {*FORMS}


# Mutants: each breaks one rule.


def _count_of_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decorrelation, "_of_nothing", lambda call: Literal(None, call.type))


def _no_nulls_in_not_in(patch: pytest.MonkeyPatch) -> None:
    was = decorrelation.Correlation.join

    def join(self: Any, left: Any, right: Any, kind: str, *others: Any, **named: Any) -> Any:
        if kind == "left_anti" and not right.columns:
            # Only an anti join of rows that never are.
            right = Filter(right, Literal(False, BOOLEAN.or_null(False)))
        return was(self, left, right, kind, *others, **named)

    patch.setattr(decorrelation.Correlation, "join", join)


def _domain_without_null(patch: pytest.MonkeyPatch) -> None:
    was = decorrelation._Unnesting._exact_keys
    patch.setattr(
        decorrelation._Unnesting,
        "_exact_keys",
        lambda self, *given: tuple(replace(key, is_null_safe=False) for key in was(self, *given)),
    )


def _domain_with_copies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decorrelation, "distinct", lambda relation: relation)


def _semi_as_inner(patch: pytest.MonkeyPatch) -> None:
    was = lowering.Lowering._join

    def join(self: Any, relation: Any) -> Any:
        if relation.kind != "semi":
            return was(self, relation)
        joined = replace(relation, kind="inner", condition=None)
        rows = joined if relation.condition is None else Filter(joined, relation.condition)
        columns = lowering.columns_as_scalars(relation.columns)
        return self.lower(lowering.Project(rows, columns, relation.columns))

    patch.setattr(lowering.Lowering, "_join", join)


def _never_unknown(patch: pytest.MonkeyPatch) -> None:
    was = subqueries._three_valued
    patch.setattr(
        subqueries,
        "_three_valued",
        lambda value, all_rows, with_values, *others, **named: was(
            Literal(1, all_rows.type), all_rows, all_rows, *others, **named
        ),
    )


def _conditions_lost(patch: pytest.MonkeyPatch) -> None:
    was = decorrelation._Unnesting.ground
    patch.setattr(
        decorrelation._Unnesting,
        "ground",
        lambda self, rows, *given: was(self, replace(rows, conditions=()), *given),
    )


def _limit_of_all(patch: pytest.MonkeyPatch) -> None:
    was = decorrelation._Unnesting._by_outer_rows

    def top(self: Any, relation: Any) -> Any:
        rows = was(self, relation)
        if isinstance(rows.relation, decorrelation.Top):
            rows = replace(rows, relation=replace(rows.relation, keys=relation.keys))
        return rows

    patch.setattr(decorrelation._Unnesting, "_by_outer_rows", top)


def _outer_joins_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(joining, "rejects_null", lambda condition, columns: True)


def _no_nulls_in_tuples(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subqueries, "_any_null", lambda scalars: None)


def _first_condition_of_on(patch: pytest.MonkeyPatch) -> None:
    was = on_queries.conjoin
    patch.setattr(on_queries, "conjoin", lambda parts: was([*parts][:1]))


MUTANTS: dict[str, tuple[Patch, Sequence[str]]] = {
    "COUNT of no rows is NULL": (_count_of_nothing, ["aggregate"]),
    "NOT IN overlooks NULL": (_no_nulls_in_not_in, ["NOT IN"]),
    "NOT IN overlooks NULL in tuples": (_no_nulls_in_tuples, ["NOT IN"]),
    "a query in ON is not asked": (_first_condition_of_on, ["EXISTS"]),
    "the domain has no NULL": (_domain_without_null, ["aggregate", "ALL"]),
    "the domain has copies": (_domain_with_copies, ["aggregate", "first row"]),
    "a semi join repeats rows": (_semi_as_inner, ["IN", "EXISTS"]),
    "IN is never NULL": (_never_unknown, ["OR", "NOT IN"]),
    "conditions of the domain are lost": (_conditions_lost, ["aggregate"]),
    "LIMIT is of the rows of all outer rows": (_limit_of_all, ["first row"]),
    "a value that is NULL removes its row": (_outer_joins_lost, ["aggregate", "OR"]),
}
SEEDS = {
    "a query in ON is not asked": 110,
    "IN is never NULL": 12,
    "the domain has no NULL": 16,
    "conditions of the domain are lost": 12,
    "LIMIT is of the rows of all outer rows": 19,
    "a value that is NULL removes its row": 33,
}
"""The first seeds whose queries find some of them."""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, wanted = MUTANTS[name]
    patch(monkeypatch)
    seeds = sorted(range(120), key=lambda seed: seed < SEEDS.get(name, 0))
    assert first_broken(seeds, lambda seed: check(seed, wanted)) is not None


# A value with two rows.

FIRST = "SELECT a.v, (SELECT b.s FROM b WHERE b.k = a.k) AS s FROM a"


def events(*keys: int, retracts: bool = False) -> Input:
    """A row of the first table with the key 1, then rows of the second one with these keys."""
    rows = [Change("b", ((1, (key, f"row {at}", 0, None)),)) for at, key in enumerate(keys)]
    return Input((Change("a", ((1, (1, "x", 5, None)),)), *rows), retracts)


@pytest.mark.parametrize("retracts", [False, True])
def test_a_value_with_two_rows_fails(retracts: bool) -> None:
    given = events(1, 1, retracts=retracts)
    message = failed(lambda: list(changes(FIRST, given)))
    place = f"""a subquery in an expression has 2 rows, not one
  line 1, column 23 of the query
    {FIRST}
    {" " * (FIRST.index("SELECT b.s") + len("SELECT b."))}^
"""
    assert message.startswith(place)
    assert "hint: aggregate it, for example with MAX, or write LIMIT 1" in message
    assert failed(lambda: final_rows(FIRST, given)) == message


def failed(run: Callable[[], object]) -> str:
    """The message of the error in a step that something raises; the step names the query."""
    with pytest.raises(StepFailure, match=r"at step 'SqlTransform.SELECT a.v, .SELECT b") as found:
        run()
    failure = find_failure(str(found.value))
    assert failure is not None
    return failure.message


def test_two_rows_for_no_row_around_are_no_error() -> None:
    given = events(2, 1, 2)
    found = [(sign, *row) for each in changes(FIRST, given) for sign, row in each.changes]
    assert found == [(1, 5, None), (-1, 5, None), (1, 5, "row 1")]
    assert final_rows(FIRST, given) == as_rows([(5, "row 1")])


def test_rows_that_are_for_no_row_around_would_fail_if_they_were_not_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decorrelation._Unnesting, "_restricted", lambda self, rows: rows)
    assert "has 2 rows, not one" in failed(lambda: list(changes(FIRST, events(2, 2))))
