"""The arguments of a DoFn's ``process`` as functions of an element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Any

from penstock.functions.dofn_parameters import BundleFinalizerDoFnParam, kind_of
from penstock.functions.userstate import StateSpec, TimerSpec
from penstock.graph import SideInputSlot
from penstock.machines.cells import kind_of_cell
from penstock.machines.user_state import UserTimer
from penstock.scalars.compiled_fields import compile_field_function
from penstock.utils.timestamp import Timestamp
from penstock.utils.windowed_value import create
from penstock_spark.worker.batch import Batch
from penstock_spark.worker.outputs import Row
from penstock_spark.worker.views import View

_FIRST = itemgetter(0)
_ROW_KINDS: dict[str, Callable[[Row], Any]] = {
    "ElementParam": itemgetter(0),
    "TimestampParam": lambda row: Timestamp.from_micros(row[1]),
    "WindowParam": lambda row: row[2][0],
    "PaneInfoParam": itemgetter(3),
    "KeyParam": lambda row: row[0][0],
    "WindowedValueParam": lambda row: create(*row[:4]),
}


def _state_of(spec: StateSpec) -> Callable[[Any], Any]:
    make = kind_of_cell(spec)
    return lambda row: make(spec, row[4].cells)


def _timer_of(spec: TimerSpec) -> Callable[[Any], Any]:
    return lambda row: UserTimer(spec, row[4])


_STATE_KINDS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "StateParam": lambda asked: _state_of(asked.state_spec),
    "TimerParam": lambda asked: _timer_of(asked.timer_spec),
    "DynamicTimerTagParam": lambda asked: lambda row: row[5].tag,
    "RestrictionParam": lambda asked: lambda row: row[4].view,
    "WatermarkEstimatorParam": lambda asked: lambda row: row[4].estimator,
    "BundleFinalizerParam": lambda asked: lambda row: row[4].finalizer,
}
"""The columns that only rows of stateful and of splittable DoFns have, by the parameter that asks for them."""


class Arguments:
    """Positional and keyword arguments with placeholders.

    They are constants, `DoFnParam` placeholders, and `SideInputSlot` values for windowed side inputs.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...], views: list[View]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.views = views

    @property
    def placeholders(self) -> list[Any]:
        return [
            value for value in (*self.args, *(value for _, value in self.kwargs)) if _is_placeholder(value)
        ]

    @property
    def element_only(self) -> bool:
        return len(self.args) == 1 and not self.kwargs and kind_of(self.args[0]) == "ElementParam"

    @property
    def needs_window(self) -> bool:
        """True if an element in several windows must be processed once for each."""
        return any(
            isinstance(value, SideInputSlot) or kind_of(value) in ("WindowParam", "WindowedValueParam")
            for value in self.placeholders
        )

    def value_call(self, function: Callable[..., Any]) -> Callable[[Any], Any]:
        """The function of the element's value alone; the only placeholder must be the element, in first place."""
        rest, kwargs = self.args[1:], dict(self.kwargs)
        if not rest and not kwargs:
            return compile_field_function(function)
        return lambda value: function(value, *rest, **kwargs)

    def columns(self, batch: Batch, elements: Iterator[Any]) -> list[Iterable[Any]] | None:
        """An iterable for each argument of a batch's elements; None if the arguments must be found one by one.

        If a window is asked for, each element must be in one window.
        """
        if self.kwargs:
            return None
        made = [self._column(value, batch, elements) for value in self.args]
        return None if None in made else made

    def _column(self, value: object, batch: Batch, elements: Iterator[Any]) -> Any:
        if not _is_placeholder(value) and kind_of(value) is None:
            return repeat(value)
        match kind_of(value):
            case "ElementParam":
                return elements
            case "TimestampParam":
                times = batch.timestamps
                if isinstance(times, list):
                    return map(Timestamp.from_micros, times)
                return map(Timestamp.from_micros, repeat(times))
            case "WindowParam":
                windows = batch.windows
                return map(_FIRST, windows) if isinstance(windows, list) else repeat(windows[0])
            case "PaneInfoParam":
                return batch.panes if isinstance(batch.panes, list) else repeat(batch.panes)
        return None

    def row_call(self, function: Callable[..., Any]) -> Callable[[Row], Any]:
        args = [self._getter(value) for value in self.args]
        kwargs = [(name, self._getter(value)) for name, value in self.kwargs]
        if kwargs:
            return lambda row: function(
                *[get(row) for get in args], **{name: get(row) for name, get in kwargs}
            )
        # The calls that there are most of are written out: a list for each takes longer than what it holds.
        match args:
            case [one]:
                return lambda row: function(one(row))
            case [one, two]:
                return lambda row: function(one(row), two(row))
            case [one, two, three]:
                return lambda row: function(one(row), two(row), three(row))
            case [one, two, three, four]:
                return lambda row: function(one(row), two(row), three(row), four(row))
            case [one, two, three, four, five]:
                return lambda row: function(one(row), two(row), three(row), four(row), five(row))
            case [one, two, three, four, five, six]:
                return lambda row: function(one(row), two(row), three(row), four(row), five(row), six(row))
        return lambda row: function(*[get(row) for get in args])

    def _getter(self, value: object) -> Callable[[Row], Any]:
        if isinstance(value, SideInputSlot):
            view = self.views[value.index]
            return lambda row: view.of(row[2][0])
        if isinstance(value, BundleFinalizerDoFnParam):
            # The finalizer of the whole bundle; the class itself asks for one of each call.
            return lambda row: value
        kind = kind_of(value) or ""
        if kind in _STATE_KINDS:
            return _STATE_KINDS[kind](value)
        if _is_placeholder(value):
            return _ROW_KINDS[kind_of(value) or ""]
        return lambda row: value


def _is_placeholder(value: object) -> bool:
    return isinstance(value, SideInputSlot) or kind_of(value) in _ROW_KINDS


def needs_row(arguments: Arguments) -> bool:
    """True if a call needs more than the element's value, or needs it elsewhere than in the first place."""
    return (
        len(arguments.placeholders) != 1
        or kind_of(arguments.args[0] if arguments.args else None) != "ElementParam"
    )
