"""Triggers: when, in processing time, the panes of a window are emitted.

These are descriptions; the runner gives them meaning. Names and rules are Beam's, after the paper's question
"when".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Flag, IntEnum
from numbers import Integral
from typing import TYPE_CHECKING, Any

from penstock.error import three_parts
from penstock.utils.timestamp import MAX_TIMESTAMP as MAX_TIMESTAMP
from penstock.utils.timestamp import MIN_TIMESTAMP as MIN_TIMESTAMP
from penstock.utils.timestamp import TIME_GRANULARITY as TIME_GRANULARITY
from penstock.utils.timestamp import Duration, DurationTypes

if TYPE_CHECKING:
    from penstock.transforms.core import Windowing

__all__ = [
    "AccumulationMode",
    "TriggerFn",
    "DefaultTrigger",
    "AfterWatermark",
    "AfterProcessingTime",
    "AfterCount",
    "Always",
    "Repeatedly",
    "AfterAny",
    "AfterAll",
    "AfterEach",
    "OrFinally",
    "DataLossReason",
]


class AccumulationMode(IntEnum):
    """How a later pane of a window relates to the earlier ones (Beam's names; the paper's section 2.3).

    `DISCARDING` panes hold what is new, `ACCUMULATING` panes hold everything so far, and
    `ACCUMULATING_AND_RETRACTING` panes also take back the pane before (the paper's; Beam has none).

    >>> AccumulationMode.ACCUMULATING == 2
    True
    """

    DISCARDING = 1
    ACCUMULATING = 2
    ACCUMULATING_AND_RETRACTING = 3


class DataLossReason(Flag):
    """Why a trigger may lose data (Beam's names).

    `MAY_FINISH`: the trigger may fire for the last time while data can still come.
    `CONDITION_NOT_GUARANTEED`: no trigger gives it any more.
    """

    NO_POTENTIAL_LOSS = 0
    MAY_FINISH = 1
    CONDITION_NOT_GUARANTEED = 2


class TriggerFn(ABC):
    """A trigger (Beam's ``TriggerFn``): an immutable description, equal to another with the same parts."""

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """Whether this trigger, in `windowing`, may stop firing while data can still come; no, by default.

        >>> AfterCount(1).may_lose_data(None), Repeatedly(AfterCount(1)).may_lose_data(None)
        (<DataLossReason.MAY_FINISH: 1>, <DataLossReason.NO_POTENTIAL_LOSS: 0>)
        """
        return DataLossReason.NO_POTENTIAL_LOSS

    def has_ontime_pane(self) -> bool:
        """Whether there is a pane at the end of every window, even without elements; no, by default."""
        return False

    @abstractmethod
    def get_continuation_trigger(self) -> TriggerFn:
        """The trigger of the output of a grouping whose input has this trigger.

        >>> AfterWatermark(early=AfterCount(100)).get_continuation_trigger()
        AfterWatermark(early=AfterCount(1))
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


@dataclass(frozen=True, repr=False)
class DefaultTrigger(TriggerFn):
    """At the end of the window, and again whenever late data has come (Beam's ``DefaultTrigger``)."""

    def has_ontime_pane(self) -> bool:
        """True."""
        return True

    def get_continuation_trigger(self) -> TriggerFn:
        """The same."""
        return self


@dataclass(frozen=True, repr=False)
class Always(TriggerFn):
    """At every element, without end (Beam's ``Always``)."""

    def get_continuation_trigger(self) -> TriggerFn:
        """The same."""
        return self


@dataclass(frozen=True, repr=False)
class _Never(TriggerFn):
    """Only when the window is closed for good (Beam's ``_Never``)."""

    def get_continuation_trigger(self) -> TriggerFn:
        """The same."""
        return self


@dataclass(frozen=True, repr=False)
class _AfterSynchronizedProcessingTime(TriggerFn):
    """When the steps before have fired by processing time: their continuation (Beam's name)."""

    def get_continuation_trigger(self) -> TriggerFn:
        """The same."""
        return self


@dataclass(frozen=True, repr=False)
class AfterProcessingTime(TriggerFn):
    """Once, some time after a pane's first element by the machine's clock (Beam's ``AfterProcessingTime``).

    Args:
        delay: That time, in seconds.

    Raises:
        ValueError: `delay` is negative.
        TypeError: `delay` is no length of time.

    >>> AfterProcessingTime(1.5).delay_micros
    1500000
    """

    delay: DurationTypes = 0

    def __post_init__(self) -> None:
        if self.delay_micros < 0:
            what = f"the delay of AfterProcessingTime is negative: {self.delay!r}"
            raise ValueError(three_parts(what, hint="give seconds, 0 or more"))

    @property
    def delay_micros(self) -> int:
        """The delay in microseconds."""
        return Duration.of(self.delay).micros

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """It finishes."""
        return DataLossReason.MAY_FINISH

    def get_continuation_trigger(self) -> TriggerFn:
        """When the steps before have fired."""
        return _AfterSynchronizedProcessingTime()


@dataclass(frozen=True, repr=False)
class AfterCount(TriggerFn):
    """Once, when a pane has that many elements (Beam's ``AfterCount``).

    Args:
        count: A whole number, 1 or more.

    Raises:
        ValueError: `count` is not.
    """

    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, Integral) or self.count < 1:
            what = f"the count of AfterCount must be a positive integer, but is {self.count!r}"
            raise ValueError(three_parts(what, hint="give a whole number, 1 or more"))

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """It finishes."""
        return DataLossReason.MAY_FINISH

    def get_continuation_trigger(self) -> TriggerFn:
        """At each element: what comes has been counted already."""
        return AfterCount(1)


@dataclass(frozen=True, repr=False)
class Repeatedly(TriggerFn):
    """Another trigger over and over, without end (Beam's ``Repeatedly``).

    Args:
        underlying: That trigger.

    Raises:
        TypeError: `underlying` is no trigger.
    """

    underlying: TriggerFn

    def __post_init__(self) -> None:
        _check_triggers("Repeatedly", (self.underlying,))

    def has_ontime_pane(self) -> bool:
        """As the trigger that is repeated."""
        return self.underlying.has_ontime_pane()

    def get_continuation_trigger(self) -> TriggerFn:
        """The continuation of the trigger that is repeated, repeated."""
        return Repeatedly(self.underlying.get_continuation_trigger())


@dataclass(frozen=True, repr=False)
class AfterWatermark(TriggerFn):
    """When the watermark passes the end of the window (Beam's ``AfterWatermark``).

    Args:
        early: Repeated until then; None for no early panes.
        late: Repeated from then on; None for no late panes.

    Raises:
        TypeError: `early` or `late` is no trigger.

    >>> AfterWatermark(late=AfterCount(1)) == AfterWatermark(late=Repeatedly(AfterCount(1)))
    True
    """

    early: TriggerFn | None = None
    late: TriggerFn | None = None

    def __post_init__(self) -> None:
        for name in ("early", "late"):
            trigger = getattr(self, name)
            if trigger is not None and not isinstance(trigger, Repeatedly):
                _check_triggers(f"AfterWatermark ({name})", (trigger,))
                object.__setattr__(self, name, Repeatedly(trigger))

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """It finishes if late data is allowed and there is no `late` trigger."""
        if windowing.allowed_lateness == 0:
            return DataLossReason.NO_POTENTIAL_LOSS
        return DataLossReason.MAY_FINISH if self.late is None else self.late.may_lose_data(windowing)

    def has_ontime_pane(self) -> bool:
        """True."""
        return True

    def get_continuation_trigger(self) -> TriggerFn:
        """The same with the continuations of its parts."""
        return AfterWatermark(
            self.early and self.early.get_continuation_trigger(),
            self.late and self.late.get_continuation_trigger(),
        )

    def __repr__(self) -> str:
        parts = [
            f"{name}={trigger.underlying}"
            for name, trigger in (("early", self.early), ("late", self.late))
            if isinstance(trigger, Repeatedly)
        ]
        return f"AfterWatermark({', '.join(parts)})"


@dataclass(frozen=True, init=False, repr=False)
class _Composite(TriggerFn):
    """A trigger of several others."""

    triggers: tuple[TriggerFn, ...]

    def __init__(self, *triggers: TriggerFn) -> None:
        name = type(self).__name__
        if not triggers:
            hint = f"write it like {name}(AfterCount(100), AfterProcessingTime(60))"
            raise ValueError(three_parts(f"{name} has no triggers", hint=hint))
        _check_triggers(name, triggers)
        object.__setattr__(self, "triggers", triggers)

    def _may_finish(self, windowing: Windowing) -> list[bool]:
        reasons = (trigger.may_lose_data(windowing) for trigger in self.triggers)
        return [DataLossReason.MAY_FINISH in reason for reason in reasons]

    def has_ontime_pane(self) -> bool:
        """Whether any part has one."""
        return any(trigger.has_ontime_pane() for trigger in self.triggers)

    def _continuations(self) -> list[TriggerFn]:
        return [trigger.get_continuation_trigger() for trigger in self.triggers]

    def get_continuation_trigger(self) -> TriggerFn:
        """The same with the continuations of its parts."""
        return type(self)(*self._continuations())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.triggers))})"


@dataclass(frozen=True, init=False, repr=False)
class AfterAny(_Composite):
    """When any of its parts fires; finishes when any does (Beam's ``AfterAny``).

    Raises:
        ValueError: It has no parts.
        TypeError: A part is no trigger.

    >>> AfterAny(AfterCount(5), AfterProcessingTime(60))
    AfterAny(AfterCount(5), AfterProcessingTime(60))
    """

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """It finishes if any part does."""
        return _finishes(any(self._may_finish(windowing)))


@dataclass(frozen=True, init=False, repr=False)
class AfterAll(_Composite):
    """When all of its parts have fired; finishes when all have (Beam's ``AfterAll``).

    Raises:
        ValueError: It has no parts.
        TypeError: A part is no trigger.
    """

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """It finishes if all parts do."""
        return _finishes(all(self._may_finish(windowing)))


@dataclass(frozen=True, init=False, repr=False)
class AfterEach(_Composite):
    """Each of its parts in turn, the next one once the one before has finished (Beam's ``AfterEach``).

    Raises:
        ValueError: It has no parts.
        TypeError: A part is no trigger.
    """

    def may_lose_data(self, windowing: Windowing) -> DataLossReason:
        """It finishes if all parts do."""
        return _finishes(all(self._may_finish(windowing)))

    def get_continuation_trigger(self) -> TriggerFn:
        """Any continuation of its parts, repeatedly: which part has fired is not known downstream."""
        return Repeatedly(AfterAny(*self._continuations()))


@dataclass(frozen=True, init=False, repr=False)
class OrFinally(AfterAny):
    """A main trigger, until a final one fires and ends it (Beam's ``OrFinally``).

    Raises:
        ValueError: There are not exactly two parts.
        TypeError: A part is no trigger.

    >>> OrFinally(Repeatedly(AfterCount(5)), AfterProcessingTime(3600)).has_ontime_pane()
    False
    """

    def __init__(self, *triggers: TriggerFn) -> None:
        if len(triggers) != 2:
            what = f"OrFinally has {len(triggers)} triggers instead of 2"
            raise ValueError(three_parts(what, hint="write it like OrFinally(main, final)"))
        super().__init__(*triggers)


def _finishes(may_finish: bool) -> DataLossReason:
    return DataLossReason.MAY_FINISH if may_finish else DataLossReason.NO_POTENTIAL_LOSS


def _check_triggers(owner: str, triggers: tuple[Any, ...]) -> None:
    for trigger in triggers:
        if not isinstance(trigger, TriggerFn):
            what = f"{owner} needs a trigger, but got {trigger!r}"
            raise TypeError(three_parts(what, hint="pass a trigger such as AfterCount(1), not its class"))
