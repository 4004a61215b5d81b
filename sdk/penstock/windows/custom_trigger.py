"""Triggers of the user's own: a base class, and what its methods see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

from penstock.base.bounded_window import BoundedWindow
from penstock.base.where import here
from penstock.error import three_parts
from penstock.utils.timestamp import Timestamp, TimestampTypes
from penstock.utils.windowed_value import ValueKind
from penstock.windows.timeutil import TimeDomain
from penstock.windows.triggers import FINISHED, AfterCount, FiresOnce, Repeatedly, TriggerFn


class TriggerElement(NamedTuple):
    """An element, as `CustomTrigger.on_element` sees it.

    Attributes:
        value: Its value; in a collection of pairs, the second part.
        timestamp: Its event time.
        kind: Whether it adds its value, or takes it back.
    """

    value: Any
    timestamp: Timestamp
    kind: ValueKind = ValueKind.INSERT


class TriggerTimer(NamedTuple):
    """A timer that has come due, as `CustomTrigger.on_timer` sees it.

    Attributes:
        timestamp: The moment it was set to.
        time_domain: The clock it was set by, a constant of `penstock.transforms.timeutil.TimeDomain`.
    """

    timestamp: Timestamp
    time_domain: str


class TriggerContext(ABC):
    """What a `CustomTrigger` sees of its window."""

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
        """Processing time; in batch mode it stands still."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of elements since the last pane."""

    @property
    @abstractmethod
    def value(self) -> Any:
        """What a pane would hold now: the list of values, or the CombineFn's result."""

    @property
    @abstractmethod
    def last_value(self) -> Any:
        """What the window's last pane held; None before the first one."""

    @abstractmethod
    def set_timer(self, timestamp: TimestampTypes, time_domain: str = TimeDomain.REAL_TIME) -> None:
        """Asks for a call of `CustomTrigger.on_timer`.

        Args:
            timestamp: When.
            time_domain: By which clock: ``TimeDomain.REAL_TIME`` or ``TimeDomain.WATERMARK``. Each has one timer; a
                new one replaces it.
        """


class CustomTrigger(FiresOnce):
    """The base of triggers of your own: subclass it and define `should_fire` (penstock's own).

    What the trigger has to remember in a window is its state: a plain value that can be pickled, which each method
    takes and returns anew, and does not change in place. It fires when `should_fire` says so, which is asked after
    each element, timer and merge, and when the watermark passes the end of the window. Then it is finished, unless
    `on_fire` says with which state it goes on. Arguments of the constructor are part of the description: a frozen
    dataclass suits them.

    Raises:
        TypeError: The class does not define `should_fire`.

    >>> class WhenOdd(CustomTrigger):
    ...     def should_fire(self, state, context):
    ...         return context.value % 2 == 1
    >>> Repeatedly(WhenOdd())
    Repeatedly(WhenOdd())
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance of a subclass that is complete."""
        if getattr(cls.should_fire, "__isabstractmethod__", False):
            what = f"the trigger {cls.__name__} does not say when it fires"
            raise TypeError(three_parts(what, where=here(), hint="define should_fire(self, state, context)"))
        return super().__new__(cls)

    def start(self) -> Any:
        """The state of a window without elements; None, by default."""
        return None

    def on_element(self, state: Any, element: TriggerElement, context: TriggerContext) -> Any:
        """The state after an element; the same, by default."""
        return state

    def on_merge(self, states: list[Any], context: TriggerContext) -> Any:
        """The state of a window that others have merged into.

        Args:
            states: Those of the others, as far as they have not finished; at least one.
            context: The new window.

        Raises:
            NotImplementedError: By default.
        """
        raise NotImplementedError(
            three_parts(
                f"the trigger {type(self).__name__} does not say what happens when windows merge",
                hint="define on_merge(self, states, context), or use windows that do not merge",
            )
        )

    def on_timer(self, state: Any, timer: TriggerTimer, context: TriggerContext) -> Any:
        """The state after a timer has come due; the same, by default."""
        return state

    @abstractmethod
    def should_fire(self, state: Any, context: TriggerContext) -> bool:
        """Whether a pane fires now."""

    def on_fire(self, state: Any, context: TriggerContext) -> Any:
        """The state after a pane; by default `penstock.windows.triggers.FINISHED`: no further one fires."""
        return FINISHED

    def get_continuation_trigger(self) -> TriggerFn:
        """At each element: what comes has been judged already; repeatedly, if the class defines `on_fire`."""
        fires_once = type(self).on_fire is CustomTrigger.on_fire
        return AfterCount(1) if fires_once else Repeatedly(AfterCount(1))

    def __eq__(self, other: object) -> bool:
        # Not a dataclass, so that the user's subclass may be one, frozen or not, or none.
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(type(self))
