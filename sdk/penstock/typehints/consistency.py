"""When one type is consistent with another, as PEP 483 means it."""

from __future__ import annotations

import functools
import inspect
import typing

from penstock.typehints.constraints import NUMERIC_TOWER, AnyTypeConstraint, Hint, TypeConstraint, normalize


def is_consistent_with(sub: Hint, base: Hint, use_beartype: bool | None = None) -> bool:
    """Whether a value of type `sub` may go where a `base` is asked for (Beam's name).

    Like ``issubclass``, but with hints; ``Any`` is consistent with all, both ways; an int may stand for a
    float (PEP 483 and 484). The answers for hashable hints are remembered.

    Args:
        sub: The type there is.
        base: The type asked for.
        use_beartype: Beam's argument; there is only one way to decide here, so it changes nothing.

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
        return all(is_consistent_with(item, base) for item in alternatives)
    if isinstance(base, TypeConstraint):
        return base._consistent_with_check_(sub)
    if isinstance(sub, TypeConstraint):
        accepts = getattr(sub, "_is_instance_of_class", None)
        return base is object or (accepts is not None and bool(accepts(base)))
    return sub in NUMERIC_TOWER.get(base, ()) or regex_consistency(sub, base)


_remembered = functools.lru_cache(maxsize=8192)(_decide)


def regex_consistency(sub: Hint, base: Hint) -> bool:
    """Whether a class or native generic is consistent with another, as ``re.Pattern[str]`` is (Beam's name).

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
        # A protocol that cannot be checked at run time is the user's affair: nothing contradicts it.
        return inspect.isclass(base_class) and getattr(base_class, "_is_protocol", False)
