"""Converts Python's own hints, such as ``list[int]`` and ``int | None``, to penstock's, and back."""

from __future__ import annotations

import collections
import dataclasses
import logging
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable
from contextvars import ContextVar

import typing_extensions

from penstock.error import refusal
from penstock.typehints import constraints, containers
from penstock.typehints.constraints import (
    ALIASES,
    Any,
    AnyTypeConstraint,
    Hint,
    TypeConstraint,
    TypeVariable,
)
from penstock.typehints.unions import UnionConstraint, union_of

_LOGGER = logging.getLogger(__name__)
T = typing.TypeVar("T")

# For each class of native hints, the number of its parameters and the constructor of ours.
_CONSTRUCTORS: dict[Hint, tuple[int, Callable[..., Hint]]] = {
    list: (1, containers.ListConstraint),
    set: (1, containers.SetTypeConstraint),
    abc.Set: (1, containers.SetTypeConstraint),
    abc.MutableSet: (1, containers.SetTypeConstraint),
    frozenset: (1, containers.FrozenSetTypeConstraint),
    dict: (2, containers.DictConstraint),
    collections.defaultdict: (2, containers.DictConstraint),
    collections.OrderedDict: (2, containers.DictConstraint),
    collections.Counter: (2, containers.DictConstraint),
    abc.Iterable: (1, containers.IterableTypeConstraint),
    abc.Iterator: (1, containers.IteratorTypeConstraint),
    abc.Generator: (3, lambda yielded, _sent, _returned: containers.IteratorTypeConstraint(yielded)),
    abc.Collection: (1, containers.CollectionTypeConstraint),
    abc.Sequence: (1, containers.ABCSequenceTypeConstraint),
    abc.Mapping: (2, containers.MappingTypeConstraint),
}
_NATIVE_MODULES = ("typing", "typing_extensions", "collections", "collections.abc")
_VARIABLE_NAMES = {1: ("T",), 2: ("KT", "VT"), 3: ("T_co", "T_contra", "V_co")}
_COVARIANT = (abc.Iterable, abc.Iterator)

# Equal native variables must always become the same hint variable, and the other way round.
_variables: dict[typing.TypeVar, TypeVariable] = {}
_native_variables: dict[int, tuple[TypeVariable, typing.TypeVar]] = {}

# The aliases that are being converted: an alias may contain itself.
_open_aliases: ContextVar[frozenset[Hint]] = ContextVar("_open_aliases", default=frozenset())


class TypedWindowedValue(typing.Generic[T]):
    """Stands for ``WindowedValue`` in annotations: ``TypedWindowedValue[int]`` (Beam's name)."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        what = "TypedWindowedValue has no instances"
        raise refusal(NotImplementedError, what, hint="use it in annotations only")


def is_any(typ: Hint) -> bool:
    """True if a native hint is ``typing.Any`` (Beam's name)."""
    return typ is typing.Any or typ is typing_extensions.Any


def match_is_named_tuple(user_type: Hint) -> bool:
    """True if a class is a ``NamedTuple`` with annotated fields (Beam's name).

    >>> match_is_named_tuple(typing.NamedTuple("Point", [("x", int)])), match_is_named_tuple(tuple)
    (True, False)
    """
    return (
        isinstance(user_type, type)
        and not isinstance(user_type, types.GenericAlias)
        and issubclass(user_type, tuple)
        and hasattr(user_type, "_fields")
    )


def match_dataclass_for_row(user_type: Hint) -> bool:
    """True if a class is a dataclass, frozen or not; all of these are rows (Beam's name)."""
    return isinstance(user_type, type) and dataclasses.is_dataclass(user_type)


def _is_union(typ: Hint) -> bool:
    origin: Hint = typing.get_origin(typ)
    return isinstance(typ, types.UnionType) or origin is typing.Union


def convert_to_beam_type(typ: Hint) -> Hint:
    """Returns a native hint as a penstock hint (Beam's name).

    Classes of the user and penstock's own hints stay unchanged. A hint without a counterpart
    (``Callable``, ``Literal``, ``NewType``, text) becomes ``Any``.

    Raises:
        ValueError: If a hint has the wrong number of parameters, or is a ``Union`` without any.

    >>> convert_to_beam_type(dict[str, list[int] | None])
    Dict[<class 'str'>, Union[<class 'NoneType'>, List[<class 'int'>]]]
    """
    if isinstance(typ, (TypeConstraint, list, dict, set)) or typ is None or typ is Ellipsis:
        # A collection of hints is not a hint; the caller reports that.
        return typ
    if isinstance(typ, ALIASES) or isinstance(typing.get_origin(typ), ALIASES):
        return _convert_alias(typ)
    if isinstance(typ, type) and typ.__module__ not in _NATIVE_MODULES:
        if typ in constraints.DISALLOWED_PRIMITIVE_TYPES or typing.get_origin(typ) is not None:
            return _convert_generic(typ)
        return containers.DictConstraint(str, Any) if typing_extensions.is_typeddict(typ) else typ
    if isinstance(typ, typing.TypeVar):
        return _variables.setdefault(typ, TypeVariable(typ.__name__))
    if isinstance(typ, (str, typing.NewType, typing.ForwardRef)) or is_any(typ):
        _log_unless_any(typ)
        return Any
    if _is_union(typ):
        return union_of(map(convert_to_beam_type, typing.get_args(typ)))
    return _convert_generic(typ)


def _convert_alias(typ: Hint) -> Hint:
    """Returns what an alias stands for; ``Any`` where it stands in itself."""
    alias = typing.get_origin(typ) or typ
    before = _open_aliases.get()
    if alias in before:
        return Any
    token = _open_aliases.set(before | {alias})
    try:
        return convert_to_beam_type(_meaning(alias, typing.get_args(typ)))
    finally:
        _open_aliases.reset(token)


def _meaning(alias: Hint, args: tuple[Hint, ...]) -> Hint:
    """The native hint for an alias with arguments, such as ``Pair[int]`` after ``type Pair[T] = tuple[T, T]``."""
    value = alias.__value__
    given = dict(zip(alias.__type_params__, args, strict=False))
    if not all(isinstance(variable, typing.TypeVar) for variable in given):
        return typing.Any  # It takes any number of types, or the parameters of a function.
    if isinstance(value, typing.TypeVar):
        return given.get(value, value)
    variables = getattr(value, "__parameters__", ()) if given else ()
    return value[tuple(given.get(variable, variable) for variable in variables)] if variables else value


def _log_unless_any(typ: Hint) -> None:
    if not is_any(typ):
        _LOGGER.info("Converting type hint to Any: %r", typ)


def _convert_generic(typ: Hint) -> Hint:
    origin: Hint = typing.get_origin(typ)
    args = typing.get_args(typ)
    if origin is typing.Annotated:
        # A constraint says more than the class does: Annotated[Decimal, decimal_of(10, 2)].
        return next(
            (note for note in args[1:] if isinstance(note, TypeConstraint)), convert_to_beam_type(args[0])
        )
    if origin in (typing.Required, typing.NotRequired):
        return convert_to_beam_type(args[0])
    cls = origin or typ
    if cls is tuple:
        return _convert_tuple(args, bare=origin is None or typ is tuple or typ is typing.Tuple)  # noqa: UP006
    if cls is TypedWindowedValue:
        return containers.WindowedTypeConstraint(convert_to_beam_type(args[0]) if args else Any)
    if cls is typing.Union:
        raise refusal(ValueError, "Unsupported Union with no arguments.", hint="write Union[int, str]")
    if cls in _CONSTRUCTORS:
        return _construct(typ, cls, args)
    if getattr(cls, "__module__", None) in _NATIVE_MODULES or getattr(typ, "__module__", None) == "typing":
        _LOGGER.info("Using Any for unsupported type: %s", typ)
        return Any
    return typ


def _construct(typ: Hint, cls: Hint, args: tuple[Hint, ...]) -> Hint:
    arity, constructor = _CONSTRUCTORS[cls]
    if not args:
        args = tuple(map(TypeVariable, ("T_co",) if cls in _COVARIANT else _VARIABLE_NAMES[arity]))
    elif cls is collections.Counter and len(args) == 1:
        args = (args[0], int)
    elif cls is abc.Generator:
        # Since Python 3.13 the sent and the returned type may be left out.
        args = (*args, type(None), type(None))[:3]
    if len(args) != arity:
        what = f"expecting type {typ} to have arity {arity}, had arity {len(args)} instead"
        raise refusal(ValueError, what)
    return constructor(*map(convert_to_beam_type, args))


def _convert_tuple(args: tuple[Hint, ...], bare: bool) -> Hint:
    if bare and not args:
        return containers.TupleSequenceConstraint(TypeVariable("T"))
    if len(args) == 2 and args[1] is Ellipsis:
        return containers.TupleSequenceConstraint(convert_to_beam_type(args[0]))
    return containers.TupleConstraint(map(convert_to_beam_type, args))


@typing.overload
def convert_to_beam_types(args: dict[str, Hint]) -> dict[str, Hint]: ...


@typing.overload
def convert_to_beam_types(args: Iterable[Hint]) -> list[Hint]: ...


def convert_to_beam_types(args: Iterable[Hint] | dict[str, Hint]) -> list[Hint] | dict[str, Hint]:
    """Each native hint of a list, or each value of a dictionary, as a penstock hint (Beam's name)."""
    if isinstance(args, dict):
        return {name: convert_to_beam_type(hint) for name, hint in args.items()}
    return [convert_to_beam_type(hint) for hint in args]


_NATIVE: dict[type, typing.Any] = {
    containers.DictConstraint: dict,
    containers.MappingTypeConstraint: abc.Mapping,
    containers.ListConstraint: list,
    containers.InferredListConstraint: list,
    containers.SetTypeConstraint: set,
    containers.FrozenSetTypeConstraint: frozenset,
    containers.TupleConstraint: tuple,
    containers.TupleSequenceConstraint: tuple,
    containers.IterableTypeConstraint: abc.Iterable,
    containers.IteratorTypeConstraint: abc.Iterator,
    containers.ABCSequenceTypeConstraint: abc.Sequence,
    containers.CollectionTypeConstraint: abc.Collection,
    UnionConstraint: typing.Union,
}


def convert_to_python_type(typ: Hint) -> Hint:
    """Returns a penstock hint as a native one: the reverse of `convert_to_beam_type` (Beam's name).

    Raises:
        ValueError: If Python has no such hint.

    >>> convert_to_python_type(containers.DictConstraint(str, containers.ListConstraint(int)))
    dict[str, list[int]]
    """
    if isinstance(typ, TypeVariable):
        known = next((native for native, variable in _variables.items() if variable is typ), None)
        fallback = _native_variables.setdefault(id(typ), (typ, typing.TypeVar(typ.name)))[1]
        return known or fallback
    if isinstance(typ, AnyTypeConstraint):
        return typing.Any
    if type(typ) in _NATIVE:
        native = tuple(map(convert_to_python_type, typ.parameters))
        if typ == UnionConstraint(()):
            return typing.Any
        return _NATIVE[type(typ)][
            (*native, ...) if isinstance(typ, containers.TupleSequenceConstraint) else native
        ]
    if isinstance(typ, TypeConstraint) and (native_class := typ.native_class()) is not None:
        return native_class
    if isinstance(typ, TypeConstraint):
        raise refusal(ValueError, f"Failed to convert Beam type: {typ}", hint="Python has no such hint")
    return typ


constraints.convert_to_beam_type.bind(convert_to_beam_type)
