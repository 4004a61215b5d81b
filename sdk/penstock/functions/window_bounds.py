"""The bounds of an element's window as expressions, for rows that are to hold them."""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from penstock.base.bounded_window import GlobalWindow
from penstock.base.row import Row
from penstock.error import three_parts
from penstock.functions.dofn import DoFn
from penstock.functions.expressions import Expression, Literal
from penstock.functions.field_functions import NamedFunction, RowOf

_MOST_WINDOWS = 1_000


@dataclass(frozen=True, eq=False, repr=False)
class WindowBound(Expression):
    """The start or the end of an element's window.

    Attributes:
        bound: ``"start"`` or ``"end"``.
    """

    bound: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        """None."""
        return ()

    def __call__(self, element: Any) -> Any:
        """Raises TypeError: an element alone does not tell its window."""
        raise TypeError(
            three_parts(
                f"{self} is known in Select only", hint="put it into a row, with Select(start=window_start())"
            )
        )

    def type_of(self, input_type: Any) -> Any:
        """An instant."""
        return datetime.datetime

    def __repr__(self) -> str:
        return f"window_{self.bound}()"


def window_start() -> Expression:
    """When the window of an element starts, as an aware ``datetime`` in UTC; for ``Select`` (penstock's own).

    >>> from penstock.transforms.fields import Select
    >>> Select("team", start=window_start()).label
    'ToRows(team, start)'
    """
    return WindowBound("start")


def window_end() -> Expression:
    """When the window of an element ends, as an aware ``datetime`` in UTC; for ``Select`` (penstock's own).

    >>> window_end()
    window_end()
    """
    return WindowBound("end")


def reads_window(function: object) -> bool:
    """Whether a function is an expression with a bound of the window in it."""
    if isinstance(function, WindowBound):
        return True
    return isinstance(function, Expression) and any(map(reads_window, function.parts))


class RowInWindow:
    """Makes a Row of an element and its window (what ``Select`` does with `window_start` and `window_end`).

    Args:
        fields: Names, and functions of the element.
    """

    def __init__(self, fields: tuple[NamedFunction, ...]) -> None:
        self.fields = fields
        self._made: dict[Any, RowOf] = {}

    def __call__(self, element: Any, window: Any = DoFn.WindowParam) -> Row:
        """The Row."""
        make = self._made.get(window)
        if make is None:
            if len(self._made) >= _MOST_WINDOWS:
                self._made.clear()
            own = tuple((name, _in_window(function, window)) for name, function in self.fields)
            make = self._made[window] = RowOf(own)
        return make(element)

    def __getstate__(self) -> dict[str, Any]:
        return {"fields": self.fields, "_made": {}}


def _in_window(function: Any, window: Any) -> Any:
    """A function with the bounds of a window put into it."""
    if isinstance(function, WindowBound):
        return Literal(_moment(window, function.bound))
    if not (isinstance(function, Expression) and is_dataclass(function)):
        return function
    own = {each.name: getattr(function, each.name) for each in fields(function)}
    parts = {name: _in_window(each, window) for name, each in own.items() if isinstance(each, Expression)}
    return replace(function, **parts)


def _moment(window: Any, bound: str) -> datetime.datetime:
    if not hasattr(window, bound) or isinstance(window, GlobalWindow):
        raise TypeError(
            three_parts(
                f"a {type(window).__name__} has no {bound}",
                hint="put the elements into windows first, e.g. with WindowInto(FixedWindows(60))",
            )
        )
    moment: datetime.datetime = getattr(window, bound).to_utc_datetime(has_tz=True)
    # The same zone object as in the instants of columns.
    return moment.replace(tzinfo=zoneinfo.ZoneInfo("UTC"))
