"""The functions that round numbers."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from penstock.scalars import decimals
from penstock.scalars.casting import Compute, overflow, whole, with_digits
from penstock.scalars.function import (
    Arguments,
    Choose,
    Resolve,
    ScalarFunction,
    choose_always,
    choose_by_type,
)
from penstock.scalars.resolving import SqlTypeError, cast, do_not_fit, takes
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.tree import Call, Literal, Scalar, walk
from penstock.scalars.types import SqlType, decimal_type, decimals_of_whole
from penstock.scalars.widths import with_width

_OF_DOUBLE = decimal_type(30, 15)
"""The decimals that FLOOR and CEIL make of a DOUBLE, to keep some of its digits."""
_OF_REAL = decimal_type(14, 7)
"""The decimals that they make of a FLOAT."""

# Types


def _rounded_type(arguments: Arguments) -> SqlType:
    return decimals.rounded_type(arguments[0].type) if arguments[0].type.scale else arguments[0].type


def _places(arguments: Arguments) -> int:
    """The number of digits that a function keeps."""
    for each in walk(arguments[-1]) if len(arguments) > 1 else ():
        if isinstance(each, Literal):
            return each.value or 0
    return 0


def _check_places(function: ScalarFunction, arguments: Arguments) -> None:
    if len(arguments) > 1 and not isinstance(arguments[1], Literal):
        what = f"the number of digits of {function.name} is not a number literal"
        raise SqlTypeError(what, "write a number")


def _round(function: ScalarFunction, arguments: Arguments) -> Scalar:
    _check_places(function, arguments)
    typed = takes(
        "DOUBLE [INT] -> DOUBLE",
        "BIGINT [INT] -> BIGINT",
        "DECIMAL [INT] -> DECIMAL",
        decimals=lambda arguments: decimals.rounded_type(arguments[0].type, _places(arguments)),
    )
    return typed(function, arguments)


def _to_whole(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """FLOOR and CEIL, whose result with a number of digits is a decimal."""
    if len(arguments) != 2:
        typed = takes(*("BIGINT -> BIGINT", "DOUBLE -> BIGINT", "DECIMAL -> DECIMAL"), decimals=_rounded_type)
        return typed(function, arguments)
    _check_places(function, arguments)
    value = arguments[0]
    if not value.type.is_number:
        raise do_not_fit(function, arguments, "a number, and a number of digits")
    kind = decimals_of_whole(value.type)
    if kind.name == "DOUBLE":
        kind = _OF_REAL if kind.bits == 32 else _OF_DOUBLE
    typed = takes(
        "DECIMAL INT -> DECIMAL",
        decimals=lambda arguments: decimals.rounded_type(arguments[0].type, _places(arguments)),
    )
    return typed(function, (cast(value, kind.or_null(value.type.nullable)), arguments[1]))


# Values


def _rounding_of_whole(of_fraction: Callable[[Fraction], int]) -> Compute:
    def compute(value: int, digits: int = 0) -> int:
        if digits >= 0:
            return value
        # With more digits the result is 0, whatever the number.
        unit: int = 10 ** min(-digits, 20)
        return whole(of_fraction(Fraction(value, unit)) * unit)

    return compute


def _half_up(value: Fraction) -> int:
    rounded = math.floor(abs(value) + Fraction(1, 2))
    return -rounded if value < 0 else rounded


def _rounding_of_float(rounded: Compute) -> Compute:
    def compute(value: float, digits: int = 0) -> float:
        if not math.isfinite(value):
            return value
        # Spark rounds the shortest decimal that stands for the float, not the float.
        found = float(rounded(Decimal(repr(value)), digits))
        return found if found else 0.0

    return compute


def _rounding_of_decimal(mode: str) -> Compute:
    def compute(value: Decimal, digits: int = 0) -> Decimal:
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and -exponent <= digits:
            return value
        # No float or decimal has more digits before its point.
        unit = Decimal(1).scaleb(min(-digits, 400))
        return value.quantize(unit, mode, decimal.Context(prec=800))

    return compute


def _whole_of_float(rounding: Callable[[float], int]) -> Compute:
    """FLOOR and CEIL of floats; the result for NaN is 0, as in Spark."""
    return lambda value: (
        0 if value != value else whole(rounding(value)) if math.isfinite(value) else overflow()
    )


def _nearest_float(value: float) -> float:
    """RINT: the nearest float without a fraction, and of two the even one."""
    return math.copysign(float(round(value)), value) if math.isfinite(value) else value


def _rounding(computes: Mapping[str, Compute]) -> Choose:
    """Chooses what rounds: a result has the digits of its type, where these are known."""

    def choose(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
        if arguments[0].name != "ANY" and result.name == "DECIMAL" and result.precision is not None:
            return lambda *values: with_digits(computes["DECIMAL"](*values), result)
        return with_width(choose_by_type(computes)(result, arguments), result)

    return choose


# Spark


def _whole_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    digits = [part for each in call.arguments[1:] for part in walk(each)]
    if any(isinstance(part, Literal) and part.value is None for part in digits):
        raise NotForSpark(f"Spark has no {call.name} to NULL digits")
    found = f"{call.name.lower()}({', '.join(operands)})"
    if call.arguments[0].type.name != "DOUBLE":
        return found
    [value] = operands
    # Before Spark 4.3, the result is the nearest BIGINT if there is none for it; a cast fails.
    is_beyond = f"abs({value}) >= 9223372036854775808D AND NOT isnan({value})"
    return f"CASE WHEN {is_beyond} THEN CAST({value} AS BIGINT) ELSE {found} END"


# Records


def _rounds(name: str, of_fraction: Callable[[Fraction], int], mode: str) -> ScalarFunction:
    of_decimal = _rounding_of_decimal(mode)
    return ScalarFunction(
        name=name,
        resolve=_round,
        python=_rounding(
            {
                "BIGINT": _rounding_of_whole(of_fraction),
                "DOUBLE": _rounding_of_float(of_decimal),
                "DECIMAL": of_decimal,
            }
        ),
        spark=f"{name.lower()}({{all}})",
        whole="first",
    )


def _limits(name: str, of_float: Callable[[float], int], mode: str, *spellings: str) -> ScalarFunction:
    resolve: Resolve = _to_whole
    return ScalarFunction(
        name=name,
        resolve=resolve,
        spellings=spellings,
        python=_rounding(
            {
                "BIGINT": lambda value: value,
                "DOUBLE": _whole_of_float(of_float),
                "DECIMAL": _rounding_of_decimal(mode),
            }
        ),
        spark=_whole_text,
    )


FUNCTIONS = (
    _rounds("ROUND", _half_up, decimal.ROUND_HALF_UP),
    _rounds("BROUND", round, decimal.ROUND_HALF_EVEN),
    _limits("FLOOR", math.floor, decimal.ROUND_FLOOR),
    _limits("CEIL", math.ceil, decimal.ROUND_CEILING, "CEILING"),
    ScalarFunction(
        name="RINT",
        resolve=takes("DOUBLE -> DOUBLE"),
        python=choose_always(_nearest_float),
        spark="rint({0})",
    ),
)
"""The records."""
