"""Triggers, under Beam's path (`apache_beam.transforms.trigger`)."""

from __future__ import annotations

from penstock.base.bounded_window import GlobalWindow as GlobalWindow
from penstock.utils.timestamp import MAX_TIMESTAMP as MAX_TIMESTAMP
from penstock.utils.timestamp import MIN_TIMESTAMP as MIN_TIMESTAMP
from penstock.utils.timestamp import TIME_GRANULARITY as TIME_GRANULARITY
from penstock.windows.custom_trigger import CustomTrigger as CustomTrigger
from penstock.windows.custom_trigger import TriggerElement as TriggerElement
from penstock.windows.custom_trigger import TriggerTimer as TriggerTimer
from penstock.windows.triggers import FINISHED as FINISHED
from penstock.windows.triggers import AccumulationMode as AccumulationMode
from penstock.windows.triggers import AfterAlignedProcessingTime as AfterAlignedProcessingTime
from penstock.windows.triggers import AfterAll as AfterAll
from penstock.windows.triggers import AfterAny as AfterAny
from penstock.windows.triggers import AfterBytes as AfterBytes
from penstock.windows.triggers import AfterCount as AfterCount
from penstock.windows.triggers import AfterDelta as AfterDelta
from penstock.windows.triggers import AfterEach as AfterEach
from penstock.windows.triggers import AfterPattern as AfterPattern
from penstock.windows.triggers import AfterProcessingTime as AfterProcessingTime
from penstock.windows.triggers import AfterPunctuation as AfterPunctuation
from penstock.windows.triggers import AfterSignal as AfterSignal
from penstock.windows.triggers import AfterSynchronizedProcessingTime as AfterSynchronizedProcessingTime
from penstock.windows.triggers import AfterWatermark as AfterWatermark
from penstock.windows.triggers import AfterWatermarkPercentile as AfterWatermarkPercentile
from penstock.windows.triggers import Always as Always
from penstock.windows.triggers import ClosingBehavior as ClosingBehavior
from penstock.windows.triggers import DataLossReason as DataLossReason
from penstock.windows.triggers import DefaultTrigger as DefaultTrigger
from penstock.windows.triggers import Finished as Finished
from penstock.windows.triggers import Never as Never
from penstock.windows.triggers import OnTimeBehavior as OnTimeBehavior
from penstock.windows.triggers import OrFinally as OrFinally
from penstock.windows.triggers import Repeatedly as Repeatedly
from penstock.windows.triggers import TriggerFn as TriggerFn
from penstock.windows.triggers import _AfterSynchronizedProcessingTime as _AfterSynchronizedProcessingTime
from penstock.windows.triggers import _Never as _Never
