"""Type hints: what a pipeline's elements are, checked before anything runs (Beam's ``typehints``)."""

from __future__ import annotations

from penstock.typehints.decorators import (
    TypeCheckError,
    WithTypeHints,
    disable_type_annotations,
    no_annotations,
    with_input_types,
    with_output_types,
)
from penstock.typehints.typehints import (
    KV,
    Any,
    Collection,
    Dict,
    FrozenSet,
    Generator,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVariable,
    Union,
    WindowedValue,
)

__all__ = [
    "KV",
    "Any",
    "Collection",
    "Dict",
    "FrozenSet",
    "Generator",
    "Iterable",
    "Iterator",
    "List",
    "Mapping",
    "Optional",
    "Sequence",
    "Set",
    "Tuple",
    "TypeCheckError",
    "TypeVariable",
    "Union",
    "WindowedValue",
    "WithTypeHints",
    "disable_type_annotations",
    "no_annotations",
    "with_input_types",
    "with_output_types",
]
