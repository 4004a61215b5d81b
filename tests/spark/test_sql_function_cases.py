"""Each function of SQL has the value of its case, in Spark as in penstock; a wrong value is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.scalars.row_functions import Projection
from tests.sdk.sql import texts
from tests.sdk.sql.function_cases import CASES, Case
from tests.spark.sql_values import AS_WRITTEN, identical, with_settings


def differences(spark: Any, cases: Sequence[Case]) -> list[str]:
    """The cases whose value is another in Spark, or another in penstock."""
    asked = [text for case in cases if case.is_of_spark for text in (case.call, case.value)]
    columns = [f"({text}\n) AS e{at}" for at, text in enumerate(asked)]
    with with_settings(spark, AS_WRITTEN):
        [row] = spark.range(1).selectExpr(*columns).toArrow().to_pylist()
    first = texts.table()[0]
    found = []
    for at, text in enumerate(asked):
        here, there = Projection((texts.read(text),))(first)[0], row[f"e{at}"]
        if not identical(here, there):
            found.append(f"{text}: {here!r} here, {there!r} in Spark")
        elif at % 2 and not identical(there, row[f"e{at - 1}"]):
            found.append(f"{asked[at - 1]}: {row[f'e{at - 1}']!r} in Spark, not {text}")
    return found


def test_each_case_is_spark_s(spark: Any) -> None:
    found = differences(spark, CASES)
    assert not found, "\n" + "\n".join(found)


def test_a_wrong_case_is_found(spark: Any) -> None:
    assert differences(spark, [Case("LENGTH('ab')", "3", True)])
