"""The scalar functions that people use most have a record, or a reason that a query is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scalars.functions import FUNCTIONS
from penstock.scalars.refused_functions import REFUSED
from penstock.scalars.time_units import WITH_UNITS

POPULAR = [
    line.split()[0]
    for line in Path(__file__).with_name("popular_functions.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def absent(names: list[str]) -> list[str]:
    """The names that are neither called nor refused for a reason."""
    return [
        name for name in names if name not in FUNCTIONS and name not in WITH_UNITS and name not in REFUSED
    ]


def test_each_popular_function_has_a_record_or_a_reason() -> None:
    assert len(POPULAR) >= 140
    assert not absent(POPULAR)
    assert absent(["NO_SUCH_FUNCTION"]) == ["NO_SUCH_FUNCTION"]


def test_few_of_them_are_refused() -> None:
    assert sorted(set(POPULAR) & set(REFUSED)) == [
        *(
            "CURRENT_DATE",
            "CURRENT_TIME",
            "CURRENT_TIMESTAMP",
            "MAKE_INTERVAL",
            "MONOTONICALLY_INCREASING_ID",
        ),
        *("NOW", "RANDOM", "RANDSTR", "TIME", "UUID"),
    ]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_function_has_no_record_and_three_parts(name: str) -> None:
    what, hint = REFUSED[name]
    assert name not in FUNCTIONS
    assert what.startswith("{0} ")
    assert hint
