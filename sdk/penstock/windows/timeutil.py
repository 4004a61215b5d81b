"""The clocks of timers."""

from __future__ import annotations

from penstock.error import refusal


class TimeDomain:
    """The clock of a timer: event time (the watermark) or the machine's clock (Beam's names).

    >>> TimeDomain.is_event_time(TimeDomain.WATERMARK), TimeDomain.is_event_time("REAL_TIME")
    (True, False)
    """

    WATERMARK = "WATERMARK"
    REAL_TIME = "REAL_TIME"
    DEPENDENT_REAL_TIME = "DEPENDENT_REAL_TIME"

    @staticmethod
    def from_string(domain: str) -> str:
        """Returns the domain, or raises a ValueError if it is unknown."""
        if domain not in (TimeDomain.WATERMARK, TimeDomain.REAL_TIME, TimeDomain.DEPENDENT_REAL_TIME):
            hint = "use TimeDomain.WATERMARK or TimeDomain.REAL_TIME"
            raise refusal(ValueError, f"unknown time domain: {domain!r}", hint=hint)
        return domain

    @staticmethod
    def is_event_time(domain: str) -> bool:
        """Whether timers of this domain fire by the watermark; a ValueError for an unknown domain."""
        return TimeDomain.from_string(domain) == TimeDomain.WATERMARK
