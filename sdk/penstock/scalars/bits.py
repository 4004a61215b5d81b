"""The functions of the bits of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.scalars.casting import Compute
from penstock.scalars.function import (
    Arguments,
    Choose,
    Code,
    Inline,
    Resolve,
    ScalarFunction,
    choose_always,
    write_by_template,
)
from penstock.scalars.resolving import cast, do_not_fit, takes
from penstock.scalars.tree import Call, Scalar
from penstock.scalars.types import INT, SqlType

# Shifts depend on the number of bits that an integer has in Spark.


def _of_numbers(*forms: str) -> Resolve:
    """Takes signatures of numbers, which strings are not cast to."""
    typed = takes(*forms)

    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if any(each.type.name == "STRING" for each in arguments):
            raise do_not_fit(function, arguments, "integers")
        if all(each.type.name == "NULL" for each in arguments):
            arguments = tuple(cast(each, INT) for each in arguments)
        return typed(function, arguments)

    return resolve


def _shift_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    found = _of_numbers("BIGINT INT -> BIGINT")(function, arguments)
    assert isinstance(found, Call)
    # As in Java, a number with fewer bits than an INT becomes one.
    return replace(found, type=replace(found.type, bits=max(32, found.arguments[0].type.bits)))


def _shifting(template: str) -> tuple[Choose, Inline]:
    """Returns the function that shifts a number of as many bits as its type has, and the code that does so."""

    def text(bits: int) -> str:
        half, every = 1 << bits - 1, (1 << bits) - 1
        amount = f"({{1}} & {bits - 1})"
        moved = template.format(value="{0}", amount=amount, every=every)
        return f"((({moved} + {half}) & {every}) - {half})"

    def write(call: Call, codes: Sequence[Code]) -> str:
        return text(call.type.bits)

    def choose(result: SqlType, arguments: Sequence[SqlType]) -> Compute:
        compute: Compute = eval(f"lambda value, amount: {text(result.bits).format('value', 'amount')}")
        return compute

    return choose, write


_NAMES_IN_SPARK = {"<<": "shiftleft", ">>": "shiftright", ">>>": "shiftrightunsigned"}


def _shift(name: str, spelling: str, template: str) -> ScalarFunction:
    choose, write = _shifting(template)
    return ScalarFunction(
        name=name,
        resolve=_shift_of,
        spellings=(spelling,),
        python=choose,
        inline=write,
        spark=f"{_NAMES_IN_SPARK[name]}({{0}}, {{1}})",
    )


# Records


def _bitwise(name: str, compute: Compute) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=_of_numbers("BIGINT BIGINT -> BIGINT"),
        python=choose_always(compute),
        inline=write_by_template({"BIGINT": f"({{0}} {name} {{1}})"}),
        spark=f"({{0}} {name} {{1}})",
        whole="operands",
    )


def _count_of_bits(value: int) -> int:
    return (value & (1 << 64) - 1).bit_count()


BITWISE_AND = _bitwise("&", lambda left, right: left & right)
FUNCTIONS = (
    BITWISE_AND,
    _bitwise("|", lambda left, right: left | right),
    _bitwise("^", lambda left, right: left ^ right),
    ScalarFunction(
        name="~",
        resolve=_of_numbers("BIGINT -> BIGINT"),
        python=choose_always(lambda value: ~value),
        inline=write_by_template({"BIGINT": "(~{0})"}),
        spark="(~ {0})",
        whole="operands",
    ),
    _shift("<<", "SHIFTLEFT", "({value} << {amount})"),
    _shift(">>", "SHIFTRIGHT", "({value} >> {amount})"),
    _shift(">>>", "SHIFTRIGHTUNSIGNED", "(({value} & {every}) >> {amount})"),
    ScalarFunction(
        name="BIT_COUNT",
        resolve=_of_numbers("BIGINT -> BIGINT", "BOOLEAN -> BIGINT"),
        python=choose_always(_count_of_bits),
        spark="bit_count({0})",
        whole="INT",
    ),
)
"""The records."""
