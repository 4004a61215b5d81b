"""What Beam's type hints say about elements, in penstock's terms."""

from __future__ import annotations

from typing import Any

from apache_beam.typehints import typehints as beam_typehints

from penstock.typehints import typehints

_PLAIN = (int, float, str, bytes, bool, type(None))


def element_type_of(hint: Any) -> Any:
    """Penstock's hint for one of Beam's, as far as the compiler makes use of it; else Any.

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
