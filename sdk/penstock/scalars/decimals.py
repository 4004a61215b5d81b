"""Decimals as Spark computes them: the number of digits of a result, and the rounding to it."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from penstock.scalars.casting import Compute, divide_by_zero, with_digits
from penstock.scalars.types import DIGITS_MAX, SqlType, decimal_type, digits_kept

_EXACT = decimal.Context(
    prec=4 * DIGITS_MAX, rounding=decimal.ROUND_HALF_UP, traps=[decimal.InvalidOperation]
)
"""A context in which no sum and no product of two decimals is rounded."""
_QUOTIENT_SCALE = 6
"""The minimum number of digits after the point of a quotient."""


def result_type(name: str, left: SqlType, right: SqlType) -> SqlType:
    """Returns the type of an operator's result; one without digits if an operand has none.

    >>> price = decimal_type(10, 2)
    >>> print(result_type("*", price, price), result_type("/", price, decimal_type(1, 0)))
    DECIMAL(21, 4) DECIMAL(14, 6)
    """
    if left.precision is None or left.scale is None or right.precision is None or right.scale is None:
        return SqlType("DECIMAL")
    before = left.precision - left.scale, right.precision - right.scale
    scale = max(left.scale, right.scale)
    match name:
        case "*":
            return digits_kept(left.precision + right.precision + 1, left.scale + right.scale)
        case "/":
            scale = max(_QUOTIENT_SCALE, left.scale + right.precision + 1)
            return digits_kept(before[0] + right.scale + scale, scale)
        case "%" | "PMOD":
            return digits_kept(min(before) + scale, scale)
    return digits_kept(max(before) + scale + 1, scale)


def rounded_type(argument: SqlType, places: int = 0) -> SqlType:
    """Returns the type of ROUND, FLOOR and CEIL: one digit more before the point, and no more behind it than asked.

    >>> print(rounded_type(decimal_type(10, 2)), rounded_type(decimal_type(10, 2), -11))
    DECIMAL(9, 0) DECIMAL(12, 0)
    """
    if argument.precision is None or argument.scale is None:
        return argument.or_null()
    before = argument.precision - argument.scale + 1
    scale = min(argument.scale, max(places, 0))
    return decimal_type(min(max(before, 1 - places) + scale, DIGITS_MAX), scale)


def sum_type(argument: SqlType) -> SqlType:
    """Returns the type of a SUM: ten digits more than its values have."""
    return _more(argument, 10, 0)


def mean_type(argument: SqlType) -> SqlType:
    """Returns the type of an AVG: four digits more after the point than its values have."""
    return _more(argument, 4, 4)


def _more(argument: SqlType, digits: int, behind: int) -> SqlType:
    if argument.precision is None or argument.scale is None:
        return argument.or_null()
    return decimal_type(
        min(argument.precision + digits, DIGITS_MAX), min(argument.scale + behind, DIGITS_MAX)
    )


# Values


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    rest = abs(Fraction(left)) % abs(Fraction(right))
    return _decimal(-rest if left < 0 else rest, 2 * DIGITS_MAX)


def _positive_remainder(left: Decimal, right: Decimal) -> Decimal:
    rest = _remainder(left, right)
    return _remainder(_EXACT.add(rest, right), right) if rest < 0 else rest


def _decimal(value: Fraction, scale: int) -> Decimal:
    """Returns a fraction as a decimal, rounded half up."""
    unit = abs(value) * 10**scale
    rounded = (2 * unit.numerator + unit.denominator) // (2 * unit.denominator)
    return Decimal(-rounded if value < 0 else rounded).scaleb(-scale, _EXACT)


def quotient(left: Decimal, right: Decimal | int, scale: int) -> Decimal:
    """Returns a quotient, rounded half up to some digits after the point.

    >>> quotient(Decimal("1.5"), 4, 2)
    Decimal('0.38')
    """
    return _decimal(Fraction(left) / Fraction(right), scale) if right else divide_by_zero()


_OPERATIONS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _EXACT.multiply,
    "%": _remainder,
    "PMOD": _positive_remainder,
}


OPERATORS = frozenset([*_OPERATIONS, "/"])
"""The operators of decimals whose results are decimals."""


def arithmetic(name: str, result: SqlType) -> Compute:
    """Returns the meaning of an operator on decimals whose digits are known."""
    if name == "/":
        scale = result.scale or 0
        return lambda left, right: with_digits(quotient(left, right, scale), result)
    operation = _OPERATIONS[name]
    if name not in ("%", "PMOD"):
        return lambda left, right: with_digits(operation(left, right), result)
    return lambda left, right: with_digits(operation(left, right), result) if right else divide_by_zero()


def added(left: Decimal, right: Decimal) -> Decimal:
    """Returns the sum, with all its digits."""
    return _EXACT.add(left, right)


def subtracted(left: Decimal, right: Decimal) -> Decimal:
    """Returns the difference, with all its digits."""
    return _EXACT.subtract(left, right)
