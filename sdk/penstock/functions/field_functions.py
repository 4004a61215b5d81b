"""What transforms over named fields do to one element, as values that an engine can read."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.base.bounded_window import TimestampedValue
from penstock.base.row import Row
from penstock.error import three_parts
from penstock.utils.timestamp import Timestamp

NamedFunction = tuple[str, Callable[[Any], Any]]


@dataclass(frozen=True, eq=False)
class RowOf:
    """Makes a Row of an element (what ``Select`` does).

    Attributes:
        fields: Names, and functions of the element.
    """

    fields: tuple[NamedFunction, ...]

    def __call__(self, element: Any) -> Row:
        """The Row."""
        return Row(**{name: each(element) for name, each in self.fields})


@dataclass(frozen=True, eq=False)
class KeyOf:
    """Makes a named tuple of an element: the key of a ``GroupBy`` with several fields."""

    fields: tuple[NamedFunction, ...]

    def __call__(self, element: Any) -> Any:
        """The key."""
        return named_tuple("Key", self._names)._make([each(element) for each in self._functions])

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @functools.cached_property
    def _functions(self) -> tuple[Callable[[Any], Any], ...]:
        return tuple(each for _, each in self.fields)


@dataclass(frozen=True, eq=False)
class KeyedBy:
    """Pairs an element with its key (what ``GroupBy`` groups).

    Attributes:
        key: From an element to its key.
    """

    key: Callable[[Any], Any]

    def __call__(self, element: Any) -> tuple[Any, Any]:
        """The pair."""
        return self.key(element), element


@dataclass(frozen=True, eq=False)
class KeyAndValues:
    """Pairs the key of an element with what is to be combined (the first step of ``GroupBy.aggregate_field``).

    Attributes:
        key: Makes the key.
        values: Make what is to be combined.
    """

    key: KeyOf
    values: tuple[Callable[[Any], Any], ...]

    def __call__(self, element: Any) -> tuple[Any, list[Any]]:
        """The pair."""
        return self.key(element), [each(element) for each in self.values]


@dataclass(frozen=True, eq=False)
class ResultOf:
    """Makes a named tuple of a key and its results (the last step of ``GroupBy.aggregate_field``).

    Attributes:
        names: The names of the key's fields, then those of the results.
    """

    names: tuple[str, ...]

    def __call__(self, pair: tuple[Any, Any]) -> Any:
        """The named tuple."""
        return named_tuple("Result", self.names)(*pair[0], *pair[1])


@dataclass(frozen=True, eq=False)
class StampedBy:
    """Gives an element a new timestamp (what ``WithTimestamps`` does).

    Attributes:
        moment: From the element to seconds, a Timestamp, or an aware datetime in UTC.
    """

    moment: Callable[[Any], Any]

    def __call__(self, element: Any) -> TimestampedValue[Any]:
        """The element at its time."""
        moment = self.moment(element)
        if moment is None:
            raise ValueError(
                three_parts(
                    "an element has no time: the function of WithTimestamps gave None",
                    hint="filter such elements out before, e.g. with Filter(~field('at').is_null())",
                )
            )
        return TimestampedValue(element, Timestamp.of(moment))


@functools.cache
def named_tuple(type_name: str, field_names: tuple[str, ...]) -> Any:
    """A named tuple class; its instances find it again on other machines.

    >>> named_tuple("Key", ("team",))("red")
    Key(team='red')
    """

    def reduce(self: Any) -> tuple[Any, ...]:
        return _make_named_tuple, (type_name, field_names, tuple(self))

    made = collections.namedtuple(type_name, field_names)  # type: ignore[misc]
    return type(type_name, (made,), {"__slots__": (), "__reduce__": reduce, "__module__": __name__})


def _make_named_tuple(type_name: str, field_names: tuple[str, ...], values: Iterable[Any]) -> Any:
    return named_tuple(type_name, field_names)(*values)
