"""The TRY functions of arithmetic: NULL where the operator of the same name is refused."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scalars.casting import Compute, try_function
from penstock.scalars.function import Arguments, ScalarFunction
from penstock.scalars.numbers import OPERATORS
from penstock.scalars.resolving import do_not_fit
from penstock.scalars.times import DATE_ADD, DATE_SUB
from penstock.scalars.tree import Call, Scalar
from penstock.scalars.types import SqlType

_TRIED = {"TRY_ADD": "+", "TRY_SUBTRACT": "-", "TRY_MULTIPLY": "*", "TRY_DIVIDE": "/", "TRY_MOD": "%"}


def _tried(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2:
        raise do_not_fit(function, arguments, "two values")
    found = OPERATORS[_TRIED[function.name]](*arguments)
    assert isinstance(found, Call)
    return Call(function.name, found.arguments, found.type.or_null())


def _choose(name: str, result: SqlType, arguments: Sequence[SqlType]) -> Compute:
    by_day = {"+": DATE_ADD, "-": DATE_SUB}.get(name)
    is_by_day = by_day is not None and [each.name for each in arguments] == ["DATE", "BIGINT"]
    operator = by_day if is_by_day and by_day else OPERATORS[name]
    assert operator.python is not None
    return try_function(operator.python(result, arguments))


def _trying(name: str) -> ScalarFunction:
    operator = _TRIED[name]
    return ScalarFunction(
        name=name,
        resolve=_tried,
        python=lambda result, arguments: _choose(operator, result, arguments),
        spark=f"{name.lower()}({{all}})",
        whole="operands",
    )


FUNCTIONS = tuple(map(_trying, _TRIED))
"""The records."""
