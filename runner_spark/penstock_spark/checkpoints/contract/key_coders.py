"""The coders that the user registered for a grouping's keys: the encoded key finds the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.coders.deterministic import class_encoder, library_encoder
from penstock.coders.typecoders import registry
from penstock.typehints.constraints import Any as AnyHint
from penstock.typehints.typehints import TupleConstraint
from penstock_spark.checkpoints.contract.classes import find_classes

KeyCoders = dict[str, dict[str, Any]]
"""By the name of a type: the name of its ``coder``, and whether the type can be a key without it (``own_form``)."""


def key_coders_of(element_type: object, name_of: Callable[[Any], str]) -> KeyCoders:
    """Returns the coders of all types that may occur in the keys of pairs; unknown keys may be anything.

    >>> key_coders_of(tuple[str, int], str)
    {}
    """
    custom = dict(registry.get_custom_type_coder_tuples())
    if not custom:
        return {}
    found = find_classes(key_type(element_type))
    used = [kind for kind in custom if any(_may_be(kind, each) for each in found)]
    described = {
        name_of(kind): {"coder": name_of(custom[kind]), "own_form": _has_own_form(kind)} for kind in used
    }
    return dict(sorted(described.items()))


def key_type(element_type: object) -> Any:
    """Returns the type of the keys of pairs; Any if it is unknown."""
    return element_type.tuple_types[0] if isinstance(element_type, TupleConstraint) else AnyHint


def find_changed_key_coders(old: KeyCoders, new: KeyCoders) -> list[tuple[str, str, str]]:
    """Returns the types whose keys would no longer find their state: name, old coder, new coder.

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


def _may_be(kind: object, found: object) -> bool:
    """True if a key of a hint may have a registered type: as an instance of a class, or as anything."""
    return isinstance(kind, type) and (not isinstance(found, type) or issubclass(kind, found))


def _has_own_form(kind: Any) -> bool:
    try:
        return bool(library_encoder(kind) or class_encoder(kind))
    except (TypeError, AttributeError):
        return False
