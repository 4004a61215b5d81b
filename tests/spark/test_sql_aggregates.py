"""Each aggregate has in Spark the values of its cases, and the same values as in penstock over groups by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow
import pytest

from penstock.scalars.row_functions import Projection
from penstock.sql.aggregates.functions import RECORDS
from tests.sdk.sql import texts
from tests.sdk.sql.aggregate_cases import CASES, COLUMNS, GROUPS, ROWS, read, values_of
from tests.spark.sql_values import AS_WRITTEN, arrow_type, identical, with_settings

OF_SPARK = [case for case in CASES if case.is_of_spark]
_ANY_OF_SEVERAL = ("MODE(s)",)
"""Calls of which Spark takes any of several values, where there are several."""
_IN_ANY_ORDER = ("ARRAY_AGG(", "COLLECT_LIST(", "COLLECT_SET(")


def in_spark(spark: Any, calls: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """The values of calls by group, as Spark computes them, and their types under the group ``types``."""
    cells = [list(column) for column in zip(*rows, strict=True)]
    schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in COLUMNS.items()])
    found: dict[str, dict[str, Any]] = {}
    with with_settings(spark, {**AS_WRITTEN, "spark.sql.shuffle.partitions": "1"}):
        frame = spark.createDataFrame(pyarrow.table(cells, schema=schema)).repartition(1).cache()
        frame.createOrReplaceTempView("rows")
        # Each DISTINCT over other values multiplies the rows, and Spark plans none beside an ordered one.
        alone = [[call] for call in calls if "DISTINCT" in call and "WITHIN GROUP" in call]
        distinct = [call for call in calls if "DISTINCT" in call and [call] not in alone]
        for own in (*alone, distinct, [call for call in calls if "DISTINCT" not in call]):
            shown = ", ".join(f"{call} AS r{at}" for at, call in enumerate(own))
            result = spark.sql(f"SELECT k, {shown} FROM rows GROUP BY k")
            kinds = dict(result.dtypes)
            table = result.toArrow().to_pylist()
            for at, call in enumerate(own):
                found[call] = {row["k"]: row[f"r{at}"] for row in table} | {"types": kinds[f"r{at}"]}
        frame.unpersist()
        spark.catalog.dropTempView("rows")
    return found


def alike(call: str, here: Any, there: Any) -> bool:
    """True if values are the same; floats that depend on the order of the rows, but for the last digits."""
    if isinstance(here, list) and isinstance(there, list) and call.startswith(_IN_ANY_ORDER):
        return sorted(map(repr, here)) == sorted(map(repr, there))
    if isinstance(here, float) and isinstance(there, float) and not math.isnan(here):
        return math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-9)
    return identical(here, there)


def differences(
    found: Mapping[str, Mapping[str, Any]], expected: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    return [
        f"{call} of {group}: {value!r} here, {found[call][group]!r} in Spark"
        for call, values in expected.items()
        for group, value in values.items()
        if not alike(call, value, found[call][group])
    ]


def test_each_case_is_spark_s(spark: Any) -> None:
    [first, *_] = texts.table()
    expected = {
        case.call: {
            group: Projection((texts.read(text),))(first)[0]
            for group, text in zip(GROUPS, case.values, strict=True)
        }
        for case in OF_SPARK
    }
    found = in_spark(spark, list(expected), ROWS)
    assert differences(found, expected) == []
    wrong = {call: {**values, "a": -99} for call, values in expected.items()}
    assert len(differences(found, wrong)) == len(OF_SPARK)
    types = {call: spark_type(read(call).type) for call in expected}
    assert {call: found[call]["types"] for call in types} == types


def spark_type(kind: Any) -> str:
    """The name that Spark has for a type."""
    if kind.element is not None:
        return f"array<{spark_type(kind.element)}>"
    if kind.name == "DECIMAL":
        return f"decimal({kind.precision},{kind.scale})"
    return {"INTERVAL": "interval day to second"}.get(kind.name, kind.name.lower())


def random_rows(seed: int, groups: int) -> list[tuple[Any, ...]]:
    """Rows in groups of all sizes, with NULL and edge values."""
    random = Random(seed)
    rows = []
    for group in range(groups):
        few = random.random() < 0.4
        for _ in range(random.choice([1, 1, 2, 3, 5, 9, 20])):
            whole = random.choice([None, 0, 1, -1, 3, 7, random.randrange(-(1 << 20), 1 << 20)])
            other = random.choice([None, 0, 2, -5, random.randrange(100)])
            real = random.choice([None, 0.0, -0.0, 0.5, random.uniform(-100, 100), random.gauss(1e6, 1)])
            if random.random() < 0.02:
                real = random.choice([math.nan, math.inf, -math.inf])
            digits = random.choice(
                [None, "0.00", "-0.01", "9999.99", f"{random.randrange(-99999, 99999) / 100:.2f}"]
            )
            row = (
                *(f"g{group}", len(rows), random.choice([1, 2, 2]) if few else whole, other, real),
                None if digits is None else Decimal(digits),
                *(random.choice([None, True, False]), random.choice([None, "", "a", "b", "é", "zz"])),
                random.choice([None, timedelta(0), timedelta(days=-2, microseconds=3), timedelta(hours=5)]),
                random.choice(
                    [None, datetime(1969, 12, 31, 23, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]
                ),
            )
            rows.append(
                tuple(None if at > 1 and random.random() < 0.1 else each for at, each in enumerate(row))
            )
    return rows


def compare(spark: Any, seed: int, groups: int) -> list[str]:
    """The differences of all calls over groups by chance."""
    rows = random_rows(seed, groups)
    calls = [
        case.call
        for case in OF_SPARK
        # These fail in both where a sum has more than 64 bits, or a frequency is negative.
        if case.call not in (*_ANY_OF_SEVERAL, "PERCENTILE(n, 0.3, n)", "TRY_SUM(n * 1000000000000000000)")
    ]
    changes = [(1, row) for row in rows]
    return differences(in_spark(spark, calls, rows), {call: values_of(call, changes) for call in calls})


def test_all_aggregates_over_groups_by_chance_are_spark_s(spark: Any) -> None:
    assert compare(spark, 1, 60) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_all_aggregates_over_more_groups_by_chance_are_spark_s(spark: Any, seed: int) -> None:
    assert compare(spark, seed, 400) == []


def test_what_differs_from_spark_is_said() -> None:
    said = {name for name, record in RECORDS.items() if record.from_spark}
    assert {"MODE", "MIN_BY", "MAX_BY", "ANY_VALUE", "ARRAY_AGG", "LISTAGG", "AVG", "VAR_POP"} <= said
