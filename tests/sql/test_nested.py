"""Queries with arrays, maps, structs and lambdas, at every moment, against DuckDB; broken rules are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from random import Random
from typing import Any

import pytest

from penstock.elements.row import Row
from penstock.scalars.function import choose_at_run_time
from penstock.scalars.functions import RECORDS
from penstock.sql.aggregates import cells, extremes
from penstock.sql.execution import equality
from tests.sql.law import Broken, check_net, first_broken
from tests.sql.nested_queries import FORMS, nested_query
from tests.sql.relations import expected, final_rows, random_input
from tests.sql.test_law import Patch, starts

ALWAYS, ALL, BLOCK = 22, 880, 22


def check(seed: int, form: str = "") -> None:
    """Checks the query of a seed over the input of the seed: after each micro-batch, and perhaps in a batch.

    Raises:
        Broken: Its result is not what it must be.
    """
    query, given, random = nested_query(seed, form), random_input(seed), Random(seed)
    settings = random.choice(["streaming", "micro_batch"]), random.choice([1, 2]), random.choice([None, 1, 2])
    check_net(seed, query, given, *settings)
    if random.random() < 0.3:
        found = final_rows(query.own, given)
        [rows] = expected(query, given, [len(given.happenings)])
        if found != rows:
            raise Broken(f"seed {seed}, in batch: {found} is not {rows}\n{query.own}")


@pytest.mark.parametrize("start", starts(ALL, BLOCK, ALWAYS))
def test_nested_values_mean_the_same_at_every_moment(start: int) -> None:
    for seed in range(start, start + BLOCK):
        check(seed)


# Mutants: each breaks one rule, which queries of a form find.


def _always(value: object) -> Callable[..., object]:
    return lambda *given: value


def _no_forms_of_arrays(patch: pytest.MonkeyPatch) -> None:
    was = equality.canonicalizer_of
    patch.setattr(
        equality, "canonicalizer_of", lambda kind: (lambda value: [0]) if kind.name == "ARRAY" else was(kind)
    )


def _computes(name: str, compute: Any) -> Patch:
    """A break of a function: what computes it of values."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        broken = replace(RECORDS[name], python=choose_at_run_time(compute))
        patch.setitem(RECORDS, name, broken)  # type: ignore[arg-type]

    return apply


def _structs_by_their_first_field(patch: pytest.MonkeyPatch) -> None:
    def compared(value: Any) -> tuple[int, Any]:
        return (0, next(iter(value))) if isinstance(value, Row) else was(value)

    was = extremes.ordered
    patch.setattr(extremes, "ordered", compared)
    patch.setattr(cells, "ordered", compared)


MUTANTS: dict[str, tuple[Patch, str]] = {
    "all arrays are one key": (_no_forms_of_arrays, "distinct"),
    "structs are ordered by their first field": (_structs_by_their_first_field, "extreme"),
    "a fold of structs compares rows as Python does": (
        lambda patch: patch.setattr(extremes, "kind_of", _always("STRING")),
        "extreme",
    ),
    "FILTER keeps what is NULL": (
        _computes("FILTER", lambda array, test: [each for each in array if test(each) is not False]),
        "distinct",
    ),
    "AGGREGATE leaves out the first element": (
        _computes("AGGREGATE", lambda array, start, merge: reduce(merge, array[1:], start)),
        "collected",
    ),
    "GET counts from 1": (
        _computes("GET", lambda array, index: array[index - 1] if 0 < index <= len(array) else None),
        "above",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_law_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, form = MUTANTS[name]
    patch(monkeypatch)
    assert first_broken(range(30), lambda seed: check(seed, form)) is not None


def test_there_are_queries_of_all_forms() -> None:
    assert len({nested_query(seed, form).own for form in FORMS for seed in range(3)}) > 2 * len(FORMS)
