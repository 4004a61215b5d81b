"""Calls the methods of DoFns for single elements, without any engine, with all that their parameters ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from penstock.base.bounded_window import BoundedWindow, TimestampedValue
from penstock.base.tagged_output import TaggedOutput
from penstock.functions.params import kind_of
from penstock.functions.signature import bind, signature_of
from penstock.functions.userstate import UserStateContext
from penstock.graph import ParDo
from penstock.machines.records import Element
from penstock.machines.stateful import Ring
from penstock.utils.windowed_value import WindowedValue, create, unknown_pane
from penstock_conformance.malformed import Malformed


class Asked(NamedTuple):
    """What a method may ask for.

    Attributes:
        one: The element, in one window; for the method of a timer or of a window's end, (key, None) instead.
        state: The `UserStateContext` of its key and window; None for a DoFn without state.
        tag: The dynamic tag of the timer.
    """

    one: WindowedValue
    state: Any = None
    tag: str = ""


Method = Callable[[Asked], tuple[Any, ...]]
"""From what it may ask for to what it gives."""


def process_of(primitive: ParDo) -> Method:
    """The method ``process`` of a ParDo's DoFn, with the arguments of the ParDo.

    >>> from penstock.functions.dofn import MapDoFn
    >>> process_of(ParDo(MapDoFn(len)))(Asked(create("abc", 0, ())))
    (3,)
    """
    dofn = primitive.dofn
    call = bind(dofn.process_signature(), primitive.args, dict(primitive.kwargs))
    return _method(dofn.process, call.args, call.kwargs)


def _method(function: Callable[..., Any], args: Iterable[Any], kwargs: Iterable[tuple[str, Any]]) -> Method:
    args, kwargs = tuple(args), tuple(kwargs)

    def call(asked: Asked) -> tuple[Any, ...]:
        results = function(
            *(_argument(value, asked) for value in args),
            **{name: _argument(value, asked) for name, value in kwargs},
        )
        # The state is used while results are made.
        return () if results is None else tuple(results)

    return call


def _argument(value: Any, asked: Asked) -> Any:
    """What stands for a placeholder; any other value is the argument itself."""
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
    raise Malformed(f"a method asks for {value}", hint="show something else in a test")


class StatefulCode:
    """The methods of a stateful DoFn, as a `penstock.machines.stateful.StatefulMachine` calls them.

    Args:
        primitive: The step.
    """

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
        self, key: Any, element: Element, window: BoundedWindow, state: UserStateContext
    ) -> tuple[Any, ...]:
        """An element in one of its windows."""
        pane = unknown_pane(element.kind)
        one = create((key, element.value), element.timestamp_micros, (window,), pane)
        return self._process(Asked(one, state))

    def on_timer(
        self, key: Any, ring: Ring, window: BoundedWindow, state: UserStateContext
    ) -> tuple[Any, ...]:
        """A timer fires."""
        one = create((key, None), ring.output_micros, (window,))
        return self._others[ring.name](Asked(one, state, ring.tag))

    def on_window_expiration(
        self, key: Any, window: BoundedWindow, state: UserStateContext
    ) -> tuple[Any, ...]:
        """The state of a window is about to go."""
        return self._others[None](Asked(create((key, None), window.end_micros - 1, (window,)), state))


def given_by(results: Iterable[Any], one: WindowedValue) -> Iterator[WindowedValue]:
    """What a method gave, each with all that belongs to an element: that of the one it worked on, or its own.

    Raises:
        Malformed: It gave a value with a tag, or with a time alone.
    """
    for result in results:
        if isinstance(result, TaggedOutput | TimestampedValue):
            what = f"a program gives values or WindowedValues, and not a {type(result).__name__}"
            raise Malformed(what, hint="show something else in a test")
        yield result if isinstance(result, WindowedValue) else one.with_value(result)
