"""Triggers: when, in processing time, the panes of a window are emitted.

These are descriptions; the runner gives them meaning. Names and rules are Beam's, after the paper's question
"when"; what Beam does not have says where it comes from. `docs/triggers.md` shows all of them at work.
All names are here, but for ``TriggerContext`` of `custom_trigger`: Beam has this name here for something else.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.bounded_window import GlobalWindow as GlobalWindow
from penstock.utils.timestamp import MAX_TIMESTAMP as MAX_TIMESTAMP
from penstock.utils.timestamp import MIN_TIMESTAMP as MIN_TIMESTAMP
from penstock.utils.timestamp import TIME_GRANULARITY as TIME_GRANULARITY
from penstock.windows.custom_trigger import CustomTrigger, TriggerElement, TriggerTimer
from penstock.windows.trigger_arrivals import (
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterPattern,
    AfterPunctuation,
    AfterSignal,
)
from penstock.windows.trigger_base import (
    FINISHED,
    AccumulationMode,
    ClosingBehavior,
    DataLossReason,
    Finished,
    HasLateness,
    OnTimeBehavior,
    TriggerFn,
    check_triggers,
)
from penstock.windows.trigger_composites import AfterAll, AfterAny, AfterEach, OrFinally, Repeatedly
from penstock.windows.trigger_times import (
    AfterAlignedProcessingTime,
    AfterProcessingTime,
    AfterSynchronizedProcessingTime,
    AfterWatermarkPercentile,
)
from penstock.windows.trigger_times import (
    _AfterSynchronizedProcessingTime as _AfterSynchronizedProcessingTime,
)

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
    "AfterAlignedProcessingTime",
    "AfterBytes",
    "AfterDelta",
    "AfterPattern",
    "AfterPunctuation",
    "AfterSignal",
    "AfterSynchronizedProcessingTime",
    "AfterWatermarkPercentile",
    "ClosingBehavior",
    "CustomTrigger",
    "FINISHED",
    "Finished",
    "Never",
    "OnTimeBehavior",
    "TriggerElement",
    "TriggerTimer",
]


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


Never = _Never


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
                check_triggers(f"AfterWatermark ({name})", (trigger,))
                object.__setattr__(self, name, Repeatedly(trigger))

    def may_lose_data(self, windowing: HasLateness) -> DataLossReason:
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
