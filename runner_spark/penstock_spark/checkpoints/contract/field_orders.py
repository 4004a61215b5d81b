"""The order of the fields of rows that are stored by position: NamedTuples, and rows that a coder writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock_spark.checkpoints.contract.classes import find_classes

FieldOrders = dict[str, list[str]]
"""By the name of a class: the names of its fields in order."""


def field_orders_of(
    pickled: Iterable[Any], encoded: Iterable[Any], name_of: Callable[[type], str]
) -> FieldOrders:
    """Returns the orders of fields on which state depends.

    Args:
        pickled: The hints of pickled values: a pickle has the values of a NamedTuple without the names of its fields.
            encoded: The hints of values that coders write: they write each kind of row in this way.
        name_of: The name of a class.

    >>> from typing import NamedTuple
    >>> Visit = NamedTuple("Visit", [("user", str), ("page", str)])
    >>> field_orders_of([Visit], [], lambda kind: kind.__name__)
    {'Visit': ['user', 'page']}
    """
    tuples = {
        kind: fields
        for kind, fields in find_classes(*pickled).items()
        if isinstance(kind, type) and issubclass(kind, tuple)
    }
    rows = {**tuples, **find_classes(*encoded)}
    return {name_of(kind): list(fields) for kind, fields in rows.items() if fields}


def find_moved_fields(old: FieldOrders, new: FieldOrders) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields the classes of which a field has a different position than before: name, old fields, new fields.

    Fields that are new at the end, that the end has lost, or that have another name at their position move none.

    >>> list(find_moved_fields({"Visit": ["user", "page"]}, {"Visit": ["page", "user"]}))
    [('Visit', ['user', 'page'], ['page', 'user'])]
    >>> list(find_moved_fields({"Visit": ["user", "page"]}, {"Visit": ["user", "url", "seconds"]}))
    []
    """
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name], new[name]
        if any(field in after and after.index(field) != place for place, field in enumerate(before)):
            yield name, before, after
