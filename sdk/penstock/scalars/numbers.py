"""The functions of numbers: arithmetic, and the bits that integers have."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from penstock.scalars import decimals
from penstock.scalars.casting import (
    DECIMALS,
    Compute,
    divide_by_zero,
    refuse,
    whole,
)
from penstock.scalars.function import (
    Arguments,
    Choose,
    Code,
    Inline,
    ScalarFunction,
    SparkForm,
    choose_always,
    choose_by_type,
    write_by_template,
)
from penstock.scalars.function import do_not_fit as values_do_not_fit
from penstock.scalars.months import checked_months
from penstock.scalars.resolving import (
    cast,
    do_not_fit,
    is_any_nullable,
    takes,
)
from penstock.scalars.spark_forms import NotForSpark
from penstock.scalars.times import (
    add_times,
    arithmetic_of_times,
    dates_text,
    divide_interval,
    multiply_interval,
    negate_interval,
    subtract_times,
)
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import (
    ANY,
    BIGINT,
    DECIMAL,
    DOUBLE,
    SqlType,
    decimal_type,
    decimals_of_whole,
    find_common_type,
)
from penstock.scalars.widths import bounds_of, refuse_width, with_width

_DIGITS_KEPT = 34

# Types


def _arithmetic(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) == 1 and function.name in "+-":
        return arguments[0] if function.name == "+" else NEGATIVE(*arguments)
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "two numbers")
    names = {each.type.name for each in arguments}
    if "ANY" in names:
        return function.of(arguments, ANY)
    if names & {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL", "MONTHS"}:
        return arithmetic_of_times(function, arguments)
    nothing = BIGINT if function.name == "DIV" else DOUBLE
    found = nothing if names == {"NULL"} else find_common_type(each.type for each in arguments)
    if found is None or not found.is_number or (function.name == "DIV" and found.name == "DOUBLE"):
        raise do_not_fit(function, arguments, "" if "STRING" in names else "two numbers")
    if found.name == "DECIMAL":
        if function.name == "/" and arguments[0].type.name == "NULL":
            found = DOUBLE
        else:
            return _arithmetic_of_decimals(function, arguments)
    found = found.or_null(is_any_nullable(arguments))
    if function.name == "/":
        found = DOUBLE.or_null(found.nullable)
    result = BIGINT.or_null(found.nullable) if function.name == "DIV" else found
    return function.of(tuple(cast(each, found) for each in arguments), result)


def _arithmetic_of_decimals(function: ScalarFunction, arguments: Arguments) -> Scalar:
    types = [_of_decimals(each) for each in arguments]
    types = [types[1 - at].or_null() if each.name == "NULL" else each for at, each in enumerate(types)]
    if any(each.precision is None for each in types):
        types = [DECIMAL.or_null(each.nullable) for each in types]
    parts = tuple(cast(each, to) for each, to in zip(arguments, types, strict=True))
    result = BIGINT if function.name == "DIV" else decimals.result_type(function.name, *types)
    return function.of(parts, result.or_null(is_any_nullable(arguments)))


def _of_decimals(operand: Scalar) -> SqlType:
    """The type that an operand of decimals has: an integer that the query names has its own digits only.

    A TINYINT is the exception, as in Spark.
    """
    match operand:
        case Literal(int() as value, kind) if kind.name == "BIGINT" and kind.bits > 8:
            return decimal_type(len(str(abs(value))), 0, kind.nullable)
    return decimals_of_whole(operand.type)


def _positive_arithmetic(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if any(each.type.name == "ANY" for each in arguments):
        typed = takes("BIGINT BIGINT -> BIGINT", "DOUBLE DOUBLE -> DOUBLE", "DECIMAL DECIMAL -> DECIMAL")
        return typed(function, arguments)
    return _arithmetic(function, arguments)


def _first(arguments: Arguments) -> SqlType:
    return arguments[0].type


# Values


def _decimal(operation: Callable[..., Decimal]) -> Compute:
    """An operation of decimals, which says so if a result has more than 38 digits."""

    def compute(*operands: Decimal) -> Decimal:
        try:
            return operation(*operands)
        except (decimal.Overflow, decimal.InvalidOperation):
            refuse("a decimal of an SQL expression has more than 38 digits", "CAST an operand AS DOUBLE")

    return compute


def _divide(left: float, right: float) -> float:
    return left / right if right else divide_by_zero()


def _divide_decimals(left: Decimal, right: Decimal) -> Decimal:
    return DECIMALS.divide(left, right) if right else divide_by_zero()


def _remainder(left: int, right: int) -> int:
    rest = abs(left) % abs(right) if right else divide_by_zero()
    return -rest if left < 0 else rest


def _remainder_of_floats(left: float, right: float) -> float:
    if not right:
        divide_by_zero()
    return math.fmod(left, right) if math.isfinite(left) else math.nan


def _remainder_of_decimals(left: Decimal, right: Decimal) -> Decimal:
    return DECIMALS.remainder(left, right) if right else divide_by_zero()


def _positive(remainder: Callable[[Any, Any], Any]) -> Compute:
    """PMOD: a remainder that is not negative if the divisor is not."""

    def compute(left: object, right: object) -> object:
        rest = remainder(left, right)
        return remainder(rest + right, right) if rest < 0 else rest

    return compute


def _positive_remainder(bits: int) -> Compute:
    # As in Spark, a sum of more bits keeps the last ones; Java has at least 32.
    half = 1 << max(bits, 32) - 1

    def compute(left: int, right: int) -> int:
        rest = _remainder(left, right)
        if rest >= 0:
            return rest
        return _remainder((rest + right + half) % (2 * half) - half, right)

    return compute


def _whole_quotient(left: int, right: int) -> int:
    if not right:
        divide_by_zero()
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient)


def _whole_quotient_of_decimals(left: Decimal, right: Decimal) -> int:
    if not right:
        divide_by_zero()
    return whole(math.trunc(Fraction(left) / Fraction(right)))


def _sign(value: Any) -> object:
    if value != value:
        return value
    return type(value)((value > 0) - (value < 0)) if value else value


def _width_bucket(value: float, first: float, last: float, count: int) -> int | None:
    """The number of the part of a range in which a value is; 0 before the range, and one more behind it."""
    is_range = math.isfinite(first) and math.isfinite(last) and first != last
    if not is_range or not 0 < count < (1 << 63) - 1 or value != value:
        return None
    if first > last:
        value, first, last = -value, -first, -last
    if value < first:
        return 0
    return count + 1 if value >= last else int(count * (value - first) / (last - first)) + 1


def _of_32_bits(value: int) -> int:
    """The check that an integer, such as an argument that is an INT in Spark, has no more bits."""
    least, greatest = bounds_of(32)
    return value if least <= value <= greatest else refuse_width(32)


# Operators on values whose types are known only when they are computed

_LADDER = ("BIGINT", "DECIMAL", "DOUBLE")
_WIDENING: dict[str, Compute] = {"BIGINT": lambda value: value, "DECIMAL": Decimal, "DOUBLE": float}


def _kind(value: object) -> str:
    """The type of a number; the text is empty for other values."""
    if isinstance(value, bool):
        return ""
    for kind, name in ((int, "BIGINT"), (float, "DOUBLE"), (Decimal, "DECIMAL")):
        if isinstance(value, kind):
            return name
    return ""


def _of_any(name: str, computes: Mapping[str, Compute]) -> Compute:
    def compute(left: object, right: object) -> object:
        kinds = [_kind(value) for value in (left, right)]
        if all(kinds):
            widest = max(kinds, key=_LADDER.index)
            if name == "/" and widest == "BIGINT":
                widest = "DOUBLE"
            if widest in computes:
                left, right = (_WIDENING[widest](value) for value in (left, right))
                return computes[widest](left, right)
        elif name in ("+", "-"):
            try:
                return (add_times if name == "+" else subtract_times)(left, right)
            except TypeError:
                pass
        return values_do_not_fit(left, right)

    return compute


def _operator(name: str, computes: Mapping[str, Compute]) -> Choose:
    """Chooses what computes an operator; of decimals whose digits are known, it depends on these."""

    def choose(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
        if result.name == "DECIMAL" and result.precision is not None and name in decimals.OPERATORS:
            return decimals.arithmetic(name, result)
        if any(each.name == "ANY" for each in arguments):
            return _of_any(name, computes)
        return with_width(computes[arguments[0].name], result)

    return choose


def _of_width(computes: Mapping[str, Compute]) -> Choose:
    """Chooses by the type of the first argument what computes a result of its width."""
    choose = choose_by_type(computes)
    return lambda result, arguments: with_width(choose(result, arguments), result)


def _positive_operator(computes: Mapping[str, Compute]) -> Choose:
    def choose(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
        if result.name == "DECIMAL" and result.precision is not None:
            return decimals.arithmetic("PMOD", result)
        of_width = {**computes, "BIGINT": _positive_remainder(result.bits)}
        return with_width(choose_by_type(of_width)(result, arguments), result)

    return choose


# Spark


def _checked(function: str, symbol: str) -> SparkForm:
    """The text of a sum, a difference or a product, which says how a number of too many bits fails."""

    def write(call: Call, operands: Sequence[str], overflow: str) -> str:
        left, right = operands
        if (dates := dates_text(call, operands)) is not None:
            return dates
        if call.type.name != "INTEGER":
            return f"({left} {symbol} {right})"
        lost = f"CASE WHEN {left} IS NOT NULL AND {right} IS NOT NULL THEN {overflow} END"
        return f"coalesce({function}({left}, {right}), {lost})"

    return write


def _remainder_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    left, right = operands
    # Python's remainder has the sign of the divisor, which is positive here.
    return f"pmod({left}, {right})" if call.type.name == "INTEGER" else f"({left} % {right})"


def _whole_quotient_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    if call.arguments[0].type.name == "DECIMAL":
        raise NotForSpark("Spark's DIV of decimals keeps the last 64 bits")
    left, right = operands
    return f"({left} div {right})"


def _with_few_digits(template: str) -> SparkForm:
    """The text of a call that rounds decimals of many digits in Spark."""

    def write(call: Call, operands: Sequence[str], overflow: str) -> str:
        if (call.type.precision or 0) > _DIGITS_KEPT:
            raise NotForSpark(f"{call.name} keeps {_DIGITS_KEPT} digits of a decimal in Spark")
        return template.format(*operands)

    return write


def _floor_quotient_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    left, right = operands
    # Spark rounds towards zero, so subtract one where that rounded up.
    return f"(({left} div {right}) - CASE WHEN {left} % {right} < 0 THEN 1 ELSE 0 END)"


def _int_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    value = call.arguments[0].value if isinstance(call.arguments[0], Literal) else None
    if isinstance(value, int) and -(1 << 31) < value < 1 << 31:
        return f"({value})" if value < 0 else str(value)
    return f"CAST({operands[0]} AS INT)"


# Records

_NUMBER = ("DOUBLE -> DOUBLE", "BIGINT -> BIGINT", "DECIMAL -> DECIMAL")


def _in_python(symbol: str, *types: str) -> Inline:
    return write_by_template(dict.fromkeys((*types, "PYTHON"), f"({{0}} {symbol} {{1}})"))


def _inline_quotient(call: Call, codes: Sequence[Code]) -> str | None:
    if call.type.name != "DOUBLE":
        return None
    divisor = call.arguments[1]
    is_known = isinstance(divisor, Literal) and divisor.value
    return "({0} / {1})" if is_known else "({0} / {1} if {1} else divide_by_zero())"


def _inline_remainder(call: Call, codes: Sequence[Code]) -> str | None:
    divisor = call.arguments[1]
    if call.type.name == "BIGINT" and isinstance(divisor, Literal) and (divisor.value or 0) > 0:
        # The remainder has the sign of the number, and Python's has the divisor's sign.
        return "({0} % {1} if {0} >= 0 else -(-{0} % {1}))"
    return _in_python("%")(call, codes)


NEGATIVE = ScalarFunction(
    name="NEGATIVE",
    resolve=takes(*_NUMBER, "INTERVAL -> INTERVAL", "MONTHS -> MONTHS", decimals=_first),
    python=_of_width(
        {
            "BIGINT": lambda value: whole(-value),
            "DOUBLE": lambda value: -value,
            "DECIMAL": lambda value: value.copy_negate() if value else value,
            "INTERVAL": negate_interval,
            "MONTHS": lambda months: checked_months(-months),
        }
    ),
    inline=write_by_template(dict.fromkeys(("BIGINT", "DOUBLE"), "(-{0})")),
    spark=_with_few_digits("(- {0})"),
    whole="operands",
)

_ARITHMETIC = (
    ScalarFunction(
        name="+",
        resolve=_arithmetic,
        python=_operator(
            "+",
            {
                "BIGINT": lambda left, right: whole(left + right),
                "DOUBLE": lambda left, right: left + right,
                "DECIMAL": _decimal(DECIMALS.add),
                **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"), add_times),
            },
        ),
        inline=_in_python("+", "BIGINT", "DOUBLE"),
        spark=_checked("try_add", "+"),
        whole="operands",
    ),
    ScalarFunction(
        name="-",
        resolve=_arithmetic,
        python=_operator(
            "-",
            {
                "BIGINT": lambda left, right: whole(left - right),
                "DOUBLE": lambda left, right: left - right,
                "DECIMAL": _decimal(DECIMALS.subtract),
                **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"), subtract_times),
            },
        ),
        inline=_in_python("-", "BIGINT", "DOUBLE"),
        spark=_checked("try_subtract", "-"),
        whole="operands",
    ),
    ScalarFunction(
        name="*",
        resolve=_arithmetic,
        python=_operator(
            "*",
            {
                "BIGINT": lambda left, right: whole(left * right),
                "DOUBLE": lambda left, right: left * right,
                "DECIMAL": _decimal(DECIMALS.multiply),
                "INTERVAL": multiply_interval,
            },
        ),
        inline=_in_python("*", "BIGINT", "DOUBLE"),
        spark=_checked("try_multiply", "*"),
        whole="operands",
    ),
    ScalarFunction(
        name="/",
        resolve=_arithmetic,
        python=_operator(
            "/",
            {"DOUBLE": _divide, "DECIMAL": _decimal(_divide_decimals), "INTERVAL": divide_interval},
        ),
        inline=_inline_quotient,
        spark="({0} / {1})",
    ),
    ScalarFunction(
        name="%",
        resolve=_arithmetic,
        spellings=("MOD",),
        python=_operator(
            "%",
            {
                "BIGINT": _remainder,
                "DOUBLE": _remainder_of_floats,
                "DECIMAL": _decimal(_remainder_of_decimals),
            },
        ),
        inline=_inline_remainder,
        spark=_remainder_text,
        whole="operands",
    ),
)
OPERATORS = {function.name: function for function in _ARITHMETIC}
"""The records of the operators that have a TRY function."""

FUNCTIONS = (
    *_ARITHMETIC,
    ScalarFunction(
        name="DIV",
        resolve=_arithmetic,
        python=_operator("DIV", {"BIGINT": _whole_quotient, "DECIMAL": _whole_quotient_of_decimals}),
        spark=_whole_quotient_text,
    ),
    ScalarFunction(
        name="//",
        inline=_in_python("//"),
        spark=_floor_quotient_text,
    ),
    ScalarFunction(
        name="PMOD",
        resolve=_positive_arithmetic,
        python=_positive_operator(
            {
                "DOUBLE": _positive(_remainder_of_floats),
                "DECIMAL": _positive(_remainder_of_decimals),
            }
        ),
        spark="pmod({0}, {1})",
        whole="operands",
    ),
    NEGATIVE,
    ScalarFunction(
        name="POSITIVE",
        resolve=takes(*_NUMBER, "INTERVAL -> INTERVAL", decimals=_first),
        python=choose_always(lambda value: value),
        spark="(+ {0})",
        whole="operands",
    ),
    ScalarFunction(
        name="ABS",
        resolve=takes(*_NUMBER, "INTERVAL -> INTERVAL", "MONTHS -> MONTHS", decimals=_first),
        python=_of_width(
            {
                "BIGINT": lambda value: whole(abs(value)),
                "DOUBLE": abs,
                "DECIMAL": Decimal.copy_abs,
                "INTERVAL": abs,
                "MONTHS": lambda months: checked_months(abs(months)),
            }
        ),
        inline=write_by_template(dict.fromkeys(("BIGINT", "DOUBLE"), "abs({0})")),
        spark=_with_few_digits("abs({0})"),
        whole="operands",
    ),
    ScalarFunction(
        name="SIGN",
        resolve=takes("DOUBLE -> DOUBLE"),
        spellings=("SIGNUM",),
        python=choose_always(_sign),
        spark="sign({0})",
    ),
    ScalarFunction(
        name="FACTORIAL",
        resolve=takes("INT -> BIGINT?"),
        python=choose_always(lambda value: math.factorial(value) if 0 <= value <= 20 else None),
        spark="factorial({0})",
    ),
    ScalarFunction(
        name="WIDTH_BUCKET",
        resolve=takes("DOUBLE DOUBLE DOUBLE BIGINT -> BIGINT?"),
        python=choose_always(_width_bucket),
        spark="width_bucket({all})",
    ),
    # An argument that is an INT in Spark, and numbers that the query casts to integers.
    ScalarFunction(
        name="EXPECT INT",
        python=choose_always(_of_32_bits),
        inline=lambda call, codes: "{0}" if codes[0].number else None,
        spark=_int_text,
        whole="INT",
    ),
)
"""The records."""
