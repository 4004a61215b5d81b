"""The base of type hints: constraints, and the questions whether values and types satisfy them."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import typing_extensions

from penstock.base.late_binding import LateBinding
from penstock.error import add_location, refusal, three_parts
from penstock.where import here

Hint = typing.Any
"""A type hint: a class, a `TypeConstraint`, or a native hint such as ``list[int]``."""

# The built-in containers for which a hint should give element types.
DISALLOWED_PRIMITIVE_TYPES = (list, set, frozenset, tuple, dict)

ALIASES = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
"""The classes of what a ``type`` statement makes, which Python has since 3.12."""

_NATIVE_MODULES = frozenset({"typing", "typing_extensions", "collections", "collections.abc"})
NUMERIC_TOWER: dict[object, tuple[type, ...]] = {float: (int,), complex: (int, float)}


class _HintError(TypeError):
    """An error whose first argument is Beam's sentence, by which programs know it; the text adds what to do."""

    def __str__(self) -> str:
        what, *hints = self.args or ("",)
        return three_parts(str(what), hint=hints[0] if hints else None)


class SimpleTypeHintError(_HintError):
    """A value is not an instance of the class that a hint names (Beam's name)."""


class CompositeTypeHintError(_HintError):
    """A value does not satisfy a hint with parameters, such as ``List[int]`` (Beam's name)."""


class NotAHintError(_HintError):
    """Something that is not a type hint was written as one."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._where = here()

    def __str__(self) -> str:
        return add_location(super().__str__(), self._where)


class GetitemConstructor(type):
    """A metaclass by which ``Cls[argument]`` means ``Cls(argument)`` (Beam's name)."""

    def __getitem__(cls, argument: Hint) -> typing.Any:
        return cls(argument)


class TypeConstraint:
    """The base of all constraints (Beam's name); a subclass says which types and values satisfy it."""

    def _consistent_with_check_(self, sub: Hint) -> bool:
        """True if the type `sub`, normalized and not ``Any``, is consistent with this one."""
        raise NotImplementedError

    def type_check(self, instance: object) -> None:
        """Raises TypeError if a value does not satisfy the constraint."""
        raise NotImplementedError

    def _mismatch(self, instance: object) -> str | None:
        """Why a value does not satisfy the constraint, in words without the value; None if it does."""
        try:
            self.type_check(instance)
        except TypeError as error:
            return str(error)
        return None

    def _refuse_mismatch(self, instance: object) -> None:
        reason = self._mismatch(instance)
        if reason is not None:
            raise CompositeTypeHintError(reason, f"correct the value, or the type hint {self}")

    def native_class(self) -> typing.Any:
        """Python's class for the constraint; None if there is none, as for most."""
        return None

    def one_for(self, members: Sequence[Hint]) -> Hint | None:
        """One constraint for several in a union, of which this is the first; None if they stay separate."""
        return None

    def match_type_variables(self, concrete_type: Hint) -> dict[typing.Any, Hint]:
        """Returns the type for each type variable in this constraint, if the whole stands for `concrete_type`."""
        return {}

    def bind_type_variables(self, bindings: Mapping[typing.Any, Hint]) -> Hint:
        """Returns this constraint with type variables replaced."""
        return self

    def _inner_types(self) -> Iterable[Hint]:
        return ()

    def visit(self, visitor: Callable[[Hint, typing.Any], object], visitor_arg: object) -> None:
        """Calls ``visitor(node, visitor_arg)`` for this constraint and all inside it, outermost first."""
        visitor(self, visitor_arg)
        for inner in self._inner_types():
            visit_inner_types(inner, visitor, visitor_arg)


class IndexableTypeConstraint(TypeConstraint):
    """A constraint on values that support indexes (Beam's name)."""


class AnyTypeConstraint(TypeConstraint):
    """The type that is consistent with every type, both ways, and that every value satisfies (Beam's name)."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) or other is typing.Any

    def __hash__(self) -> int:
        return hash(typing.Any)

    def __reduce__(self) -> tuple[typing.Any, ...]:
        # There is one Any in a process, so that it can be recognized by identity.
        return _any, ()

    def __repr__(self) -> str:
        return "Any"

    def _consistent_with_check_(self, sub: Hint) -> bool:
        return True

    def type_check(self, instance: object) -> None:
        """Every value satisfies ``Any``."""


Any = AnyTypeConstraint()


def _any() -> AnyTypeConstraint:
    return Any


class TypeVariable(AnyTypeConstraint):
    """A name for a type that is not known yet; where unbound it means ``Any`` (Beam's name).

    Args:
        name: The name to show; by default, equal names make variables equal.
        use_name_in_eq: False makes the variable equal to any other, whatever the names.

    >>> bind_type_variables(TypeVariable("T"), {TypeVariable("T"): int})
    <class 'int'>
    """

    def __init__(self, name: str, use_name_in_eq: bool = True) -> None:
        self.name = name
        self.use_name_in_eq = use_name_in_eq

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeVariable) or type(self) is not type(other):
            return False
        return not (self.use_name_in_eq and other.use_name_in_eq) or self.name == other.name

    def __hash__(self) -> int:
        # Without the name, since variables with different names can be equal.
        return hash(TypeVariable)

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return TypeVariable, (self.name, self.use_name_in_eq)

    def __repr__(self) -> str:
        return f"TypeVariable[{self.name}]"

    def match_type_variables(self, concrete_type: Hint) -> dict[typing.Any, Hint]:
        return {self: concrete_type}

    def bind_type_variables(self, bindings: Mapping[typing.Any, Hint]) -> Hint:
        """Returns the binding of this variable, or else of ``'*'``, or else the variable itself."""
        return bindings.get(self, bindings.get("*", self))


class ParameterizedConstraint(TypeConstraint):
    """A constraint that consists of its class and its type parameters; equal if these are."""

    label: typing.ClassVar[str] = ""

    def __init__(self, *parameters: Hint) -> None:
        self.parameters: tuple[Hint, ...] = tuple(normalize(item, none_as_type=True) for item in parameters)
        self._hash = hash((type(self), self.parameters))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ParameterizedConstraint) or type(self) is not type(other):
            return False
        return self.parameters == other.parameters

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[typing.Any, ...]:
        # The cached hash must not travel: the hashes of classes differ between processes.
        return _rebuild, (type(self), self.parameters)

    def __repr__(self) -> str:
        return f"{self.label}[{', '.join(map(show_type, self.parameters))}]"

    def type_check(self, instance: object) -> None:
        """Raises CompositeTypeHintError if a value, or a part of it, does not fit; the text shows only types."""
        self._refuse_mismatch(instance)

    def _inner_types(self) -> Iterator[Hint]:
        return iter(self.parameters)

    def with_parameters(self, parameters: tuple[Hint, ...]) -> Hint:
        """Returns this constraint with other parameters."""
        return _rebuild(type(self), parameters)

    def _matches(self, other: Hint) -> bool:
        return isinstance(other, type(self))

    def match_type_variables(self, concrete_type: Hint) -> dict[typing.Any, Hint]:
        """Returns the variables in the parameters, from the parameters of a constraint of the same kind."""
        bindings: dict[typing.Any, Hint] = {}
        if self._matches(concrete_type):
            for own, other in zip(self.parameters, concrete_type.parameters, strict=False):
                bindings.update(match_type_variables(own, other))
        return bindings

    def bind_type_variables(self, bindings: Mapping[typing.Any, Hint]) -> Hint:
        bound = tuple(bind_type_variables(item, bindings) for item in self.parameters)
        return self if bound == self.parameters else self.with_parameters(bound)


def _rebuild(cls: type[ParameterizedConstraint], parameters: tuple[Hint, ...]) -> ParameterizedConstraint:
    constraint = cls.__new__(cls)
    ParameterizedConstraint.__init__(constraint, *parameters)
    return constraint


def show_type(hint: Hint) -> str:
    """Returns a hint as errors show it: a class as Python shows it, with its module."""
    return repr(hint)


def short_type(name: str) -> str:
    """Returns the name of a type as a program writes it, without modules; empty if it only says that anything may come.

    >>> short_type("Tuple[<class 'str'>, <class 'game.Score'>, NoneType]"), short_type("Tuple[Any, Any]")
    ('tuple[str, Score, None]', '')
    >>> short_type("Row(id=int, name=Union[None, str])")
    'Row(id=int, name=str | None)'
    """
    name = re.sub(r"<class '([^']*)'>", r"\1", name)
    name = re.sub(r"(?:\w+\.|<locals>\.)+(?=\w)", "", name)
    name = re.sub(r"\b(Tuple|List|Dict|Set|FrozenSet)\[", lambda found: found[0].lower(), name)
    name = re.sub(r"\bNoneType\b", "None", name)
    name = re.sub(r"\b(?:Union|Optional)\[([^][]*)\]", _union, name)
    leaves = re.findall(r"\w+(?![\w\[])", name)
    return "" if set(leaves) <= {"Any"} or name == "None" else name


def _union(found: re.Match[str]) -> str:
    names = found[1].split(", ")
    # The usual order has None at the end.
    return " | ".join(sorted(names, key=lambda name: name == "None"))


def visit_inner_types(
    type_constraint: Hint, visitor: Callable[[Hint, typing.Any], object], visitor_arg: object
) -> None:
    """Calls ``visitor(node, visitor_arg)`` for a hint and every hint inside it (Beam's name)."""
    if isinstance(type_constraint, TypeConstraint):
        type_constraint.visit(visitor, visitor_arg)
    else:
        visitor(type_constraint, visitor_arg)


def match_type_variables(type_constraint: Hint, concrete_type: Hint) -> dict[typing.Any, Hint]:
    """Returns the type for each type variable of a hint, if the hint stands for `concrete_type` (Beam's name).

    >>> match_type_variables(TypeVariable("T"), int)
    {TypeVariable[T]: <class 'int'>}
    """
    if isinstance(type_constraint, TypeConstraint):
        return type_constraint.match_type_variables(concrete_type)
    return {}


def bind_type_variables(type_constraint: Hint, bindings: Mapping[typing.Any, Hint]) -> Hint:
    """Returns a hint with its type variables replaced; ``'*'`` in `bindings` matches all of them (Beam's name)."""
    if isinstance(type_constraint, TypeConstraint):
        return type_constraint.bind_type_variables(bindings)
    return type_constraint


def is_typing_generic(type_param: Hint) -> bool:
    """True if a hint is a native generic with parameters, such as ``PCollection[int]`` (Beam's name).

    >>> is_typing_generic(list[int]), is_typing_generic(list)
    (True, False)
    """
    return isinstance(type_param, (types.GenericAlias, typing._GenericAlias))  # type: ignore[attr-defined]


def validate_composite_type_param(type_param: Hint, error_msg_prefix: str) -> None:
    """Raises TypeError if `type_param` cannot be a parameter of a hint, as in ``List[5]`` (Beam's name)."""
    if isinstance(type_param, (type, TypeConstraint, types.UnionType)) or type_param is None:
        return
    if is_typing_generic(type_param) or isinstance(type_param, (typing.NewType, typing.TypeVar, *ALIASES)):
        return
    if getattr(type_param, "__module__", None) in ("typing", "typing_extensions"):
        return
    raise NotAHintError(
        f"{error_msg_prefix} must be a non-sequence, a type, or a TypeConstraint. {type_param!r} is an instance of "
        f"{type(type_param).__name__}.",
        "write a class, or a hint such as List[int]",
    )


# It knows all constraints.
convert_to_beam_type: LateBinding[[Hint], Hint] = LateBinding("penstock.typehints.native_type_compatibility")

_OF_ANY: Mapping[Hint, Hint] = {
    list: list[typing.Any],
    set: set[typing.Any],
    frozenset: frozenset[typing.Any],
    tuple: tuple[typing.Any, ...],
    dict: dict[typing.Any, typing.Any],
}
"""The built-in containers without parameters, as native hints with some."""


def normalize(x: Hint, none_as_type: bool = False) -> Hint:
    """Returns a hint as penstock works with it: bare and native containers become constraints (Beam's name).

    Args:
        x: Any hint. One that penstock cannot express, such as ``Callable``, becomes ``Any``.
        none_as_type: Whether None means the type of None.

    >>> normalize(list[int]), normalize(dict), normalize(None, none_as_type=True)
    (List[<class 'int'>], Dict[Any, Any], <class 'NoneType'>)
    """
    if isinstance(x, TypeConstraint):
        return x
    if x is None:
        return type(None) if none_as_type else None
    if x in DISALLOWED_PRIMITIVE_TYPES:
        x = _OF_ANY[x]
    if isinstance(x, type) and not is_typing_generic(x) and x.__module__ not in _NATIVE_MODULES:
        return x
    converted = convert_to_beam_type(x)
    return Any if getattr(converted, "__module__", None) in _NATIVE_MODULES else converted


def describe_non_instance(what: str, expected: str, instance: object) -> str:
    """Returns the sentence that a value is not an instance of a container's class."""
    found = f"Instead, an instance of '{type(instance).__name__}' was received."
    return f"{what}. Valid object instance must be of type '{expected}'. {found}"


def is_composite(hint: Hint) -> bool:
    """True if a hint is more than a class."""
    return isinstance(normalize(hint), TypeConstraint)


def describe_mismatch(type_constraint: Hint, instance: object) -> str | None:
    """Why a value does not satisfy a hint, in words that show types but not values; None if it does.

    >>> print(describe_mismatch(int, "a"))
    Expected an instance of type <class 'int'>, instead received an instance of type str.
    """
    hint = type_constraint if isinstance(type_constraint, type) else normalize(type_constraint)
    if hint is None:
        return None
    if isinstance(hint, TypeConstraint):
        return hint._mismatch(instance)
    hint = typing.get_origin(hint) or hint
    if not isinstance(hint, type):
        raise refusal(RuntimeError, f"{hint!r} is not a type", hint="give a class or a type hint")
    if isinstance(instance, (hint, *NUMERIC_TOWER.get(hint, ()))):
        return None
    expected, found = show_type(hint), type(instance).__name__
    return f"Expected an instance of type {expected}, instead received an instance of type {found}."


def check_constraint(type_constraint: Hint, object_instance: object) -> None:
    """Checks that a value satisfies a hint (Beam's name); None as the hint accepts everything.

    Raises:
        SimpleTypeHintError: If the hint is a class and the value is not an instance of it.
        CompositeTypeHintError: If the hint is a constraint and the value does not satisfy it.
    """
    if isinstance(type_constraint, TypeConstraint):
        type_constraint.type_check(object_instance)
        return
    reason = describe_mismatch(type_constraint, object_instance)
    if reason is not None:
        kind = CompositeTypeHintError if is_composite(type_constraint) else SimpleTypeHintError
        raise kind(reason, f"correct the value, or the type hint {show_type(type_constraint)}")


def is_consistent_with(sub: Hint, base: Hint, use_beartype: bool | None = None) -> bool:
    """True if a value of type `sub` may stand for a `base` (Beam's name).

    Like ``issubclass``, but with hints; ``Any`` is consistent with all, both ways; an int may stand for a
    float (PEP 483 and 484). The answers for hashable hints are remembered. `use_beartype` is Beam's, and has no effect.

    >>> is_consistent_with(list[bool], list[int]), is_consistent_with(str, int)
    (True, False)
    """
    if sub is base:
        return True
    try:
        return _remembered(sub, base)
    except TypeError:
        return _decide(sub, base)


def _decide(sub: Hint, base: Hint) -> bool:
    sub, base = normalize(sub, none_as_type=True), normalize(base, none_as_type=True)
    if sub == base or isinstance(sub, AnyTypeConstraint) or isinstance(base, AnyTypeConstraint):
        return True
    alternatives = getattr(sub, "_certain_types", None)
    if alternatives is not None and isinstance(sub, TypeConstraint):
        are_known = all(getattr(item, "_is_known_to_beam", True) for item in alternatives)
        return (all if are_known else any)(is_consistent_with(item, base) for item in alternatives)
    if isinstance(base, TypeConstraint):
        return base._consistent_with_check_(sub)
    if isinstance(sub, TypeConstraint):
        accepts = getattr(sub, "_is_instance_of_class", None)
        return base is object or (accepts is not None and bool(accepts(base)))
    return sub in NUMERIC_TOWER.get(base, ()) or regex_consistency(sub, base)


_remembered = functools.lru_cache(maxsize=8192)(_decide)


def regex_consistency(sub: Hint, base: Hint) -> bool:
    """True if a class or native generic is consistent with another, as ``re.Pattern[str]`` is (Beam's name).

    A generic without parameters accepts every parameter; one with parameters accepts only the same.

    >>> import re
    >>> regex_consistency(re.Pattern[str], re.Pattern), regex_consistency(re.Pattern, re.Pattern[str])
    (True, False)
    """
    base_origin = typing.get_origin(base)
    if base_origin is not None and typing.get_args(sub) != typing.get_args(base):
        return False
    sub_class: Hint = typing.get_origin(sub) or sub
    base_class: Hint = base_origin or base
    try:
        return issubclass(sub_class, base_class)
    except TypeError:
        # Nothing contradicts a protocol that cannot be checked at run time.
        return inspect.isclass(base_class) and getattr(base_class, "_is_protocol", False)
