"""The base class of custom triggers, and what its methods see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

from penstock.elements.bounded_window import BoundedWindow
from penstock.error import refusal
from penstock.utils.timestamp import Timestamp, TimestampTypes
from penstock.utils.windowed_value import ValueKind
from penstock.windows.time_domain import TimeDomain
from penstock.windows.triggers import FINISHED, AfterCount, FiresOnce, Repeatedly, TriggerFn


class TriggerElement(NamedTuple):
    """An element, as `CustomTrigger.on_element` sees it; in a collection of pairs, `value` is the second part."""

    value: Any
    timestamp: Timestamp
    kind: ValueKind = ValueKind.INSERT


class TriggerTimer(NamedTuple):
    """A timer that is due, as `CustomTrigger.on_timer` sees it."""

    timestamp: Timestamp
    time_domain: str  # The clock that it follows, a constant of `penstock.transforms.timeutil.TimeDomain`.


class TriggerContext(ABC):
    """Shows a `CustomTrigger` its window."""

    @property
    @abstractmethod
    def window(self) -> BoundedWindow:
        """The window."""

    @property
    @abstractmethod
    def watermark(self) -> Timestamp:
        """The watermark: no element before it is expected any more."""

    @property
    @abstractmethod
    def clock(self) -> Timestamp:
        """Processing time; in batch mode it does not advance."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of elements since the last pane."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """Returns what a pane would hold now: the list of values, or the CombineFn's result."""

    @property
    @abstractmethod
    def last_value(self) -> Any:
        """Returns what the window's last pane held; None before the first one."""

    @abstractmethod
    def set_timer(self, timestamp: TimestampTypes, time_domain: str = TimeDomain.REAL_TIME) -> None:
        """Requests a call of `CustomTrigger.on_timer` at a time.

        Each clock, ``TimeDomain.REAL_TIME`` and ``TimeDomain.WATERMARK``, has one timer; a new one replaces it.
        """


class CustomTrigger(FiresOnce):
    """The base class of custom triggers: derive from it and define `should_fire` (penstock's own).

    The trigger keeps a state for each window: a plain value that can be pickled. Each method takes the state and
    returns the next one, and does not change it in place. `should_fire` is called after each element, timer and merge,
    and when the watermark passes the end of the window. A trigger that has fired is finished, unless `on_fire` returns
    another state. Arguments of the constructor are part of the description: a frozen dataclass suits them.

    >>> class WhenOdd(CustomTrigger):
    ...     def should_fire(self, state, context):
    ...         return context.value % 2 == 1
    >>> Repeatedly(WhenOdd())
    Repeatedly(WhenOdd())
    """

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuses a subclass without `should_fire`."""
        if getattr(cls.should_fire, "__isabstractmethod__", False):
            what = f"the trigger {cls.__name__} does not define should_fire"
            raise refusal(TypeError, what, hint="define should_fire(self, state, context)")
        return super().__new__(cls)

    def start(self) -> Any:
        """Returns the state of a window without elements; by default None."""
        return None

    def on_element(self, state: Any, element: TriggerElement, context: TriggerContext) -> object:
        """Returns the state after an element; by default the same."""
        return state

    def on_merge(self, states: list[Any], context: TriggerContext) -> object:
        """Returns the state of a window after others have merged into it, from their unfinished states; at least one.

        By default it raises a NotImplementedError.
        """
        what = f"the trigger {type(self).__name__} does not say what happens when windows merge"
        hint = "define on_merge(self, states, context), or use windows that do not merge"
        raise refusal(NotImplementedError, what, hint=hint)

    def on_timer(self, state: Any, timer: TriggerTimer, context: TriggerContext) -> Any:
        """Returns the state after a timer was due; by default the same."""
        return state

    @abstractmethod
    def should_fire(self, state: Any, context: TriggerContext) -> bool:
        """True if a pane fires now."""

    def on_fire(self, state: Any, context: TriggerContext) -> object:
        """Returns the state after a pane; by default `penstock.windows.triggers.FINISHED`: it does not fire again."""
        return FINISHED

    def get_continuation_trigger(self) -> TriggerFn:
        """Returns a trigger of each element, which this one has already selected; repeated if `on_fire` is defined."""
        fires_once = type(self).on_fire is CustomTrigger.on_fire
        return AfterCount(1) if fires_once else Repeatedly(AfterCount(1))

    def __eq__(self, other: object) -> bool:
        # This class is not a dataclass: so the user's subclass may be one, frozen or not.
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))
