"""The limit at which a writer writes the elements that it holds: the number that takes a few megabytes."""

from __future__ import annotations

FLUSH_BYTES = 8 << 20
FIRST_ELEMENTS = 128
MOST_COMBINED = 1_000_000
"""The number of elements after which a writer that combines them writes what they have come to,"""

MOST_NAMES = 200_000
"""and the number of keys and windows."""


class FlushLimit:
    """The number of elements to hold before writing rows, learned from the bytes of earlier flushes.

    >>> limit = FlushLimit(100_000)
    >>> limit.learn(elements=1000, size_bytes=800_000_000)
    >>> limit.elements
    10
    """

    def __init__(self, most_elements: int) -> None:
        self.most_elements = most_elements
        self.elements = FIRST_ELEMENTS

    def learn(self, elements: int, size_bytes: int) -> None:
        """Sets the limit so that the next flush takes about `FLUSH_BYTES`, growing at most fourfold at a time."""
        fitting = FLUSH_BYTES * max(elements, 1) // max(size_bytes, 1)
        self.elements = max(1, min(fitting, self.elements * 4, self.most_elements))

    def stretch(self, elements: int, size_bytes: int) -> bool:
        """Raises the limit if the held elements take at most half of the space; returns whether it did.

        >>> limit = FlushLimit(100_000)
        >>> limit.stretch(elements=1000, size_bytes=FLUSH_BYTES), limit.stretch(1000, 2000), limit.elements
        (False, True, 4000)
        """
        if size_bytes > FLUSH_BYTES // 2:
            return False
        fitting = FLUSH_BYTES * elements // max(size_bytes, 1)
        self.elements = max(1, min(fitting, elements * 4))
        return True
