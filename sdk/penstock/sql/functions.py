"""The functions of SQL by name: which types fit, what type the result has, and how Spark spells the call."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base.near_names import nearest
from penstock.error import split_hint, three_parts
from penstock.sql import casting, digits, meanings, regexes
from penstock.sql.scalars import Call, Literal, Scalar, walk
from penstock.sql.types import (
    ANY,
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DOUBLE,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
    common,
    decimal_type,
)

IN_PYTHON = "write it in Python, with Catalog.create_function"
"""The hint for a function that penstock does not have."""
_WORDS = frozenset(
    ["AND", "BETWEEN", "CASE", "DIV", "ILIKE", "IN", "LIKE", "NEGATIVE", "NOT", "OR", "REGEXP", "RLIKE"]
)
"""What an expression is written with, and nobody means by the name of a function."""
_LIKENESS = 0.8
"""How like a wrong name the suggested one is: one letter in five may differ, since DATE_FORMAT is not DATE_ADD."""


class SqlTypeError(TypeError):
    """A call of an SQL function whose types do not fit, or of an unknown function (penstock's own).

    Attributes:
        what: What is wrong.
        hint: What the user can do about it.
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(three_parts(what, hint=hint or None))
        self.what = what
        self.hint = hint

    def __reduce__(self) -> tuple[type[SqlTypeError], tuple[str, str]]:
        return SqlTypeError, (self.what, self.hint)


Arguments = tuple[Scalar, ...]


@dataclass(frozen=True)
class Function:
    """A function of SQL.

    Attributes:
        name: The canonical name, which its calls have.
        resolve: Checks the arguments, casts them, and makes the call.
        spark: The call in Spark, with {0}, {1} and so on for its arguments, or {all} for all of them.
        reason: Why Spark does not compute exactly the same; empty if it does.
    """

    name: str
    resolve: Callable[[Function, Arguments], Scalar]
    spark: str = ""
    reason: str = ""


def call(name: str, arguments: Sequence[Scalar]) -> Scalar:
    """A call of a function, with the casts that a query leaves out.

    Raises:
        SqlTypeError: There is no such function, or the arguments do not fit.

    >>> print(call("+", [Literal(1, BIGINT.or_null(False)), Literal(0.5, DOUBLE.or_null(False))]))
    (1.0 + 0.5)
    """
    function = FUNCTIONS.get(name.upper())
    if function is None:
        raise unknown(name)
    return function.resolve(function, tuple(arguments))


def unknown(name: str) -> SqlTypeError:
    """The error of a call of a function that does not exist.

    >>> error = unknown("UPER")
    >>> error.what, error.hint
    ('unknown function UPER', 'did you mean UPPER?')
    """
    names = [each for each in FUNCTIONS if each.isidentifier() and each not in _WORDS]
    near = nearest(name, names, _LIKENESS)
    return SqlTypeError(f"unknown function {name}", f"did you mean {near}?" if near else IN_PYTHON)


def cast(scalar: Scalar, target: SqlType) -> Scalar:
    """An expression as a value of another type; NULL stays NULL.

    Raises:
        SqlTypeError: There is no such cast.

    >>> print(cast(Literal(1, BIGINT), DOUBLE), cast(Literal("x", STRING), BIGINT))
    1.0 CAST('x' AS BIGINT)
    """
    source = scalar.type
    if source.or_null() == target.or_null() or target.name == "ANY":
        return scalar
    if not casting.can_cast(source, target):
        hint = "cast to STRING or another type in between"
        if source.name == "INTERVAL":
            hint = "its text depends on its units in Spark: format it in Python, with Catalog.create_function"
        raise SqlTypeError(f"no CAST from {source.or_null()} to {target.or_null()}", hint)
    if isinstance(scalar, Literal):
        if scalar.value is None:
            return Literal(None, target.or_null())
        if source.name in ("BIGINT", "DECIMAL", "DATE"):
            try:
                return Literal(casting.cast_meaning(source, target)(scalar.value), target.or_null(False))
            except ArithmeticError:
                # It is an error of the run, and only where the expression is computed.
                pass
    # NaN becomes NULL, as in Spark.
    nullable = source.nullable or (source.name, target.name) == ("DOUBLE", "DECIMAL")
    return Call("CAST", (scalar,), target.or_null(nullable))


def try_cast(scalar: Scalar, target: SqlType) -> Scalar:
    """An expression as a value of another type, or NULL where the value does not fit.

    Raises:
        SqlTypeError: There is no such cast.

    >>> print(try_cast(Literal("x", STRING), BIGINT))
    TRY_CAST('x' AS BIGINT)
    """
    plain = cast(scalar, target)
    if not isinstance(plain, Call) or plain.name != "CAST" or plain is scalar:
        return plain
    return Call("TRY_CAST", (scalar,), target.or_null())


_BITS = {"BIGINT": 64, "INT": 32, "SMALLINT": 16, "TINYINT": 8}


def fits(value: Any, kind: str) -> bool:
    """True if a value is a whole number that a type of whole numbers has.

    >>> fits(127, "TINYINT"), fits(128, "TINYINT"), fits(1.5, "TINYINT")
    (True, False, False)
    """
    most = (1 << _BITS[kind] - 1) - 1
    return isinstance(value, int) and -most - 1 <= value <= most


def narrowed(scalar: Scalar, kind: str, is_try: bool) -> Scalar:
    """A number that was cast to a type of whole numbers: one with more bits is an error, or NULL.

    >>> from penstock.sql.scalars import Column
    >>> score = Column(0, "score", BIGINT)
    >>> print(narrowed(score, "INT", False), narrowed(score, "BIGINT", False))
    CAST(score AS INT) score
    """
    if kind not in _BITS or (kind == "BIGINT" and _whole_digits(scalar) == _DIGITS[kind]):
        return scalar
    if is_try and kind != "BIGINT":
        most = (1 << _BITS[kind] - 1) - 1
        low, high = (Literal(each, BIGINT.or_null(False)) for each in (-most - 1, most))
        scalar = call("CASE", (call("BETWEEN", (scalar, low, high)), scalar))
    return Call(f"AS {kind}", (scalar,), scalar.type)


# Types that fit


def _shown(arguments: Arguments) -> str:
    return ", ".join(str(each.type.or_null()) for each in arguments)


def _do_not_fit(function: Function, arguments: Arguments, takes: str = "") -> SqlTypeError:
    hint = f"it takes {takes}" if takes else "CAST one of them"
    return SqlTypeError(f"{function.name} does not take ({_shown(arguments)})", hint)


def _nullable(arguments: Arguments) -> bool:
    return any(each.type.nullable for each in arguments)


_WIDENINGS: dict[tuple[str, str], int] = {
    ("BIGINT", "INT"): 0,
    ("BIGINT", "DECIMAL"): 2,
    ("BIGINT", "DOUBLE"): 3,
    ("DECIMAL", "DOUBLE"): 2,
    ("DATE", "TIMESTAMP"): 2,
    ("DATE", "TIMESTAMP_NTZ"): 3,
    ("TIMESTAMP_NTZ", "TIMESTAMP"): 3,
    ("TIMESTAMP", "DATE"): 4,
    ("TIMESTAMP_NTZ", "DATE"): 4,
}
_OF_LITERAL_TEXT = ("DATE", "TIMESTAMP")


def _cost(argument: Scalar, wanted: str) -> int | None:
    """How far a type is from a wanted one; None if it does not fit."""
    name = argument.type.name
    if name == wanted or wanted == "ANY":
        return 0
    if name in ("NULL", "ANY"):
        return 1
    if name == "STRING" and isinstance(argument, Literal) and wanted in _OF_LITERAL_TEXT:
        return 5 + _OF_LITERAL_TEXT[::-1].index(wanted)
    return _WIDENINGS.get((name, wanted))


def _coerced(argument: Scalar, wanted: str) -> Scalar:
    """An argument that fits, as a value of the wanted type."""
    if wanted in ("ANY", argument.type.name):
        return argument
    if wanted == "INT":
        return _as_int(_coerced(argument, "BIGINT"))
    target = SqlType(wanted, argument.type.nullable)
    if argument.type.name == "ANY":
        return Call("EXPECT", (argument,), target)
    if argument.type.name == "STRING" and isinstance(argument, Literal):
        return _read(argument, target)
    return cast(argument, target)


def _as_int(argument: Scalar) -> Scalar:
    """A number that has 32 bits in Spark."""
    value = argument.value if isinstance(argument, Literal) else None
    if value is not None and not -(1 << 31) <= value < 1 << 31:
        raise SqlTypeError(f"{value} has more than 32 bits", "use a smaller number")
    return Call("INT", (argument,), argument.type)


def _read(literal: Literal, target: SqlType) -> Scalar:
    """A text of the query as a value of the type that it is compared with."""
    if literal.value is None or target.name in ("STRING", "ANY"):
        return cast(literal, target)
    if not casting.can_cast(literal.type, target):
        raise SqlTypeError(f"a text stands where a value of type {target.or_null()} must", "CAST one of them")
    try:
        return Literal(casting.cast_meaning(literal.type, target)(literal.value), target.or_null(False))
    except ArithmeticError:
        raise SqlTypeError(
            f"the text {literal} does not read as {target.or_null()}", "correct the text"
        ) from None


# Signatures


@dataclass(frozen=True)
class _Signature:
    """Types of arguments, the last of which may be left out or repeated, and the type of the result."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    repeated: str
    result: SqlType
    null_too: bool

    def wanted(self, count: int) -> tuple[str, ...] | None:
        """The types of so many arguments; None if it does not take so many."""
        wanted = self.required + self.optional[: max(0, count - len(self.required))]
        if self.repeated:
            wanted += (self.repeated,) * (count - len(wanted))
        return wanted if len(wanted) == count else None

    def __str__(self) -> str:
        shown = [*self.required, *(f"[{each}]" for each in self.optional)]
        return f"({', '.join(shown + [f'{self.repeated}, ...'] * bool(self.repeated))})"


def _signature(text: str) -> _Signature:
    """Reads a signature such as ``STRING INT [INT] -> STRING``; * means repeated, and ? that NULL is a result."""
    before, _, result = text.partition("->")
    words = before.split()
    return _Signature(
        tuple(word for word in words if word.isidentifier()),
        tuple(word.strip("[]") for word in words if word.startswith("[")),
        next((word.rstrip("*") for word in words if word.endswith("*")), ""),
        SqlType(result.strip().rstrip("?")),
        result.strip().endswith("?"),
    )


def _by_signature(*texts: str) -> Callable[[Function, Arguments], Scalar]:
    """Takes the signature that the arguments fit best."""
    signatures = [_signature(text) for text in texts]

    def resolve(function: Function, arguments: Arguments) -> Scalar:
        best: tuple[int, _Signature, tuple[str, ...]] | None = None
        fitting: list[tuple[_Signature, tuple[str, ...]]] = []
        for signature in signatures:
            wanted = signature.wanted(len(arguments))
            if wanted is None:
                continue
            costs = [_cost(argument, each) for argument, each in zip(arguments, wanted, strict=True)]
            if None in costs:
                continue
            fitting.append((signature, wanted))
            cost = sum(each or 0 for each in costs)
            if best is None or cost < best[0]:
                best = cost, signature, wanted
        if best is None:
            raise _do_not_fit(function, arguments, " or ".join(map(str, signatures)))
        _, signature, wanted = best
        if arguments and arguments[0].type.name == "ANY" and len({each[0] for _, each in fitting}) > 1:
            # The first value chooses the signature when there is one.
            rest = tuple(
                _coerced(argument, each) for argument, each in zip(arguments[1:], wanted[1:], strict=True)
            )
            results = {each.result for each, _ in fitting}
            return Call(function.name, (arguments[0], *rest), results.pop() if len(results) == 1 else ANY)
        coerced = tuple(_coerced(argument, each) for argument, each in zip(arguments, wanted, strict=True))
        result = _with_result_digits(function.name, signature.result, coerced)
        return Call(function.name, coerced, result.or_null(signature.null_too or _nullable(coerced)))

    return resolve


def _with_result_digits(name: str, result: SqlType, arguments: Arguments) -> SqlType:
    """The type of a result, with the digits that it has if it is a decimal."""
    if result.name != "DECIMAL":
        return result
    match name:
        case "FLOOR" | "CEIL":
            return digits.rounded_type(arguments[0].type) if arguments[0].type.scale else arguments[0].type
        case "ROUND":
            return digits.rounded_type(arguments[0].type, _places(arguments))
        case "NEGATIVE" | "POSITIVE" | "ABS":
            return arguments[0].type
        case "EXTRACT SECOND":
            return decimal_type(8, 6)
    return result


def _places(arguments: Arguments) -> int:
    """The number of digits that ROUND keeps."""
    for each in walk(arguments[-1]) if len(arguments) > 1 else ():
        if isinstance(each, Literal):
            return each.value or 0
    return 0


# Operators


def _arithmetic(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) == 1 and function.name in "+-":
        return arguments[0] if function.name == "+" else call("NEGATIVE", arguments)
    if len(arguments) != 2:
        raise _do_not_fit(function, arguments, "two numbers")
    names = {each.type.name for each in arguments}
    if "ANY" in names:
        return Call(function.name, arguments, ANY)
    if names & {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTERVAL"}:
        return _arithmetic_of_times(function, arguments)
    nothing = BIGINT if function.name == "DIV" else DOUBLE
    found = nothing if names == {"NULL"} else common(each.type for each in arguments)
    if found is None or not found.is_number or (function.name == "DIV" and found.name == "DOUBLE"):
        raise _do_not_fit(function, arguments, "" if "STRING" in names else "two numbers")
    if found.name == "DECIMAL":
        if function.name == "/" and arguments[0].type.name == "NULL":
            found = DOUBLE
        else:
            return _arithmetic_of_decimals(function, arguments)
    found = found.or_null(_nullable(arguments))
    if function.name == "/" and found.name == "BIGINT":
        found = DOUBLE.or_null(found.nullable)
    result = BIGINT.or_null(found.nullable) if function.name == "DIV" else found
    return Call(function.name, tuple(cast(each, found) for each in arguments), result)


def _positive_remainder(function: Function, arguments: Arguments) -> Scalar:
    if any(each.type.name == "ANY" for each in arguments):
        typed = _by_signature(
            "BIGINT BIGINT -> BIGINT", "DOUBLE DOUBLE -> DOUBLE", "DECIMAL DECIMAL -> DECIMAL"
        )
        return typed(function, arguments)
    return _arithmetic(function, arguments)


def _arithmetic_of_decimals(function: Function, arguments: Arguments) -> Scalar:
    types = [_of_decimals(each) for each in arguments]
    types = [types[1 - at].or_null() if each.name == "NULL" else each for at, each in enumerate(types)]
    if any(each.precision is None for each in types):
        types = [DECIMAL.or_null(each.nullable) for each in types]
    parts = tuple(cast(each, to) for each, to in zip(arguments, types, strict=True))
    result = BIGINT if function.name == "DIV" else digits.result_type(function.name, *types)
    return Call(function.name, parts, result.or_null(_nullable(arguments)))


def _of_decimals(operand: Scalar) -> SqlType:
    """The type that an operand of decimals has: a whole number that the query names has its own digits only.

    A TINYINT is the exception, as in Spark.
    """
    match operand:
        case Literal(int() as value, kind, suffixed) if kind.name == "BIGINT" and suffixed != "TINYINT":
            return decimal_type(len(str(abs(value))), 0, kind.nullable)
    return _decimals_of_whole(operand)


def _decimals_of_whole(operand: Scalar) -> SqlType:
    """The type of an operand, where a whole number is a decimal with as many digits as Spark's type for it."""
    if operand.type.name != "BIGINT":
        return operand.type
    return decimal_type(_whole_digits(operand), 0, operand.type.nullable)


def _whole_digits(operand: Scalar) -> int:
    """The number of digits of a whole number as a decimal: an INT of Spark has fewer than a BIGINT."""
    if isinstance(operand, Literal):
        if operand.suffixed:
            return _DIGITS[operand.suffixed]
        is_int = type(operand.value) is not int or -(1 << 31) <= operand.value < 1 << 31
        return _DIGITS["INT"] if is_int else _DIGITS["BIGINT"]
    if not isinstance(operand, Call):
        return _DIGITS["BIGINT"]
    if operand.name.startswith("AS "):
        return _DIGITS[operand.name.removeprefix("AS ")]
    if operand.name in _OF_OPERANDS:
        arguments = operand.arguments[:1] if operand.name in _OF_FIRST else operand.arguments
        wholes = [each for each in arguments if each.type.name in ("BIGINT", "ARRAY")]
        return max(map(_whole_digits, wholes), default=_DIGITS["INT"])
    function = FUNCTIONS.get(operand.name)
    is_int = operand.name == "INT" or (function is not None and function.spark.startswith("CAST("))
    return _DIGITS["INT"] if is_int else _DIGITS["BIGINT"]


_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_OF_OPERANDS = frozenset(
    [
        *("+", "-", "*", "%", "PMOD", "NEGATIVE", "POSITIVE", "ABS", "ROUND", "CASE", "COALESCE"),
        *("NULLIF", "GREATEST", "LEAST", "ARRAY", "ELEMENT_AT", "ITEM"),
    ]
)
"""The functions whose whole numbers have the digits of their operands."""
_OF_FIRST = frozenset(["ROUND", "NULLIF", "ELEMENT_AT", "ITEM"])
"""Those of them whose whole numbers have the digits of the first operand."""


def common_type(scalars: Iterable[Scalar]) -> SqlType | None:
    """The type that the values of all these expressions can have; None if there is none.

    >>> from penstock.sql.scalars import Column
    >>> print(common_type([Literal(1, BIGINT), Column(0, "price", decimal_type(10, 2))]))
    DECIMAL(12, 2)
    """
    given = list(scalars)
    if any(each.type.name == "DECIMAL" for each in given):
        return common(map(_decimals_of_whole, given))
    return common(each.type for each in given)


def _arithmetic_of_times(function: Function, arguments: Arguments) -> Scalar:
    left, right = arguments
    name, nullable = function.name, _nullable(arguments)
    if (
        name == "+"
        and (right.type.is_time or right.type.name in ("INTERVAL", "NULL"))
        and not left.type.is_time
    ):
        left, right = (right, left) if right.type.is_time else (left, right)
    elif name == "*" and right.type.name == "INTERVAL":
        left, right = right, left
    kinds = left.type.name, right.type.name
    if name in ("+", "-"):
        if left.type.is_time and right.type.name in ("BIGINT", "INT") and left.type.name == "DATE":
            return call("DATE_ADD" if name == "+" else "DATE_SUB", (left, right))
        if name == "-" and kinds == ("TIMESTAMP_NTZ", "NULL"):
            return Call("-", (left, cast(right, left.type)), INTERVAL)
        if left.type.is_time and right.type.name in ("INTERVAL", "NULL"):
            right = cast(right, INTERVAL)
            if left.type.name == "DATE" and not _has_whole_days(right):
                left = cast(left, TIMESTAMP)
            return Call(name, (left, right), left.type.or_null(nullable))
        if set(kinds) <= {"INTERVAL", "NULL"}:
            return Call(name, (cast(left, INTERVAL), cast(right, INTERVAL)), INTERVAL.or_null(nullable))
        found = common((left.type, right.type))
        if name == "-" and found is not None and found.is_time:
            return Call("-", (cast(left, found), cast(right, found)), INTERVAL.or_null(nullable))
    elif name in ("*", "/") and left.type.name == "INTERVAL" and right.type.name in ("BIGINT", "NULL"):
        return Call(name, (left, cast(right, BIGINT)), INTERVAL.or_null(nullable))
    raise _do_not_fit(function, arguments)


def _has_whole_days(scalar: Scalar) -> bool:
    """Whether an interval is a number of days, so that a date stays a date."""
    return (
        isinstance(scalar, Literal)
        and isinstance(scalar.value, datetime.timedelta)
        and not scalar.value % datetime.timedelta(days=1)
    )


def _of_one_type(function: Function, arguments: Arguments) -> tuple[Arguments, SqlType]:
    """Arguments that are compared or from which one is taken, as values of one type."""
    texts = [isinstance(each, Literal) and each.type.name == "STRING" for each in arguments]
    found = common_type(each for each, is_text in zip(arguments, texts, strict=True) if not is_text)
    if found is None or (any(texts) and found.name in ("NULL", "STRING", "BINARY", "ARRAY")):
        found = common_type(arguments)
    if any(texts) and found is not None and found.name == "DECIMAL":
        found = DOUBLE.or_null(found.nullable)
    if found is None:
        raise _do_not_fit(function, arguments)
    parts = tuple(
        _read(each, found) if is_text and isinstance(each, Literal) else cast(each, found)
        for each, is_text in zip(arguments, texts, strict=True)
    )
    return parts, found


def _compared(low: int, high: int | None, takes: str) -> Callable[[Function, Arguments], Scalar]:
    def resolve(function: Function, arguments: Arguments) -> Scalar:
        if len(arguments) < low or (high is not None and len(arguments) > high):
            raise _do_not_fit(function, arguments, takes)
        parts, found = _of_one_type(function, arguments)
        if function.name == "NULLIF":
            if parts != arguments and parts[0] is not arguments[0]:
                equal = Call("=", parts, BOOLEAN)
                return call("CASE", (equal, Literal(None, NULL), arguments[0]))
            return Call("NULLIF", parts, found.or_null())
        nullable = function.name != "<=>" and _nullable(parts)
        return Call(function.name, parts, BOOLEAN.or_null(nullable))

    return resolve


def _truth(function: Function, argument: Scalar) -> Scalar:
    if argument.type.name not in ("BOOLEAN", "NULL", "ANY"):
        raise _do_not_fit(function, (argument,), "a condition, which is true, false or NULL")
    return _coerced(argument, "BOOLEAN")


def _logic(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 and not (function.name == "NOT" and len(arguments) == 1):
        raise _do_not_fit(function, arguments, "conditions")
    parts = tuple(_truth(function, each) for each in arguments)
    return Call(function.name, parts, BOOLEAN.or_null(_nullable(parts)))


def _is(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 1:
        raise _do_not_fit(function, arguments, "one value")
    parts = arguments if function.name.endswith("NULL") else (_truth(function, arguments[0]),)
    return Call(function.name, parts, BOOLEAN.or_null(False))


def _chosen(function: Function, arguments: Arguments) -> Scalar:
    """COALESCE, GREATEST and LEAST: one of the arguments, and NULL only if all may be."""
    if not arguments:
        raise _do_not_fit(function, arguments, "at least one value")
    parts, found = _of_one_type(function, arguments)
    return Call(function.name, parts, found.or_null(all(each.type.nullable for each in parts)))


def _case(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) < 2:
        raise _do_not_fit(function, arguments, "conditions with values, and one more value")
    if len(arguments) % 2 == 0:
        arguments += (Literal(None, NULL),)
    conditions = [_truth(function, each) for each in arguments[:-1:2]]
    values, found = _of_one_type(function, (*arguments[1::2], arguments[-1]))
    parts: list[Scalar] = []
    for condition, value in zip(conditions, values, strict=False):
        parts += [condition, value]
    return Call("CASE", (*parts, values[-1]), found.or_null(_nullable(values)))


def _if(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 3:
        raise _do_not_fit(function, arguments, "a condition and two values")
    return call("CASE", arguments)


# Functions with rules of their own


def _concat(function: Function, arguments: Arguments) -> Scalar:
    if not arguments:
        return Literal("", STRING.or_null(False))
    if all(each.type.name == "BINARY" for each in arguments):
        return Call("CONCAT", arguments, BINARY.or_null(_nullable(arguments)))
    if any(each.type.name == "NULL" for each in arguments):
        arguments = tuple(Literal(None, STRING) if each.type.name == "BINARY" else each for each in arguments)
    parts = tuple(_as_text(function, each, arguments) for each in arguments)
    return Call("CONCAT", parts, STRING.or_null(_nullable(parts)))


def _as_text(function: Function, argument: Scalar, arguments: Arguments) -> Scalar:
    if argument.type.name == "ANY":
        return _coerced(argument, "STRING")
    if not casting.can_cast(argument.type, STRING) or argument.type.name in ("BINARY", "INTERVAL"):
        raise _do_not_fit(function, arguments, "texts")
    return cast(argument, STRING)


def _concat_ws(function: Function, arguments: Arguments) -> Scalar:
    if not arguments:
        raise _do_not_fit(function, arguments, "a separator and texts")
    texts = SqlType("ARRAY", element=STRING)
    parts = tuple(
        each
        if each.type.name == "ARRAY" and each.type.element and common((each.type, texts))
        else _as_text(function, each, arguments)
        for each in arguments
    )
    return Call("CONCAT_WS", parts, STRING.or_null(parts[0].type.nullable))


def _like(function: Function, arguments: Arguments) -> Scalar:
    found = _by_signature("STRING STRING [STRING] -> BOOLEAN")(function, arguments)
    assert isinstance(found, Call)
    texts = [part.value if isinstance(part, Literal) else None for part in found.arguments[1:]]
    escape = texts[1] if len(texts) > 1 else "\\"
    if not isinstance(escape, str) or len(escape) != 1:
        raise SqlTypeError(
            f"the escape character of {function.name} is not one character", "write ESCAPE '#'"
        )
    if isinstance(texts[0], str):
        _try(lambda: regexes.like(str(texts[0]), escape))
    return found


def _try(read: Callable[[], object]) -> None:
    try:
        read()
    except ArithmeticError as error:
        what, hint = split_hint(str(error))
        raise SqlTypeError(what, hint) from None


def _with_regex(signature: str) -> Callable[[Function, Arguments], Scalar]:
    resolve_types = _by_signature(signature)

    def resolve(function: Function, arguments: Arguments) -> Scalar:
        found = resolve_types(function, arguments)
        pattern = arguments[1]
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            text = pattern.value
            _try(lambda: regexes.compiled(text))
        return found

    return resolve


_PARTS = dict(zip(meanings.FIELDS, meanings.FIELDS, strict=True)) | {
    other: name
    for name, others in {
        "YEAR": "Y YEARS YR YRS",
        "QUARTER": "QTR",
        "MONTH": "MON MONS MONTHS",
        "WEEKOFYEAR": "WEEK W WEEKS",
        "DAY": "D DAYS DAYOFMONTH",
        "DAYOFWEEK": "DOW",
        "DAYOFWEEK_ISO": "DOW_ISO",
        "DAYOFYEAR": "DOY",
        "HOUR": "H HOURS HR HRS",
        "MINUTE": "M MIN MINS MINUTES",
        "EXTRACT SECOND": "SECOND S SEC SECS SECONDS",
    }.items()
    for other in others.split()
}
"""The parts of a time as EXTRACT names them."""

_UNITS = dict(zip(meanings.TRUNCATIONS, meanings.TRUNCATIONS, strict=True)) | {
    "YYYY": "YEAR",
    "YY": "YEAR",
    "MON": "MONTH",
    "MM": "MONTH",
    "DD": "DAY",
}
"""The units of time as DATE_TRUNC names them."""


def _named(literal: Scalar, names: dict[str, str], what: str) -> str:
    value = literal.value if isinstance(literal, Literal) else None
    if not isinstance(value, str) or value.upper() not in names:
        near = nearest(str(value), names)
        raise SqlTypeError(
            f"unknown {what} {literal}", f"did you mean {near}?" if near else "write DAY or HOUR"
        )
    return names[value.upper()]


def _extract(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise _do_not_fit(function, arguments, "a part of time, and a time")
    return call(_named(arguments[0], _PARTS, "part of a time"), arguments[1:])


def _date_trunc(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise _do_not_fit(function, arguments, "a unit of time, and a time")
    unit = Literal(_named(arguments[0], _UNITS, "unit of time"), STRING.or_null(False))
    return _by_signature("STRING TIMESTAMP -> TIMESTAMP")(function, (unit, arguments[1]))


def _to(target: SqlType) -> Callable[[Function, Arguments], Scalar]:
    def resolve(function: Function, arguments: Arguments) -> Scalar:
        if len(arguments) != 1:
            raise SqlTypeError(f"{function.name} with a format is left out", f"write {function.name}(text)")
        return cast(arguments[0], target)

    return resolve


def _cast_to(target: SqlType) -> Callable[[Function, Arguments], Scalar]:
    """The cast to a type, written as a function with the type's name."""

    def resolve(function: Function, arguments: Arguments) -> Scalar:
        if len(arguments) != 1:
            raise _do_not_fit(function, arguments, "one value")
        return narrowed(cast(arguments[0], target), function.name, False)

    return resolve


def _is_null(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 1:
        raise _do_not_fit(function, arguments, "one value")
    return call("IS NOT NULL" if function.name == "ISNOTNULL" else "IS NULL", arguments)


def _nvl2(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 3:
        raise _do_not_fit(function, arguments, "three values")
    return call("CASE", (call("IS NOT NULL", arguments[:1]), *arguments[1:]))


def _round(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) > 1 and not isinstance(arguments[1], Literal):
        raise SqlTypeError("the number of digits of ROUND is not a number of the query", "write a number")
    typed = _by_signature("DOUBLE [INT] -> DOUBLE", "BIGINT [INT] -> BIGINT", "DECIMAL [INT] -> DECIMAL")
    return typed(function, arguments)


def _array(function: Function, arguments: Arguments) -> Scalar:
    if not arguments:
        return Call("ARRAY", (), SqlType("ARRAY", False, NULL))
    parts, found = _of_one_type(function, arguments)
    return Call("ARRAY", parts, SqlType("ARRAY", False, found.or_null(_nullable(parts))))


def _element_at(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or arguments[0].type.name != "ARRAY":
        raise _do_not_fit(function, arguments, "(ARRAY, BIGINT)")
    array, index = arguments
    return Call(
        function.name, (array, _coerced_or_refused(function, index)), (array.type.element or ANY).or_null()
    )


def _coerced_or_refused(function: Function, index: Scalar) -> Scalar:
    if _cost(index, "INT") is None:
        raise _do_not_fit(function, (index,), "(ARRAY, BIGINT)")
    return _coerced(index, "INT")


def _array_contains(function: Function, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 or arguments[0].type.name != "ARRAY":
        raise _do_not_fit(function, arguments, "an ARRAY and a value of its type")
    array, value = arguments
    found = common(((array.type.element or NULL), value.type))
    if found is None:
        raise _do_not_fit(function, arguments, "an ARRAY and a value of its type")
    of_type = cast(array, SqlType("ARRAY", array.type.nullable, found))
    return Call("ARRAY_CONTAINS", (of_type, cast(value, found)), BOOLEAN)


# The table

_LAST_BIT = "Java's and Python's results differ in the last bit"
_LETTERS = "Java and Python have letters of different versions of Unicode"
_OF_DAY = ("DATE -> BIGINT", "TIMESTAMP -> BIGINT", "TIMESTAMP_NTZ -> BIGINT")
_OF_CLOCK = ("TIMESTAMP -> BIGINT", "TIMESTAMP_NTZ -> BIGINT")
_NUMBER = ("DOUBLE -> DOUBLE", "BIGINT -> BIGINT", "DECIMAL -> DECIMAL")
_BIG = "CAST({} AS BIGINT)"


def _typed(name: str, *signatures: str, spark: str = "", reason: str = "") -> Function:
    return Function(name, _by_signature(*signatures), spark or f"{name.lower()}({{all}})", reason)


def _infix(name: str, resolve: Callable[[Function, Arguments], Scalar], spark: str = "") -> Function:
    return Function(name, resolve, f"({{0}} {spark or name} {{1}})")


def _all() -> Iterator[Function]:
    for name in ("+", "-", "*", "/", "%"):
        yield _infix(name, _arithmetic)
    yield _infix("DIV", _arithmetic, "div")
    for name in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        yield _infix(name, _compared(2, 2, "two values"))
    yield _infix("AND", _logic)
    yield _infix("OR", _logic)
    yield Function("NOT", _logic, "(NOT {0})")
    yield Function("IS NULL", _is, "({0} IS NULL)")
    yield Function("IS NOT NULL", _is, "({0} IS NOT NULL)")
    yield Function("IS TRUE", _is, "({0} IS TRUE)")
    yield Function("IS FALSE", _is, "({0} IS FALSE)")
    yield Function("BETWEEN", _compared(3, 3, "a value and two bounds"), "({0} BETWEEN {1} AND {2})")
    yield Function("IN", _compared(2, None, "a value and a list"), "({0} IN ({rest}))")
    yield Function("NULLIF", _compared(2, 2, "two values"), "nullif({0}, {1})")
    yield Function("COALESCE", _chosen, "coalesce({all})")
    yield Function("GREATEST", _chosen, "greatest({all})")
    yield Function("LEAST", _chosen, "least({all})")
    yield Function("CASE", _case)
    yield Function("IF", _if)
    yield Function("NVL2", _nvl2)
    yield Function("ISNULL", _is_null)
    yield Function("ISNOTNULL", _is_null)
    for name in _BITS:
        yield Function(name, _cast_to(BIGINT))
    for kind in (BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP):
        yield Function(kind.name, _cast_to(kind))
    yield Function("DECIMAL", _cast_to(SqlType("DECIMAL", precision=10, scale=0)))
    yield from _of_numbers()
    yield from _of_texts()
    yield from _of_times()
    yield Function("ARRAY", _array, "array({all})")
    yield Function("ELEMENT_AT", _element_at, "element_at({0}, {1})")
    yield Function("ITEM", _element_at, "{0}[{1}]")
    yield _typed("SIZE", "ARRAY -> BIGINT", spark=_BIG.format("size({0})"))
    yield Function("ARRAY_CONTAINS", _array_contains, "array_contains({0}, {1})")


def _of_numbers() -> Iterator[Function]:
    for kind in _BITS:
        yield _typed(f"AS {kind}", "BIGINT -> BIGINT", spark=_BIG.format(f"CAST({{0}} AS {kind})"))
    yield _typed("NEGATIVE", *_NUMBER, "INTERVAL -> INTERVAL", spark="(- {0})")
    yield _typed("POSITIVE", *_NUMBER, "INTERVAL -> INTERVAL", spark="(+ {0})")
    yield _typed("ABS", *_NUMBER, "INTERVAL -> INTERVAL")
    yield _typed("SIGN", "DOUBLE -> DOUBLE")
    yield Function("ROUND", _round, "round({all})")
    yield _typed("FLOOR", "BIGINT -> BIGINT", "DOUBLE -> BIGINT", "DECIMAL -> DECIMAL")
    yield _typed("CEIL", "BIGINT -> BIGINT", "DOUBLE -> BIGINT", "DECIMAL -> DECIMAL")
    yield _typed("SQRT", "DOUBLE -> DOUBLE")
    yield _typed("POWER", "DOUBLE DOUBLE -> DOUBLE", reason=_LAST_BIT)
    yield _typed("EXP", "DOUBLE -> DOUBLE", reason=_LAST_BIT)
    yield _typed("LN", "DOUBLE -> DOUBLE?", reason=_LAST_BIT)
    yield _typed("LOG10", "DOUBLE -> DOUBLE?", reason=_LAST_BIT)
    yield Function("PMOD", _positive_remainder, "pmod({0}, {1})")


def _of_texts() -> Iterator[Function]:
    yield _typed("UPPER", "STRING -> STRING", reason=_LETTERS)
    yield _typed("LOWER", "STRING -> STRING", reason=_LETTERS)
    yield _typed("LENGTH", "STRING -> BIGINT", "BINARY -> BIGINT", spark=_BIG.format("length({0})"))
    for name, side in (("TRIM", "BOTH"), ("LTRIM", "LEADING"), ("RTRIM", "TRAILING")):
        yield _typed(name, "STRING [STRING] -> STRING", spark=f"trim({side} {{1}} FROM {{0}})")
    yield _typed("SUBSTRING", "STRING INT [INT] -> STRING", "BINARY INT [INT] -> BINARY")
    yield Function("CONCAT", _concat, "concat({all})")
    yield Function("CONCAT_WS", _concat_ws, "concat_ws({all})")
    yield _typed("REPLACE", "STRING STRING [STRING] -> STRING")
    yield _typed("LEFT", "STRING INT -> STRING")
    yield _typed("RIGHT", "STRING INT -> STRING")
    yield _typed("LPAD", "STRING INT [STRING] -> STRING")
    yield _typed("RPAD", "STRING INT [STRING] -> STRING")
    yield _typed("REPEAT", "STRING INT -> STRING")
    yield _typed("REVERSE", "STRING -> STRING")
    yield _typed("ASCII", "STRING -> BIGINT", spark=_BIG.format("ascii({0})"))
    yield _typed("LOCATE", "STRING STRING [INT] -> BIGINT", spark=_BIG.format("locate({all})"))
    yield Function(
        "INSTR", lambda function, given: call("LOCATE", given[1::-1] if len(given) == 2 else given * 9)
    )
    yield Function("SPLIT", _with_split, "split({all})")
    yield _typed("STARTSWITH", "STRING STRING -> BOOLEAN")
    yield _typed("ENDSWITH", "STRING STRING -> BOOLEAN")
    yield _typed("CONTAINS", "STRING STRING -> BOOLEAN")
    yield Function("LIKE", _like, "({0} LIKE {1} ESCAPE {2})")
    yield Function("ILIKE", _like, reason=_LETTERS)
    yield Function("RLIKE", _with_regex("STRING STRING -> BOOLEAN"), "({0} RLIKE {1})")
    yield Function("REGEXP_EXTRACT", _with_regex("STRING STRING [INT] -> STRING"), "regexp_extract({all})")
    yield Function("REGEXP_REPLACE", _with_regex("STRING STRING STRING -> STRING"), "regexp_replace({all})")
    yield _typed("MD5", "STRING -> STRING", "BINARY -> STRING")
    yield _typed("SHA2", "STRING INT -> STRING?", "BINARY INT -> STRING?")


def _with_split(function: Function, arguments: Arguments) -> Scalar:
    found = _with_regex("STRING STRING [INT] -> STRING")(function, arguments)
    assert isinstance(found, Call)
    return Call("SPLIT", found.arguments, SqlType("ARRAY", found.type.nullable, STRING.or_null(False)))


def _of_times() -> Iterator[Function]:
    for name in ("YEAR", "QUARTER", "MONTH", "WEEKOFYEAR", "DAY", "DAYOFWEEK", "DAYOFYEAR"):
        yield _typed(name, *_OF_DAY, spark=_BIG.format(f"{name.lower()}({{0}})"))
    yield _typed("YEAROFWEEK", *_OF_DAY, spark=_BIG.format("extract(YEAROFWEEK FROM {0})"))
    yield _typed("DAYOFWEEK_ISO", *_OF_DAY, spark=_BIG.format("extract(DAYOFWEEK_ISO FROM {0})"))
    for name in ("HOUR", "MINUTE", "SECOND"):
        yield _typed(name, *_OF_CLOCK, spark=_BIG.format(f"{name.lower()}({{0}})"))
    with_fraction = ("TIMESTAMP -> DECIMAL", "TIMESTAMP_NTZ -> DECIMAL")
    yield _typed("EXTRACT SECOND", *with_fraction, spark="extract(SECOND FROM {0})")
    yield Function("EXTRACT", _extract)
    yield Function("DATE_TRUNC", _date_trunc, "date_trunc({0}, {1})")
    yield _typed("DATE_ADD", "DATE INT -> DATE")
    yield _typed("DATE_SUB", "DATE INT -> DATE")
    yield _typed("ADD_MONTHS", "DATE INT -> DATE")
    yield _typed("LAST_DAY", "DATE -> DATE")
    yield _typed("MAKE_DATE", "INT INT INT -> DATE")
    yield _typed("DATEDIFF", "DATE DATE -> BIGINT", spark=_BIG.format("datediff({0}, {1})"))
    yield _typed("DATE_BIN", "INTERVAL TIMESTAMP -> TIMESTAMP", "INTERVAL TIMESTAMP_NTZ -> TIMESTAMP_NTZ")
    yield _typed("UNIX_TIMESTAMP", *_OF_DAY)
    for name in ("UNIX_SECONDS", "UNIX_MILLIS", "UNIX_MICROS"):
        yield _typed(name, "TIMESTAMP -> BIGINT")
    seconds = ("BIGINT -> TIMESTAMP", "DECIMAL -> TIMESTAMP", "DOUBLE -> TIMESTAMP?")
    yield _typed("TIMESTAMP_SECONDS", *seconds)
    yield _typed("TIMESTAMP_MILLIS", "BIGINT -> TIMESTAMP")
    yield _typed("TIMESTAMP_MICROS", "BIGINT -> TIMESTAMP")
    yield Function("TO_DATE", _to(DATE))
    yield Function("TO_TIMESTAMP", _to(TIMESTAMP))
    yield Function("TO_TIMESTAMP_NTZ", _to(TIMESTAMP_NTZ))


_ALIASES = {
    "!=": "<>",
    "==": "=",
    "||": "CONCAT",
    "MOD": "%",
    "CEILING": "CEIL",
    "POW": "POWER",
    "SIGNUM": "SIGN",
    "IFNULL": "COALESCE",
    "NVL": "COALESCE",
    "IS NOT DISTINCT FROM": "<=>",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "LEN": "LENGTH",
    "SUBSTR": "SUBSTRING",
    "POSITION": "LOCATE",
    "REGEXP": "RLIKE",
    "REGEXP_LIKE": "RLIKE",
    "DAYOFMONTH": "DAY",
    "DATE_DIFF": "DATEDIFF",
    "DATEADD": "DATE_ADD",
    "TO_UNIX_TIMESTAMP": "UNIX_TIMESTAMP",
    "CARDINALITY": "SIZE",
    "BTRIM": "TRIM",
}


def _negated(name: str) -> Function:
    return Function(f"NOT {name}", lambda _, arguments: call("NOT", (call(name, arguments),)))


FUNCTIONS: dict[str, Function] = {function.name: function for function in _all()}
"""All functions by the names that a query may use."""

FUNCTIONS |= {alias: FUNCTIONS[name] for alias, name in _ALIASES.items()}
FUNCTIONS |= {
    "IS DISTINCT FROM": _negated("<=>"),
    "IS NOT TRUE": _negated("IS TRUE"),
    "IS NOT FALSE": _negated("IS FALSE"),
    "NOT BETWEEN": _negated("BETWEEN"),
    "NOT IN": _negated("IN"),
    "NOT LIKE": _negated("LIKE"),
    "NOT ILIKE": _negated("ILIKE"),
    "NOT RLIKE": _negated("RLIKE"),
}
