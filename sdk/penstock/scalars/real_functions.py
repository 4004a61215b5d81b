"""The functions of real numbers: roots, powers, logarithms and trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable

from penstock.scalars.casting import Compute
from penstock.scalars.function import Arguments, ScalarFunction, choose_always
from penstock.scalars.resolving import takes
from penstock.scalars.spark_forms import LAST_BIT
from penstock.scalars.tree import Scalar

# A result that is not defined is NaN or infinity, as in Java.


def _or_nan(compute: Callable[..., float]) -> Compute:
    """A function whose result is NaN where it has none."""

    def defined(*values: float) -> float:
        try:
            return compute(*values)
        except ValueError:
            return math.nan

    return defined


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _expm1(value: float) -> float:
    try:
        return math.expm1(value)
    except OverflowError:
        return math.inf


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _cosh(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return math.inf


def _power(base: float, exponent: float) -> float:
    if exponent != exponent or (abs(base) == 1 and math.isinf(exponent)):
        # Python has 1 to the power of NaN; Java has no such rule.
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _logarithm(function: Callable[[float], float], least: float = 0.0) -> Compute:
    """A logarithm, which is NULL at and below a number."""
    return lambda value: None if value <= least else function(value)


def _logarithm_of(base: float, value: float) -> float | None:
    if base <= 0 or value <= 0:
        return None
    above, below = math.log(value), math.log(base)
    if below:
        return above / below
    return math.nan if not above or above != above else math.copysign(math.inf, above)


def _square_root(value: float) -> float:
    return math.nan if value < 0 else math.sqrt(value)


def _cube_root(value: float) -> float:
    root = math.cbrt(value)
    if not root or not math.isfinite(root):
        return root
    # The roots of cubes are whole, as in Java.
    nearest = float(round(root)) if abs(root) < 1e5 else root
    return nearest if nearest**3 == value else root


def _reciprocal(function: Callable[[float], float]) -> Compute:
    def divide(value: float) -> float:
        divisor = function(value)
        return 1 / divisor if divisor else math.copysign(math.inf, divisor)

    return _or_nan(divide)


def _inverse_hyperbolic_tangent(value: float) -> float:
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    return math.atanh(value)


def _degrees(value: float) -> float:
    return value * 57.29577951308232


def _radians(value: float) -> float:
    return value * 0.017453292519943295


# Records


def _of_one(
    name: str, compute: Compute, *spellings: str, exact: bool = False, form: str = ""
) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes(form or "DOUBLE -> DOUBLE"),
        spellings=spellings,
        python=choose_always(compute),
        spark=f"{name.lower()}({{0}})",
        not_in_spark="" if exact else LAST_BIT,
    )


def _of_two(name: str, compute: Compute, *spellings: str) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=takes("DOUBLE DOUBLE -> DOUBLE"),
        spellings=spellings,
        python=choose_always(compute),
        spark=f"{name.lower()}({{all}})",
        not_in_spark=LAST_BIT,
    )


LN = _of_one("LN", _logarithm(math.log), form="DOUBLE -> DOUBLE?")


def _logarithm_of_any(function: ScalarFunction, arguments: Arguments) -> Scalar:
    return LN(*arguments) if len(arguments) == 1 else takes("DOUBLE DOUBLE -> DOUBLE?")(function, arguments)


_LOGARITHM_OF = ScalarFunction(
    name="LOG",
    resolve=_logarithm_of_any,
    python=choose_always(_logarithm_of),
    spark="log({all})",
    not_in_spark=LAST_BIT,
)

FUNCTIONS = (
    _of_one("SQRT", _square_root, exact=True),
    _of_one("CBRT", _cube_root),
    _of_two("POWER", _power, "POW"),
    _of_two("HYPOT", math.hypot),
    _of_one("EXP", _exp),
    _of_one("EXPM1", _expm1),
    LN,
    _LOGARITHM_OF,
    _of_one("LOG10", _logarithm(math.log10), form="DOUBLE -> DOUBLE?"),
    _of_one("LOG2", _logarithm(math.log2), form="DOUBLE -> DOUBLE?"),
    _of_one("LOG1P", _logarithm(math.log1p, -1.0), form="DOUBLE -> DOUBLE?"),
    _of_one("SIN", _or_nan(math.sin)),
    _of_one("COS", _or_nan(math.cos)),
    _of_one("TAN", _or_nan(math.tan)),
    _of_one("COT", _reciprocal(math.tan)),
    _of_one("SEC", _reciprocal(math.cos)),
    _of_one("CSC", _reciprocal(math.sin)),
    _of_one("ASIN", _or_nan(math.asin)),
    _of_one("ACOS", _or_nan(math.acos)),
    _of_one("ATAN", math.atan),
    _of_two("ATAN2", lambda above, right: math.atan2(above + 0.0, right + 0.0)),
    _of_one("SINH", _sinh),
    _of_one("COSH", _cosh),
    _of_one("TANH", math.tanh),
    _of_one("ASINH", math.asinh),
    _of_one("ACOSH", _or_nan(math.acosh)),
    _of_one("ATANH", _or_nan(_inverse_hyperbolic_tangent)),
    _of_one("DEGREES", _degrees, exact=True),
    _of_one("RADIANS", _radians, exact=True),
    ScalarFunction(
        name="PI", resolve=takes("-> DOUBLE"), python=choose_always(lambda: math.pi), spark="pi()"
    ),
    ScalarFunction(name="E", resolve=takes("-> DOUBLE"), python=choose_always(lambda: math.e), spark="e()"),
)
"""The records."""
