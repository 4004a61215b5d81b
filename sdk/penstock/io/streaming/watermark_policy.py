"""The base classes of watermark policies, and the policy of recorded input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Recorded", "WatermarkPolicy", "Wrapping"]


class WatermarkPolicy:
    """Finds a source's watermark (penstock's own): an immutable value, such as ``BoundedDisorder(60)``.

    See `penstock.io.watermarks`. A policy declares here what a stream, an estimator and a checkpoint ask of it; the
    runner has its rule.

    Attributes:
        follows_clock: Whether the watermark may advance while nothing arrives.
        needs_event_times: True if elements need event times, False if they must have none but their arrival. None if
            the watermark of a source does not follow from its elements.
        state_depends_on: The arguments on which the state of an estimator depends, by name.
    """

    follows_clock: ClassVar[bool] = True
    needs_event_times: ClassVar[bool | None] = None
    state_depends_on: ClassVar[tuple[str, ...]] = ()

    @property
    def delay_micros(self) -> int:
        """The usual distance of the watermark behind the clock, in microseconds; by default 0."""
        return 0

    @property
    def least_partitions(self) -> int | None:
        """The number of partitions that it waits for; None, the default, if it combines all partitions."""
        return None

    @property
    def idle_micros(self) -> int | None:
        """The time that it waits for a silent source, in microseconds; None, the default, for no limit."""
        return None

    @property
    def percentile_shares(self) -> tuple[float, ...]:
        """The percentiles that have their own watermarks; by default none."""
        return ()

    @property
    def innermost(self) -> WatermarkPolicy:
        """The policy inside all that wrap another one; by default itself."""
        return self

    def describe(self) -> str:
        """Returns the name of its class, with the name of what it wraps."""
        return type(self).__name__


class Wrapping(WatermarkPolicy):
    """A policy around another one, which it adds something to.

    Attributes:
        policy: The other policy.
    """

    policy: WatermarkPolicy

    @property
    def delay_micros(self) -> int:
        return self.policy.delay_micros

    @property
    def least_partitions(self) -> int | None:
        return self.policy.least_partitions

    @property
    def idle_micros(self) -> int | None:
        return self.policy.idle_micros

    @property
    def percentile_shares(self) -> tuple[float, ...]:
        return self.policy.percentile_shares

    @property
    def innermost(self) -> WatermarkPolicy:
        return self.policy.innermost

    def describe(self) -> str:
        return f"{super().describe()}({self.policy.describe()})"


@dataclass(frozen=True)
class Recorded(WatermarkPolicy):
    """The watermark is recorded, as in a ``TestStream``; it does not follow from elements."""

    follows_clock: ClassVar[bool] = False
