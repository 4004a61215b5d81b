"""Variances, covariances and regressions: of exact sums of powers and products, rounded at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from penstock.scalars import functions
from penstock.scalars.types import BIGINT, DOUBLE
from penstock.sql.aggregates.cells import DistinctValues
from penstock.sql.aggregates.exact import ExactPowers, as_powers, quotient
from penstock.sql.aggregates.function import AggregateFunction, Asked, Bind, Cell, Holding
from penstock.sql.aggregates.sums import AVG
from penstock.sql.plan.relations import AggregateCall

# Of one value


class _Moments:
    """A result of the exact sums of powers of floats.

    Args:
        power: The highest power.
        result: From the number of values and the sums of their powers, as integers, and the bits after the point
            of the values, to the result. All values are finite.
        less: The maximum number of values that have no result.
    """

    def __init__(self, power: int, result: Callable[[Sequence[int], int], float | None], less: int) -> None:
        self._sums = ExactPowers(power)
        self._of = result
        self._less = less
        self.empty, self.change, self.merge = self._sums.empty, self._sums.change, self._sums.merge

    def result(self, held: list[int]) -> float | None:
        if held[0] <= self._less:
            return None
        if not self._sums.is_finite(held):
            return math.nan
        return self._of(as_powers(held), held[4])


def _variance(sums: Sequence[int], bits: int, less: int) -> float:
    count, first, second = sums
    return quotient(count * second - first * first, (count * (count - less)) << (2 * bits))


def _variance_of_all(sums: Sequence[int], bits: int) -> float:
    return _variance(sums, bits, 0)


def _variance_of_sample(sums: Sequence[int], bits: int) -> float:
    return _variance(sums, bits, 1)


def _deviation_of_all(sums: Sequence[int], bits: int) -> float:
    return math.sqrt(_variance(sums, bits, 0))


def _deviation_of_sample(sums: Sequence[int], bits: int) -> float:
    return math.sqrt(_variance(sums, bits, 1))


def _skewness(sums: Sequence[int], bits: int) -> float | None:
    count, first, second, third = sums
    spread = count * second - first * first
    if not spread:
        return None
    cubes = count * count * third - 3 * count * first * second + 2 * first**3
    squared = quotient(cubes * cubes, spread**3)
    return math.copysign(math.sqrt(squared), cubes)


def _kurtosis(sums: Sequence[int], bits: int) -> float | None:
    count, first, second, third, fourth = sums
    spread = count * second - first * first
    if not spread:
        return None
    fourths = (
        count**3 * fourth - 4 * count * count * first * third + 6 * count * first**2 * second - 3 * first**4
    )
    return quotient(fourths - 3 * spread**2, spread**2)


def _moment(
    name: str,
    power: int,
    result: Callable[[Sequence[int], int], float | None],
    spellings: tuple[str, ...] = (),
    less: int = 0,
) -> AggregateFunction:
    """Returns the record of an aggregate of floats by the sums of their powers."""

    def bind(function: AggregateFunction, asked: Asked) -> AggregateCall:
        function.check_count(asked, 1)
        return function.of(asked, (function.double(asked.arguments[0]),), DOUBLE)

    def hold(call: AggregateCall, holding: Holding) -> Cell:
        cell = _Moments(power, result, less)
        return DistinctValues(cell, holding.copies(shown=False)) if call.distinct else cell

    return AggregateFunction(
        name=name, spellings=spellings, bind=bind, hold=hold, not_in_spark=_ROUNDED, from_spark=_ROUNDED
    )


# Of two values


class _Pairs(Cell):
    """A result of the exact sums of pairs of floats, and of their products.

    Held is a list: the number of pairs, how many of them are not finite, the bits after the point of both values, and
    the sums of the first values, the second, the squares of both, and the products.

    Args:
        result: From the number of pairs, their five sums, and the bits, to the result. All pairs are finite.
        less: The maximum number of pairs that have no result.
    """

    def __init__(self, result: Callable[[Sequence[int], int], Any], less: int = 0) -> None:
        self._of = result
        self._less = less

    def empty(self) -> list[int]:
        return [0] * 8

    def change(self, held: list[int], value: tuple[float, float] | None, sign: int) -> None:
        if value is None:
            return
        held[0] += sign
        if not (math.isfinite(value[0]) and math.isfinite(value[1])):
            held[1] += sign
            return
        (left, left_divisor), (right, right_divisor) = (each.as_integer_ratio() for each in value)
        left_bits, right_bits = left_divisor.bit_length() - 1, right_divisor.bit_length() - 1
        bits = max(left_bits, right_bits, held[2])
        self._widen(held, bits)
        left <<= bits - left_bits
        right <<= bits - right_bits
        for at, each in enumerate((left, right, left * left, right * right, left * right), 3):
            held[at] += sign * each

    def _widen(self, held: list[int], bits: int) -> None:
        more = bits - held[2]
        if more:
            held[2] = bits
            for at, factor in enumerate((1, 1, 2, 2, 2), 3):
                held[at] <<= more * factor

    def merge(self, held: list[int], other: list[int]) -> None:
        held[0] += other[0]
        held[1] += other[1]
        self._widen(held, max(held[2], other[2]))
        more = held[2] - other[2]
        for at, factor in enumerate((1, 1, 2, 2, 2), 3):
            held[at] += other[at] << more * factor

    def result(self, held: list[int]) -> object:
        if held[0] <= self._less:
            return None
        return math.nan if held[1] else self._of((held[0], *held[3:]), held[2])


class _PairCount(_Pairs):
    """Counts pairs, finite or not."""

    def __init__(self) -> None:
        super().__init__(_count)

    def result(self, held: list[int]) -> int:
        return held[0]


def _count(sums: Sequence[int], bits: int) -> int:
    return sums[0]


def _spreads(sums: Sequence[int]) -> tuple[int, int, int]:
    """Returns the spread of the first values, of the second, and of both together, each times the number of pairs."""
    count, lefts, rights, left_squares, right_squares, products = sums
    return (
        count * left_squares - lefts * lefts,
        count * right_squares - rights * rights,
        count * products - lefts * rights,
    )


def _covariance(sums: Sequence[int], bits: int, less: int) -> float:
    count = sums[0]
    return quotient(_spreads(sums)[2], (count * (count - less)) << (2 * bits))


def _covariance_of_all(sums: Sequence[int], bits: int) -> float:
    return _covariance(sums, bits, 0)


def _covariance_of_sample(sums: Sequence[int], bits: int) -> float:
    return _covariance(sums, bits, 1)


def _correlation(sums: Sequence[int], bits: int) -> float | None:
    lefts, rights, both = _spreads(sums)
    if not lefts or not rights:
        return None
    return math.copysign(math.sqrt(quotient(both * both, lefts * rights)), both)


# The first value depends on the second.


def _spread_of_second(sums: Sequence[int], bits: int) -> float:
    return quotient(_spreads(sums)[1], sums[0] << (2 * bits))


def _spread_of_first(sums: Sequence[int], bits: int) -> float:
    return quotient(_spreads(sums)[0], sums[0] << (2 * bits))


def _spread_of_both(sums: Sequence[int], bits: int) -> float:
    return quotient(_spreads(sums)[2], sums[0] << (2 * bits))


def _slope(sums: Sequence[int], bits: int) -> float | None:
    _, rights, both = _spreads(sums)
    return quotient(both, rights) if rights else None


def _intercept(sums: Sequence[int], bits: int) -> float | None:
    count, lefts, rights = sums[:3]
    _, spread, both = _spreads(sums)
    return quotient(lefts * spread - rights * both, (count * spread) << bits) if spread else None


def _fit(sums: Sequence[int], bits: int) -> float | None:
    lefts, rights, both = _spreads(sums)
    if not rights:
        return None
    return quotient(both * both, lefts * rights) if lefts else 1.0


def _pair(name: str, result: Callable[[Sequence[int], int], Any], less: int = 0) -> AggregateFunction:
    """Returns the record of an aggregate of pairs of floats."""

    def bind(function: AggregateFunction, asked: Asked) -> AggregateCall:
        function.check_count(asked, 2)
        values = tuple(map(function.double, asked.arguments))
        return function.of(asked, values, DOUBLE)

    def hold(call: AggregateCall, holding: Holding) -> Cell:
        cell = _Pairs(result, less)
        return DistinctValues(cell, holding.copies(shown=False)) if call.distinct else cell

    return AggregateFunction(name=name, bind=bind, hold=hold, not_in_spark=_ROUNDED, from_spark=_ROUNDED)


def _bind_pair_count(function: AggregateFunction, asked: Asked) -> AggregateCall:
    function.check_count(asked, 2)
    return function.of(asked, tuple(map(function.double, asked.arguments)), BIGINT)


def _bind_mean_of(at: int) -> Bind:
    """Returns what makes the mean of one value of pairs, which has the type of AVG."""

    def bind(function: AggregateFunction, asked: Asked) -> AggregateCall:
        function.check_count(asked, 2)
        value, other = asked.arguments[at], function.number(asked.arguments[1 - at])
        there = functions.call("IS NOT NULL", [other])
        both = there if asked.condition is None else functions.call("AND", [asked.condition, there])
        return AVG(Asked((function.number(value),), asked.distinct, both))

    return bind


def _hold_pair_count(call: AggregateCall, holding: Holding) -> Cell:
    cell = _PairCount()
    return DistinctValues(cell, holding.copies(shown=False)) if call.distinct else cell


_ROUNDED = "the result is the exact one, rounded; in Spark, its last digits depend on the order of the rows"

FUNCTIONS = (
    _moment("VAR_POP", 2, _variance_of_all),
    _moment("VAR_SAMP", 2, _variance_of_sample, ("VARIANCE",), less=1),
    _moment("STDDEV_POP", 2, _deviation_of_all),
    _moment("STDDEV_SAMP", 2, _deviation_of_sample, ("STDDEV", "STD"), less=1),
    _moment("SKEWNESS", 3, _skewness),
    _moment("KURTOSIS", 4, _kurtosis),
    _pair("COVAR_POP", _covariance_of_all),
    _pair("COVAR_SAMP", _covariance_of_sample, less=1),
    _pair("CORR", _correlation, less=1),
    AggregateFunction(name="REGR_COUNT", bind=_bind_pair_count, hold=_hold_pair_count, result_of_nothing=0),
    AggregateFunction(name="REGR_AVGX", bind=_bind_mean_of(1), hold=AVG.hold),
    AggregateFunction(name="REGR_AVGY", bind=_bind_mean_of(0), hold=AVG.hold),
    _pair("REGR_SXX", _spread_of_second),
    _pair("REGR_SYY", _spread_of_first),
    _pair("REGR_SXY", _spread_of_both),
    _pair("REGR_SLOPE", _slope),
    _pair("REGR_INTERCEPT", _intercept),
    _pair("REGR_R2", _fit),
)
"""The records."""
