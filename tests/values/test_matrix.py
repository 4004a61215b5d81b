"""Values that cross a border arrive as the table of `penstock.values` says, on every way that needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from borders import BORDERS
from matrix import Border, Step, crossed, unaccounted

DIRECT = [
    pytest.param(border, way, id=f"{border.name} {way}")
    for border in BORDERS
    for way, read in border.ways.items()
    if not isinstance(read, Step)
]


@pytest.mark.parametrize(("border", "way"), DIRECT)
def test_values_arrive_as_the_table_says(border: Border, way: str, tmp_path: Path) -> None:
    assert crossed(border, way, tmp_path) == []


@pytest.mark.parametrize("border", BORDERS, ids=lambda border: border.name)
def test_a_border_has_each_type_or_says_why_not(border: Border) -> None:
    assert unaccounted(border) == set()


@pytest.mark.parametrize(
    "border", [each for each in BORDERS if each.break_it], ids=lambda border: border.name
)
def test_a_break_of_a_border_is_found(
    border: Border, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert border.break_it is not None
    border.break_it(monkeypatch)

    def finds(way: str) -> bool:
        try:
            return bool(crossed(border, way, tmp_path))
        except Exception:
            return True

    assert any(finds(way) for way, read in border.ways.items() if not isinstance(read, Step))
