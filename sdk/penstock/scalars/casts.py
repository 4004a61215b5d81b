"""The casts, as functions: CAST and TRY_CAST, those that have the name of a type, and those that a call implies."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scalars.casting import Compute, cast_function, try_cast_function
from penstock.scalars.conditions import BETWEEN, CASE
from penstock.scalars.function import (
    WHOLE_BITS,
    WHOLE_DIGITS,
    Arguments,
    Choose,
    Code,
    Resolve,
    ScalarFunction,
    whole_type,
)
from penstock.scalars.resolving import SqlTypeError, cast, do_not_fit
from penstock.scalars.spark_forms import NotForSpark, write_type
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal_type,
)

# Whole numbers


def fits_whole_type(value: object, kind: str) -> bool:
    """True if a value is a whole number that a type of whole numbers has.

    >>> fits_whole_type(127, "TINYINT"), fits_whole_type(128, "TINYINT"), fits_whole_type(1.5, "TINYINT")
    (True, False, False)
    """
    most = (1 << WHOLE_BITS[kind] - 1) - 1
    return isinstance(value, int) and -most - 1 <= value <= most


def narrow(scalar: Scalar, kind: str, is_try: bool) -> Scalar:
    """Returns a number that was cast to a type of whole numbers: one with more bits is an error, or NULL.

    >>> from penstock.scalars.tree import Column
    >>> score = Column(0, "score", BIGINT)
    >>> print(narrow(score, "INT", False), narrow(score, "BIGINT", False))
    CAST(score AS INT) score
    """
    if kind not in WHOLE_BITS or (
        kind == "BIGINT" and WHOLE_DIGITS[whole_type(scalar)] == WHOLE_DIGITS[kind]
    ):
        return scalar
    if is_try and kind != "BIGINT":
        most = (1 << WHOLE_BITS[kind] - 1) - 1
        low, high = (Literal(each, BIGINT.or_null(False)) for each in (-most - 1, most))
        scalar = CASE(BETWEEN(scalar, low, high), scalar)
    return Call(f"AS {kind}", (scalar,), scalar.type, kind)


def _cast_to(target: SqlType) -> Resolve:
    """The cast to a type, written as a function with the type's name."""

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) != 1:
            raise do_not_fit(function, arguments, "one value")
        return narrow(cast(arguments[0], target), function.name, False)

    return resolve


def _typeof(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """The name that Spark has for the type of a value."""
    if len(arguments) != 1:
        raise do_not_fit(function, arguments, "one value")
    return Literal(_name_of(arguments[0].type, arguments[0]), STRING.or_null(False))


def _name_of(kind: SqlType, scalar: Scalar) -> str:
    if kind.name in ("ANY", "INTERVAL", "MONTHS", "DECIMAL") and kind.precision is None:
        raise SqlTypeError(
            f"the type of {scalar} has no name of its own", "declare the type of the column, or CAST it"
        )
    if kind.name == "ARRAY":
        return f"array<{_name_of(kind.element or NULL, scalar)}>"
    if kind.name == "MAP":
        return f"map<{','.join(_name_of(each, scalar) for each in kind.parts)}>"
    if kind.name == "STRUCT":
        return f"struct<{','.join(f'{name}:{_name_of(each, scalar)}' for name, each in kind.fields)}>"
    if kind.name == "DECIMAL":
        return f"decimal({kind.precision},{kind.scale})"
    return {"BIGINT": whole_type(scalar), "NULL": "VOID"}.get(kind.name, kind.name).lower()


# Python


def _casting(exact: bool) -> Choose:
    return lambda result, arguments: cast_function(arguments[0], result, exact=exact)


def _trying(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
    return try_cast_function(arguments[0], result)


def _inline_cast(call: Call, codes: Sequence[Code]) -> str | None:
    is_float = (call.arguments[0].type.name, call.type.name) == ("BIGINT", "DOUBLE")
    return "float({0})" if is_float else None


# Spark


def _cast_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    [value] = operands
    _check_cast(call.arguments[0].type, call.type, call.name == "TRY_CAST")
    return f"{call.name}({value} AS {write_type(call.type)})"


def _check_cast(source: SqlType, target: SqlType, is_try: bool) -> None:
    if source.is_nested:
        whole = [target] * len(source.parts) if target.name == "STRING" else target.parts
        for one, other in zip(source.parts, whole, strict=False):
            _check_cast(one, other, is_try)
    match source.name, target.name:
        case "STRING", "TIMESTAMP" | "TIMESTAMP_NTZ":
            raise NotForSpark("a text may name a time zone, which Spark looks up elsewhere")
        case _, "DATE" | "TIMESTAMP" | "TIMESTAMP_NTZ" if is_try and source.name in (
            "STRING",
            "BIGINT",
            "DECIMAL",
            "DOUBLE",
        ):
            raise NotForSpark("Spark has years after 9999, where TRY_CAST returns NULL in Python")
        case "DOUBLE", "STRING" | "DECIMAL":
            raise NotForSpark("versions of Java write floats with other digits")
        case "BINARY", "STRING":
            raise NotForSpark("Spark keeps bytes in a string that are not valid text")
        case "INTERVAL", "STRING":
            raise NotForSpark("Spark writes an interval by the units that its column has")


# Records

FUNCTIONS = (
    # The target of a cast is the type of the call.
    ScalarFunction(
        name="CAST",
        python=_casting(exact=False),
        inline=_inline_cast,
        spark=_cast_text,
    ),
    ScalarFunction(
        name="TRY_CAST",
        python=_trying,
        spark=_cast_text,
    ),
    ScalarFunction(
        name="EXPECT",
        python=_casting(exact=True),
    ),
    *(ScalarFunction(name=name, resolve=_cast_to(BIGINT)) for name in WHOLE_BITS),
    *(
        ScalarFunction(name=kind.name, resolve=_cast_to(kind))
        for kind in (BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP)
    ),
    ScalarFunction(name="TYPEOF", resolve=_typeof),
    ScalarFunction(name="DECIMAL", resolve=_cast_to(decimal_type(10, 0))),
)
"""The records."""
