"""Functions of fields that are written as one Python function: same values, same types, same errors."""

from __future__ import annotations

import random
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

from penstock import field
from penstock.base.row import Row
from penstock.functions.compiled_fields import one_function
from penstock.functions.expressions import Expression, Literal
from penstock.functions.field_functions import KeyAndValues, KeyedBy, KeyOf, RowOf, named_tuple

NAMES = ("a", "b", "c d", "class", "\ufb01", "gone")
_Named = namedtuple("_Named", "a b")


class Own(Expression):
    """An expression of a user's own class."""

    def __call__(self, element: Any) -> Any:
        return len(str(element))

    def type_of(self, input_type: Any) -> Any:
        return int


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
        known = Literal(chance.choice([0, 1, -3, 2.5, "x", True, None]))
        return chance.choice([field(chance.choice(NAMES)), field("a"), field("b"), known, Own()])
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


def outcome(call: Any, element: Any) -> Any:
    try:
        value = call(element)
    except Exception as error:
        return type(error), str(error)
    return repr(value), type(value)


@pytest.mark.parametrize("seed", range(40))
def test_one_function_does_what_its_parts_do(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(50):
        made = function(chance)
        for element in elements(chance):
            assert outcome(one_function(made), element) == outcome(made, element), (made, element)


def test_a_deep_expression_is_written_as_far_as_python_lets_it() -> None:
    made: Expression = field("a")
    for _ in range(300):
        made = 1 + made
    assert one_function(made)({"a": 1}) == made({"a": 1}) == 301


def test_a_key_is_of_the_class_that_another_process_finds() -> None:
    key, values = one_function(KeyAndValues(KeyOf((("k", field("a")),)), (field("b"),)))({"a": 1, "b": 2})
    assert type(key) is named_tuple("Key", ("k",))
    assert (key, values) == ((1,), [2])


@pytest.mark.parametrize(
    "made", [str, Own(), Literal(1), lambda element: element], ids=str.split("class own literal lambda")
)
def test_a_function_that_only_python_can_call_stays_as_it_is(made: Any) -> None:
    assert one_function(made) is made


@pytest.mark.parametrize(
    "made", [field("a"), field("a") > 1, ~(field("a") == 1), RowOf((("a", field("a")),))]
)
def test_a_function_of_fields_is_written(made: Any) -> None:
    assert one_function(made) is not made
