"""A value beyond its type comes back equal from a border, or is refused by name, alike from dicts, Rows and tuples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.values.types import TYPES
from tests.values.borders import BORDERS
from tests.values.matrix import Border, Column, refusals

WRITTEN_ALIKE = {
    "Parquet of Spark's types",
    "Parquet with INT96",
    "CSV with line ends in quotes",
    "changes of PostgreSQL",
}
"""The borders that read what others write."""


def columns_of(border: Border) -> dict[str, Column]:
    """The first column of each type, whose values stand alone."""
    found: dict[str, Column] = {}
    for column in border.columns:
        if not column.within:
            found.setdefault(column.type.name, column)
    return found


BEYOND = [
    pytest.param(border, column, value, id=f"{border.name} {column.type.name} {value!a}"[:80])
    for border in BORDERS
    if border.trip is not None
    for column in columns_of(border).values()
    for value in column.type.beyond
]


@pytest.mark.parametrize(("border", "column", "value"), BEYOND)
def test_a_value_beyond_its_type_is_refused_by_name_or_comes_back(
    border: Border, column: Column, value: Any, tmp_path: Path
) -> None:
    assert refusals(border, column, value, tmp_path) == {}


def test_every_border_and_every_type_is_tried() -> None:
    assert {border.name for border in BORDERS if border.trip is None} == WRITTEN_ALIKE
    tried = {each.values[1].type.name for each in BEYOND}  # type: ignore[attr-defined]
    assert tried == {kind.name for kind in TYPES}


TEXT_OR_OBJECTS = {"JSON", "CSV"}
"""The borders that write each value by its own class."""


@pytest.mark.parametrize(
    "border",
    [each for each in BORDERS if each.trip and each.name not in TEXT_OR_OBJECTS],
    ids=lambda border: border.name,
)
def test_a_border_asks_the_table_which_classes_may_stand_for_a_type(
    border: Border, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in TYPES:
        monkeypatch.setitem(vars(kind), "takes", lambda kind: True)
    assert any(
        refusals(border, column, value, tmp_path)
        for column in columns_of(border).values()
        for value in column.type.beyond
    )


@pytest.mark.parametrize("border", [each for each in BORDERS if each.trip], ids=lambda border: border.name)
def test_a_border_that_skips_its_check_is_found(
    border: Border, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert border.trip is not None
    border.trip.break_it(monkeypatch)
    assert any(
        refusals(border, column, value, tmp_path)
        for column in columns_of(border).values()
        for value in column.type.beyond
    )
