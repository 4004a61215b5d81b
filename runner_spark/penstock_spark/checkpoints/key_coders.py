"""The coders that the user registered for a grouping's keys: the encoded key finds the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.coders.deterministic import class_encoder, library_encoder
from penstock.coders.typecoders import registry
from penstock.typehints.constraints import AnyTypeConstraint
from penstock.typehints.row_type import RowTypeConstraint
from penstock.typehints.typehints import Any as AnyHint
from penstock.typehints.typehints import TupleConstraint, visit_inner_types

KeyCoders = dict[str, dict[str, Any]]
"""By the name of a type: the name of its ``coder``, and whether the type can be a key without it (``own_form``)."""


def key_coders_of(element_type: Any, name_of: Callable[[Any], str]) -> KeyCoders:
    """The coders of all types that may occur in the keys of pairs; unknown keys may be anything.

    >>> key_coders_of(tuple[str, int], str)
    {}
    """
    custom = dict(registry.get_custom_type_coder_tuples())
    if not custom:
        return {}
    key = element_type.tuple_types[0] if isinstance(element_type, TupleConstraint) else AnyHint
    leaves: list[Any] = []
    _leaves(key, leaves)
    used = [kind for kind in custom if any(_may_be(kind, leaf) for leaf in leaves)]
    described = {
        name_of(kind): {"coder": name_of(custom[kind]), "own_form": _has_own_form(kind)} for kind in used
    }
    return dict(sorted(described.items()))


def changed_key_coders(old: KeyCoders, new: KeyCoders) -> list[tuple[str, str, str]]:
    """The types whose keys would no longer find their state: name, old coder, new coder.

    A type that needs its coder to be a key cannot occur in state from before the coder was registered.
    """
    without = "none is registered"
    changes = []
    for kind in sorted({*old, *new}):
        before, after = old.get(kind), new.get(kind)
        if before is None and after is not None and not after["own_form"]:
            continue
        coders = [without if each is None else each["coder"] for each in (before, after)]
        if coders[0] != coders[1]:
            changes.append((kind, coders[0], coders[1]))
    return changes


def _leaves(hint: Any, into: list[Any]) -> None:
    row = hint if isinstance(hint, RowTypeConstraint) else RowTypeConstraint.from_user_type(hint)
    if row is not None:
        into.append(row.user_type)
        for _, field in row.fields:
            _leaves(field, into)
    else:
        parts: list[Any] = []
        visit_inner_types(hint, lambda part, _: parts.append(part), None)
        # A hint that consists of others adds nothing to them.
        into += [part for part in parts if isinstance(part, type | AnyTypeConstraint)]


def _may_be(kind: Any, leaf: Any) -> bool:
    """Whether a key of a hint may have a registered type: as an instance of a class, or as anything."""
    return isinstance(kind, type) and (not isinstance(leaf, type) or issubclass(kind, leaf))


def _has_own_form(kind: Any) -> bool:
    try:
        return bool(library_encoder(kind) or class_encoder(kind))
    except (TypeError, AttributeError):
        return False
