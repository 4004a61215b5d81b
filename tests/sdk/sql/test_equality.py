"""Values that SQL finds equal have one canonical form, and others have others."""

from __future__ import annotations

import datetime
import math
import pickle
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from penstock.coders.deterministic import encode_key
from penstock.elements.row import Row
from penstock.relations.bags import Copies
from penstock.scalars.types import ANY, BIGINT, DECIMAL, DOUBLE, STRING, TIMESTAMP, TIMESTAMP_NTZ, SqlType
from penstock.sql.execution.equality import canonicalizer_of, copies_in_any_form, row_canonicalizer_of

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
BERLIN = datetime.timezone(datetime.timedelta(hours=1), "Berlin")
EQUAL: list[tuple[SqlType, list[Any]]] = [
    (DECIMAL, [Decimal("1.5"), Decimal("1.50"), Decimal("15E-1")]),
    (DECIMAL, [Decimal("700"), Decimal("7E+2"), Decimal("700.000"), 700]),
    (DECIMAL, [Decimal("0.00"), Decimal("-0"), Decimal("0E+9"), 0]),
    (DECIMAL, [Decimal("NaN"), Decimal("-NaN")]),
    (DECIMAL, [Decimal("1" * 60 + ".0"), Decimal("1" * 60)]),
    (DOUBLE, [0.0, -0.0, 0]),
    (DOUBLE, [math.nan, -math.nan, float("inf") - float("inf")]),
    (TIMESTAMP, [NOON, NOON.astimezone(BERLIN)]),
    (TIMESTAMP_NTZ, [NOON.replace(tzinfo=None), NOON.replace(tzinfo=None, fold=1)]),
    (SqlType("ARRAY", element=DOUBLE), [[0.0, None], [-0.0, None], (0, None)]),
    (SqlType("ARRAY", element=SqlType("ARRAY", element=DECIMAL)), [[[Decimal("1.0")]], [[Decimal(1)]]]),
    (ANY, [1, 1.0, Decimal("1.00"), True]),
    (ANY, [[1, "a", -0.0], (1.0, "a", 0)]),
    (ANY, [{"a": Decimal("2.0")}, {"a": 2}]),
    (ANY, [Row(a=0.0, at=NOON), Row(a=-0.0, at=NOON.astimezone(BERLIN))]),
]
DIFFERENT: list[tuple[SqlType, list[Any]]] = [
    (DECIMAL, [Decimal("1.5"), Decimal("1.51"), Decimal("-1.5"), Decimal("15"), Decimal("NaN"), None]),
    (DECIMAL, [Decimal("1" * 60), Decimal("1" * 59 + "2")]),
    (DOUBLE, [0.0, 5e-324, math.inf, -math.inf, math.nan, None]),
    (TIMESTAMP, [NOON, NOON.replace(tzinfo=BERLIN), None]),
    (ANY, [0, "0", b"0", None, "", [], [0], [[0]], 0.1, Decimal("0.1"), NOON, NOON.replace(tzinfo=None)]),
]


@pytest.mark.parametrize(("kind", "values"), EQUAL, ids=lambda each: str(each)[:40])
def test_equal_values_have_one_form(kind: SqlType, values: list[Any]) -> None:
    form = canonicalizer_of(kind)
    assert form is not None
    assert len({encode_key(form(value)) for value in values}) == 1
    # The form of a form is the form.
    assert {encode_key(form(form(value))) for value in values} == {encode_key(form(values[0]))}


@pytest.mark.parametrize(("kind", "values"), DIFFERENT, ids=lambda each: str(each)[:40])
def test_different_values_have_different_forms(kind: SqlType, values: list[Any]) -> None:
    form = canonicalizer_of(kind)
    assert form is not None
    assert len({encode_key(form(value)) for value in values}) == len(values)


def test_rows_of_other_types_need_no_form() -> None:
    assert row_canonicalizer_of([BIGINT, STRING]) is None
    row = row_canonicalizer_of([BIGINT, DECIMAL])
    assert row is not None
    assert row((7, Decimal("1.50"))) == (7, Decimal("1.5"))


def test_a_copy_that_is_taken_out_is_the_one_that_looks_the_same() -> None:
    copies, held = Copies(canonicalizer_of(DECIMAL)), Counter[Any]()
    for text in ("1.5", "1.50", "1.500", "2"):
        copies.change(held, Decimal(text), 1)
    copies.change(held, Decimal("1.50"), -1)
    assert sorted(map(str, copies.elements(held))) == ["1.5", "1.500", "2"]
    copies.change(held, Decimal("2.0"), -1)
    assert sorted(map(str, copies.elements(held))) == ["1.5", "1.500"]
    assert len(copies.distinct(held)) == 1


@pytest.mark.parametrize("copies", [copies_in_any_form(DOUBLE), Copies(canonicalizer_of(DOUBLE))])
def test_nan_is_taken_out_of_what_was_kept_meanwhile(copies: Copies) -> None:
    held = Counter[Any]()
    copies.change(held, math.nan, 1)
    held = pickle.loads(pickle.dumps(held))
    copies.change(held, float("nan"), -1)
    assert not held
