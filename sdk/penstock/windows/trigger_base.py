"""What all triggers have in common, and the enumerations that go with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum, Flag, IntEnum
from typing import Any, Final, Protocol

from penstock.error import three_parts
from penstock.utils.timestamp import Duration


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


class OnTimeBehavior(Enum):
    """Whether a window gives a pane when the watermark passes its end, although nothing is new (Beam's names).

    >>> OnTimeBehavior.FIRE_IF_NON_EMPTY.name
    'FIRE_IF_NON_EMPTY'
    """

    FIRE_ALWAYS = 1
    FIRE_IF_NON_EMPTY = 2


class ClosingBehavior(Enum):
    """Whether a window gives a last pane when it closes, although nothing is new (Beam's names).

    It closes when the watermark passes its end and the allowed lateness.

    >>> ClosingBehavior.FIRE_ALWAYS.name
    'FIRE_ALWAYS'
    """

    FIRE_ALWAYS = 1
    FIRE_IF_NON_EMPTY = 2


class DataLossReason(Flag):
    """Why a trigger may lose data (Beam's names).

    `MAY_FINISH`: the trigger may fire for the last time while data can still come.
    `CONDITION_NOT_GUARANTEED`: no trigger gives it any more.
    """

    NO_POTENTIAL_LOSS = 0
    MAY_FINISH = 1
    CONDITION_NOT_GUARANTEED = 2


class Finished(Enum):
    """The state of a trigger that fires no more: `FINISHED`, the only member."""

    FINISHED = "finished"


FINISHED: Final = Finished.FINISHED


class HasLateness(Protocol):
    """What a trigger asks of a windowing: how long a window takes late elements."""

    @property
    def allowed_lateness(self) -> Duration:
        """How long after its end."""


class TriggerFn(ABC):
    """A trigger (Beam's ``TriggerFn``): an immutable description, equal to another with the same parts."""

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """Whether this trigger, in `windowing`, may stop firing while data can still come; no, by default.

        >>> from penstock.transforms.trigger import AfterCount, Repeatedly
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

        >>> from penstock.transforms.trigger import AfterCount, AfterWatermark
        >>> AfterWatermark(early=AfterCount(100)).get_continuation_trigger()
        AfterWatermark(early=AfterCount(1))
        """

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({', '.join(_arguments(self))})"


class FiresOnce(TriggerFn):
    """A trigger that fires once and is then finished; `penstock.transforms.trigger.Repeatedly` starts it anew."""

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        return DataLossReason.MAY_FINISH


def check_triggers(owner: str, triggers: tuple[Any, ...]) -> None:
    """Refuses parts of a trigger that are not triggers.

    Args:
        owner: The name of the trigger whose parts they are.
        triggers: The parts.

    Raises:
        TypeError: One of them is not a trigger.
    """
    for trigger in triggers:
        if not isinstance(trigger, TriggerFn):
            what = f"{owner} needs a trigger, but got {trigger!r}"
            raise TypeError(three_parts(what, hint="pass a trigger such as AfterCount(1), not its class"))


def _arguments(trigger: TriggerFn) -> Iterator[str]:
    """The arguments of the constructor call, without those at their defaults."""
    if not is_dataclass(trigger):
        yield from (f"{name}={shown(value)}" for name, value in vars(trigger).items())
        return
    by_name = False
    for field in fields(trigger):
        value = getattr(trigger, field.name)
        if not field.init:
            continue
        if value == field.default:
            by_name = True
        else:
            yield f"{field.name}={shown(value)}" if by_name else shown(value)


def shown(value: Any) -> str:
    """An argument as it stands in a description: functions by their names.

    >>> shown(len), shown("a")
    ('len', "'a'")
    """
    return str(getattr(value, "__name__", None) or repr(value))
