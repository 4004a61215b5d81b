"""The functions of transforms over named fields, as values that an engine can read."""

from __future__ import annotations

import collections
import datetime
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.elements.bounded_window import GlobalWindow, check_event_times
from penstock.elements.row import Row
from penstock.error import noun_for, refusal
from penstock.functions.dofn import DoFn
from penstock.scalars.expressions import Expression
from penstock.scalars.row_functions import Stamping
from penstock.scalars.tree import Literal, Scalar, WindowBound, map_leaves, walk
from penstock.scalars.types import PYTHON
from penstock.utils.timestamp import Timestamp

NamedFunction = tuple[str, Callable[[Any], Any]]


@dataclass(frozen=True, eq=False)
class RowOf:
    """Makes a Row of an element (what ``Select`` does); `fields` are names and functions of the element."""

    fields: tuple[NamedFunction, ...]

    def __call__(self, element: object) -> Row:
        """Returns the Row."""
        return Row(**{name: each(element) for name, each in self.fields})


@dataclass(frozen=True, eq=False)
class KeyOf:
    """Makes a named tuple of an element: the key of a ``GroupBy`` with several fields."""

    fields: tuple[NamedFunction, ...]

    def __call__(self, element: object) -> Any:
        """Returns the key."""
        return named_tuple("Key", self._names)._make([each(element) for each in self._functions])

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @functools.cached_property
    def _functions(self) -> tuple[Callable[[Any], Any], ...]:
        return tuple(each for _, each in self.fields)


@dataclass(frozen=True, eq=False)
class KeyedBy:
    """Pairs an element with its key (what ``GroupBy`` groups)."""

    key: Callable[[Any], Any]

    def __call__(self, element: object) -> tuple[Any, Any]:
        """Returns the pair."""
        return self.key(element), element


@dataclass(frozen=True, eq=False)
class KeyAndValues:
    """Pairs the key of an element with the values to combine (the first step of ``GroupBy.aggregate_field``)."""

    key: KeyOf
    values: tuple[Callable[[Any], Any], ...]

    def __call__(self, element: object) -> tuple[Any, list[Any]]:
        """Returns the pair."""
        return self.key(element), [each(element) for each in self.values]


@dataclass(frozen=True, eq=False)
class ResultOf:
    """Makes a named tuple of a key and its results (the last step of ``GroupBy.aggregate_field``)."""

    names: tuple[str, ...]
    """The names of the key's fields, then the names of the results."""

    def __call__(self, pair: tuple[Any, Any]) -> Any:
        """Returns the named tuple."""
        return named_tuple("Result", self.names)(*pair[0], *pair[1])


@dataclass(frozen=True, eq=False)
class StampedBy(Stamping):
    """Assigns a new timestamp to an element (what ``WithTimestamps`` does)."""

    moment: Callable[[Any], Any]
    """A function from the element to seconds, a Timestamp, or an aware datetime in UTC."""

    @property
    def function(self) -> Callable[[Any], int]:
        """Returns a function from an element to its time in microseconds."""
        return self._micros

    def _micros(self, element: object) -> int:
        moment = self.moment(element)
        if moment is None:
            what = "an element has no time: the function of WithTimestamps returned None"
            hint = "filter out such elements first, e.g. with Filter(~field('at').is_null())"
            raise refusal(ValueError, what, hint=hint)
        return check_event_times([Timestamp.of(moment).micros])[0]


@functools.cache
def named_tuple(type_name: str, field_names: tuple[str, ...]) -> type[Any]:
    """Returns a named tuple class, whose instances can be pickled: another process makes the class again."""

    def reduce(self: tuple[Any, ...]) -> tuple[Any, ...]:
        return _make_named_tuple, (type_name, field_names, tuple(self))

    made = collections.namedtuple(type_name, field_names)  # type: ignore[misc]
    return type(type_name, (made,), {"__slots__": (), "__reduce__": reduce, "__module__": __name__})


def _make_named_tuple(type_name: str, field_names: tuple[str, ...], values: Iterable[Any]) -> object:
    return named_tuple(type_name, field_names)(*values)


_MOST_WINDOWS = 1_000


def window_start() -> Expression:
    """Returns the start of an element's window, as an aware ``datetime`` in UTC; for ``Select`` (penstock's own).

    >>> from penstock.transforms.fields import Select
    >>> Select("team", start=window_start()).label
    'ToRows(team, start)'
    """
    return Expression(WindowBound("start"))


def window_end() -> Expression:
    """Returns the end of an element's window, as an aware ``datetime`` in UTC; for ``Select`` (penstock's own).

    Example: ``totals | Select("team", "total", until=window_end())``.
    """
    return Expression(WindowBound("end"))


def reads_window(function: object) -> bool:
    """True if a function is an expression that contains a bound of the window."""
    return isinstance(function, Expression) and any(
        isinstance(part, WindowBound) for part in walk(function.scalar)
    )


class RowInWindow:
    """Makes a Row of an element and its window (what ``Select`` does with `window_start` and `window_end`)."""

    def __init__(self, fields: tuple[NamedFunction, ...]) -> None:
        self.fields = fields
        self._made: dict[Any, RowOf] = {}

    def __call__(self, element: object, window: Any = DoFn.WindowParam) -> Row:
        """Returns the Row."""
        make = self._made.get(window)
        if make is None:
            if len(self._made) >= _MOST_WINDOWS:
                self._made.clear()
            own = tuple((name, _in_window(function, window)) for name, function in self.fields)
            make = self._made[window] = RowOf(own)
        return make(element)

    def __getstate__(self) -> dict[str, Any]:
        return {"fields": self.fields, "_made": {}}


def _in_window(function: Any, window: object) -> Any:
    """A function in which values replace the bounds of the window."""
    if not reads_window(function):
        return function

    def in_window(leaf: Scalar) -> Scalar:
        return Literal(_moment(window, leaf.bound), PYTHON) if isinstance(leaf, WindowBound) else leaf

    return Expression(map_leaves(function.scalar, in_window))


def _moment(window: object, bound: str) -> datetime.datetime:
    if not hasattr(window, bound) or isinstance(window, GlobalWindow):
        hint = "put the elements into windows first, e.g. with WindowInto(FixedWindows(60))"
        raise refusal(TypeError, f"{noun_for(window)} has no {bound}", hint=hint)
    moment: datetime.datetime = getattr(window, bound).to_utc_datetime(has_tz=True)
    return moment
