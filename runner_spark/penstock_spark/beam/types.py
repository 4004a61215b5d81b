"""Beam's type hints of elements, in penstock's terms."""

from __future__ import annotations

from typing import Any

from apache_beam.typehints import typehints as beam_typehints

from penstock.typehints import typehints

_PLAIN = (int, float, str, bytes, bool, type(None))


def element_type_of(hint: object) -> object:
    """Converts a Beam hint to penstock's, as far as the compiler makes use of it; else Any.

    >>> element_type_of(beam_typehints.Tuple[str, int]) == typehints.Tuple[str, int]
    True
    """
    if hint in _PLAIN:
        return hint
    match hint:
        case beam_typehints.TupleHint.TupleConstraint():
            return typehints.Tuple[tuple(map(element_type_of, hint.tuple_types))]
        case beam_typehints.IterableTypeConstraint():
            return typehints.Iterable[element_type_of(hint.inner_type)]
        case beam_typehints.ListConstraint():
            return typehints.List[element_type_of(hint.inner_type)]
    return typehints.Any


def refine_type(known: Any, inferred: Any) -> object:
    """Returns the type that Beam knows, with what the function itself shows where Beam knows nothing.

    >>> refine_type(typehints.Tuple[typehints.Any, int], typehints.Tuple[str, float])
    Tuple[<class 'str'>, <class 'int'>]
    >>> refine_type(typehints.Any, list)
    Any
    """
    if known is typehints.Any:
        return _plain(inferred)
    if _are_alike(known, inferred):
        return typehints.Tuple[tuple(map(refine_type, known.tuple_types, inferred.tuple_types))]
    return known


def _plain(hint: object) -> object:
    """Returns a type of which the compiler makes use; else Any."""
    if isinstance(hint, typehints.TupleHint.TupleConstraint):
        return typehints.Tuple[tuple(map(_plain, hint.tuple_types))]
    return hint if hint in _PLAIN else typehints.Any


def _are_alike(known: Any, inferred: Any) -> bool:
    """True if both are hints of tuples, and of the same length."""
    tuples = typehints.TupleHint.TupleConstraint
    both = isinstance(known, tuples) and isinstance(inferred, tuples)
    return both and len(known.tuple_types) == len(inferred.tuple_types)
