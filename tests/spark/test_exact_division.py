"""Integers divided by Spark are divided as by Python, also where one rounding more would be another float."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from penstock_spark.lowering.columns import write_quotient

pytestmark = pytest.mark.spark

_TOTAL_MAX = 1 << 94
_COUNT_MAX = 1 << 53


def near_the_middle_of_two_floats(chance: random.Random) -> tuple[int, int]:
    """A total and a count whose quotient is as little beside such a middle as one with that count can be."""
    middle = (1 << 53) + 2 * chance.randrange(1 << 52) + 1
    fraction_bits = chance.randrange(1, 53)
    unit = 1 << fraction_bits
    beside = chance.choice((-1, 1))
    count = beside * pow(middle, -1, unit) % unit + unit * chance.randrange(1 << (53 - fraction_bits))
    return (middle * count - beside) // unit, count


def pairs() -> list[tuple[int, int]]:
    chance = random.Random(5)
    found = [near_the_middle_of_two_floats(chance) for _ in range(500)]
    found += [
        (chance.randrange(1 << chance.randrange(1, 95)), chance.randrange(1, 1 << 53)) for _ in range(500)
    ]
    found += [(1 << 63, 1), ((1 << 63) - 1, 1), ((1 << 63) * 3, 3), (0, 7), (1 << 53, 3), ((1 << 53) + 1, 1)]
    return [
        (sign * total, count)
        for total, count in found
        for sign in (-1, 1)
        if total <= _TOTAL_MAX
        and 0 < count <= _COUNT_MAX
        and -(1 << 63) * count <= sign * total < (1 << 63) * count
    ]


def test_a_quotient_is_the_nearest_float(spark):
    given = pairs()
    assert len(given) > 1_500
    rows = [(Decimal(total), count) for total, count in given]
    frame = spark.createDataFrame(rows, "total decimal(38, 0), count bigint")
    found = [row[0] for row in frame.selectExpr(write_quotient("total", "count")).collect()]
    assert found == [total / count for total, count in given]
