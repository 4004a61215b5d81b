"""The type of a call from what is called and the types of the arguments."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence

from penstock.typehints.code_inference import infer_code
from penstock.typehints.constraints import Any, Hint
from penstock.typehints.containers import (
    DictConstraint,
    FrozenSetTypeConstraint,
    IterableTypeConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.io_hints import IOTypeHints
from penstock.typehints.known_returns import FUNCTION_RETURNS, METHOD_RETURNS
from penstock.typehints.operator_inference import Method, Value, attribute, item, loosened
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.unions import union_of
from penstock.typehints.value_types import Const, element_type, finalize_hints

Arguments = Sequence[Value]
Keywords = Mapping[str, Value]

# The runner takes these apart, so the elements are of another type.
_WRAPPERS = frozenset({"TaggedOutput", "TimestampedValue", "WindowedValue"})


def result_of_call(callee: Value, arguments: Arguments, keywords: Keywords, depth: int) -> Hint:
    """The type of ``callee(*arguments, **keywords)``.

    Args:
        callee: A `Const`, a `Method` or a hint.
        arguments: What is known of each positional argument.
        keywords: What is known of each keyword argument.
        depth: How many more functions to look into.

    >>> result_of_call(Const(len), [str], {}, 5), result_of_call(Method(str, "split"), [], {}, 5)
    (<class 'int'>, List[<class 'str'>])
    """
    if isinstance(callee, Method):
        return _result_of_method(callee, arguments)
    return _result_of_constant(callee.value, arguments, keywords, depth) if isinstance(callee, Const) else Any


def _result_of_constant(called: typing.Any, arguments: Arguments, keywords: Keywords, depth: int) -> Hint:
    match called:
        case functools.partial():
            bound = {**{name: Const(value) for name, value in called.keywords.items()}, **keywords}
            return _result_of_constant(called.func, [*map(Const, called.args), *arguments], bound, depth)
        case operator.itemgetter() | operator.attrgetter() | operator.methodcaller():
            return _result_of_getter(called, arguments)
        case types.MethodType():
            receiver = Const(called.__self__)
            return _result_of_constant(called.__func__, [receiver, *arguments], keywords, depth)
        case types.MethodDescriptorType() if arguments:
            return _result_of_method(Method(called.__objclass__, called.__name__), arguments[1:])
        case types.FunctionType():
            return _result_of_function(called, arguments, keywords, depth)
        case type():
            return _instance(called, arguments, keywords)
        case types.BuiltinFunctionType():
            if called is getattr and len(arguments) == 2 and isinstance(arguments[1], Const):
                return _attribute_path(arguments[0], arguments[1].value)
            rule = _RULES.get(called)
            plain = set(keywords) <= {"key", "reverse"}
            return rule(arguments) if rule and plain else FUNCTION_RETURNS.get(called, Any)
    method = getattr(type(called), "__call__", None)  # noqa: B004
    if isinstance(method, types.FunctionType):
        return _result_of_function(method, [Const(called), *arguments], keywords, depth)
    return Any


def _result_of_function(
    function: types.FunctionType, arguments: Arguments, keywords: Keywords, depth: int
) -> Hint:
    flags = function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return Any
    decorated = getattr(function, "_type_hints", None)
    for hints in (decorated, IOTypeHints.from_callable(function)):
        if isinstance(hints, IOTypeHints) and hints.has_simple_output_type():
            declared = hints.simple_output_type(function.__qualname__)
            if declared is not None and declared != Any:
                return declared
    if flags & inspect.CO_GENERATOR:
        return IterableTypeConstraint(Any)
    if depth <= 0:
        return Any
    local = _bound(function.__code__, arguments, keywords)
    return infer_code(function, local, functools.partial(_inner_call, depth=depth - 1))


def _inner_call(callee: Value, arguments: Arguments, keywords: Keywords, depth: int) -> Hint:
    if isinstance(callee, Const) and isinstance(callee.value, (types.FunctionType, types.MethodType)):
        # The function may put more into a list that its caller has just made.
        arguments = list(map(loosened, arguments))
        keywords = {name: loosened(value) for name, value in keywords.items()}
    return result_of_call(callee, arguments, keywords, depth)


def _bound(code: types.CodeType, arguments: Arguments, keywords: Keywords) -> dict[str, Value]:
    """What is known of each parameter; a default may stand for one that gets no argument."""
    positional = code.co_varnames[: code.co_argcount]
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = dict(zip(positional, arguments, strict=False))
    given.update((name, value) for name, value in keywords.items() if name in parameters)
    return {name: given.get(name, Any) for name in code.co_varnames[: _parameter_count(code)]}


def _parameter_count(code: types.CodeType) -> int:
    variadic = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + variadic


def _result_of_getter(getter: typing.Any, arguments: Arguments) -> Hint:
    if len(arguments) != 1:
        return Any
    rebuild, parts = getter.__reduce__()
    if isinstance(getter, operator.methodcaller):
        method = attribute(arguments[0], parts[0]) if rebuild is type(getter) else Any
        return _result_of_method(method, list(map(Const, parts[1:])))
    if isinstance(getter, operator.itemgetter):
        found = [item(arguments[0], Const(index)) for index in parts]
    else:
        found = [_attribute_path(arguments[0], path) for path in parts]
    return found[0] if len(found) == 1 else TupleConstraint(found)


def _attribute_path(receiver: Value, path: str) -> Hint:
    for name in path.split("."):
        receiver = attribute(receiver, name)
    return Any if isinstance(receiver, Method) else Const.unwrap(receiver)


def _result_of_method(method: Value, arguments: Arguments) -> Hint:
    if not isinstance(method, Method):
        return Any
    receiver = method.receiver
    if isinstance(receiver, DictConstraint):
        key, value = receiver.parameters
        match method.name:
            case "keys":
                return IterableTypeConstraint(key)
            case "values":
                return IterableTypeConstraint(value)
            case "items":
                return IterableTypeConstraint(TupleConstraint((key, value)))
            case "get" if arguments:
                default = Const.unwrap(arguments[1]) if len(arguments) > 1 else type(None)
                return union_of((value, default))
    return METHOD_RETURNS.get((method.owner, method.name), Any)


def _instance(cls: type, arguments: Arguments, keywords: Keywords) -> Hint:
    from penstock.pvalue import Row

    if cls in _CONTAINERS:
        return _CONTAINERS[cls](arguments)
    if cls is Row:
        return RowTypeConstraint.from_fields(
            (name, finalize_hints(Const.unwrap(value))) for name, value in keywords.items()
        )
    if cls.__name__ in _WRAPPERS and cls.__module__.startswith("penstock."):
        return Any
    named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
    # A metaclass or a __new__ of the user's may give something else than an instance.
    if type(cls).__call__ is not type.__call__ or (
        isinstance(cls.__new__, types.FunctionType) and not named_tuple
    ):
        return Any
    return cls


def _of_elements(make: Callable[[Hint], Hint]) -> Callable[[Arguments], Hint]:
    return lambda arguments: make(element_type(arguments[0]) if len(arguments) == 1 else Any)


_CONTAINERS: dict[type, Callable[[Arguments], Hint]] = {
    list: _of_elements(ListConstraint),
    set: _of_elements(SetTypeConstraint),
    frozenset: _of_elements(FrozenSetTypeConstraint),
    tuple: _of_elements(TupleSequenceConstraint),
    dict: lambda arguments: DictConstraint(Any, Any),
}


def _extreme(arguments: Arguments) -> Hint:
    if len(arguments) == 1:
        return element_type(arguments[0])
    return union_of(map(Const.unwrap, arguments)) if arguments else Any


def _absolute(arguments: Arguments) -> Hint:
    kinds: dict[Hint, Hint] = {bool: int, int: int, float: float, complex: float}
    return kinds.get(Const.unwrap(arguments[0]), Any) if arguments else Any


def _total(arguments: Arguments) -> Hint:
    kinds: dict[Hint, Hint] = {bool: int, int: int, float: float}
    return kinds.get(element_type(arguments[0]), Any) if len(arguments) == 1 else Any


def _rounded(arguments: Arguments) -> Hint:
    types_given = Const.unwrap_all(arguments)
    if not types_given or types_given[0] not in (bool, int, float):
        return Any
    if len(types_given) == 1 or types_given[0] is not float:
        return int
    return float if types_given[1] is int else Any


_RULES: dict[typing.Any, Callable[[Arguments], Hint]] = {
    abs: _absolute,
    max: _extreme,
    min: _extreme,
    round: _rounded,
    sorted: _of_elements(ListConstraint),
    sum: _total,
}
