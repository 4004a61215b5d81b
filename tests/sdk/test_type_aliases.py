"""Hints with aliases, as a ``type`` statement makes them since Python 3.12, mean what the alias stands for."""

from __future__ import annotations

import sys
import typing
from typing import Any, Optional, TypeVar

import pytest
from typing_extensions import TypeAliasType

import penstock as beam
from penstock.typehints import TypeCheckError
from penstock.typehints.native_type_compatibility import convert_to_beam_type

T, U = TypeVar("T"), TypeVar("U")
NUMBERS = TypeAliasType("NUMBERS", tuple[int, ...])
TABLE = TypeAliasType("TABLE", dict[U, list[T]], type_params=(T, U))
SAME = TypeAliasType("SAME", T, type_params=(T,))

STATEMENTS = """
type Json = dict[str, Json] | list[Json] | str | None
type Pair[T] = tuple[T, T]
type Swapped[A, B] = tuple[B, A]
type Many[*Ts] = tuple[*Ts]
type Deep = list[Pair[int]]
"""


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (NUMBERS, "Tuple[<class 'int'>, ...]"),
        (list[NUMBERS], "List[Tuple[<class 'int'>, ...]]"),
        (Optional[NUMBERS], "Union[<class 'NoneType'>, Tuple[<class 'int'>, ...]]"),
        (TABLE[int, str], "Dict[<class 'str'>, List[<class 'int'>]]"),
        (SAME[int], "<class 'int'>"),
    ],
)
def test_an_alias_is_what_it_stands_for(hint: Any, shown: str) -> None:
    assert str(convert_to_beam_type(hint)) == shown


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("Json", "Union[<class 'NoneType'>, <class 'str'>, Dict[<class 'str'>, Any], List[Any]]"),
        ("Pair[int]", "Tuple[<class 'int'>, <class 'int'>]"),
        ("Swapped[int, str]", "Tuple[<class 'str'>, <class 'int'>]"),
        ("Many[int, str]", "Any"),
        ("Deep", "List[Tuple[<class 'int'>, <class 'int'>]]"),
    ],
)
def test_a_type_statement_is_what_it_stands_for(hint: str, shown: str) -> None:
    names: dict[str, Any] = {}
    exec(STATEMENTS, names)
    assert str(convert_to_beam_type(eval(hint, names))) == shown


def total(numbers: Any) -> Any:
    return sum(numbers)


@pytest.mark.parametrize(
    "kind", [NUMBERS, getattr(typing, "TypeAliasType", TypeAliasType)("NUMBERS", tuple[int, ...])]
)
def test_steps_take_aliases_as_annotations_and_as_hints(kind: Any) -> None:
    numbers = beam.Pipeline() | beam.Create([(1, 2)]).with_output_types(kind)
    total.__annotations__ = {"numbers": kind, "return": int}
    totals = numbers | beam.Map(total)
    assert (str(numbers.element_type), totals.element_type) == ("Tuple[<class 'int'>, ...]", int)
    with pytest.raises(TypeCheckError, match="requires"):
        _ = totals | "again" >> beam.Map(total)
