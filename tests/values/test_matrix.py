"""Values that cross a border arrive as the table of `penstock.values` says, on every way that needs no Spark."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from penstock.elements.row import Row
from penstock.typehints import Optional
from penstock.typehints.row_type import RowTypeConstraint
from penstock_spark.columns.pandas_batches import FrameConverter
from tests.values.borders import BORDERS
from tests.values.matrix import Border, Step, crossed, unaccounted

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


@pytest.mark.xfail(strict=True, reason="Beam's type for float | None is float64, which has NaN alone")
def test_nan_in_an_optional_float_stays_nan_in_a_frame() -> None:
    frames = FrameConverter(RowTypeConstraint.from_fields([("n", Optional[float])]))
    (row,) = frames.explode_batch(frames.produce_batch([Row(n=math.nan)]))
    assert isinstance(row.n, float)
