"""The base class of watermark policies, and the policy of recorded input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["Recorded", "WatermarkPolicy"]


class WatermarkPolicy:
    """Finds a source's watermark (penstock's own): an immutable value, such as ``BoundedDisorder(60)``.

    See `penstock.io.watermarks`.

    Attributes:
        follows_clock: Whether the watermark may advance while nothing arrives.
    """

    follows_clock: ClassVar[bool] = True

    @property
    def delay_micros(self) -> int:
        """The usual distance of the watermark behind the clock, in microseconds; by default 0."""
        return 0


@dataclass(frozen=True)
class Recorded(WatermarkPolicy):
    """The watermark is recorded, as in a ``TestStream``; it does not follow from elements."""

    follows_clock: ClassVar[bool] = False
