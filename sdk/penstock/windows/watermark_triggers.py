"""Triggers by the watermark, and the two plainest: always and never.

These are descriptions; the runner gives them meaning. `docs/triggers.md` shows all triggers at work.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.windows.trigger_base import (
    DataLossReason,
    HasLateness,
    TriggerFn,
    check_triggers,
)
from penstock.windows.trigger_composites import Repeatedly


@dataclass(frozen=True, repr=False)
class DefaultTrigger(TriggerFn):
    """At the end of the window, and again whenever late data has come (Beam's ``DefaultTrigger``)."""

    def has_ontime_pane(self) -> bool:
        return True

    def get_continuation_trigger(self) -> TriggerFn:
        return self


@dataclass(frozen=True, repr=False)
class Always(TriggerFn):
    """At every element, without end (Beam's ``Always``)."""

    def get_continuation_trigger(self) -> TriggerFn:
        return self


@dataclass(frozen=True, repr=False)
class _Never(TriggerFn):
    """Only when the window is closed for good (Beam's ``_Never``)."""

    def get_continuation_trigger(self) -> TriggerFn:
        return self


Never = _Never


@dataclass(frozen=True, repr=False)
class AfterWatermark(TriggerFn):
    """When the watermark passes the end of the window (Beam's ``AfterWatermark``).

    Args:
        early: Repeated until then; None for no early panes.
        late: Repeated from then on; None for no late panes.

    Raises:
        TypeError: `early` or `late` is not a trigger.

    >>> from penstock.transforms.trigger import AfterCount
    >>> AfterWatermark(late=AfterCount(1)) == AfterWatermark(late=Repeatedly(AfterCount(1)))
    True
    """

    early: TriggerFn | None = None
    late: TriggerFn | None = None

    def __post_init__(self) -> None:
        for name in ("early", "late"):
            trigger = getattr(self, name)
            if trigger is not None and not isinstance(trigger, Repeatedly):
                check_triggers(f"AfterWatermark ({name})", (trigger,))
                object.__setattr__(self, name, Repeatedly(trigger))

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
        """It finishes if late data is allowed and there is no `late` trigger."""
        if windowing.allowed_lateness == 0:
            return DataLossReason.NO_POTENTIAL_LOSS
        return DataLossReason.MAY_FINISH if self.late is None else self.late.may_lose_data(windowing)

    def has_ontime_pane(self) -> bool:
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
