"""Texts of SQL that once meant something else, without Spark, which has the same values."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.scalars.row_functions import Projection
from tests.sdk.sql import texts

FIRST = texts.table()[0]


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    texts.PINNED,
)
def test_a_text_has_its_value_and_its_type(text: str, expected: Any, kind: str) -> None:
    scalar = texts.read(text)
    [value] = Projection((scalar,))(FIRST)
    assert (value, type(value)) == (expected, type(expected))
    assert str(value) == str(expected)
    assert str(scalar.type.or_null()) == kind


@pytest.mark.parametrize(
    "text",
    [
        "CAST(3000000000 AS INT)",
        "CAST(1000.5 AS DECIMAL(4, 1))",
        "CAST(X'ff' AS STRING)",
        "ARRAY(10, 20)[-1]",
        "ARRAY(10, 20)[2]",
        "INTERVAL '1' DAY * 1000000000",
        "MAKE_DATE(2023, 2, 29)",
        "MAKE_DATE(2023, 13, 1)",
        "ADD_MONTHS(DATE '9999-12-31', 1)",
    ],
)
def test_a_text_fails_as_in_spark(text: str) -> None:
    with pytest.raises(ArithmeticError):
        Projection((texts.read(text),))(FIRST)


@pytest.mark.parametrize("text", ["'1' || 2 + 3", "1" * 39, "300Y", "DATEADD(DAYS, 1, day)"])
def test_a_text_is_refused(text: str) -> None:
    with pytest.raises(texts.Refused):
        texts.read(text)
