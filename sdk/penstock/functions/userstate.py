"""State and timers per key and window: what a DoFn declares, and what its methods receive."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from penstock.coders.base import Coder
from penstock.error import refusal
from penstock.functions.combinefn import CombineFn
from penstock.utils.timestamp import Timestamp, TimestampTypes
from penstock.windows.time_domain import TimeDomain


class RuntimeState:
    """A cell of state as a method sees it (Beam's ``RuntimeState``)."""

    def prefetch(self) -> None:
        """Announces that the state will be read soon; does nothing."""

    def finalize(self) -> None:
        """Called after the last use; does nothing."""

    def clear(self) -> None:
        """Removes everything."""
        raise NotImplementedError

    def commit(self) -> None:
        """Stores the changes."""
        raise NotImplementedError


class ReadModifyWriteRuntimeState(RuntimeState):
    """One value."""

    def read(self) -> Any:
        """Returns the value; None if there is none."""
        raise NotImplementedError

    def write(self, value: Any) -> None:
        """Replaces the value."""
        raise NotImplementedError


class AccumulatingRuntimeState(RuntimeState):
    """A cell to which values are added."""

    def read(self) -> Iterable[Any]:
        """Returns everything that was added."""
        raise NotImplementedError

    def add(self, value: Any) -> None:
        """Adds a value."""
        raise NotImplementedError


class BagRuntimeState(AccumulatingRuntimeState):
    """Values in any order."""


class SetRuntimeState(AccumulatingRuntimeState):
    """Distinct values."""


class CombiningValueRuntimeState(AccumulatingRuntimeState):
    """Combines values into one; `read` returns the result."""


class MapRuntimeState(RuntimeState):
    """Values by keys (penstock's own, after Java's ``MapState``)."""

    def get(self, key: object, default: object = None) -> Any:
        """Returns the value of a key."""
        raise NotImplementedError

    def contains(self, key: object) -> bool:
        """True if the map contains a key."""
        raise NotImplementedError

    def put(self, key: object, value: object) -> None:
        """Sets the value of a key, replacing any other."""
        raise NotImplementedError

    def put_if_absent(self, key: object, value: object) -> bool:
        """Sets the value of a key that does not have one; returns True if it did so."""
        raise NotImplementedError

    def remove(self, key: object) -> None:
        """Removes a key, if the map contains it."""
        raise NotImplementedError

    def keys(self) -> Iterable[Any]:
        """Returns the keys."""
        raise NotImplementedError

    def values(self) -> Iterable[Any]:
        """Returns the values."""
        raise NotImplementedError

    def entries(self) -> Iterable[tuple[Any, Any]]:
        """Returns pairs of a key and its value."""
        raise NotImplementedError


class OrderedListRuntimeState(AccumulatingRuntimeState):
    """Pairs of timestamp and value, in the order of timestamps."""

    def read_range(
        self, min_time_stamp: TimestampTypes, limit_time_stamp: TimestampTypes
    ) -> Iterable[tuple[Any, Any]]:
        """Returns the pairs from one timestamp up to, but not including, another."""
        raise NotImplementedError

    def clear_range(self, min_time_stamp: TimestampTypes, limit_time_stamp: TimestampTypes) -> None:
        """Removes the pairs from one timestamp up to, but not including, another."""
        raise NotImplementedError


MethodT = TypeVar("MethodT", bound=Callable[..., Any])


class StateSpec:
    """A cell of state per key and window; equal to its pickled copies (Beam's ``StateSpec``).

    Args:
        name: The cell's name, unique in its DoFn.
        coder: The coder of the cell's values.
    """

    def __init__(self, name: str, coder: object) -> None:
        if not isinstance(name, str) or not name:
            what = f"the name of a state must be a string that is not empty, but is {name!r}"
            raise refusal(TypeError, what, hint="write BagStateSpec('seen', VarIntCoder()), for example")
        if not isinstance(coder, Coder):
            what = f"the coder of state {name!r} is not a Coder: {coder!r}"
            raise refusal(TypeError, what, hint="e.g. VarIntCoder()")
        self.name = name
        self.coder = coder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, StateSpec) and other.name == self.name

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))


class ReadModifyWriteStateSpec(StateSpec):
    """One value (Beam's name; the method receives a `ReadModifyWriteRuntimeState`).

    Example: ``TOTAL = ReadModifyWriteStateSpec("total", VarIntCoder())`` in the class of a DoFn.
    """


class ObjectStateSpec(StateSpec):
    """One dict that stays unencoded while a key is processed, and is pickled with the key's state (penstock's own).

    The method receives a `ReadModifyWriteRuntimeState`, and may change the dict in place: no call encodes it.
    """


class BagStateSpec(StateSpec):
    """Values in any order (Beam's name; the method receives a `BagRuntimeState`).

    Example: ``NAMES = BagStateSpec("names", StrUtf8Coder())`` in the class of a DoFn.
    """


class SetStateSpec(StateSpec):
    """Distinct values (Beam's name; the method receives a `SetRuntimeState`).

    Example: ``SEEN = SetStateSpec("seen", StrUtf8Coder())`` in the class of a DoFn.
    """


class MapStateSpec(StateSpec):
    """Values by keys (Java's ``StateSpecs.map``, which Beam's Python lacks; the method receives a `MapRuntimeState`).

    Args:
        name: The cell's name, unique in its DoFn.
        key_coder: The coder of keys; keys with the same encoding are one key.
        coder: The coder of values.

    Example: ``STOCK = MapStateSpec("stock", StrUtf8Coder(), VarIntCoder())`` in the class of a DoFn.
    """

    def __init__(self, name: str, key_coder: object, coder: Coder) -> None:
        super().__init__(name, coder)
        if not isinstance(key_coder, Coder):
            what = f"the key_coder of state {name!r} is not a Coder: {key_coder!r}"
            raise refusal(TypeError, what, hint="e.g. StrUtf8Coder()")
        self.key_coder = key_coder


class OrderedListStateSpec(StateSpec):
    """Values in the order of timestamps (Beam's name; the method receives an `OrderedListRuntimeState`).

    Example: ``EVENTS = OrderedListStateSpec("events", StrUtf8Coder())`` in the class of a DoFn.
    """


class CombiningValueStateSpec(StateSpec):
    """Values combined into one (Beam's name; the method receives a `CombiningValueRuntimeState`).

    Args:
        name: The cell's name, unique in its DoFn.
        coder: The coder of accumulators; may be left out.
        combine_fn: A CombineFn, or a function such as ``sum``; may also be passed as the second argument.

    Example: ``COUNT = CombiningValueStateSpec("count", combine_fn=CountCombineFn())`` in the class of a DoFn.
    """

    def __init__(self, name: str, coder: object = None, combine_fn: object = None) -> None:
        if combine_fn is None:
            coder, combine_fn = None, coder
        if combine_fn is None:
            what = "combine_fn must be provided"
            raise refusal(ValueError, what, hint="CombiningValueStateSpec('total', sum)")
        self.combine_fn = CombineFn.maybe_from_callable(combine_fn, has_side_inputs=False)
        super().__init__(name, self.combine_fn.get_accumulator_coder() if coder is None else coder)


class Timer(NamedTuple):
    """One setting of a timer (Beam's ``Timer``)."""

    user_key: Any
    dynamic_timer_tag: str
    windows: tuple[Any, ...]
    clear_bit: bool
    fire_timestamp: Timestamp | None
    hold_timestamp: Timestamp | None
    paneinfo: Any


class TimerSpec:
    """A timer per key and window; equal to its pickled copies (Beam's ``TimerSpec``).

    Args:
        name: The timer's name, unique in its DoFn.
        time_domain: ``TimeDomain.WATERMARK`` or ``TimeDomain.REAL_TIME``.

    >>> TimerSpec("expiry", TimeDomain.WATERMARK)
    TimerSpec(ts-expiry)
    """

    prefix = "ts-"

    def __init__(self, name: str, time_domain: str) -> None:
        if time_domain not in (TimeDomain.WATERMARK, TimeDomain.REAL_TIME):
            what = f"Unsupported TimeDomain: {time_domain!r}"
            raise refusal(ValueError, what, hint="use TimeDomain.WATERMARK or TimeDomain.REAL_TIME")
        self.name = self.prefix + name
        self.time_domain = time_domain
        self.callback: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimerSpec) and (other.name, other.time_domain) == (
            self.name,
            self.time_domain,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.time_domain))


def on_timer(timer_spec: TimerSpec) -> Callable[[MethodT], MethodT]:
    """Marks the method of a DoFn that is called when a timer fires (Beam's decorator); a timer has one such method.

    Example: ``@on_timer(DONE)`` before ``def flush(self, names=DoFn.StateParam(NAMES)):``.
    """
    if not isinstance(timer_spec, TimerSpec):
        raise refusal(ValueError, "@on_timer decorator expected TimerSpec", hint="@on_timer(MY_TIMER_SPEC)")

    def attach(method: MethodT) -> MethodT:
        if not callable(method):
            raise refusal(ValueError, "@on_timer decorator expected callable")
        if timer_spec.callback is not None:
            what = f"Multiple on_timer callbacks registered for {timer_spec!r}."
            raise refusal(ValueError, what, hint="one method per timer")
        timer_spec.callback = method
        return method

    return attach


class BaseTimer:
    """A timer as a method sees it (Beam's ``BaseTimer``)."""

    def clear(self, dynamic_timer_tag: str = "") -> None:
        """Unsets the timer."""
        raise NotImplementedError

    def set(
        self,
        timestamp: TimestampTypes,
        dynamic_timer_tag: str = "",
        output_timestamp: TimestampTypes | None = None,
    ) -> None:
        """Sets the timer, instead of any earlier setting with the same tag.

        Args:
            timestamp: When to fire; seconds or a ``Timestamp``.
            dynamic_timer_tag: Distinguishes several settings of one timer.
            output_timestamp: The event time of the timer's outputs, at which it holds back the output's watermark;
                seconds or a ``Timestamp`` (penstock's own, after Java's ``withOutputTimestamp``). By default it is the
                time at which the timer fires; for a timer by the machine's clock, it is the event time of the element
                that set the timer.
        """
        raise NotImplementedError

    def set_relative(self, duration: object, dynamic_timer_tag: str = "") -> None:
        """Sets the timer some time after now (penstock's own, after Java's ``offset(...).setRelative()``).

        Args:
            duration: In seconds, or a ``Duration``. A timer by the machine's clock counts from now; a timer of event
                time counts from the element's timestamp, and fires at the latest when the state of its window is
                dropped.
            dynamic_timer_tag: Distinguishes several settings of one timer.
        """
        raise NotImplementedError

    def get_current_relative_time(self) -> Timestamp:
        """Returns what `set_relative` counts from: the clock, or the element's timestamp (after Java's method)."""
        raise NotImplementedError

    def has_passed(self, timestamp: Timestamp) -> bool:
        """True if the watermark of the input has reached a time (penstock's own)."""
        raise NotImplementedError


class RuntimeTimer(BaseTimer):
    """A timer that records what is done to it (Beam's ``RuntimeTimer``).

    Attributes:
        recordings: The time to fire, by tag; None if the timer was unset.

    >>> timer = RuntimeTimer()
    >>> timer.set(5); timer.clear("a"); timer.recordings
    {'': Timestamp(5), 'a': None}
    """

    def __init__(self) -> None:
        self.recordings: dict[str, Timestamp | None] = {}

    def clear(self, dynamic_timer_tag: str = "") -> None:
        self.recordings[dynamic_timer_tag] = None

    def set(
        self,
        timestamp: TimestampTypes,
        dynamic_timer_tag: str = "",
        output_timestamp: TimestampTypes | None = None,
    ) -> None:
        self.recordings[dynamic_timer_tag] = Timestamp.of(timestamp)


class UserStateContext:
    """Provides states and timers for a key and window; a runner implements it (Beam's ``UserStateContext``)."""

    def get_timer(
        self, timer_spec: TimerSpec, key: Any, window: Any, timestamp: TimestampTypes, pane: Any
    ) -> BaseTimer:
        """Returns the timer of a key and window."""
        raise NotImplementedError

    def get_state(self, state_spec: StateSpec, key: object, window: object) -> RuntimeState:
        """Returns the state of a key and window."""
        raise NotImplementedError

    def commit(self) -> None:
        """Stores all changes."""
        raise NotImplementedError


_MARK = "_is_on_window_expiration"


def on_window_expiration(method: MethodT) -> MethodT:
    """Marks the method of a DoFn that is called before a window's state is dropped (Java's ``@OnWindowExpiration``).

    It is called for each key that still has something in the window: a value in a cell, or a timer. It may ask for
    states, for the key and for the window. Its outputs have the event time of the end of the window.

    Example: ``@on_window_expiration`` before ``def close(self, names=DoFn.StateParam(NAMES)):``.
    """
    if not callable(method):
        raise refusal(ValueError, "@on_window_expiration decorator expected callable")
    setattr(method, _MARK, True)
    return method


def expiration_method(dofn: object) -> Callable[..., Any] | None:
    """Returns the bound method that `on_window_expiration` marks, or None; ValueError if there are several."""
    kind: Any = type(dofn)
    names = _expiration_names(kind)
    if len(names) > 1:
        what = f"{type(dofn).__name__} has several methods for the end of a window: {', '.join(names)}"
        raise refusal(ValueError, what, hint="decorate one with @on_window_expiration")
    return getattr(dofn, names[0]) if names else None


@functools.lru_cache(maxsize=4096)
def _expiration_names(kind: type) -> list[str]:
    return [name for name in dir(kind) if getattr(getattr(kind, name, None), _MARK, False)]
