"""Calls the methods of DoFns for single elements, without any engine, with values for all their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from penstock.elements.bounded_window import BoundedWindow, TimestampedValue
from penstock.elements.tagged_output import TaggedOutput
from penstock.error import noun_for
from penstock.functions.dofn_parameters import kind_of
from penstock.functions.signature import bind, signature_of
from penstock.functions.userstate import UserStateContext
from penstock.graph import ParDo
from penstock.machines.records import Element
from penstock.machines.stateful import TimerFiring
from penstock.utils.windowed_value import WindowedValue, create, unknown_pane
from penstock_conformance.malformed import Malformed


class ParameterValues(NamedTuple):
    """The values of a method's parameters."""

    # The element, in one window; for the method of a timer or of a window's end, (key, None) instead.
    one: WindowedValue
    state: Any = None  # The `UserStateContext` of its key and window; None for a DoFn without state.
    tag: str = ""  # The dynamic tag of the timer.


Method = Callable[[ParameterValues], tuple[Any, ...]]
"""Maps the values of parameters to the results."""


def process_of(primitive: ParDo) -> Method:
    """The method ``process`` of a ParDo's DoFn, with the arguments of the ParDo."""
    dofn = primitive.dofn
    call = bind(dofn.process_signature(), primitive.args, dict(primitive.kwargs))
    return _method(dofn.process, call.args, call.kwargs)


def _method(function: Callable[..., Any], args: Iterable[Any], kwargs: Iterable[tuple[str, Any]]) -> Method:
    args, kwargs = tuple(args), tuple(kwargs)

    def call(asked: ParameterValues) -> tuple[Any, ...]:
        results = function(
            *(_argument(value, asked) for value in args),
            **{name: _argument(value, asked) for name, value in kwargs},
        )
        # A generator uses the state while it runs.
        return () if results is None else tuple(results)

    return call


def _argument(value: Any, asked: ParameterValues) -> Any:
    """The value of a placeholder; any other value is the argument itself."""
    one, state = asked.one, asked.state
    match kind_of(value):
        case None:
            return value
        case "ElementParam":
            return one.value
        case "KeyParam":
            return one.value[0]
        case "TimestampParam":
            return one.timestamp
        case "WindowParam":
            return one.windows[0]
        case "PaneInfoParam":
            return one.pane_info
        case "WindowedValueParam":
            return one
        case "DynamicTimerTagParam":
            return asked.tag
        case "StateParam" if state is not None:
            return state.get_state(value.state_spec)
        case "TimerParam" if state is not None:
            return state.get_timer(value.timer_spec)
    raise Malformed(f"a method has the parameter {value}, which has no value here", hint="use a test instead")


class StatefulCode:
    """The methods of a stateful DoFn, as a `penstock.machines.stateful.StatefulMachine` calls them."""

    def __init__(self, primitive: ParDo) -> None:
        signature, owner = signature_of(primitive.dofn), primitive.dofn.timer_owner()
        ends = [method for method in (signature.window_expiration,) if method is not None]
        methods = [*signature.timers, *((None, method) for method in ends)]
        self._process = process_of(primitive)
        self._others = {
            timer and timer.name: _method(
                getattr(owner, method.name), (), ((one.name, one.default) for one in method.parameters)
            )
            for timer, method in methods
        }
        self.has_expiration = bool(ends)

    def process(
        self, key: object, element: Element, window: BoundedWindow, state: UserStateContext
    ) -> tuple[Any, ...]:
        pane = unknown_pane(element.kind)
        one = create((key, element.value), element.timestamp_micros, (window,), pane)
        return self._process(ParameterValues(one, state))

    def on_timer(
        self, key: object, ring: TimerFiring, window: BoundedWindow, state: UserStateContext
    ) -> tuple[Any, ...]:
        one = create((key, None), ring.output_micros, (window,))
        return self._others[ring.name](ParameterValues(one, state, ring.tag))

    def on_window_expiration(
        self, key: object, window: BoundedWindow, state: UserStateContext
    ) -> tuple[Any, ...]:
        return self._others[None](
            ParameterValues(create((key, None), window.end_micros - 1, (window,)), state)
        )


def results_of(results: Iterable[Any], one: WindowedValue) -> Iterator[WindowedValue]:
    """The results of a method, each with the time, windows and pane of the element, or with its own."""
    for result in results:
        if isinstance(result, TaggedOutput | TimestampedValue):
            what = f"a program returns {noun_for(result)}, not values or WindowedValues"
            raise Malformed(what, hint="use a test instead")
        yield result if isinstance(result, WindowedValue) else one.with_value(result)
