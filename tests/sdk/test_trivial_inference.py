"""Type inference: every inferred type holds for what the function returns, and known shapes are found."""

import operator
import time
import types

import pytest

from penstock.elements.row import Row
from penstock.transforms.core import DoFn
from penstock.typehints import code_inference, code_reading
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.trivial_inference import (
    Const,
    element_type,
    infer_return_type,
    instance_to_type,
    key_value_types,
    union,
)
from penstock.typehints.typehints import (
    KV,
    Any,
    Dict,
    FrozenSet,
    List,
    Set,
    Tuple,
    Union,
    describe_mismatch,
)
from tests.sdk.inference_cases import CASES
from tests.sdk.inference_classes import Doubler, Odd, Person


class Watched:
    """What it is asked for runs code of its own."""

    def __getattribute__(self, name):
        raise AssertionError("inference ran code of the user's")

    def method(self):
        return 1


async def coroutine(x) -> int:
    return x


@pytest.mark.parametrize(("function", "inputs", "arguments", "expected"), CASES)
def test_the_inferred_type_is_the_expected_one_and_holds_for_the_result(
    function, inputs, arguments, expected
):
    inferred = infer_return_type(function, inputs)
    assert inferred == expected
    try:
        result = function(*arguments)
    except (RecursionError, TypeError):
        return
    assert describe_mismatch(inferred, result) is None
    if isinstance(result, types.GeneratorType):
        assert [describe_mismatch(inferred.inner_type, each) for each in result].count(None) > 0


def test_inference_runs_nothing_of_the_users():
    watched = Watched()
    lazy = types.ModuleType("lazy")
    lazy.__getattr__ = lambda name: pytest.fail("inference ran code of the user's")
    assert infer_return_type(lambda: watched.method(), []) == Any
    assert infer_return_type(lambda: lazy.name, []) == Any


def many_operations(xs):
    found = {}
    for position, x in enumerate(xs):
        found[x[0]] = (x[1:], position + 1, *x)
    del found[0]
    if not found and xs is not None:
        return f"{len(found)}"
    return ", ".join(sorted(["a"], key=lambda x: x))


def test_an_operation_that_inference_does_not_know_gives_any(monkeypatch):
    code = many_operations.__code__
    reading = code_reading.read(code)
    assert infer_return_type(many_operations, [List[str]]) is str
    for position, operation in enumerate(reading.operations):
        if operation.opname in ("CACHE", "EXTENDED_ARG", "NOT_TAKEN", "PRECALL"):
            continue
        changed = list(reading.operations)
        changed[position] = operation._replace(opname="A_NEW_OPERATION")
        altered = {code: reading._replace(operations=changed)}
        with monkeypatch.context() as patch:
            patch.setattr(code_inference, "read", lambda code, known=altered: known[code])
            assert infer_return_type(many_operations, [List[str]]) == Any, operation


def test_a_python_whose_byte_code_is_not_known_gives_any(monkeypatch):
    assert infer_return_type(many_operations, [List[str]]) is str
    monkeypatch.setattr(code_inference, "NEWEST", (3, 10))
    assert infer_return_type(many_operations, [List[str]]) == Any
    assert infer_return_type(len, [str]) is int


def test_inference_ends_soon_however_much_a_function_calls():
    def one(x):
        return x

    functions = [one]
    for _ in range(5):
        inner = functions[-1]
        functions.append(eval("lambda x: (" + "inner(x), " * 30 + ")", {"inner": inner}))
    begin = time.process_time()
    assert infer_return_type(functions[-1], [int], depth=9) is not None
    assert time.process_time() - begin < 1


class TimeFirst(DoFn):
    def process(self, timestamp=DoFn.TimestampParam, element=DoFn.ElementParam):
        yield timestamp, element


class NoElement(DoFn):
    def process(self, timestamp=DoFn.TimestampParam, *, element=DoFn.ElementParam):
        yield timestamp


@pytest.mark.parametrize(("dofn", "expected"), [(TimeFirst(), KV[Any, int]), (NoElement(), Any)])
def test_the_type_of_the_element_is_that_of_the_parameter_that_asks_for_it(dofn, expected):
    assert dofn.infer_output_type(int) == expected


def test_the_type_of_a_coroutine_is_not_that_of_its_result():
    assert infer_return_type(coroutine, [int]) == Any


@pytest.mark.parametrize(
    "callee", [5, None, "text", object(), Odd, operator.itemgetter(9), lambda x, y: x + y.z]
)
def test_inference_never_raises(callee):
    assert infer_return_type(callee, [object(), 5, "text"]) == Any


def test_depth_limits_how_many_functions_are_looked_into():
    def identity(x):
        return x

    assert infer_return_type(lambda x: identity(x), [int], depth=0) == Any
    assert infer_return_type(lambda x: identity(x), [int], depth=1) is int


def reason_to_differ_from_beam(inputs, theirs, expected):
    """Why the inferred class is not the one that Beam infers; None where it has to be."""
    if (inputs, theirs, expected) == ([bool], bool, int):
        return "minus a bool is an int; Beam says that it is a bool"
    if (inputs, theirs, expected) == ([int], type, int):
        return "Beam takes what an inner function shares for a class"
    return None


def test_where_both_name_a_class_it_is_the_one_that_beam_names():
    beam = pytest.importorskip("apache_beam.typehints.trivial_inference")
    differing, compared = [], 0
    for function, inputs, _arguments, expected in CASES:
        if all(isinstance(hint, type) for hint in inputs):
            theirs = beam.infer_return_type(function, inputs)
            if isinstance(theirs, type) and isinstance(expected, type):
                compared += 1
                if theirs is not expected and reason_to_differ_from_beam(inputs, theirs, expected) is None:
                    differing.append((inputs, theirs, expected))
    assert not differing
    assert compared >= 15


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (None, type(None)),
        ((1, "a"), KV[int, str]),
        ((), Tuple[()]),
        ([1, "a"], List[Union[int, str]]),
        ([], List[Any]),
        ({1}, Set[int]),
        (frozenset(), FrozenSet[Any]),
        ({"a": [1]}, Dict[str, List[int]]),
        ({}, Dict[Any, Any]),
        (Person("a", 1), Person),
        (Row(x=1), RowTypeConstraint.from_fields([("x", int)])),
        (Doubler, type),
        (Doubler().__call__, types.MethodType),
    ],
)
def test_the_type_of_a_value_is_a_hint_that_it_satisfies(value, hint):
    assert instance_to_type(value) == hint
    assert describe_mismatch(hint, value) is None


def test_small_questions_about_hints():
    assert element_type(Tuple[int, str]) == Union[int, str]
    assert element_type(Dict[str, int]) is str
    assert element_type(Const([1])) is int
    assert element_type(int) == Any
    assert key_value_types(KV[str, int]) == (str, int)
    assert key_value_types(Tuple[int, int, int]) == (Any, Any)
    assert union(Const(1), Const("a")) == Union[int, str]
    assert union(List[Union[()]], List[int]) == List[int]
    assert Const(1) != Const(True)
