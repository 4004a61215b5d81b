"""The type that a callable returns, as far as it can be known without running it (Beam's ``trivial_inference``).

The answer comes from decorators and annotations, from tables of built-ins, and, for plain
functions without annotations, from their byte code. Whatever is not certain is ``Any``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.elements.row import Row
from penstock.typehints.code_inference import Budget, Frame, GiveUp, frame_of, infer_code
from penstock.typehints.code_reading import stored_names
from penstock.typehints.constraints import Any, Hint, normalize
from penstock.typehints.containers import (
    DictConstraint,
    FrozenSetTypeConstraint,
    InferredListConstraint,
    IterableTypeConstraint,
    ListConstraint,
    SetTypeConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.io_hints import IOTypeHints
from penstock.typehints.known_values import (
    Bound,
    Closure,
    Const,
    Exact,
    Method,
    Spread,
    Value,
    element_type,
    finalize_hints,
    hint_of,
    instance_to_type,
    key_value_types,
    loosen,
    union,
)
from penstock.typehints.native_type_compatibility import convert_to_beam_type
from penstock.typehints.operator_inference import infer_attribute, infer_item, one_of
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.signatures import FUNCTION_RETURNS, METHOD_RETURNS
from penstock.typehints.unions import union_of

Arguments = Sequence[Value]
Keywords = Mapping[str, Value]

# The runner unwraps these, so the elements are of another type.
_WRAPPERS = frozenset({"TaggedOutput", "TimestampedValue", "WindowedValue"})


# The number of operations of byte code that one answer may look at: some hundredths of a second.
_MOST_OPERATIONS = 10_000
# The flag of classes that a class statement has made.
_MADE_BY_PYTHON = 1 << 9
_COMPREHENSIONS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Limits(typing.NamedTuple):
    """The limits of inference."""

    depth: int
    budget: Budget
    is_whole: bool
    """True if all arguments of the call are given, so that other parameters have their defaults."""

    def inside(self) -> Limits:
        """Returns the limits for the functions that a function calls."""
        return Limits(self.depth - 1, self.budget, True)


def result_of_call(callee: Value, arguments: Arguments, keywords: Keywords, depth: int) -> Hint:
    """Returns the type of ``callee(*arguments, **keywords)``.

    The callee is a `Const`, a `Method` or a hint. There may be more positional arguments than are given here. `depth`
    is how many functions deep to look.

    >>> result_of_call(Const(len), [str], {}, 5), result_of_call(Method(str, "split"), [], {}, 5)
    (<class 'int'>, List[<class 'str'>])
    """
    limits = Limits(depth, Budget(_MOST_OPERATIONS), False)
    return hint_of(_result(callee, arguments, keywords, limits))


def _result(callee: Value, arguments: Arguments, keywords: Keywords, limits: Limits) -> Value:
    if isinstance(callee, Method):
        return _result_of_method(callee, list(map(_simple, arguments)))
    if isinstance(callee, Bound):
        function, receiver = callee
        return _result_of_function(function, [receiver, *arguments], keywords, limits)
    if isinstance(callee, Closure):
        return _result_of_closure(callee, arguments, keywords, limits)
    return (
        _result_of_constant(callee.value, arguments, keywords, limits) if isinstance(callee, Const) else Any
    )


def _simple(value: Value) -> Value:
    """Returns a constant or a hint, as the rules for built-in functions need it."""
    return value if isinstance(value, Const) else hint_of(value)


def _result_of_constant(called: object, arguments: Arguments, keywords: Keywords, limits: Limits) -> Value:
    match called:
        case functools.partial():
            bound = {**{name: Const(value) for name, value in called.keywords.items()}, **keywords}
            return _result_of_constant(called.func, [*map(Const, called.args), *arguments], bound, limits)
        case types.MethodType():
            receiver = Const(called.__self__)
            return _result_of_constant(called.__func__, [receiver, *arguments], keywords, limits)
        case types.FunctionType():
            return _result_of_function(called, arguments, keywords, limits)
    method: object = inspect.getattr_static(type(called), "__call__", None)
    if isinstance(method, types.FunctionType) and not isinstance(called, type):
        return _result_of_function(method, [Const(called), *arguments], keywords, limits)
    if any(isinstance(argument, Spread) for argument in arguments):
        known = called in FUNCTION_RETURNS if isinstance(called, types.BuiltinFunctionType) else False
        return FUNCTION_RETURNS[called] if known else Any
    return _result_of_built_in(called, list(map(_simple, arguments)), keywords)


def _result_of_built_in(called: object, arguments: Arguments, keywords: Keywords) -> Value:
    match called:
        case operator.itemgetter() | operator.attrgetter() | operator.methodcaller():
            return _result_of_getter(called, arguments)
        case types.MethodDescriptorType() if arguments:
            return _result_of_method(Method(called.__objclass__, called.__name__), arguments[1:])
        case type():
            return _instance(called, arguments, keywords)
        case types.BuiltinFunctionType():
            if called is getattr and len(arguments) == 2 and isinstance(arguments[1], Const):
                return _attribute_path(arguments[0], arguments[1].value)
            if called is setattr and arguments and isinstance(arguments[0], RowTypeConstraint):
                # It may be a field that the type of the row does not have.
                raise GiveUp
            rule = _RULES.get(called)
            plain = set(keywords) <= {"key", "reverse"}
            return rule(arguments) if rule and plain else FUNCTION_RETURNS.get(called, Any)
    return Any


def _result_of_function(
    function: types.FunctionType, arguments: Arguments, keywords: Keywords, limits: Limits
) -> Value:
    if function.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return Any
    decorated = getattr(function, "_type_hints", None)
    for hints in (decorated, IOTypeHints.from_callable(function)):
        if isinstance(hints, IOTypeHints) and hints.has_simple_output_type():
            declared = hints.simple_output_type(function.__qualname__)
            if declared is not None and declared != Any:
                return declared
    if limits.depth < 0:
        return Any
    return _look_inside(frame_of(function), function, arguments, keywords, limits)


def _result_of_closure(closure: Closure, arguments: Arguments, keywords: Keywords, limits: Limits) -> Value:
    if closure.code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return Any
    if closure.code.co_name in _COMPREHENSIONS:
        # It is a part of the enclosing function.
        limits = limits._replace(depth=limits.depth + 1)
    if limits.depth < 0:
        return Any
    changed = stored_names(closure.code, "STORE_DEREF")
    outer = {
        name: Any if name in changed else closure.cells.get(name, Any) for name in closure.code.co_freevars
    }
    frame = Frame(closure.code, closure.namespace, outer)
    return _look_inside(frame, None, arguments, keywords, limits)


def _look_inside(
    frame: Frame,
    function: types.FunctionType | None,
    arguments: Arguments,
    keywords: Keywords,
    limits: Limits,
) -> Value:
    if limits.is_whole:
        # The function may put more into a list that its caller has just made.
        arguments = list(map(loosen, arguments))
        keywords = {name: loosen(value) for name, value in keywords.items()}
    defaults = _defaults(function) if limits.is_whole and function is not None else {}
    local = _bound(frame.code, arguments, keywords, defaults)
    if not limits.is_whole:
        # The caller may give more than the types that are known here.
        local.update(dict.fromkeys(_collecting(frame.code), Any))
    inside = limits.inside()

    def call(callee: Value, arguments: Arguments, keywords: Keywords) -> Value:
        return _result(callee, arguments, keywords, inside)

    return infer_code(frame, local, call, limits.budget)


def _bound(
    code: types.CodeType, arguments: Arguments, keywords: Keywords, defaults: Keywords
) -> dict[str, Value]:
    """Returns the knowledge of each parameter; one without an argument has its default, if that is known."""
    count = code.co_argcount
    parameters = code.co_varnames[: count + code.co_kwonlyargcount]
    before = list(itertools.takewhile(lambda each: not isinstance(each, Spread), arguments))
    given = dict(zip(parameters[:count], before, strict=False))
    spread = [each.element for each in arguments if isinstance(each, Spread)]
    if spread:
        for name in parameters[len(before) : count]:
            given[name] = union_of([*spread, hint_of(defaults[name])] if name in defaults else spread)
    given.update((name, value) for name, value in keywords.items() if name in parameters)
    local = {name: given.get(name, defaults.get(name, Any)) for name in parameters}
    for name in _collecting(code):
        local[name] = Any
    if code.co_flags & inspect.CO_VARARGS:
        rest = [hint_of(each) for each in before[count:]]
        local[code.co_varnames[len(parameters)]] = (
            TupleSequenceConstraint(union_of([*rest, *spread])) if spread else TupleConstraint(rest)
        )
    return local


def _collecting(code: types.CodeType) -> tuple[str, ...]:
    """Returns the parameters that take any number of arguments."""
    count = code.co_argcount + code.co_kwonlyargcount
    kinds = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[count : count + kinds]


def _defaults(function: types.FunctionType) -> dict[str, Value]:
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    found = {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}
    return {name: loosen(instance_to_type(value)) for name, value in found.items()}


def _result_of_getter(getter: typing.Any, arguments: Arguments) -> Hint:
    if len(arguments) != 1:
        return Any
    rebuild, parts = getter.__reduce__()
    if isinstance(getter, operator.methodcaller):
        method = infer_attribute(arguments[0], parts[0]) if rebuild is type(getter) else Any
        return _result_of_method(method, list(map(Const, parts[1:])))
    if isinstance(getter, operator.itemgetter):
        found = [infer_item(arguments[0], Const(index)) for index in parts]
    else:
        found = [_attribute_path(arguments[0], path) for path in parts]
    return found[0] if len(found) == 1 else TupleConstraint(found)


def _attribute_path(receiver: Value, path: str) -> Hint:
    for name in path.split("."):
        receiver = infer_attribute(receiver, name)
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
                return union_of((one_of(value), default))
    return METHOD_RETURNS.get((method.owner, method.name), Any)


def _instance(cls: type, arguments: Arguments, keywords: Keywords) -> Value:
    if cls in _CONTAINERS:
        return _CONTAINERS[cls](arguments)
    if cls is Row:
        return RowTypeConstraint.from_fields(
            (name, finalize_hints(Const.unwrap(value))) for name, value in keywords.items()
        )
    if any(base.__name__ in _WRAPPERS and base.__module__.startswith("penstock.") for base in cls.__mro__):
        return Any
    named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
    # A user's metaclass or __new__ may return something other than an instance.
    if type(cls).__call__ is not type.__call__ or (
        isinstance(cls.__new__, types.FunctionType) and not named_tuple
    ):
        return Any
    return Exact(cls) if cls.__flags__ & _MADE_BY_PYTHON else cls


def _of_elements(make: Callable[[Hint], Hint]) -> Callable[[Arguments], Hint]:
    return lambda arguments: make(element_type(arguments[0]) if len(arguments) == 1 else Any)


def _enumerated(arguments: Arguments) -> Hint:
    return IterableTypeConstraint(TupleConstraint((int, element_type(arguments[0]) if arguments else Any)))


def _zipped(arguments: Arguments) -> Hint:
    return IterableTypeConstraint(TupleConstraint(map(element_type, arguments)))


_CONTAINERS: dict[type, Callable[[Arguments], Hint]] = {
    list: _of_elements(ListConstraint),
    set: _of_elements(SetTypeConstraint),
    frozenset: _of_elements(FrozenSetTypeConstraint),
    tuple: _of_elements(TupleSequenceConstraint),
    dict: lambda arguments: DictConstraint(Any, Any),
    enumerate: _enumerated,
    reversed: _of_elements(IterableTypeConstraint),
    zip: _zipped,
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
    sorted: _of_elements(InferredListConstraint),
    sum: _total,
}


class TypeInferenceError(ValueError):
    """An error of type inference (Beam's name); `infer_return_type` returns ``Any`` instead of raising it."""


def infer_return_type(
    c: Callable[..., typing.Any], input_types: Iterable[typing.Any], debug: bool = False, depth: int = 5
) -> Hint:
    """Returns the type that a callable returns (Beam's name); ``Any`` if it is not certain. It never raises.

    Args:
        c: Any callable.
        input_types: The type of each positional argument, or a `Const`.
        debug: Whether to print errors.
        depth: How many functions deep to look.

    >>> infer_return_type(lambda word: (word.lower(), 1), [str])
    Tuple[<class 'str'>, <class 'int'>]
    >>> infer_return_type(lambda element: element.anything(), [object])
    Any
    """
    try:
        known = [hint if isinstance(hint, Const) else _hint(hint) for hint in input_types]
        return finalize_hints(result_of_call(Const(c), known, {}, depth))
    except Exception:
        # Inference only adds knowledge: no fault in it, or in an odd callable, may stop a pipeline.
        if debug:
            traceback.print_exc()
        return Any


def _hint(hint: Hint) -> Hint:
    return Any if hint is None else normalize(convert_to_beam_type(hint))


__all__ = [
    "Const",
    "TypeInferenceError",
    "element_type",
    "finalize_hints",
    "infer_return_type",
    "instance_to_type",
    "key_value_types",
    "union",
]
