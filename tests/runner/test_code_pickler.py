"""Functions with a cache, and aliases of types, travel to workers, even if the main program defines them."""

from __future__ import annotations

import functools
import json
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NewType, TypeVar

import pytest
from typing_extensions import TypeAliasType

from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.utils.timestamp import Duration, Timestamp
from penstock_spark.shipping.code_pickler import CodePickler
from penstock_spark.shipping.user_modules import pickle_by_value_modules
from penstock_spark.worker.batch import dumps_with_code

PROGRAM = """
import functools, sys
from penstock_spark.worker.batch import dumps_with_code

@functools.cache
def doubled(number):
    return 2 * number

@functools.lru_cache(maxsize=5, typed=True)
def sum_up_to(number):
    "Adds numbers."
    return number + sum_up_to(number - 1) if number else 0

class Sums:
    @functools.cached_property
    def ten(self): return sum_up_to(10)

    @staticmethod
    @functools.cache
    def of(number): return sum_up_to(number)

sys.stdout.buffer.write(dumps_with_code(lambda: (doubled, sum_up_to, Sums)))
"""


def test_functions_of_the_main_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    written = subprocess.run(
        [sys.executable, tmp_path / "program.py"], capture_output=True, check=True
    ).stdout
    doubled, sum_up_to, sums = pickle.loads(written)()
    assert (doubled(4), doubled(4), doubled.cache_info().hits) == (8, 8, 1)
    assert (sum_up_to(10), sums.of(4), sums().ten) == (55, 10, 55)
    assert sum_up_to.cache_parameters() == {"maxsize": 5, "typed": True}
    assert (sum_up_to.__name__, sum_up_to.__doc__) == ("sum_up_to", "Adds numbers.")
    # A function that has arrived can be sent on.
    assert pickle.loads(dumps_with_code(sum_up_to))(4) == 10


@functools.cache
def of_this_module(number: int) -> str:
    return json.dumps(number)


def test_functions_that_workers_can_import_travel_as_names() -> None:
    written = dumps_with_code(of_this_module)
    assert pickle.loads(written) is of_this_module
    assert len(written) < 100


def test_class_methods_travel_as_names_of_their_class() -> None:
    """cloudpickle sends their code, and each time of a program carried it."""
    written = dumps_with_code([Timestamp(1), Duration(2)])
    assert pickle.loads(written) == [Timestamp(1), Duration(2)]
    assert len(written) < 200


def doubling(function: Callable[..., int]) -> Callable[..., int]:
    def made(*arguments: int) -> int:
        return 2 * function(*arguments)

    return made


class Named:
    made = 7  # Not the class method, whose function has this name.

    @classmethod
    @doubling
    def number(cls) -> int:
        return 4

    @classmethod
    def __hidden(cls) -> int:
        return 5

    methods = staticmethod(lambda: (Named.number, Named.__hidden))


def test_class_methods_whose_functions_have_other_names_travel_whole() -> None:
    number, hidden = pickle.loads(dumps_with_code(Named.methods()))
    assert (number(), hidden()) == (8, 5)


def test_a_method_of_an_object_travels_with_it() -> None:
    assert pickle.loads(dumps_with_code(Path("a").joinpath))("b") == Path("a/b")


def test_modules_of_cached_functions_are_found() -> None:
    assert [module.__name__ for module in pickle_by_value_modules([of_this_module])] == [__name__]
    assert CodePickler.dispatch_table[type(of_this_module)] is not None


def test_a_function_that_travels_keeps_the_name_of_its_file() -> None:
    outer, inner = pickle.loads(dumps_with_code((lambda: lambda: 1, lambda: 2)))
    assert {code.__code__.co_filename for code in (outer, outer(), inner)} == {__file__}


T = TypeVar("T")
OF_THIS_MODULE = TypeAliasType("OF_THIS_MODULE", list[int])

Points = NewType("Points", int)

STATEMENTS = """
type Pair[V] = tuple[V, V]
type Json = dict[str, Json] | str
type Lines = list[Json]
type Handler = Callable[[int, Handler], None]
def f(pair: Pair[int], lines: Lines, handler: Handler) -> Json: ...
"""


def test_an_alias_travels_whole_unless_workers_can_import_it() -> None:
    assert pickle.loads(dumps_with_code(OF_THIS_MODULE)) is OF_THIS_MODULE
    alias = TypeAliasType("elsewhere", dict[str, list[T]], type_params=(T,))
    found = pickle.loads(dumps_with_code(alias))
    assert (found.__name__, found.__type_params__) == ("elsewhere", (T,))
    assert found.__value__ == dict[str, list[T]]


def test_a_new_type_travels_whole_unless_workers_can_import_it() -> None:
    assert pickle.loads(dumps_with_code(Points)) is Points
    names: dict[str, Any] = {"__name__": "__main__", "NewType": NewType}
    exec("User = NewType('User', str)\nPlayer = NewType('Player', User)", names)
    found = pickle.loads(dumps_with_code(names["Player"]))
    assert (found.__name__, found.__module__, found.__supertype__.__supertype__) == (
        "Player",
        "__main__",
        str,
    )


ANNOTATED = """
class Sale(NamedTuple):
    price: float

@dataclass
class Purchase:
    price: float

class Plain(TypedDict):
    price: float

def read(text: str) -> Sale: ...
"""


def test_classes_and_functions_of_the_main_program_keep_their_annotations() -> None:
    names: dict[str, Any] = {"__name__": "__main__", **vars(typing), "dataclass": dataclass}
    exec(compile(ANNOTATED, "program.py", "exec", dont_inherit=True), names)
    sale, purchase, plain, read = pickle.loads(
        dumps_with_code([names[name] for name in ("Sale", "Purchase", "Plain", "read")])
    )
    assert [each.__annotations__ for each in (sale, purchase, plain)] == [{"price": float}] * 3
    assert read.__annotations__ == {"text": str, "return": sale}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once before Python 3.14")
def test_annotations_that_name_what_does_not_exist_travel_as_texts() -> None:
    names: dict[str, Any] = {"__name__": "__main__", **vars(typing)}
    source = ANNOTATED.replace("float", "Money").replace("@dataclass", "").replace("Sale:", "Money:")
    exec(compile(source, "program.py", "exec", dont_inherit=True), names)
    names["read"].unit, names["read"].__kwdefaults__ = "EUR", {}
    sale, purchase, read = pickle.loads(
        dumps_with_code([names[name] for name in ("Sale", "Purchase", "read")])
    )
    assert sale.__annotations__ == purchase.__annotations__ == {"price": "Money"}
    assert read.__annotations__ == {"text": "str", "return": "Money"}
    assert (read.__name__, read.__qualname__, read.unit, read("1")) == ("read", "read", "EUR", None)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_what_type_statements_of_the_main_program_make_travels_with_annotations() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "Callable": Callable}
    # Without this module's imports from __future__: they would make strings of annotations.
    exec(compile(STATEMENTS, "program.py", "exec", dont_inherit=True), names)
    found = pickle.loads(dumps_with_code(names["f"])).__annotations__
    assert str(convert_to_beam_type(found["pair"])) == "Tuple[<class 'int'>, <class 'int'>]"
    # Nothing can be made that contains itself before it is there.
    assert found["return"].__value__ is found["handler"].__value__ is Any
    assert str(convert_to_beam_type(found["lines"])) == "List[Any]"
