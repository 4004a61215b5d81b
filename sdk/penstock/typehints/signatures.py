"""The types in a callable's signature, and the binding of hints to its parameters."""

from __future__ import annotations

import functools
import inspect
import math
import types
import typing
from collections.abc import Callable

from penstock.error import BeamError, three_parts
from penstock.typehints.annotations import signature_as_written
from penstock.typehints.constraints import Any, Hint, normalize
from penstock.typehints.containers import (
    DictConstraint,
    InferredListConstraint,
    TupleConstraint,
    TupleSequenceConstraint,
)
from penstock.typehints.unions import union_of
from penstock.where import here

_TEXT = (
    "capitalize casefold center expandtabs format format_map join ljust lower lstrip removeprefix "
    "removesuffix replace rjust rstrip strip swapcase title translate upper zfill"
)
_QUESTIONS = "endswith isalnum isalpha isascii isdigit islower isspace istitle isupper startswith"

METHOD_RETURNS: dict[tuple[type, str], Hint] = {
    **{(str, name): str for name in _TEXT.split()},
    **{(bytes, name): bytes for name in _TEXT.split() if hasattr(bytes, name)},
    **{(cls, name): bool for cls in (str, bytes) for name in _QUESTIONS.split()},
    **{(str, name): bool for name in ("isdecimal", "isidentifier", "isnumeric", "isprintable")},
    **{(cls, name): int for cls in (str, bytes) for name in ("count", "find", "index", "rfind", "rindex")},
    **{(cls, name): int for cls in (list, tuple) for name in ("count", "index")},
    **{
        (cls, name): InferredListConstraint(cls)
        for cls in (str, bytes)
        for name in ("split", "rsplit", "splitlines")
    },
    **{
        (cls, name): TupleConstraint((cls, cls, cls))
        for cls in (str, bytes)
        for name in ("partition", "rpartition")
    },
    (str, "encode"): bytes,
    (bytes, "decode"): str,
    (bytes, "hex"): str,
    (int, "bit_length"): int,
    (int, "bit_count"): int,
    (int, "to_bytes"): bytes,
    (float, "is_integer"): bool,
    (float, "hex"): str,
}
"""The result of each method, by class and name."""

FUNCTION_RETURNS: dict[typing.Any, Hint] = {
    all: bool,
    any: bool,
    ascii: str,
    bin: str,
    callable: bool,
    chr: str,
    format: str,
    hasattr: bool,
    hash: int,
    hex: str,
    id: int,
    isinstance: bool,
    issubclass: bool,
    len: int,
    math.exp: float,
    math.isnan: bool,
    math.log: float,
    math.sqrt: float,
    oct: str,
    ord: int,
    print: type(None),
    repr: str,
}
"""The result of each function, whatever the arguments."""


ANY_VAR_POSITIONAL = TupleSequenceConstraint(Any)
ANY_VAR_KEYWORD = DictConstraint(Any, Any)


class TypeCheckError(BeamError):
    """The types of a pipeline do not fit together (Beam's name).

    Its first argument is what is wrong, by which Beam's programs know it; the text adds where, and what to do.
    """

    def __init__(self, what: str = "", *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self._where = here() if where is None and hint is not None else where
        self._hint = hint

    def __str__(self) -> str:
        return three_parts(super().__str__(), where=self._where, hint=self._hint)


def get_signature(func: Callable[..., typing.Any]) -> inspect.Signature:
    """``inspect.signature`` with penstock's further knowledge (Beam's name).

    Annotations written as text are looked up. A callable without a signature gets one that takes anything. A
    class returns its own instances. A method of a built-in class takes an instance of it.

    >>> get_signature(str.upper)
    <Signature (self: str, /) -> str>
    """
    signature = _native_signature(func)
    if _is_own(func):
        signature = _with_any(signature)
    if isinstance(func, type):
        return signature.replace(return_annotation=normalize(func))
    if isinstance(func, types.MethodDescriptorType):
        first, *others = signature.parameters.values()
        if first.annotation is first.empty:
            signature = signature.replace(parameters=[first.replace(annotation=func.__objclass__), *others])
        known = METHOD_RETURNS.get((func.__objclass__, func.__name__))
        if known is not None and signature.return_annotation is signature.empty:
            signature = signature.replace(return_annotation=known)
    return signature


_OWN = ("penstock", "penstock_spark", "penstock_conformance")
"""The packages whose annotations are for type checkers, where they say no more than ``object``."""


def _is_own(func: object) -> bool:
    """True if a callable is defined in penstock."""
    while isinstance(func, functools.partial):
        func = func.func
    return str(getattr(func, "__module__", "")).partition(".")[0] in _OWN


def _with_any(signature: inspect.Signature) -> inspect.Signature:
    """Returns a signature with Any in the places of object, which tells type checkers that a value is passed on."""
    parameters = [
        each.replace(annotation=typing.Any) if each.annotation is object else each
        for each in signature.parameters.values()
    ]
    returned = signature.return_annotation
    return signature.replace(
        parameters=parameters, return_annotation=typing.Any if returned is object else returned
    )


def _native_signature(func: Callable[..., typing.Any]) -> inspect.Signature:
    return _signature_of_builtin(func) if isinstance(func, types.BuiltinFunctionType) else _looked_up(func)


@functools.lru_cache(maxsize=1024)
def _signature_of_builtin(func: Callable[..., typing.Any]) -> inspect.Signature:
    """A builtin has its signature as a text, which takes long to parse; unlike annotations, it does not change."""
    return _looked_up(func)


def _looked_up(func: Callable[..., typing.Any]) -> inspect.Signature:
    try:
        return inspect.signature(func, eval_str=True)
    except ValueError:
        kinds = inspect.Parameter
        return inspect.Signature(
            [
                inspect.Parameter("_", kinds.POSITIONAL_OR_KEYWORD),
                inspect.Parameter("__unknown__varargs", kinds.VAR_POSITIONAL),
                inspect.Parameter("__unknown__keywords", kinds.VAR_KEYWORD),
            ]
        )
    except TypeError:
        # Not callable at all: the native error says so.
        return inspect.signature(func)
    except Exception:
        # A name in an annotation exists for type checkers only; it stays as written and counts as Any.
        return signature_as_written(func)


def getcallargs_forhints(
    func: Callable[..., typing.Any], *type_args: Hint, **type_kwargs: Hint
) -> dict[str, Hint]:
    """Returns the hint of each parameter if `func` is called with arguments of these types (Beam's name).

    A parameter without an argument has its annotation, or else ``Any``.

    Raises:
        TypeCheckError: If there are too few or too many hints.

    >>> getcallargs_forhints(lambda x, *rest: None, int, str, float)
    {'x': <class 'int'>, 'rest': Tuple[Union[<class 'float'>, <class 'str'>], ...]}
    """
    signature = get_signature(func)
    try:
        bound: dict[str, Hint] = dict(signature.bind(*type_args, **type_kwargs).arguments)
    except TypeError as error:
        name = getattr(func, "__qualname__", repr(func))
        what = f"the type hints do not fit the parameters of {name}: {error}"
        raise TypeCheckError(what, hint="give one hint for each argument") from error
    return {parameter.name: _parameter_hint(parameter, bound) for parameter in signature.parameters.values()}


def _parameter_hint(parameter: inspect.Parameter, bound: dict[str, Hint]) -> Hint:
    if parameter.name in bound:
        given = bound[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            single = len(given) == 1 and isinstance(given[0], TupleSequenceConstraint)
            return given[0] if single else TupleSequenceConstraint(union_of(given))
        if parameter.kind is parameter.VAR_KEYWORD:
            (name, hint), *others = given.items()
            if not others and name == parameter.name and isinstance(hint, DictConstraint):
                return hint
            return DictConstraint(str, union_of(given.values()))
        return given
    if parameter.annotation is not parameter.empty:
        return parameter.annotation
    if parameter.kind is parameter.VAR_POSITIONAL:
        return ANY_VAR_POSITIONAL
    return ANY_VAR_KEYWORD if parameter.kind is parameter.VAR_KEYWORD else Any
