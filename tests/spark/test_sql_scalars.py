"""Spark's SQL gives what the Python meaning of an expression gives, and fails where it fails."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.scalars.row_functions import Projection
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.spark_writer import write_scalar
from penstock.scalars.tree import Scalar, walk
from tests.sdk.sql.random_scalars import COLUMNS, PRODUCTIONS, made, rows, scalar_of
from tests.spark.sql_values import AS_WRITTEN, arrow_type, identical, with_settings

FAMILIES = {
    "numbers": ["BIGINT", "DOUBLE"],
    "texts": ["STRING", "BINARY"],
    "truths": ["BOOLEAN"],
    "times": ["DATE", "TIMESTAMP", "INTERVAL"],
    "arrays": [name for name in PRODUCTIONS if name.startswith("ARRAY")],
}
ROWS = rows(random.Random(7), 48)
NAMES = [column.name for column in COLUMNS]


@pytest.fixture(scope="module")
def table(spark) -> Iterator[Any]:
    schema = pyarrow.schema(
        [("id", pyarrow.int64())] + [(column.name, arrow_type(column.type)) for column in COLUMNS]
    )
    columns = [list(range(len(ROWS))), *map(list, zip(*ROWS, strict=True))]
    # A frame with an exchange is not computed by the optimizer.
    with with_settings(spark, AS_WRITTEN):
        yield spark.createDataFrame(pyarrow.table(columns, schema=schema)).repartition(1).cache()


def outcomes(scalar: Scalar) -> list[tuple[Any, bool]]:
    """What an expression gives for each row, and whether a part of it fails.

    Where one argument is NULL, Spark and Python leave out different others, and so may miss that these fail.
    """
    whole, *parts = (Projection((part,)).function for part in walk(scalar))
    found = []
    for row in ROWS:
        try:
            for part in parts:
                part(row)
            found.append((whole(row)[0], False))
        except ArithmeticError:
            found.append((None, True))
    return found


def shallow(family: str, depth: int = 1) -> list[Scalar]:
    """Each call once, with arguments that nest one call less deep."""
    chance = random.Random(f"{family} {depth}")
    calls = [(name, production) for name in FAMILIES[family] for production in PRODUCTIONS[name]]
    return [scalar for each in calls if is_for_spark(scalar := made(*each, chance, depth))]


def is_for_spark(scalar: Scalar) -> bool:
    try:
        return bool(write_scalar(scalar, NAMES))
    except NotForSpark:
        return False


def expressions(family: str) -> list[Scalar]:
    chance = random.Random(family)
    deep = [scalar_of(name, chance, 4) for name in FAMILIES[family] for _ in range(20)]
    return shallow(family) + shallow(family, 2) + list(filter(is_for_spark, deep))


@pytest.mark.parametrize("family", FAMILIES)
def test_spark_gives_what_python_gives(table, family):
    scalars = expressions(family)
    texts = []
    wanted = []
    for scalar in scalars:
        found = outcomes(scalar)
        failed = [str(number) for number, (_, fails) in enumerate(found) if fails]
        text = write_scalar(scalar, NAMES)
        texts.append(f"CASE WHEN id NOT IN ({', '.join(failed)}) THEN {text} END" if failed else text)
        wanted.append([value for value, _ in found])
    frame = table.selectExpr("id", *(f"{text} AS e{number}" for number, text in enumerate(texts)))
    result = frame.toArrow().sort_by("id")
    differences = []
    for number, (scalar, values) in enumerate(zip(scalars, wanted, strict=True)):
        for row, left, right in zip(ROWS, values, result.column(f"e{number}").to_pylist(), strict=True):
            if not identical(left, right):
                read = {column.name: value for column, value in zip(COLUMNS, row, strict=True)}
                differences.append(f"{scalar}: {left!r} here, {right!r} in Spark, where {_of(scalar, read)}")
                break
    assert not differences, "\n" + "\n".join(differences)
    assert len(scalars) > 60


def _of(scalar: Scalar, read: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in read.items() if name in str(scalar)}


@pytest.mark.every_spark
def test_spark_fails_where_python_fails(table):
    chance = random.Random(11)
    sample = []
    for family in FAMILIES:
        failing = []
        # Deeper in an expression Spark may leave out what fails, where another argument is NULL.
        for scalar in shallow(family):
            # Spark has years after 9999, and goes on where Python cannot.
            failing += [
                (scalar, number)
                for number in range(len(ROWS))
                if (error := _error(scalar, number)) and "outside of the years" not in error
            ]
        sample += chance.sample(failing, min(6, len(failing)))
    passed = []
    for scalar, number in sample:
        text = f"{write_scalar(scalar, NAMES)} AS e"
        try:
            table.where(f"id = {number}").selectExpr(text).toArrow()
        except (PySparkException, Py4JJavaError):
            # Some overflows are bare errors of Java.
            continue
        passed.append(f"{scalar} where {dict(zip(NAMES, ROWS[number], strict=True))}")
    assert not passed, "\n" + "\n".join(passed)
    assert len(sample) > 15


def _error(scalar: Scalar, number: int) -> str:
    """The error of an expression for a row; empty if there is none."""
    try:
        Projection((scalar,))(ROWS[number])
    except ArithmeticError as error:
        return str(error)
    return ""


def test_letters_that_python_knows_change_their_case_in_the_same_way(spark, table):
    letters = [chr(code) for code in range(1, 0x20000) if not 0xD800 <= code < 0xE000]
    frame = spark.createDataFrame(pyarrow.table({"c": pyarrow.array(letters)})).repartition(1)
    result = frame.selectExpr("c", "upper(c) AS u", "lower(c) AS l").toArrow().to_pylist()
    wrong = {row["c"] for row in result if (row["c"].upper(), row["c"].lower()) != (row["u"], row["l"])}
    # A newer version of Unicode gave another case to a few hundred letters, which is why Python changes the case.
    assert all(letter.upper() == letter.lower() == letter for letter in wrong)
    assert len(wrong) < 300
