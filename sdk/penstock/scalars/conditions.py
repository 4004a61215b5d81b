"""Comparisons, the logic of three truth values, and the functions that choose one of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from penstock.elements.row import Row
from penstock.error import noun_for, refusal
from penstock.scalars.casting import Compute
from penstock.scalars.function import (
    Arguments,
    Code,
    Inline,
    PythonForms,
    Resolve,
    ScalarFunction,
    SparkForm,
    choose_always,
    choose_at_run_time,
    write_by_template,
)
from penstock.scalars.function import do_not_fit as values_do_not_fit
from penstock.scalars.resolving import SqlTypeError, coerce, do_not_fit, is_any_nullable, takes, unify_types
from penstock.scalars.tree import Call, Literal, Local, Scalar, spell
from penstock.scalars.types import BOOLEAN, INT, NULL

# Values

_WITH_PARTS = (list, tuple, Row)


def same(left: object, right: object) -> bool:
    """True if two values are equal, where None equals None and NaN equals NaN.

    >>> same([1, None], [1, None]), same(float("nan"), float("nan")), same(1, 2)
    (True, True, False)
    """
    if isinstance(left, _WITH_PARTS) and isinstance(right, _WITH_PARTS):
        ones, others = tuple(left), tuple(right)
        return len(ones) == len(others) and all(map(same, ones, others))
    return bool(left == right or (left != left and right != right))


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1 if a value is below, equal to or above another; NULL in arrays is lowest, NaN highest.

    >>> order([1, None], [1, 2]), order(float("nan"), 1.0), order("a", "a")
    (-1, 1, 0)
    """
    if isinstance(left, _WITH_PARTS) and isinstance(right, _WITH_PARTS):
        ones, others = tuple(left), tuple(right)
        for one, other in zip(ones, others, strict=False):
            found = order(one, other)
            if found:
                return found
        return (len(ones) > len(others)) - (len(ones) < len(others))
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if left != left or right != right:
        return int(left != left) - int(right != right)
    return int(left > right) - int(left < right)


def _comparing(test: Callable[[int], bool]) -> Compute:
    """A comparison of values whose types are known only when it is computed, or of arrays."""

    def compare(left: object, right: object) -> bool:
        try:
            return test(order(left, right))
        except TypeError:
            values_do_not_fit(left, right)

    return compare


def _extreme(wanted: int) -> Compute:
    def compute(*values: object) -> object:
        best = None
        for value in values:
            if value is not None and (best is None or order(value, best) == wanted):
                best = value
        return best

    return compute


# Types


def _compared(low: int, high: int | None, takes: str) -> Resolve:
    def resolve(function: ScalarFunction, arguments: Arguments) -> Scalar:
        if len(arguments) < low or (high is not None and len(arguments) > high):
            raise do_not_fit(function, arguments, takes)
        parts, found = unify_types(function, arguments)
        if found.has("MAP"):
            raise _maps_have_no_order(function)
        if function.name == "NULLIF":
            if parts != arguments and parts[0] is not arguments[0]:
                equal = Call("=", parts, BOOLEAN)
                return CASE(equal, Literal(None, NULL), arguments[0])
            return function.of(parts, found.or_null())
        may_be_null = function.name != "<=>" and is_any_nullable(parts)
        return function.of(parts, BOOLEAN.or_null(may_be_null))

    return resolve


def _maps_have_no_order(function: ScalarFunction) -> SqlTypeError:
    hint = "compare SORT_ARRAY(MAP_ENTRIES(map)), or the values of keys"
    return SqlTypeError(f"{function.name} does not compare maps", hint)


def _truth(function: ScalarFunction, argument: Scalar) -> Scalar:
    if argument.type.name not in ("BOOLEAN", "NULL", "ANY"):
        raise do_not_fit(function, (argument,), "a condition, which is true, false or NULL")
    return coerce(argument, "BOOLEAN")


def _logic(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 2 and not (function.name == "NOT" and len(arguments) == 1):
        raise do_not_fit(function, arguments, "conditions")
    parts = tuple(_truth(function, each) for each in arguments)
    return function.of(parts, BOOLEAN.or_null(is_any_nullable(parts)))


def _is_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 1:
        raise do_not_fit(function, arguments, "one value")
    parts = arguments if function.name.endswith("NULL") else (_truth(function, arguments[0]),)
    return function.of(parts, BOOLEAN.or_null(False))


def _chosen(function: ScalarFunction, arguments: Arguments) -> Scalar:
    """COALESCE, GREATEST and LEAST: one of the arguments, and NULL only if all may be."""
    if not arguments:
        raise do_not_fit(function, arguments, "at least one value")
    parts, found = unify_types(function, arguments)
    if found.has("MAP") and function.name != "COALESCE":
        raise _maps_have_no_order(function)
    return function.of(parts, found.or_null(all(each.type.nullable for each in parts)))


def _case_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) < 2:
        raise do_not_fit(function, arguments, "conditions with values, and one more value")
    if len(arguments) % 2 == 0:
        arguments += (Literal(None, NULL),)
    conditions = [_truth(function, each) for each in arguments[:-1:2]]
    values, found = unify_types(function, (*arguments[1::2], arguments[-1]))
    parts: list[Scalar] = []
    for condition, value in zip(conditions, values, strict=False):
        parts += [condition, value]
    return function.of((*parts, values[-1]), found.or_null(is_any_nullable(values)))


def _if_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 3:
        raise do_not_fit(function, arguments, "a condition and two values")
    return CASE(*arguments)


def _is_null_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 1:
        raise do_not_fit(function, arguments, "one value")
    return (IS_NOT_NULL if function.name == "ISNOTNULL" else IS_NULL)(*arguments)


def _nullifzero_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 1:
        raise do_not_fit(function, arguments, "one number")
    return CASE(EQUAL(arguments[0], _ZERO), Literal(None, NULL), arguments[0])


def _zeroifnull_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 1:
        raise do_not_fit(function, arguments, "one number")
    return COALESCE(arguments[0], _ZERO)


_ZERO = Literal(0, INT.or_null(False))


def _nvl2_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    if len(arguments) != 3:
        raise do_not_fit(function, arguments, "three values")
    return CASE(IS_NOT_NULL(arguments[0]), *arguments[1:])


# Python


def _inline_comparison(symbol: str) -> Inline:
    def write(call: Call, codes: Sequence[Code]) -> str | None:
        if call.arguments[0].type.name == "DOUBLE":
            return _double_comparison(symbol, *(code.number for code in codes))
        return f"({{0}} {symbol} {{1}})"

    return write


def _double_comparison(symbol: str, left_number: bool, right_number: bool) -> str:
    """Compares floats as Spark does: NaN equals itself, and is above all numbers."""
    plain = f"{{0}} {symbol} {{1}}"
    left_nan, right_nan = "{0} != {0}", "{1} != {1}"
    match symbol:
        case "==":
            return f"({plain})" if left_number or right_number else f"({plain} or {left_nan} and {right_nan})"
        case "!=":
            if left_number or right_number:
                return f"({plain})"
            return f"({plain} and ({{0}} == {{0}} or {{1}} == {{1}}))"
        case "<":
            return f"({plain})" if right_number else f"({plain} or {right_nan} and {{0}} == {{0}})"
        case "<=":
            return f"({plain})" if right_number else f"({plain} or {right_nan})"
        case ">":
            return f"({plain})" if left_number else f"({plain} or {left_nan} and {{1}} == {{1}})"
        case _:
            return f"({plain})" if left_number else f"({plain} or {left_nan})"


def _write_and(forms: PythonForms, call: Call) -> str:
    """AND and OR, which stop at the first value that decides."""
    decides = call.name == "OR"
    left, right = map(forms.value, call.arguments)
    if not left.nullable and not right.nullable:
        return f"({left.text} {call.name.lower()} {right.text})"
    (first, bound_first), (second, bound_second) = forms.bound(left), forms.bound(right)
    return (
        f"({decides} if {bound_first} is {decides} else {decides} if {bound_second} is {decides}"
        f" else None if {first} is None or {second} is None else {not decides})"
    )


def _write_not(forms: PythonForms, call: Call) -> str:
    code = forms.value(call.arguments[0])
    if not code.nullable:
        return f"(not {code.text})"
    name, bound = forms.bound(code)
    return f"(None if {bound} is None else not {name})"


_TESTS = {
    "IS NULL": "is None",
    "IS NOT NULL": "is not None",
    "IS TRUE": "is True",
    "IS FALSE": "is False",
}


def _write_is(forms: PythonForms, call: Call) -> str:
    _, bound = forms.bound(forms.value(call.arguments[0]))
    return f"({bound} {_TESTS[call.name]})"


_BRANCHES_MAX = 100


def _write_case(forms: PythonForms, call: Call) -> str:
    *branches, default = call.arguments
    parts = []
    here = 2 * _BRANCHES_MAX
    for place in range(0, len(branches[:here]), 2):
        parts.append(f"{forms.value(branches[place + 1]).text} if {forms.truth(branches[place])} else ")
    if branches[here:]:
        parts.append(forms.apart(replace(call, arguments=call.arguments[here:])))
    else:
        parts.append(forms.value(default).text)
    return f"({''.join(parts)})"


def _write_coalesce(forms: PythonForms, call: Call) -> str:
    *first, last = call.arguments
    parts = []
    for each in first:
        name, bound = forms.bound(forms.value(each))
        parts.append(f"{name} if {bound} is not None else ")
    return f"({''.join(parts)}{forms.value(last).text})"


def _write_null_safe(forms: PythonForms, call: Call) -> str:
    left, right = map(forms.value, call.arguments)
    names = {part.type.name for part in call.arguments}
    if names & {"ARRAY", "STRUCT", "ANY"}:
        return f"{forms.name_of(same)}({left.text}, {right.text})"
    if "DOUBLE" not in names or left.number or right.number:
        return f"({left.text} == {right.text})"
    (first, bound_first), (second, bound_second) = forms.bound(left), forms.bound(right)
    return f"({bound_first} == {bound_second} or ({first} != {first} and {second} != {second}))"


def _write_between(forms: PythonForms, call: Call) -> str:
    tested, low, high = call.arguments
    name, bound = forms.bound(forms.value(tested))
    local = Local(name, tested.type.or_null(False))
    both = Call(
        "AND",
        (
            Call(">=", (local, low), BOOLEAN.or_null(low.type.nullable)),
            Call("<=", (local, high), BOOLEAN.or_null(high.type.nullable)),
        ),
        BOOLEAN,
    )
    return f"(None if {bound} is None else {forms.value(both).text})"


def _write_in(forms: PythonForms, call: Call) -> str:
    tested, *items = call.arguments
    name, bound = forms.bound(forms.value(tested))
    local = Local(name, tested.type.or_null(False))
    found = []
    nulls = []
    for item in items:
        if isinstance(item, Literal) and item.value is None:
            nulls.append("True")
            continue
        held: Scalar = item
        if item.type.nullable and not isinstance(item, Literal):
            held_name, held_bound = forms.bound(forms.value(item))
            held = Local(held_name, item.type.or_null(False))
            found.append(f"{held_bound} is not None and")
            nulls.append(f"{held_name} is None")
        equal = Call("=", (local, held), BOOLEAN.or_null(False))
        found.append(f"{forms.value(equal).text} or")
    test = " ".join([*found, "False"])
    other = f"None if {' or '.join(nulls)} else False" if nulls else "False"
    return f"(None if {bound} is None else True if {test} else {other})"


def _write_nullif(forms: PythonForms, call: Call) -> str:
    kept, other = call.arguments
    name, bound = forms.bound(forms.value(kept))
    local = Local(name, kept.type.or_null(False))
    equal = Call("=", (local, other), BOOLEAN)
    return f"(None if {bound} is None or {forms.truth(equal)} else {name})"


def _write_truth(forms: PythonForms, call: Call) -> str:
    [part] = call.arguments
    name, bound = forms.bound(forms.value(part))
    refused = f"{forms.name_of(_TruthRefused(spell(part)))}({name})"
    return f"({name} if {bound} is None or {name} is True or {name} is False else {refused})"


@dataclass(frozen=True)
class _TruthRefused:
    """Refuses the value of an operand of ``&``, ``|`` or ``~`` that is neither true, false nor None."""

    part: str

    def __call__(self, value: object) -> NoReturn:
        what = f"{self.part} is {noun_for(value)}, and &, | and ~ take what is true, false or None"
        raise refusal(
            TypeError, what, hint="compare it, e.g. with != 0, and put the comparison in parentheses"
        )


# Spark


def _comparison_text(symbol: str) -> SparkForm:
    def write(call: Call, operands: Sequence[str], overflow: str) -> str:
        left, right = operands
        plain = f"({left} {symbol} {right})"
        if call.arguments[0].type.name != "FLOAT":
            return plain
        # In Spark, NaN equals itself and is above all numbers; in Python, every comparison with it is false.
        known = f"{left} IS NOT NULL AND {right} IS NOT NULL"
        has_nan = f"(isnan({left}) OR isnan({right})) AND {known}"
        return f"CASE WHEN {has_nan} THEN {str(symbol == '<>').lower()} ELSE {plain} END"

    return write


def _case_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    pairs = zip(operands[:-1:2], operands[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    *_, default = operands
    return f"CASE {branches} ELSE {default} END"


def _extreme_text(call: Call, operands: Sequence[str], overflow: str) -> str:
    first, *others = operands
    return f"{call.name.lower()}({', '.join(operands)})" if others else first


# Records


def _comparison(name: str, symbol: str, test: Callable[[int], bool], *spellings: str) -> ScalarFunction:
    return ScalarFunction(
        name=name,
        resolve=_compared(2, 2, "two values"),
        spellings=spellings,
        python=choose_at_run_time(_comparing(test)),
        inline=_inline_comparison(symbol),
        spark=_comparison_text(name),
    )


def _is(name: str) -> ScalarFunction:
    return ScalarFunction(name=name, resolve=_is_of, write=_write_is, spark=f"({{0}} {name})")


def _not(function: ScalarFunction, name: str = "") -> ScalarFunction:
    """The record of the opposite of a condition."""
    return ScalarFunction(
        name=name or f"NOT {function.name}", resolve=lambda _, arguments: NOT(function(*arguments))
    )


NOT = ScalarFunction(name="NOT", resolve=_logic, write=_write_not, spark="(NOT {0})")
IS_NULL = _is("IS NULL")
IS_NOT_NULL = _is("IS NOT NULL")
_IS_TRUE = _is("IS TRUE")
_IS_FALSE = _is("IS FALSE")
CASE = ScalarFunction(name="CASE", resolve=_case_of, write=_write_case, spark=_case_text, whole="operands")
BETWEEN = ScalarFunction(
    name="BETWEEN",
    resolve=_compared(3, 3, "a value and two bounds"),
    write=_write_between,
    spark="({0} BETWEEN {1} AND {2})",
)
_IN = ScalarFunction(
    name="IN",
    resolve=_compared(2, None, "a value and a list"),
    write=_write_in,
    spark="({0} IN ({rest}))",
)
NULL_SAFE = ScalarFunction(
    name="<=>",
    resolve=_compared(2, 2, "two values"),
    spellings=("IS NOT DISTINCT FROM", "EQUAL_NULL"),
    write=_write_null_safe,
    spark="({0} <=> {1})",
)
EQUAL = _comparison("=", "==", lambda found: found == 0, "==")
COALESCE = ScalarFunction(
    name="COALESCE",
    resolve=_chosen,
    spellings=("IFNULL", "NVL"),
    write=_write_coalesce,
    spark="coalesce({all})",
    whole="operands",
)
_IS_NAN = ScalarFunction(
    name="ISNAN",
    resolve=takes("DOUBLE -> BOOLEAN"),
    python=choose_always(lambda value: value != value),
    takes_null=True,
    inline=write_by_template({"DOUBLE": "({0} != {0})"}),
    spark="isnan({0})",
)


def _nanvl_of(function: ScalarFunction, arguments: Arguments) -> Scalar:
    # The second value is only computed where the first one is NaN.
    made = takes("DOUBLE DOUBLE -> DOUBLE")(function, arguments)
    assert isinstance(made, Call)
    value, other = made.arguments
    return CASE(_IS_NAN(value), other, value)


FUNCTIONS = (
    EQUAL,
    _comparison("<>", "!=", lambda found: found != 0, "!="),
    _comparison("<", "<", lambda found: found < 0),
    _comparison("<=", "<=", lambda found: found <= 0),
    _comparison(">", ">", lambda found: found > 0),
    _comparison(">=", ">=", lambda found: found >= 0),
    NULL_SAFE,
    ScalarFunction(name="AND", resolve=_logic, write=_write_and, spark="({0} AND {1})"),
    ScalarFunction(name="OR", resolve=_logic, write=_write_and, spark="({0} OR {1})"),
    NOT,
    # Refuses what is neither true, false nor None, where Python's values are operands of &, | and ~.
    ScalarFunction(name="TRUTH", write=_write_truth, spark="{0}"),
    IS_NULL,
    IS_NOT_NULL,
    _IS_TRUE,
    _IS_FALSE,
    BETWEEN,
    _IN,
    ScalarFunction(
        name="NULLIF",
        resolve=_compared(2, 2, "two values"),
        write=_write_nullif,
        spark="nullif({0}, {1})",
        whole="first",
    ),
    COALESCE,
    ScalarFunction(
        name="GREATEST",
        resolve=_chosen,
        python=choose_at_run_time(_extreme(1)),
        takes_null=True,
        spark=_extreme_text,
        whole="operands",
    ),
    ScalarFunction(
        name="LEAST",
        resolve=_chosen,
        python=choose_at_run_time(_extreme(-1)),
        takes_null=True,
        spark=_extreme_text,
        whole="operands",
    ),
    CASE,
    ScalarFunction(name="IF", resolve=_if_of),
    ScalarFunction(name="NVL2", resolve=_nvl2_of),
    _IS_NAN,
    ScalarFunction(name="NANVL", resolve=_nanvl_of),
    ScalarFunction(name="NULLIFZERO", resolve=_nullifzero_of),
    ScalarFunction(name="ZEROIFNULL", resolve=_zeroifnull_of),
    ScalarFunction(name="ISNULL", resolve=_is_null_of),
    ScalarFunction(name="ISNOTNULL", resolve=_is_null_of),
    _not(NULL_SAFE, "IS DISTINCT FROM"),
    _not(_IS_TRUE, "IS NOT TRUE"),
    _not(_IS_FALSE, "IS NOT FALSE"),
    _not(BETWEEN),
    _not(_IN),
)
"""The records."""
