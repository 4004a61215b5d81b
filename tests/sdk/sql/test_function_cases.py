"""The functions of SQL: each has its value in the cases of functions, and is NULL for NULL as its record says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.scalars.function import ScalarFunction, choose_always
from penstock.scalars.functions import FUNCTIONS, RECORDS
from penstock.scalars.resolving import takes
from penstock.scalars.row_functions import Projection
from penstock.scalars.spark_writer import write_scalar
from penstock.scalars.tree import Call, Literal, Scalar, walk
from tests.sdk.sql import texts
from tests.sdk.sql.function_cases import CASES, Case

FIRST = texts.table()[0]


def value_of(scalar: Scalar) -> Any:
    return Projection((scalar,))(FIRST)[0]


@pytest.mark.parametrize("case", CASES, ids=[case.call for case in CASES])
def test_a_call_has_its_value(case: Case) -> None:
    found, wanted = (value_of(texts.read(text)) for text in (case.call, case.value))
    assert (found, type(found), str(found)) == (wanted, type(wanted), str(wanted))


def strict_calls() -> list[tuple[str, int]]:
    """The calls of functions that are given no NULL, and the places of their arguments."""
    return [
        (case.call, place)
        for case in CASES
        if isinstance(scalar := texts.read(case.call), Call)
        and (record := RECORDS[scalar.name]).write is None
        and not record.takes_null
        for place in range(len(scalar.arguments))
    ]


@pytest.mark.parametrize(("text", "place"), strict_calls())
def test_a_call_is_null_for_null(text: str, place: int) -> None:
    scalar = texts.read(text)
    assert isinstance(scalar, Call)
    arguments = list(scalar.arguments)
    arguments[place] = Literal(None, arguments[place].type.or_null())
    assert value_of(replace(scalar, arguments=tuple(arguments))) is None


def test_each_function_has_a_case() -> None:
    called = {part.name for case in CASES for part in walk(texts.read(case.call)) if isinstance(part, Call)}
    words = {case.call.split("(")[0] for case in CASES}
    negated = {case.call for case in CASES if " NOT " in case.call or " DISTINCT " in case.call}
    absent = {
        name
        for name, record in RECORDS.items()
        if record.resolve is not None and name not in called | words
        if not any(f" {name} " in f"{text} " for text in negated)
    }
    # EXTRACT writes the part of a time that it names.
    assert absent == {"EXTRACT SECOND"} - called


def test_a_function_is_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = ScalarFunction(
        name="TWICE",
        resolve=takes("STRING -> STRING"),
        spellings=("DOUBLED",),
        python=choose_always(lambda text: text + text),
        spark="concat({0}, {0})",
    )
    monkeypatch.setitem(dict_of(RECORDS), "TWICE", twice)
    for name in ("TWICE", "DOUBLED"):
        monkeypatch.setitem(dict_of(FUNCTIONS), name, twice)
    scalar = texts.read("doubled(twice('ab'))")
    assert value_of(scalar) == "abababab"
    assert value_of(texts.read("TWICE(NULL)")) is None
    assert write_scalar(texts.read("TWICE('ab')"), []) == "concat('ab', 'ab')"
    with pytest.raises(texts.Refused, match="TWICE does not take"):
        texts.read("TWICE(ARRAY(1))")


def dict_of(table: Mapping[str, ScalarFunction]) -> dict[str, ScalarFunction]:
    assert isinstance(table, dict)
    return table


def test_each_function_is_written_for_spark_or_says_why_not() -> None:
    absent = {
        name
        for name, record in RECORDS.items()
        if (record.python or record.write) and not record.spark and not record.not_in_spark
    }
    # It is of values whose types are not known, which Spark computes nothing of.
    assert absent == {"EXPECT"}
