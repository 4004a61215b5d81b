"""Functions of fields that are written as one Python function: the parts decide on values, types and errors."""

from __future__ import annotations

import operator
import random
from collections import OrderedDict, namedtuple
from functools import partial
from typing import Any

import pytest

from penstock import field
from penstock.elements.row import Row
from penstock.error import noun_for
from penstock.scalars.compiled_fields import compile_field_function
from penstock.scalars.expressions import Expression
from penstock.scalars.field_functions import KeyAndValues, KeyedBy, KeyOf, RowOf, named_tuple
from penstock.scalars.tree import Call, Field, Literal, Scalar, spell
from penstock.scalars.types import PYTHON

NAMES = ("a", "b", "c d", "class", "\ufb01", "gone")
_Named = namedtuple("_Named", "a b")


class Odd:
    """An object whose comparisons are not truth values, and whose sums are None."""

    def __eq__(self, other: object) -> Any:
        return [other]

    def __lt__(self, other: object) -> Any:
        return None

    def __add__(self, other: object) -> Any:
        return None

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "Odd()"


def expression(chance: random.Random, depth: int) -> Expression:
    """An expression of every kind, and none of them twice in the same place."""
    if depth == 0:
        known = Expression(Literal(chance.choice([0, 1, -3, 2.5, "x", True, None]), PYTHON))
        return chance.choice([field(chance.choice(NAMES)), field("a"), field("b"), known])
    left, right = expression(chance, depth - 1), expression(chance, depth - 1)
    makers = [
        *(lambda: left + right, lambda: left - right, lambda: left * right, lambda: left // right),
        *(lambda: left % right, lambda: left == right, lambda: left != right, lambda: left < right),
        *(lambda: left <= right, lambda: left > right, lambda: left >= right, lambda: left & right),
        *(lambda: left | right, lambda: ~left, lambda: left.is_null(), lambda: left + 1, lambda: left > 2),
    ]
    made: Expression = chance.choice(makers)()
    return made


def function(chance: random.Random) -> Any:
    one, other = (expression(chance, chance.randrange(4)) for _ in range(2))
    key = KeyOf((("k", one), ("l", lambda element: str(element))))
    return chance.choice(
        [
            *(one, key, RowOf((("a b", one), ("c", other))), RowOf(())),
            *(KeyAndValues(key, (one, other)), KeyAndValues(KeyOf((("k", other),)), ())),
            *(KeyedBy(one), KeyedBy(key), KeyedBy(str)),
        ]
    )


def elements(chance: random.Random) -> list[Any]:
    values = (None, 0, 1, -7, 2.5, True, False, "x", "yz", Odd(), [1])
    fields = {name: chance.choice(values) for name in NAMES[:-1]}
    return [
        fields,
        OrderedDict(fields),
        Row(**fields),
        _Named(chance.choice(values), chance.choice(values)),
        5,
    ]


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Missing(Exception):
    """An element lacks a field."""


def interpreted(scalar: Scalar, element: Any) -> Any:
    """The value of an expression, without any code that is compiled from it."""
    match scalar:
        case Field(name):
            try:
                return element[name] if isinstance(element, dict) else getattr(element, name)
            except (KeyError, AttributeError):
                raise Missing from None
        case Literal(value):
            return value
        case Call("IS NULL", [part]):
            return interpreted(part, element) is None
        case Call("TRUTH", [part]):
            value = interpreted(part, element)
            if not (value is None or value is True or value is False):
                raise TypeError(f"{spell(part)} is {noun_for(value)}, and &, | and ~ take what is true")
            return value
        case Call("NOT", [part]):
            value = interpreted(part, element)
            return None if value is None else not value
        case Call("AND" | "OR" as name, [left, right]):
            first = interpreted(left, element)
            second = first if first is (name == "OR") else interpreted(right, element)
            known = {first, second}
            return name == "OR" if (name == "OR") in known else None if None in known else name == "AND"
        case Call(name, [left, right]):
            first = interpreted(left, element)
            second = None if first is None else interpreted(right, element)
            return None if first is None or second is None else OPERATORS[name](first, second)
    raise AssertionError(scalar)


def of_parts(made: Any, element: Any) -> Any:
    """Returns the value of a function of fields, by the meaning of its expressions."""
    match made:
        case Expression():
            return interpreted(made.scalar, element)
        case RowOf(fields):
            return Row(**{name: of_parts(each, element) for name, each in fields})
        case KeyOf(fields):
            names = tuple(name for name, _ in fields)
            return named_tuple("Key", names)._make(of_parts(each, element) for _, each in fields)
        case KeyedBy(key):
            return of_parts(key, element), element
        case KeyAndValues(key, values):
            return of_parts(key, element), [of_parts(each, element) for each in values]
    return made(element)


def outcome(call: Any, element: Any) -> Any:
    try:
        value = call(element)
    except Exception as error:
        is_missing = isinstance(error, (Missing, KeyError, AttributeError))
        return "missing" if is_missing else (type(error), str(error)[:40])
    return repr(value), type(value)


@pytest.mark.parametrize("seed", range(40))
def test_one_function_does_what_its_parts_mean(seed: int) -> None:
    chance = random.Random(seed)
    equal = 0
    for _ in range(50):
        made = function(chance)
        for element in elements(chance):
            found, wanted = (
                outcome(compile_field_function(made), element),
                outcome(partial(of_parts, made), element),
            )
            # A field that another operand makes needless may be read all the same.
            assert found in (wanted, "missing"), (made, element)
            assert outcome(made, element) in (wanted, "missing")
            equal += found == wanted
    assert equal > 200


def test_a_deep_expression_is_written_as_far_as_python_lets_it() -> None:
    made: Expression = field("a")
    for _ in range(300):
        made = 1 + made
    assert compile_field_function(made)({"a": 1}) == made({"a": 1}) == 301


def test_a_key_is_of_the_class_that_another_process_finds() -> None:
    key, values = compile_field_function(KeyAndValues(KeyOf((("k", field("a")),)), (field("b"),)))(
        {"a": 1, "b": 2}
    )
    assert type(key) is named_tuple("Key", ("k",))
    assert (key, values) == ((1,), [2])


@pytest.mark.parametrize("made", [str, lambda element: element], ids=["class", "lambda"])
def test_a_function_that_only_python_can_call_stays_as_it_is(made: Any) -> None:
    assert compile_field_function(made) is made


@pytest.mark.parametrize(
    "made", [field("a"), field("a") > 1, ~(field("a") == 1), RowOf((("a", field("a")),))]
)
def test_a_function_of_fields_is_written(made: Any) -> None:
    assert compile_field_function(made) is not made
