"""A condition on the number of a row bounds what the numbering keeps, wherever the condition is written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.execution.unbounded_state import list_kept_state
from penstock.sql.plan.relations import ColumnDef, Relation, Top, inputs_of
from penstock.typehints import row_type
from tests.sql.law import check_text
from tests.sql.relations import KINDS, Change, random_input

_NUMBERED = "(SELECT k, s, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, s) AS n FROM a) AS t"
LIMITED = {
    f"SELECT * FROM {_NUMBERED} WHERE n <= 2": 2,
    f"SELECT * FROM {_NUMBERED} WHERE n < 2": 1,
    f"SELECT * FROM {_NUMBERED} WHERE n = 2": 2,
    f"SELECT * FROM {_NUMBERED} WHERE 2 >= n": 2,
    f"SELECT * FROM {_NUMBERED} WHERE 2 > n AND v > 1": 1,
    f"SELECT * FROM {_NUMBERED} WHERE v > 1 AND (n <= 2 AND s = 'x')": 2,
    f"SELECT * FROM {_NUMBERED} WHERE n <= 3 AND n < 2 AND n > 0": 1,
    f"SELECT * FROM {_NUMBERED} WHERE n BETWEEN 2 AND 3": 3,
    f"SELECT * FROM {_NUMBERED} WHERE n < 0": 0,
    f"SELECT m FROM (SELECT k, n AS m FROM {_NUMBERED} WHERE v > 1) AS u WHERE m <= 2": 2,
    f"WITH t AS (SELECT * FROM {_NUMBERED}) SELECT k, n FROM t WHERE n = 1": 1,
    f"SELECT t.k, b.w FROM {_NUMBERED} JOIN b ON t.k = b.k WHERE t.n <= 2": 2,
    "SELECT k, v FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) <= 2": 2,
    "SELECT k, v FROM a QUALIFY 2 >= ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AND k > 0": 2,
}
"""Queries, and how many rows of each partition are numbered."""
UNLIMITED = [
    f"SELECT * FROM {_NUMBERED} WHERE n <= 2 OR v > 1",
    f"SELECT * FROM {_NUMBERED} WHERE n > 2",
    f"SELECT * FROM {_NUMBERED} WHERE NOT n <= 2",
    f"SELECT * FROM {_NUMBERED} WHERE n <= v",
    f"SELECT * FROM {_NUMBERED} WHERE v <= 2",
    f"SELECT * FROM {_NUMBERED} WHERE n + v <= 2",
    f"SELECT k, COUNT(*) AS c FROM {_NUMBERED} GROUP BY k HAVING COUNT(*) <= 2",
    f"SELECT t.k, b.w, t.n FROM b LEFT JOIN {_NUMBERED} ON t.k = b.k WHERE t.n <= 2 OR t.n IS NULL",
    f"SELECT k, n, ROW_NUMBER() OVER (ORDER BY v, k, n) AS m FROM {_NUMBERED} QUALIFY n <= 2",
]


INPUTS = (1, 3, 8)
"""Inputs in which rows are taken back."""


def _tops(relation: Relation) -> Iterator[Top]:
    if isinstance(relation, Top):
        yield relation
    for each in inputs_of(relation):
        yield from _tops(each)


def _plan(query: str) -> Relation:
    columns = {}
    for name, kind in KINDS.items():
        row = row_type.RowTypeConstraint.from_user_type(kind)
        assert row is not None
        columns[name] = tuple(ColumnDef(field, from_hint(hint)) for field, hint in row.fields)
    return bind(query, Tables(columns, {}, {})).relation


@pytest.mark.parametrize("query", LIMITED)
def test_a_condition_on_the_number_limits_what_is_numbered(query: str) -> None:
    plan = _plan(query)
    assert [top.limit for top in _tops(plan)] == [LIMITED[query]]
    assert not any("add a condition" in told for told in list_kept_state(plan, {"a"}))


@pytest.mark.parametrize("query", UNLIMITED)
def test_any_other_condition_numbers_all_rows(query: str) -> None:
    assert [*_tops(_plan(query))] == []


@pytest.mark.parametrize("query", [*LIMITED, *UNLIMITED])
def test_the_rows_are_those_of_all_numbers_also_when_rows_are_taken_back(query: str) -> None:
    for seed in INPUTS:
        check_text(query, seed)


def test_rows_are_taken_back_in_these_inputs() -> None:
    for seed in INPUTS:
        changes = [each for each in random_input(seed).events if isinstance(each, Change)]
        assert any(sign < 0 for change in changes for sign, _ in change.rows)
