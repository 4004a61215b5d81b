"""A query means the same in small letters and in capitals."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from penstock.scalars.types import from_hint
from penstock.sql.binding.queries import bind
from penstock.sql.binding.statement import Tables
from penstock.sql.errors import SqlError
from penstock.sql.plan.relations import ColumnDef, describe_plan
from penstock.typehints.row_type import RowTypeConstraint
from tests.sql.paired_queries import paired_query
from tests.sql.query_cases import CASES
from tests.sql.random_over import random_over_query
from tests.sql.random_queries import random_query
from tests.sql.relations import KINDS

_TEXT = re.compile(r"'[^']*'|`[^`]*`|[^'`]+")
COLUMNS = {
    name: tuple(
        ColumnDef(field, from_hint(hint)) for field, hint in RowTypeConstraint.from_user_type(kind).fields
    )
    for name, kind in KINDS.items()
}


def changed(query: str, change: Callable[[str], str]) -> str:
    """A query with what is not in quotes in other letters."""
    return "".join(part if part[0] in "'`" else change(part) for part in _TEXT.findall(query))


def plan_of(query: str, columns: dict[str, tuple[ColumnDef, ...]]) -> str:
    """The plan of a query, or why there is none, in small letters."""
    try:
        return describe_plan(bind(query, Tables(columns, {}, {})).relation).lower()
    except SqlError as error:
        return str(error).splitlines()[0].lower()


def check(query: str, columns: dict[str, tuple[ColumnDef, ...]]) -> None:
    plan = plan_of(query, columns)
    for change in (str.lower, str.upper):
        assert plan_of(changed(query, change), columns) == plan, query


def test_queries_of_the_cases_mean_the_same_in_other_letters() -> None:
    for case in CASES:
        columns = {
            name: tuple(ColumnDef(column, from_hint(hint)) for column, hint in table.row_type.fields)
            for name, table in case.tables.items()
        }
        check(case.query, columns)


@pytest.mark.parametrize(
    "made",
    [random_query, random_over_query, lambda seed: paired_query(seed)[0]],
    ids=["plain", "over", "paired"],
)
def test_random_queries_mean_the_same_in_other_letters(made: Callable[[int], object]) -> None:
    for seed in range(25):
        check(made(seed).text.own, COLUMNS)  # type: ignore[attr-defined]
