"""The casts, as functions: CAST and TRY_CAST, those that have the name of a type, and those that a call implies."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scalars.casting import Compute, cast_function, try_cast_function
from penstock.scalars.function import Arguments, Choose, Code, Resolve, ScalarFunction
from penstock.scalars.resolving import SqlTypeError, cast, do_not_fit
from penstock.scalars.spark_forms import NotForSpark, write_type
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    REAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    SqlType,
    decimal_type,
)

# Casts with the name of a type


def cast_as_written(scalar: Scalar, target: SqlType) -> Scalar:
    """Returns a cast that a query names: one of a number to an integer stays a cast, whose type has its own digits.

    Raises:
        SqlTypeError: The values cannot be cast.

    >>> from penstock.scalars.types import INT
    >>> print(cast_as_written(Literal(5, INT.or_null(False)), INT), cast_as_written(Literal(5, INT), DOUBLE))
    CAST(5 AS INT) 5.0
    """
    if target.name == "BIGINT" and isinstance(scalar, Literal) and scalar.type.name in ("BIGINT", "DECIMAL"):
        return Call("CAST", (scalar,), target.or_null(scalar.type.nullable))
    return cast(scalar, target)


def _cast_to(target: SqlType) -> Resolve:
    """The cast to a type, written as a function with the type's name."""

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) != 1:
            raise do_not_fit(function, arguments, "one value")
        return cast_as_written(arguments[0], target)

    return resolve


def _typeof(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """The name that Spark has for the type of a value."""
    if len(arguments) != 1:
        raise do_not_fit(function, arguments, "one value")
    return Literal(_name_of(arguments[0].type, arguments[0]), STRING.or_null(False))


def _name_of(kind: SqlType, scalar: Scalar) -> str:
    if kind.name in ("ANY", "INTERVAL", "MONTHS", "DECIMAL") and kind.precision is None:
        raise SqlTypeError(f"the type of {scalar} has no name", "declare the type of the column, or CAST it")
    if kind.name == "ARRAY":
        return f"array<{_name_of(kind.element or NULL, scalar)}>"
    if kind.name == "MAP":
        return f"map<{','.join(_name_of(each, scalar) for each in kind.parts)}>"
    if kind.name == "STRUCT":
        return f"struct<{','.join(f'{name}:{_name_of(each, scalar)}' for name, each in kind.fields)}>"
    if kind.name == "DECIMAL":
        return f"decimal({kind.precision},{kind.scale})"
    return "void" if kind.name == "NULL" else kind.width_name.lower()


# Python


def _casting(exact: bool) -> Choose:
    return lambda result, arguments: cast_function(arguments[0], result, exact=exact)


def _trying(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
    return try_cast_function(arguments[0], result)


def _inline_cast(call: Call, codes: Sequence[Code]) -> str | None:
    source, target = call.arguments[0].type, call.type
    if source.name == target.name and source.name in ("BIGINT", "DOUBLE"):
        # A narrower type is one that the writer tests, or rounds to.
        return "{0}" if target.bits >= source.bits else "({0})"
    is_exact = (source.name, target.name, target.bits) == ("BIGINT", "DOUBLE", 64)
    return "float({0})" if is_exact else None


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
            raise NotForSpark("a string may name a time zone, which Spark looks up elsewhere")
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
    *(
        ScalarFunction(name=str(kind), resolve=_cast_to(kind))
        for kind in (
            *(BIGINT, INT, SMALLINT, TINYINT, DOUBLE, REAL),
            *(BINARY, BOOLEAN, DATE, STRING, TIMESTAMP),
        )
    ),
    ScalarFunction(name="TYPEOF", resolve=_typeof),
    ScalarFunction(name="DECIMAL", resolve=_cast_to(decimal_type(10, 0))),
)
"""The records."""
