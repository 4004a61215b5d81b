"""Triggers, under Beam's path (`apache_beam.transforms.trigger`)."""

from penstock.absent import hint_at_absent_names
from penstock.elements.bounded_window import GlobalWindow
from penstock.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, TIME_GRANULARITY
from penstock.utils.windowed_value import WindowedValue as WindowedValue
from penstock.windows.custom_trigger import CustomTrigger, TriggerElement, TriggerTimer
from penstock.windows.output_times import TimestampCombiner as TimestampCombiner
from penstock.windows.time_domain import TimeDomain as TimeDomain
from penstock.windows.triggers import (
    FINISHED,
    AccumulationMode,
    AfterAlignedProcessingTime,
    AfterAll,
    AfterAny,
    AfterBytes,
    AfterCount,
    AfterDelta,
    AfterEach,
    AfterPattern,
    AfterProcessingTime,
    AfterPunctuation,
    AfterSignal,
    AfterSynchronizedProcessingTime,
    AfterWatermark,
    AfterWatermarkPercentile,
    Always,
    ClosingBehavior,
    DataLossReason,
    DefaultTrigger,
    Finished,
    Never,
    OnTimeBehavior,
    OrFinally,
    Repeatedly,
    TriggerFn,
)
from penstock.windows.triggers import _AfterSynchronizedProcessingTime as _AfterSynchronizedProcessingTime
from penstock.windows.triggers import _Never as _Never
from penstock.windows.window_fn import GlobalWindows as GlobalWindows
from penstock.windows.window_fn import WindowFn as WindowFn

__all__ = [
    "AccumulationMode",
    "AfterAlignedProcessingTime",
    "AfterAll",
    "AfterAny",
    "AfterBytes",
    "AfterCount",
    "AfterDelta",
    "AfterEach",
    "AfterPattern",
    "AfterProcessingTime",
    "AfterPunctuation",
    "AfterSignal",
    "AfterSynchronizedProcessingTime",
    "AfterWatermark",
    "AfterWatermarkPercentile",
    "Always",
    "ClosingBehavior",
    "CustomTrigger",
    "DataLossReason",
    "DefaultTrigger",
    "FINISHED",
    "Finished",
    "GlobalWindow",
    "MAX_TIMESTAMP",
    "MIN_TIMESTAMP",
    "Never",
    "OnTimeBehavior",
    "OrFinally",
    "Repeatedly",
    "TIME_GRANULARITY",
    "TriggerElement",
    "TriggerFn",
    "TriggerTimer",
]

hint_at_absent_names(globals())
