"""Triggers without parts that wait for a clock: the machine's own, or the watermark of a percentile."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real

from penstock.error import three_parts
from penstock.utils.timestamp import Duration, DurationTypes, Timestamp, TimestampDurationTypes
from penstock.windows.trigger_base import FiresOnce, TriggerFn


@dataclass(frozen=True, repr=False)
class AfterProcessingTime(FiresOnce):
    """Once, some time after a pane's first element by the machine's clock (Beam's ``AfterProcessingTime``).

    Args:
        delay: That time, in seconds.

    Raises:
        ValueError: `delay` is negative.
        TypeError: `delay` is not a length of time.

    >>> AfterProcessingTime(1.5).delay_micros
    1500000
    """

    # Seconds as a number and as a Duration are equal, but do not hash equal, so the microseconds are compared.
    delay: DurationTypes = field(default=0, compare=False)
    _delay_micros: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_delay_micros", Duration.of(self.delay).micros)
        if self._delay_micros < 0:
            what = f"the delay of AfterProcessingTime is negative: {self.delay!r}"
            raise ValueError(three_parts(what, hint="give seconds, 0 or more"))

    @staticmethod
    def aligned_to(period: DurationTypes, offset: TimestampDurationTypes = 0) -> AfterAlignedProcessingTime:
        """Once, at the next full period of the clock (the name is that of Beam's Java SDK).

        Args:
            period: The time from one full period to the next, in seconds.
            offset: Seconds from the epoch to some full period.

        Raises:
            ValueError: `period` is 0 or less.
            TypeError: `period` or `offset` is not a time.

        >>> AfterProcessingTime.aligned_to(3600)
        AfterAlignedProcessingTime(3600)
        """
        return AfterAlignedProcessingTime(period, offset)

    @property
    def delay_micros(self) -> int:
        """The delay in microseconds."""
        return self._delay_micros

    def get_continuation_trigger(self) -> TriggerFn:
        """When the steps before have fired."""
        return AfterSynchronizedProcessingTime()


@dataclass(frozen=True, repr=False)
class AfterAlignedProcessingTime(FiresOnce):
    """Once, at the next full period of the machine's clock, such as the next full hour (the paper's ``AtPeriod``).

    An element that comes at exactly that time is still in the pane.

    Args:
        period: The time from one full period to the next, in seconds.
        offset: Seconds from the epoch to some full period; 8 * 3600 with a period of a day means at eight, UTC.

    Raises:
        ValueError: `period` is 0 or less.
        TypeError: `period` or `offset` is not a time.

    >>> daily_at_eight = AfterAlignedProcessingTime(86400, offset=8 * 3600)
    >>> daily_at_eight.period_micros, daily_at_eight.offset_micros
    (86400000000, 28800000000)
    """

    period: DurationTypes = field(compare=False)
    offset: TimestampDurationTypes = field(default=0, compare=False)
    _period_micros: int = field(init=False)
    _offset_micros: int = field(init=False)

    def __post_init__(self) -> None:
        period_micros = Duration.of(self.period).micros
        if period_micros <= 0:
            what = f"the period of AfterAlignedProcessingTime must be positive, but is {self.period!r}"
            raise ValueError(three_parts(what, hint="give seconds, such as 60 for every full minute"))
        offset = self.offset if isinstance(self.offset, Timestamp) else Duration.of(self.offset)
        object.__setattr__(self, "_period_micros", period_micros)
        object.__setattr__(self, "_offset_micros", offset.micros % period_micros)

    @property
    def period_micros(self) -> int:
        """The time from one full period to the next in microseconds."""
        return self._period_micros

    @property
    def offset_micros(self) -> int:
        """The microseconds from the epoch to the first full period after it: at least 0, less than a period."""
        return self._offset_micros

    def get_continuation_trigger(self) -> TriggerFn:
        """When the steps before have fired."""
        return AfterSynchronizedProcessingTime()


@dataclass(frozen=True, repr=False)
class _AfterSynchronizedProcessingTime(TriggerFn):
    """When the steps before have fired by processing time: their continuation (Beam's name)."""

    def get_continuation_trigger(self) -> TriggerFn:
        return self


AfterSynchronizedProcessingTime = _AfterSynchronizedProcessingTime


@dataclass(frozen=True, repr=False)
class AfterWatermarkPercentile(FiresOnce):
    """Once, when the watermark of a percentile passes the end of the window (the paper's section 2.3).

    That watermark says how far a share of the input has come, so that a few stragglers delay nothing.

    Args:
        percentile: The share, more than 0 and at most 1; 1 means the watermark itself.

    Raises:
        ValueError: `percentile` is not such a number.

    >>> AfterWatermarkPercentile(0.95).get_continuation_trigger()
    AfterWatermarkPercentile(0.95)
    """

    percentile: float

    def __post_init__(self) -> None:
        is_number = isinstance(self.percentile, Real) and not isinstance(self.percentile, bool)
        if not (is_number and 0 < self.percentile <= 1):
            what = f"the percentile must be more than 0 and at most 1, but is {self.percentile!r}"
            raise ValueError(three_parts(what, hint="write 0.95 for 95 percent"))

    def get_continuation_trigger(self) -> TriggerFn:
        return self
