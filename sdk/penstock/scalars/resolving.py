"""The types of a call: which arguments fit a function, and the casts that a query leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.error import split_hint, three_parts
from penstock.scalars.casting import can_cast, cast_function
from penstock.scalars.function import Arguments, Resolve, ScalarFunction
from penstock.scalars.tree import Call, Literal, Scalar
from penstock.scalars.types import ANY, DOUBLE, INT, SqlType, find_common_type


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


def do_not_fit(function: ScalarFunction, arguments: Arguments, takes: str = "") -> SqlTypeError:
    """Returns the error of a call whose arguments do not fit."""
    shown = ", ".join(str(each.type.or_null()) for each in arguments)
    hint = f"it takes {takes}" if takes else "CAST one of them"
    return SqlTypeError(f"{function.name} does not take ({shown})", hint)


def is_any_nullable(arguments: Arguments) -> bool:
    """True if one of the arguments may be NULL."""
    return any(each.type.nullable for each in arguments)


def readable(read: Callable[[], object]) -> None:
    """Refuses a text of the query, such as a pattern, that cannot be read."""
    try:
        read()
    except ArithmeticError as error:
        what, hint = split_hint(str(error))
        raise SqlTypeError(what, hint) from None


# Casts


def cast(scalar: Scalar, target: SqlType) -> Scalar:
    """Returns an expression as a value of another type; NULL stays NULL.

    Raises:
        SqlTypeError: The values cannot be cast.

    >>> from penstock.scalars.types import BIGINT, DOUBLE, STRING
    >>> print(cast(Literal(1, BIGINT), DOUBLE), cast(Literal("x", STRING), BIGINT))
    1.0 CAST('x' AS BIGINT)
    """
    source = scalar.type
    if source.or_null() == target.or_null() or target.name == "ANY":
        return scalar
    if not can_cast(source, target):
        hint = "cast to STRING or another type first"
        if source.name == "INTERVAL":
            hint = (
                "its string depends on its units in Spark: format it in Python, with Catalog.create_function"
            )
        raise SqlTypeError(f"no CAST from {source.or_null()} to {target.or_null()}", hint)
    if isinstance(scalar, Literal):
        if scalar.value is None:
            return Literal(None, target.or_null())
        if source.name in ("BIGINT", "DECIMAL", "DATE"):
            try:
                return Literal(cast_function(source, target)(scalar.value), target.or_null(False))
            except ArithmeticError:
                # It is an error of the run, and only where the expression is computed.
                pass
    # NaN becomes NULL, as in Spark.
    may_be_null = source.nullable or (source.name, target.name) == ("DOUBLE", "DECIMAL")
    return Call("CAST", (scalar,), target.or_null(may_be_null))


def try_cast(scalar: Scalar, target: SqlType) -> Scalar:
    """Returns an expression as a value of another type, or NULL where the value does not fit.

    Raises:
        SqlTypeError: The values cannot be cast.

    >>> from penstock.scalars.types import BIGINT, STRING
    >>> print(try_cast(Literal("x", STRING), BIGINT))
    TRY_CAST('x' AS BIGINT)
    """
    plain = cast(scalar, target)
    if not isinstance(plain, Call) or plain.name != "CAST" or plain is scalar:
        return plain
    return Call("TRY_CAST", (scalar,), target.or_null())


def read_text(literal: Literal, target: SqlType) -> Scalar:
    """Returns a text of the query as a value of the type that it is compared with.

    Raises:
        SqlTypeError: It cannot be read as one.
    """
    if literal.value is None or target.name in ("STRING", "ANY"):
        return cast(literal, target)
    if not can_cast(literal.type, target):
        raise SqlTypeError(f"expected a value of type {target.or_null()}, not a string", "CAST one of them")
    try:
        return Literal(cast_function(literal.type, target)(literal.value), target.or_null(False))
    except ArithmeticError:
        raise SqlTypeError(
            f"the string {literal} cannot be read as {target.or_null()}", "correct the string"
        ) from None


# One type for several arguments


def common_type(scalars: Iterable[Scalar]) -> SqlType | None:
    """Returns the type that the values of all these expressions can have; None if there is none.

    >>> from penstock.scalars.tree import Column, Literal
    >>> from penstock.scalars.types import INT, decimal_type
    >>> print(common_type([Literal(1, INT), Column(0, "price", decimal_type(10, 2))]))
    DECIMAL(12, 2)
    """
    return find_common_type(each.type for each in scalars)


def unify_types(function: ScalarFunction, arguments: Arguments) -> tuple[Arguments, SqlType]:
    """Returns arguments that are compared or from which one is taken, as values of one type, and the type."""
    are_text = [isinstance(each, Literal) and each.type.name == "STRING" for each in arguments]
    found = common_type(each for each, is_text in zip(arguments, are_text, strict=True) if not is_text)
    if found is None or (any(are_text) and found.name in ("NULL", "STRING", "BINARY", "ARRAY")):
        found = common_type(arguments)
    if any(are_text) and found is not None and found.name == "DECIMAL":
        found = DOUBLE.or_null(found.nullable)
    if found is None:
        raise do_not_fit(function, arguments)
    parts = tuple(
        read_text(each, found) if is_text and isinstance(each, Literal) else cast(each, found)
        for each, is_text in zip(arguments, are_text, strict=True)
    )
    return parts, found


# One argument

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
_AS_TEXT = ("BIGINT", "DECIMAL", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_OF_TEXT = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DOUBLE", "INT", "BIGINT", "DECIMAL", "BOOLEAN", "BINARY")
"""The types that become strings, and that strings become, where a function takes nothing nearer; the first is best."""


def cost_of(argument: Scalar, wanted: str) -> int | None:
    """Returns how far a type is from a wanted one; None if it does not fit."""
    name = argument.type.name
    if name == wanted or wanted == "ANY":
        return 0
    if name in ("NULL", "ANY"):
        return 1
    if name == "STRING" and wanted in _OF_TEXT:
        return 5 + _OF_TEXT.index(wanted)
    if wanted == "STRING" and name in _AS_TEXT:
        return 5
    return _WIDENINGS.get((name, wanted))


def coerce(argument: Scalar, wanted: str) -> Scalar:
    """Returns an argument that fits, as a value of the wanted type."""
    if wanted in ("ANY", argument.type.name):
        return argument
    if wanted == "INT":
        return _as_int(coerce(argument, "BIGINT"))
    target = SqlType(wanted, argument.type.nullable)
    if argument.type.name == "ANY":
        return Call("EXPECT", (argument,), target)
    if argument.type.name == "STRING" and isinstance(argument, Literal):
        return read_text(argument, target)
    return cast(argument, target)


def _as_int(argument: Scalar) -> Scalar:
    """A number that has 32 bits in Spark."""
    if argument.type.bits <= 32:
        return argument
    value = argument.value if isinstance(argument, Literal) else None
    if value is not None and not -(1 << 31) <= value < 1 << 31:
        raise SqlTypeError(f"{value} has more than 32 bits", "use a smaller number")
    return Call("EXPECT INT", (argument,), INT.or_null(argument.type.nullable))


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
        """Returns the types of this number of arguments; None if it does not take as many."""
        wanted = self.required + self.optional[: max(0, count - len(self.required))]
        if self.repeated:
            wanted += (self.repeated,) * (count - len(wanted))
        return wanted if len(wanted) == count else None

    def __str__(self) -> str:
        shown = [*self.required, *(f"[{each}]" for each in self.optional)]
        return f"({', '.join(shown + [f'{self.repeated}, ...'] * bool(self.repeated))})"


def _signature(text: str) -> _Signature:
    before, _, result = text.partition("->")
    words = before.split()
    return _Signature(
        tuple(word for word in words if word.isidentifier()),
        tuple(word.strip("[]") for word in words if word.startswith("[")),
        next((word.rstrip("*") for word in words if word.endswith("*")), ""),
        SqlType(result.strip().rstrip("?")),
        result.strip().endswith("?"),
    )


def takes(*forms: str, decimals: Callable[[Arguments], SqlType] | None = None) -> Resolve:
    """Returns the resolver that takes the signature that arguments fit best.

    Args:
        forms: The signatures, such as ``STRING INT [INT] -> STRING``: * means repeated, [ ] that an argument may be
            left out, and ? that NULL is a result.
        decimals: From arguments to the type of a result that is a decimal; without it, the decimal has any digits.
    """
    signatures = [_signature(form) for form in forms]

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        best: tuple[int, _Signature, tuple[str, ...]] | None = None
        fitting: list[tuple[_Signature, tuple[str, ...]]] = []
        for signature in signatures:
            wanted = signature.wanted(len(arguments))
            if wanted is None:
                continue
            costs = [cost_of(argument, each) for argument, each in zip(arguments, wanted, strict=True)]
            if None in costs:
                continue
            fitting.append((signature, wanted))
            cost = sum(each or 0 for each in costs)
            if best is None or cost < best[0]:
                best = cost, signature, wanted
        if best is None:
            raise do_not_fit(function, arguments, " or ".join(map(str, signatures)))
        _, signature, wanted = best
        if arguments and arguments[0].type.name == "ANY" and len({each[0] for _, each in fitting}) > 1:
            # The first value chooses the signature when there is one.
            rest = tuple(
                coerce(argument, each) for argument, each in zip(arguments[1:], wanted[1:], strict=True)
            )
            results = {each.result for each, _ in fitting}
            return function.of((arguments[0], *rest), results.pop() if len(results) == 1 else ANY)
        parts = tuple(coerce(argument, each) for argument, each in zip(arguments, wanted, strict=True))
        result = signature.result
        if result.name == "DECIMAL" and decimals is not None:
            result = decimals(parts)
        return function.of(parts, result.or_null(signature.null_too or is_any_nullable(parts)))

    return resolve


def takes_strings(form: str) -> Resolve:
    """Returns the resolver of a signature whose strings must be strings: Spark casts nothing else to them here."""
    typed = takes(form)

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if any(each.type.name not in ("STRING", "NULL", "ANY") for each in arguments):
            raise do_not_fit(function, arguments, "strings")
        return typed(function, arguments)

    return resolve
