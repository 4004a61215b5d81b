"""What all watermark policies have in common, and the one that only recorded input has."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Recorded", "WatermarkPolicy"]


class WatermarkPolicy:
    """A way to find a source's watermark (penstock's own): an immutable value, such as ``BoundedDisorder(60)``.

    See `penstock.io.watermarks`.
    """

    @property
    def delay_micros(self) -> int:
        """How far the watermark is behind the clock when all goes well, in microseconds; by default 0."""
        return 0


@dataclass(frozen=True)
class Recorded(WatermarkPolicy):
    """The watermark is written down, as in a ``TestStream``; nothing is found from elements.

    >>> Recorded().delay_micros
    0
    """
